"""Analyses of drawn tables, pooled by Rubin's rules."""

from __future__ import annotations

import math
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.linear_model import LinearRegression

import coaltree as ct
from coaltree.errors import InputError
from coaltree.predict.pooling import pool_analyses


@pytest.fixture(scope="module")
def imputer():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    frame["b"] += frame["a"]
    return ct.CoalescentImputer(random_state=0).fit(frame.mask(rng.random(frame.shape) < 0.2))


def pool(estimates, variances, df=math.inf):
    answers = [
        SimpleNamespace(params={"q": q}, bse={"q": math.sqrt(u)}, df_resid=df)
        for q, u in zip(estimates, variances, strict=True)
    ]
    return pool_analyses(lambda answer: answer, answers, len(answers))


def test_rubins_rules_by_hand():
    # means 2 and 1, variance between 1 with four tables: total 1 + 5/4, lambda 5/9, df 3 * (9/5)^2
    pooled = pool([1.0, 1.0, 3.0, 3.0], [1.0] * 4)
    b = 4 / 3
    assert pooled.estimate == pytest.approx([2.0])
    assert pooled.std_error**2 == pytest.approx([1 + 1.25 * b])
    assert pooled.df == pytest.approx([3 * ((1 + 1.25 * b) / (1.25 * b)) ** 2])
    ratio = 1.25 * b
    assert pooled.fraction_missing == pytest.approx([(ratio + 2 / (pooled.df[0] + 3)) / (ratio + 1)])


def test_complete_tables_keep_their_own_degrees_of_freedom():
    pooled = pool([2.0] * 5, [0.25] * 5, df=17.0)
    assert pooled.std_error == pytest.approx([0.5])
    assert pooled.df == pytest.approx([18 / 20 * 17])  # Barnard and Rubin's, of which nothing is missing
    assert pooled.fraction_missing.tolist() == [0.0]


def test_intervals_cover_the_mean_of_a_normal_sample():
    """The cells are drawn from their exact posterior. With 500 samples the false-alarm rate is 1e-4."""
    rng, covered, n, n_missing = np.random.default_rng(0), 0, 20, 8
    for _ in range(500):
        seen = rng.normal(size=n - n_missing)
        tables = []
        for _ in range(10):
            sd = math.sqrt(seen.var(ddof=0) * len(seen) / rng.chisquare(len(seen) - 1))
            mean = rng.normal(seen.mean(), sd / math.sqrt(len(seen)))
            tables.append(np.append(seen, rng.normal(mean, sd, size=n_missing)))
        pooled = pool([t.mean() for t in tables], [t.var(ddof=1) / n for t in tables], df=n - 1)
        low, high = pooled.interval(0.9)
        covered += low[0] < 0 < high[0]
    # Rubin's variance and t distribution are approximations: they cover 88 to 92 %.
    assert binom.ppf(5e-5, 500, 0.88) <= covered <= binom.isf(5e-5, 500, 0.92)


def test_pool_uses_the_table_of_the_fit(imputer):
    seen = []
    pooled = imputer.pool(lambda t: (seen.append(t) or t["a"].mean(), t["a"].var() / len(t)), n=4, random_state=0)
    assert len(seen) == pooled.n_tables == 4
    assert all(list(table.columns) == ["a", "b"] and not table.isna().any(axis=None) for table in seen)
    for table, drawn in zip(seen, imputer.sample(imputer._X, 4, random_state=0), strict=True):
        pd.testing.assert_frame_equal(table, drawn)
    low, high = pooled.interval(0.95)
    assert low < pooled.estimate < high
    assert pooled.to_pandas().loc["estimate 0", "low"] == low[0]


def test_models_of_other_libraries(imputer):
    line = imputer.pool(lambda t: LinearRegression().fit(t[["a"]], t["b"]), n=3, random_state=0)
    assert line.names == ("a", "intercept")
    assert line.std_error is None
    assert line.between_sd[0] > 0
    assert 0.5 < line.estimate[0] < 1.5
    with pytest.raises(InputError, match="without variances"):
        line.interval()
    sm = pytest.importorskip("statsmodels.api")
    fits = imputer.pool(lambda t: sm.OLS(t["b"], sm.add_constant(t[["a"]])).fit(), n=3, random_state=0)
    assert fits.names == ("const", "a")
    assert fits.estimate[1] == pytest.approx(line.estimate[0])
    assert fits.p_value[1] < 1e-3


@pytest.mark.parametrize(
    ("analysis", "facts"),
    [
        (lambda table: 1 / 0, ("drawn table 1 of 3", "ZeroDivisionError")),
        (lambda table: "much", ("'much'", "drawn table 1 of 3")),
        (lambda table: (1.0, -1.0), ("variances", "-1")),
        (lambda table: math.nan, ("estimates", "nan")),
        (lambda table: ([1.0, 2.0], [1.0]), ("2 estimates", "1 variance")),
    ],
)
def test_wrong_analyses_are_refused(imputer, analysis, facts):
    with pytest.raises(InputError) as refused:
        imputer.pool(analysis, n=3)
    assert all(fact in str(refused.value) for fact in facts)


def test_answers_must_be_alike():
    answers = iter([{"a": 1.0}, {"a": 1.0, "b": 2.0}])
    with pytest.raises(InputError, match="drawn table 2 of 2"):
        pool_analyses(lambda table: next(answers), [None, None], 2)


def test_a_stored_model_needs_the_table(imputer):
    copy = pickle.loads(pickle.dumps(imputer))
    with pytest.raises(InputError, match="X=table"):
        copy.pool(lambda t: 1.0, n=2)
    assert copy.pool(lambda t: t["a"].mean(), n=2, X=imputer._X).n_tables == 2
