import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coaltree.process._decay_kernels import decay


def decayed(rates, g):
    rates = np.asarray(rates, dtype=float)
    kept, lost = np.empty_like(rates), np.empty_like(rates)
    decay(rates, g, kept, lost, np.empty_like(rates))
    return kept, lost


@given(st.lists(st.floats(1e-12, 1e3), min_size=1, max_size=40), st.floats(0, 1e3))
def test_as_exact_as_the_library(rates, g):
    kept, lost = decayed(rates, g)
    x = np.maximum(-np.asarray(rates) * g, -700)
    np.testing.assert_allclose(kept, np.exp(x), rtol=1e-15, atol=0)
    np.testing.assert_allclose(lost, -np.expm1(x), rtol=1e-15, atol=0)


@pytest.mark.parametrize(
    ("rate", "g", "expected"), [(1.0, 0.0, (1.0, 0.0)), (1e300, 1e300, (0.0, 1.0)), (0.0, 5.0, (1.0, 0.0))]
)
def test_ends(rate, g, expected):
    kept, lost = decayed([rate], g)
    assert kept[0] == pytest.approx(expected[0], abs=1e-300)
    assert lost[0] == expected[1]
