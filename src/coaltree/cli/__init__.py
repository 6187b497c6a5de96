"""The command line: tables in files, results in files.

What takes long to import is imported inside the commands, so that ``coaltree --help`` answers at once.
"""

# they register their commands
from . import converting, cutting, demo, fitting, imputing, plotting, questions, reporting, simulating  # noqa: F401
from .application import app, run

__all__ = ["app", "run"]
