"""Ends a process in which a compiled kernel had to ignore an error, in checked builds an index out of bounds.

`conftest.py` puts this folder in PYTHONPATH, so that Python runs this file in every process that a test starts.
"""

import os
import sys


def end_process(unraisable):
    sys.__unraisablehook__(unraisable)
    if str(unraisable.object).startswith("coaltree."):
        os._exit(70)


sys.unraisablehook = end_process
