"""The command line: tables in files, results in files.

Slow imports are inside the commands, so that ``coaltree --help`` answers at once.
"""

# These modules register their commands, in the order of the help.
from . import fit, impute, outliers, query, outputs, simulate, demo  # noqa: F401, I001
from .app import app, run

__all__ = ["app", "run"]
