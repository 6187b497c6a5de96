"""The command line: tables in files, results in files.

What takes long to import is imported inside the commands, so that ``coaltree --help`` answers at once.
"""

# they register their commands
from . import convert, demo, fit, impute, plot, query, simulate  # noqa: F401
from .app import app, run

__all__ = ["app", "run"]
