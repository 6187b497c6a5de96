"""Compiled code: see `coaltree._extensions`."""

from ..._extensions import kernel_path

__path__ = kernel_path(__path__)
