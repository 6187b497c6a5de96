"""Units, rates and arguments at the limits of double precision: a correct result or an error message."""

from typing import get_args

import numpy as np
import pytest

import coaltree as ct
from coaltree._parameters import Rule
from coaltree.errors import InputError
from coaltree.table.scaling import ColumnScale

RULES = get_args(Rule)

X = np.random.default_rng(0).normal(size=(10, 2))
CODES = np.round(np.abs(X))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("scale", [1e-50, 1e-20, 1e20, 1e50])
def test_heights_scale_with_units(rule, scale):
    """For tiny values heights grow with their squares; for huge ones with their distances, or only in the same order."""
    tree = ct.greedy(scale * X, ct.Brownian(), rule).tree
    near = ct.greedy(scale * (1 + 1e-3) * X, ct.Brownian(), rule).tree
    assert np.array_equal(tree.children, near.children)
    power = 2 if scale < 1 else 1
    assert np.allclose(near.merge_heights, (1 + 1e-3) ** power * tree.merge_heights, rtol=1e-6)
    assert len(np.unique(tree.merge_heights)) == len(X) - 1


@pytest.mark.parametrize("scale", [1e9, 1e12, 1e30])
def test_wide_column_does_not_blur_narrow_column(scale):
    Y = np.column_stack([np.linspace(0, 1, 20) ** 2, scale * np.sin(np.arange(20.0))])
    Y[:10, 1] = np.nan
    merged = ct.greedy(Y, ct.Brownian()).tree
    alone = ct.greedy(Y[:10, :1], ct.Brownian()).tree
    assert np.allclose(merged.merge_heights[:3], alone.merge_heights[:3], rtol=1e-9)


def test_values_far_from_zero_keep_their_differences():
    near = ct.greedy([[0.0], [1.0], [5.0]], ct.Brownian()).tree
    far = ct.greedy([[1e15], [1e15 + 1], [1e15 + 5]], ct.Brownian()).tree
    assert np.allclose(near.merge_heights, far.merge_heights, rtol=1e-12)


@pytest.mark.parametrize(
    ("table", "process"),
    [
        (1e100 * X, ct.Brownian()),
        (1e-100 * X, ct.Brownian()),
        (X, ct.Brownian(1e-200)),
        (X, ct.Brownian([1.0, 1e200])),
    ],
)
def test_units_beyond_double_precision_are_rejected(table, process):
    with pytest.raises(InputError, match=r"values of column \d lie .* standard deviations .* rescale"):
        ct.greedy(table, process)


@pytest.mark.parametrize("noise", [5e-324, 1e155, 1e308, np.inf, np.nan, -1.0, "a"])
def test_noise_out_of_range_is_rejected(noise):
    with pytest.raises(InputError, match="noise is"):
        ct.Brownian(noise=noise)


@pytest.mark.parametrize("noise", [1e-100, 1e100])
def test_noise_at_limits_is_accepted(noise):
    assert np.isfinite(ct.greedy(np.vstack([X, X]), ct.Brownian(noise=noise)).log_joint)


@pytest.mark.parametrize("rate", [1e300, 1e-300, 0.0, -1.0, np.nan, "a"])
def test_rates_out_of_range_are_rejected(rate):
    with pytest.raises(InputError, match="rate"):
        ct.Multinomial(rate)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("rate", [1e-100, 1e-10, 1e10, 1e100])
def test_rates_at_limits_are_accepted(rate, rule):
    assert np.isfinite(ct.greedy(CODES, ct.Multinomial(rate), rule).log_joint)


@pytest.mark.parametrize("equilibrium", ["ab", 5, [[1e-300, 1.0]], [["x", "y"]]])
def test_invalid_equilibria_are_rejected(equilibrium):
    with pytest.raises(InputError, match="equilibrium"):
        ct.Multinomial(1.0, equilibrium)


@pytest.mark.parametrize("n_jobs", [0, "a", 1.5, True])
def test_invalid_n_jobs_is_rejected(n_jobs):
    with pytest.raises(InputError, match="n_jobs is"):
        ct.greedy(X, ct.Brownian(), n_jobs=n_jobs)


def test_huge_n_jobs_is_accepted():
    assert ct.greedy(X, ct.Brownian(), n_jobs=100_000).tree == ct.greedy(X, ct.Brownian()).tree


def test_invalid_progress_and_complex_table_are_rejected():
    with pytest.raises(InputError, match="progress is 5"):
        ct.greedy(X, ct.Brownian(), progress=5)
    with pytest.raises(InputError, match="complex"):
        ct.greedy(X + 1j, ct.Brownian())


def test_greedy_of_many_identical_rows():
    with pytest.warns(ct.errors.InputWarning, match="20 merge"):
        result = ct.greedy(np.repeat(X, 3, axis=0), ct.Brownian())
    assert np.all(result.tree.merge_heights[:20] == 0)
    assert np.isfinite(result.log_joint)


def test_decoded_extreme_codes_stay_finite():
    """Warnings are errors here. Unknown values stay infinite."""
    largest = np.finfo(float).max
    scale, _ = ColumnScale.fit(np.array([-largest, 0.0, largest]), True)
    np.testing.assert_array_equal(
        scale.decode(np.array([-9.0, 9.0, np.inf, np.nan])), [-largest, largest, np.inf, np.nan]
    )
