"""The evidence by chains at powers of the likelihood, against enumeration and quadrature, sequential Monte Carlo and itself.

Seeds are fixed, so the tests do not flicker; the levels say how unlikely it was that a right program should fail them.
"""

import math
from itertools import product

import joblib
import numpy as np
import pytest

import coaltree as ct
import exact_posterior
from coaltree.errors import InputWarning
from coaltree.inference.chain import Chain
from coaltree.inference.evidence import STEP_ESS, Samples, choose, draw_from_prior, next_power
from coaltree.inference.results import EvidenceResult
from coaltree.process.site_rates import category_rates
from named import check_named, refused

pytestmark = pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")

BINARY, TERNARY = [0.6, 0.4], [0.2, 0.5, 0.3]


def table(kind, n):
    """A table with missing cells, and a process for it."""
    rng = np.random.default_rng(n)
    real = rng.normal(size=(n, 2)) + 0.8 * np.arange(n)[:, None]
    codes = np.column_stack([rng.integers(0, 2, n), rng.integers(0, 3 if n < 5 else 2, n)]).astype(float)
    real[0, 0] = real[n - 1, 1] = codes[1, 0] = codes[0, 1] = np.nan
    brownian = ct.Brownian([1.0, 2.5], noise=0.0 if n == 4 else 0.2)
    stationary = ct.OrnsteinUhlenbeck(0.6, [1.0, 0.5], [1.5, 2.0], [0.1, 0.3])
    multinomial = ct.Multinomial([0.7, 1.6], [BINARY, TERNARY if n < 5 else BINARY])
    if kind == "brownian":
        return real, brownian
    if kind == "stationary":
        return real, stationary
    if kind == "multinomial":
        return codes, multinomial
    varying = multinomial.replace(rate=0.7, gamma_shape=0.4)
    if kind == "gamma, recorded":
        return np.array([[0.0, 1.0], [0.0, np.nan], [1.0, 2.0]]), varying.replace(ascertainment="variable")
    if kind == "gamma, mixed":
        return np.hstack([real, codes]), ct.Mixed((brownian, [0, 1]), (varying, [2, 3]))
    if kind == "mixed":
        return np.hstack([real, codes]), ct.Mixed((brownian, [0, 1]), (multinomial, [2, 3]))
    return np.hstack([real, real + 0.5, codes]), ct.Mixed(
        (brownian, [0, 1]), (stationary, [2, 3]), (multinomial, [4, 5])
    )


def prior_mean(X, process, points):
    """Average the likelihood over all histories, and over the heights of the prior by Gaussian quadrature.

    The waiting times are quantiles of their exponential distributions.
    """
    n = len(X)
    u, weights = np.polynomial.legendre.leggauss(points)
    pairs = np.arange(n, 1, -1) * np.arange(n - 1, 0, -1) / 2
    grid = np.array(list(product(range(points), repeat=n - 1)))
    waits = -np.log((1 - u[grid]) / 2) / pairs
    shares = np.prod(weights[grid] / 2, axis=1)
    histories = list(exact_posterior.histories(n))
    heights = np.cumsum(waits, axis=1)
    return math.log(np.mean([shares @ likelihoods(children, heights, X, process) for children in histories]))


def likelihoods(children, heights, X, process):
    """Return the likelihoods of trees; where rates vary, the means over the categories of each column by itself."""
    total = 1.0
    for part, columns in process.subprocesses(X.shape[1]):
        if part.gamma_shape is None:
            total = total * np.exp(exact_posterior.log_likelihoods(children, heights, X[:, columns], part))
            continue
        for d, q in zip(columns, part.equilibrium, strict=True):
            given = [ct.Multinomial(part.rate * rate, [q]) for rate in category_rates(part.gamma_shape)]
            logs = np.array([exact_posterior.log_likelihoods(children, heights, X[:, [d]], one) for one in given])
            total = total * np.exp(logs).mean(axis=0)
            if part.ascertainment:
                given = [one.replace(ascertainment=part.ascertainment) for one in given]
                of_recorded = [exact_posterior.log_likelihoods(children, heights, X[:, [d]], one) for one in given]
                total = total / np.exp(logs - of_recorded).mean(axis=0)
    return total


def check_evidence(result, truth):
    """The mean over 20 runs is within 6 standard errors of the truth, a level of 1e-5 with 19 degrees of freedom."""
    assert len(result.run_log_evidences) == 20
    shares = np.exp(result.run_log_evidences - truth)
    error = shares.std(ddof=1) / math.sqrt(20)
    assert abs(shares.mean() - 1) < 6 * error + 2e-3  # quadrature is exact to 2e-3
    assert error < 0.06, "the test would see nothing"


@pytest.mark.parametrize(
    ("kind", "n"),
    [
        *product(["brownian", "stationary", "multinomial", "mixed"], [3, 4]),
        *product(["gamma, recorded", "gamma, mixed"], [3]),
    ],
)
def test_evidence_matches_enumeration(kind, n):
    """Ten tests of level 1e-5."""
    X, process = table(kind, n)
    truth = prior_mean(X, process, 12)
    check_evidence(ct.evidence(X, process, 20, n_chains=8, n_samples=8, random_state=n), truth)


@pytest.mark.parametrize(("kind", "n"), [("stationary", 3), ("brownian", 4)])
def test_quadratures_agree(kind, n):
    X, process = table(kind, n)
    expected = math.log(exact_posterior.integrals(X, process).evidence)
    assert prior_mean(X, process, 12) == pytest.approx(expected, abs=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["brownian", "stationary", "multinomial", "all"])
def test_evidence_of_five_rows_matches_enumeration(kind):
    """Four tests of level 1e-5; 180 histories."""
    X, process = table(kind, 5)
    truth = prior_mean(X, process, 8)
    assert truth == pytest.approx(prior_mean(X, process, 6), abs=2e-3)
    check_evidence(ct.evidence(X, process, 20, n_chains=8, n_samples=24, random_state=5), truth)


def test_evidence_of_eight_rows_matches_smc():
    """The difference of two means of independent runs, in their standard errors: six, a level of 1e-5."""
    X, process = table("mixed", 8)
    sample = ct.evidence(X, process, 12, n_chains=8, n_samples=12, random_state=0)
    other = ct.smc(X, process, "post-post", 500, n_runs=12, random_state=1)
    error = math.hypot(sample.standard_error, other.log_evidence_se)
    assert abs(sample.log_evidence - other.log_evidence) < 6 * error
    assert error < 0.2, "the test would see nothing"


def test_short_chains_leave_the_evidence_unbiased():
    """Chains of one move between powers; level 1e-5."""
    X, process = table("multinomial", 4)
    truth = prior_mean(X, process, 12)
    powers = [0.0, 0.3, 0.6, 1.0]
    check_evidence(ct.evidence(X, process, 20, n_chains=40, n_samples=2, thin=1, powers=powers, random_state=2), truth)


def test_evidence_without_data_is_exact():
    sample = ct.evidence(np.full((4, 2), np.nan), ct.Brownian(), n_chains=2, n_samples=2, random_state=0)
    assert sample.log_evidence == pytest.approx(0.0, abs=1e-9)
    assert sample.standard_error == pytest.approx(0.0, abs=1e-9)
    assert sample.powers.tolist() == [0.0, 1.0]
    codes = np.where(np.eye(3) == 1, 1.0, np.nan)  # rows that share no column
    sample = ct.evidence(codes, ct.Multinomial(1.0, [[0.75, 0.25]] * 3), n_chains=2, n_samples=2, random_state=0)
    assert sample.log_evidence == pytest.approx(3 * math.log(0.25), abs=1e-9)


# -- parts ---------------------------------------------------------------------------------------------------------


def test_restarted_chain_equals_new_chain():
    X, process = table("all", 8)
    first, second = (ct.simulate_tree(8, random_state=seed) for seed in (0, 1))
    old, new = Chain(X, process, first, np.random.default_rng(5), power=0.4), Chain(X, process, second, power=0.4)
    new.move(30)
    new.start_at(first, np.random.default_rng(5))
    for _ in range(3):
        assert new.log_joint == old.log_joint
        np.testing.assert_array_equal(new.sample().heights, old.sample().heights)
        old.move(10)
        new.move(10)


def test_prior_samples_have_correct_log_likelihoods():
    X, process = table("mixed", 4)
    actual = draw_from_prior(X, process, 3, 5)
    for children, heights, log_likelihood in zip(*actual[:3], strict=True):
        tree = ct.Tree(children, np.append(np.zeros(4), heights))
        assert process.log_likelihood(tree, X) == pytest.approx(log_likelihood)


def test_next_power_keeps_effective_sample_size():
    log_likelihoods = np.append(-50 * np.random.default_rng(0).gamma(3.0, size=400), -math.inf)
    power = next_power(0.25, at_powers(log_likelihoods))
    weights = np.exp((power - 0.25) * (log_likelihoods[:-1] - log_likelihoods.max()))
    assert weights.sum() ** 2 / np.sum(weights**2) == pytest.approx(STEP_ESS * 400, rel=1e-6)
    assert next_power(0.25, at_powers(np.zeros(5))) == 1.0


def at_powers(log_likelihoods):
    """Samples with some log likelihoods."""
    size = len(log_likelihoods)
    return Samples(
        np.zeros((size, 0, 2)), np.zeros((size, 0)), log_likelihoods, np.zeros((size, 4, 0)), np.zeros((size, 0))
    )


def test_systematic_resampling_follows_weights():
    """Each sample is chosen as often as expected, rounded up or down."""
    X, process = table("brownian", 4)
    samples = draw_from_prior(X, process, 0, 6)
    weights = np.array([0.3, 0.0, 0.25, 0.05, 0.4, 0.0])
    for seed in range(20):
        chosen = choose(samples, weights, 10, np.random.default_rng(seed))
        counts = np.array(
            [(chosen.log_likelihoods == log_likelihood).sum() for log_likelihood in samples.log_likelihoods]
        )
        assert counts.sum() == 10
        assert np.all(np.abs(counts - 10 * weights) < 1)


# -- the result ----------------------------------------------------------------------------------------------------

SETTINGS = {"n_runs": 3, "n_chains": 5, "n_samples": 4}


@pytest.fixture(scope="module")
def eight():
    return table("mixed", 8)


@pytest.fixture(scope="module")
def whole(eight):
    return ct.evidence(*eight, **SETTINGS, random_state=5)


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("powers", "log_ratios", "ess"))


def test_evidence_is_reproducible_for_any_threads(eight, whole):
    assert same(whole, ct.evidence(*eight, **SETTINGS, random_state=5, n_jobs=3))
    assert not same(whole, ct.evidence(*eight, **SETTINGS, random_state=6))
    with joblib.parallel_config("loky", n_jobs=2):
        assert same(whole, ct.evidence(*eight, **SETTINGS, random_state=5, n_jobs=2))


def test_evidence_result_attributes_are_consistent(whole):
    assert np.allclose(whole.log_ratios.sum(axis=1), whole.run_log_evidences)
    assert np.exp(whole.run_log_evidences - whole.log_evidence).mean() == pytest.approx(1)
    assert whole.standard_error == pytest.approx(np.std(whole.run_log_evidences, ddof=1) / math.sqrt(3))
    table = whole.to_pandas()
    assert table["log_ratio"].sum() == pytest.approx(whole.run_log_evidences.mean())
    assert table["power"][0] == 0
    assert table["next_power"].iloc[-1] == 1
    assert "log evidence" in repr(whole)
    assert "verdict" in whole._repr_html_()


@pytest.mark.parametrize("seed", [5, None])
def test_killed_evidence_run_resumes_bitwise_equal(eight, whole, tmp_path, seed, monkeypatch):
    def stop(share, done, log_evidence):
        if done == 2:
            raise KeyboardInterrupt

    path, calls = tmp_path / "evidence.npz", []
    settings = {**SETTINGS, "random_state": seed, "checkpoint": path}
    with pytest.raises(KeyboardInterrupt):
        ct.evidence(*eight, **settings, progress=stop)
    sample = ct.evidence(*eight, **settings, progress=lambda *facts: calls.append(facts))
    assert [done for _, done, _ in calls] == list(range(3, len(sample.powers)))
    assert calls[-1][0] == pytest.approx(1.0)
    assert calls[-1][2] == pytest.approx(sample.log_evidence)
    if seed is not None:
        assert same(sample, whole)
    monkeypatch.setattr(Chain, "move", None)  # all is in the file
    assert same(sample, ct.evidence(*eight, **settings))
    with refused("evidence.npz checkpoint settings"):
        ct.evidence(*eight, **{**settings, "n_samples": 7})


def result(log_ratios, ess=0.7):
    log_ratios = np.array(log_ratios)
    powers = np.linspace(0, 1, log_ratios.shape[1] + 1)
    return EvidenceResult(powers, log_ratios, np.full(log_ratios.shape, ess), log_ratios, ct.Brownian())


def test_evidence_verdict_reflects_reliability():
    good = result([[-10.0, -3.0], [-10.1, -3.1]])
    assert good.reliable
    check_named(good.verdict, "runs agree -13.10 standard error 0.1")
    for bad, words in (
        (result([[-10.0, -3.0], [-14.0, -3.1]]), "not reliable differ 4.1 standard error more samples"),
        (result([[-10.0, -3.0]]), "not reliable one run several"),
        (result([[-10.0, -3.0], [-10.0, -3.0]], 0.1), "not reliable step power 0 0.5 10 % more powers"),
    ):
        assert not bad.reliable
        check_named(bad.verdict, words)
        assert math.isnan(bad.standard_error)  # none that the runs contradict
        for text in (bad.verdict, repr(bad), bad._repr_html_()):
            assert "±" not in text
            assert "nan" not in text
    check_named(repr(result([[-10.0, -3.0], [-14.0, -3.1]])), "log evidence -13.7 differ 4.1 2 runs")
    assert "-13.10 ± 0.1" in repr(good)


def test_unreliable_evidence_warns(eight):
    with pytest.warns(InputWarning, match="not reliable"):
        ct.evidence(*eight, 2, n_chains=1, n_samples=1, thin=1, powers=[0, 1], random_state=0)


def test_tables_that_ascertainment_excludes_are_refused():
    """Their likelihood has no bound."""
    with refused("1 column show same state ascertainment"):
        ct.evidence([[0.0], [0.0]], ct.Multinomial(1.0, [BINARY], ascertainment="variable"))


def test_invalid_evidence_arguments_are_rejected(eight):
    X, process = eight
    for words, changed in (
        ("n_runs 0", {"n_runs": 0}),
        ("n_chains 1.5", {"n_chains": 1.5}),
        ("n_samples -1", {"n_samples": -1}),
        ("thin 0", {"thin": 0}),
        ("powers increasing 0 1", {"powers": [0, 0.5, 0.5, 1]}),
        ("powers increasing 0 1", {"powers": [0.1, 1]}),
        ("powers increasing 0 1", {"powers": "half"}),
        ("progress function share", {"progress": 3}),
    ):
        with refused(words):
            ct.evidence(X, process, **changed)
    with refused("1 row 2"):
        ct.evidence(X[:1, :2], ct.Brownian())
