import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from coaltree import CoalescentClustering, CoalescentImputer

# One fit with everything that is done by default; the others leave out the search for the noise, which takes nearly all the time.
QUICK = {"calibrate": 1, "noise": 0.1}


# Nothing is skipped or expected to fail; the first checks compile the kernels.
@parametrize_with_checks(
    [
        CoalescentClustering(),
        CoalescentClustering(n_clusters=2, **QUICK),
        CoalescentClustering(rule="max-prob", **QUICK),
        CoalescentClustering(inference="smc", proposal="race", n_particles=5, random_state=0, **QUICK),
        CoalescentClustering(inference="mcmc", n_chains=2, n_samples=10, random_state=0, **QUICK),
        CoalescentClustering(refine=True, **QUICK),
        CoalescentImputer(**QUICK),
    ]
)
@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_check_estimator(estimator, check):
    check(estimator)
