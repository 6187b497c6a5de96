"""The exponential of the kernels, against numpy's."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coaltree as ct
from coaltree.process.kernels import messages as op


def decay_sites(rates, g):
    """What columns of some rates keep and lose over a path, by a forest of such columns."""
    X = np.zeros((1, len(rates)))
    forest = ct.Multinomial(rates, [[0.5, 0.5]] * len(rates)).forest(X, 1, patterns=False)
    scratch = op.Rows(SimpleNamespace(n_sites=len(rates), n_real=0, chain=np.empty((0, 0))))
    op.set_decay(forest, scratch, g, 1, 2)
    rows = np.asarray(scratch.rows)
    return rows[1], rows[2]


@given(st.lists(st.floats(1e-12, 1e3), min_size=1, max_size=40), st.floats(0, 1e3))
def test_exponential_matches_library(rates, g):
    remaining, lost = decay_sites(rates, g)
    x = np.maximum(-np.asarray(rates) * g, -700)
    np.testing.assert_allclose(remaining, np.exp(x), rtol=1e-15, atol=1e-300)
    np.testing.assert_allclose(lost, -np.expm1(x), rtol=1e-15, atol=0)


@pytest.mark.parametrize(
    ("rate", "g", "expected"), [(1.0, 0.0, (1.0, 0.0)), (1e99, 1e300, (0.0, 1.0)), (1e-100, 5.0, (1.0, 5e-100))]
)
@pytest.mark.parametrize("other", [1.0, 3.0])
def test_exponential_is_correct_at_limits(rate, g, expected, other):
    """For sites with one rate and with several."""
    remaining, lost = decay_sites([rate, rate * other], g)
    assert remaining[0] == pytest.approx(expected[0], abs=1e-300)
    assert lost[0] == pytest.approx(expected[1])
