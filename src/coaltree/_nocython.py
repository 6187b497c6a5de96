"""Stand-in for the module `cython` where kernels run as plain Python."""

from __future__ import annotations

import numpy as np


class _Cython:
    @property
    def nogil(self) -> np.errstate:
        """Replaces the block that runs without the GIL. As in C, infinities and NaN are not errors in it."""
        return np.errstate(all="ignore")


#: Replaces the module `cython`.
cython = _Cython()
