"""Exceptions and warnings: everything a user may want to catch by name."""


class InputError(ValueError):
    """Input that cannot be used; the message says what was found, where, and what to try."""


class InputWarning(UserWarning):
    """Input that can be used, but whose result deserves a second look."""


class InstallationWarning(UserWarning):
    """An installation that works, but not as it should; the message says what to install."""


class MissingDependencyError(ImportError):
    """An optional package is not installed; the message names the extra that brings it."""


class ClusterError(RuntimeError):
    """A cluster that cannot be reached, or was lost on the way; the message says what is kept and how to go on."""
