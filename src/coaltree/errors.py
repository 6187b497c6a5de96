"""Exceptions and warnings that users may want to catch by name."""


class InputError(ValueError):
    """Invalid input; the message says what is wrong, where, and what to try."""


class InputWarning(UserWarning):
    """Valid input, but the result deserves a second look."""


class InstallationWarning(UserWarning):
    """A working but incomplete installation; the message says what to install."""


class MissingDependencyError(ImportError):
    """An optional package is not installed; the message names the extra that installs it."""


class ExecutorError(RuntimeError):
    """A cluster cannot be reached, or was lost during the computation; the message says what is kept and how to continue."""
