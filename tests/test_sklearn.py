"""scikit-learn's own checks of estimators."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from coaltree import CoalescentClustering, CoalescentImputer, CoalescentOutlierDetector

# Without the search for the noise, which takes nearly all the time of a fit.
QUICK = {"noise": 0.1}

pytestmark = [
    pytest.mark.usefixtures("short_chains"),
    pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]


# Nothing is skipped or expected to fail.
@parametrize_with_checks(
    [
        CoalescentClustering(**QUICK),
        CoalescentClustering(inference="mcmc", n_chains=2, n_samples=10, random_state=0, **QUICK),
        CoalescentImputer(**QUICK),
        CoalescentOutlierDetector(**QUICK),
    ]
)
def test_estimators_pass_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        CoalescentClustering(),
        CoalescentClustering(refine=True, **QUICK),
        CoalescentClustering(inference="smc", proposal="race", n_particles=5, random_state=0, **QUICK),
    ]
)
def test_variants_pass_check_estimator(estimator, check):
    check(estimator)
