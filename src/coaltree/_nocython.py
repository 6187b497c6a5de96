"""Stand-in for the module `cython` where kernels run as plain Python."""

from __future__ import annotations

import numpy as np


class _Cython:
    @property
    def nogil(self) -> np.errstate:
        """Stands for the block that runs without the GIL: as in C, infinities and NaN are no errors there."""
        return np.errstate(all="ignore")


#: Stands for the module.
cython = _Cython()
