"""How functions are compiled that only compiled code calls.

Numba makes machine code of every function that it compiles, also of one that is linked into its callers and never run on its
own: a sixth of the time of a first fit. Here such a function ends as code for LLVM to link.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering


class _LinkedLibrary(JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """Code that is ready to be linked, not to be run."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LinkedLowering(NativeLowering):  # type: ignore[misc, unused-ignore]
    """Numba's last pass but for machine code."""

    _name = "linked_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        state.flags.no_cpython_wrapper = True
        super().run_pass(state)
        lowered = state["cr"]
        # Numba knows a compiled function by what Python would call, if it did, and that must be one that is built in.
        stand_in = [lowered.fndesc.qualname].clear
        state.targetctx.insert_user_function(stand_in, lowered.fndesc, [state.library])
        state.reload_init.extend(getattr(state.library, "_reload_init", ()))  # older Numba has none
        state["cr"] = lowered._replace(cfunc=stand_in)
        return True


class LinkedCompiler(CompilerBase):  # type: ignore[misc, unused-ignore]
    """Numba's usual compiler with another end."""

    def define_pipelines(self) -> list[Any]:
        """Return the one way to compile."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_LinkedLowering, NativeLowering)
        passes.passes = [(step, why) for step, why in passes.passes if step is not NativeLowering]
        passes.finalize()
        return [passes]


class InnerFunction(CPUDispatcher):  # type: ignore[misc, unused-ignore]
    """A function that only compiled code calls. Where a test calls it from Python, it is compiled once more, to be run."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions={"nopython": True, **options}, pipeline_class=LinkedCompiler)
        self._options = options

    @cached_property
    def _run(self) -> Any:
        return numba.njit(**self._options)(self.py_func)

    def add_overload(self, compiled: Any) -> None:
        """Keep compiled code, and do not let Python call it."""
        self.overloads[tuple(compiled.signature.args)] = compiled

    def __call__(self, *arguments: Any) -> Any:
        """Run the function."""
        return self._run(*arguments)
