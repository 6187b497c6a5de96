"""Shared parts of the estimators' docstrings, which the code adds when it is imported and which the site reads from source."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import griffe


class SharedDocstrings(griffe.Extension):
    """Take the complete docstring of a class that leaves its shared parameters to a decorator."""

    def on_class_instance(self, *, cls: griffe.Class, **_: Any) -> None:
        """Replace the docstring of a class from source by that of the imported class."""
        if cls.docstring is not None and "{shared parameters}" in cls.docstring.value:
            complete = getattr(importlib.import_module(cls.module.path), cls.name).__doc__
            cls.docstring.value = inspect.cleandoc(complete)
