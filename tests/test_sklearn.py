import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from coaltree import CoalescentClustering, CoalescentImputer


# Nothing is skipped or expected to fail; the first checks compile the kernels.
@parametrize_with_checks(
    [
        CoalescentClustering(),
        CoalescentClustering(n_clusters=2),
        CoalescentClustering(rule="max-prob"),
        CoalescentClustering(inference="smc", proposal="race", n_particles=5, random_state=0),
        CoalescentImputer(calibrate=1),
    ]
)
@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_check_estimator(estimator, check):
    check(estimator)
