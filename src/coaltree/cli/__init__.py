"""The command line: tables in files, results in files.

What takes long to import is imported inside the commands, so that ``coaltree --help`` answers at once.
"""

from . import demo, fitting, imputing, questions  # noqa: F401  they register their commands
from .application import app, run

__all__ = ["app", "run"]
