"""The command line: tables in files, results in files.

What takes long to import is imported inside the commands, so that ``coaltree --help`` answers at once.
"""

from . import converting, demo, fitting, imputing, plotting, questions, simulating  # noqa: F401  they register commands
from .application import app, run

__all__ = ["app", "run"]
