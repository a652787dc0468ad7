"""How compiled functions are put together: each part is optimised by itself, and only whole functions become machine code.

Numba makes machine code of every function it compiles, and puts all that a function calls into the function's own module,
where it is optimised again: what is called through ten others is optimised eleven times. Here a part is optimised together
with the small parts it calls, which can be inlined into it, and keeps nothing but its own code. Parts are linked, optimised
once more and made into machine code only in what is entered from outside: the loop, the passes and the policies.
Compiling takes half as long, and the code is as fast.
"""

from __future__ import annotations

from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numba.core import compiler
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import NativeLowering

# Numba's stubs do not know these.
_compile_result: Any = compiler.CompileResult
_make_function: Any = import_module("numba._dynfunc").make_function
INLINABLE = 300
"""A part with more instructions is too large to be inlined: those that call it need not see it."""


class Part(NamedTuple):
    """The optimised code of a part, as LLVM's bitcode."""

    body: bytes
    """As it is linked to what needs it."""
    seen: bytes
    """As those that call it see it while they are optimised: to inline or to drop; nothing if it is too large."""
    calls: tuple[str, ...]
    """Names of parts that it calls."""


class _Linked(JITCodeLibrary):
    """Code that sees the small parts it calls while it is optimised."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.parts: dict[str, Part] = {}
        """All parts that it may need, by the name of their function."""

    def _link_libraries(self) -> None:
        """Link Numba's own functions that are called, and remember the parts."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            if isinstance(library, PartLibrary):
                self.parts.update(library.parts)
            else:
                self._final_module.link_in(library._get_module_for_linking(), preserve=True)

    def _link(self, bodies: dict[str, bytes]) -> None:
        """Add the bodies of all functions that are called."""
        linked: set[str] = set()
        while called := _declared(self._final_module) & bodies.keys() - linked:
            for name in sorted(called):
                self._final_module.link_in(llvm.parse_bitcode(bodies[name]))
            linked |= called


class PartLibrary(_Linked):
    """A part that is only called from compiled code: optimised, but not made into machine code."""

    def finalize(self) -> None:
        """Optimise the part, and let others link it."""
        self._raise_if_finalized()
        self._link_libraries()
        self._link({name: part.seen for name, part in self.parts.items() if part.seen})
        self._optimize_final_module()
        module = self._final_module
        module.verify()
        self._finalize_dynamic_globals()
        calls = tuple(sorted(_declared(module) & self.parts.keys()))
        own = [f for f in module.functions if not f.is_declaration and f.linkage == llvm.Linkage.external]
        for function in own:
            seen = _as_bitcode(module, function.name, "available_externally") if _may_be_inlined(function) else b""
            self.parts[function.name] = Part(_as_bitcode(module, function.name, "linkonce_odr"), seen, calls)
        self.parts = _reached(self.parts, [function.name for function in own])
        self._finalized = True


class EntryLibrary(_Linked):
    """What the engine enters from outside: machine code of it and of all parts it needs."""

    def finalize(self) -> None:
        """Link the parts that are needed, optimise all of it once more, and make machine code."""
        self._raise_if_finalized()
        self._link_libraries()
        self._link({name: part.body for name, part in self.parts.items()})
        self._optimize_final_module()
        self._final_module.verify()
        self._finalize_final_module()


def _declared(module: Any) -> set[str]:
    """Return the names of functions that a module calls and has no code of."""
    return {function.name for function in module.functions if function.is_declaration}


def _reached(parts: dict[str, Part], names: list[str]) -> dict[str, Part]:
    """Return the parts of these names, and all that are called from them, directly or not."""
    reached: dict[str, Part] = {}
    while names:
        name = names.pop()
        if name not in reached:
            reached[name] = parts[name]
            names += parts[name].calls
    return reached


def _may_be_inlined(function: Any) -> bool:
    """Return whether a function must be inlined or is small enough for it."""
    if b"alwaysinline" in function.attributes:
        return True
    instructions = (instruction for block in function.blocks for instruction in block.instructions)
    return next(islice(instructions, INLINABLE, None), None) is None


def _as_bitcode(module: Any, name: str, linkage: str) -> bytes:
    """Return a module with one function linked in another way."""
    copy = module.clone()
    copy.get_function(name).linkage = linkage
    bitcode: bytes = copy.as_bitcode()
    return bitcode


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):
    """Numba's last pass without its last step, which would make machine code."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Compile as far as others need it to call the part."""
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        entry = _no_entry(lowered.fndesc, lowered.env, state.library)
        state.targetctx.insert_user_function(entry, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=entry)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class EntryLowering(NativeLowering):
    """Numba's last pass; what it compiled knows the environments of its parts, as when it comes from the cache."""

    _name = "entry_lowering"

    def run_pass(self, state: Any) -> bool:
        """Compile to machine code."""
        super().run_pass(state)
        codegen = state.targetctx.codegen()
        for variable in state.library._final_module.global_variables:
            if (environment := lookup_environment(variable.name)) is not None:
                codegen.set_env(variable.name, environment)
        return True


def _no_entry(description: Any, environment: Any, library: Any) -> Any:
    """Return what stands for a part in Numba's tables: a function that cannot be called from Python."""
    name = description.qualname.split(".")[-1]
    return _make_function(description.lookup_module(), name, "", 0, environment, (library,))


class _Pipeline(compiler.Compiler):
    library: type[_Linked]
    lowering: type[NativeLowering]

    def define_pipelines(self) -> list[Any]:
        """Return Numba's own passes, the one that lowers to LLVM replaced."""
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        passes = compiler.DefaultPassBuilder.define_nopython_pipeline(state)
        passes.passes = [(self.lowering if p is NativeLowering else p, said) for p, said in passes.passes]
        passes.finalize()
        return [passes]


class PartCompiler(_Pipeline):
    """Compiles a part."""

    library, lowering = PartLibrary, PartLowering


class EntryCompiler(_Pipeline):
    """Compiles what is entered from outside."""

    library, lowering = EntryLibrary, EntryLowering


class _KeptParts(CompileResultCacheImpl):
    """What is kept of a part on disk: its optimised code, and that of the parts it may need."""

    def reduce(self, result: Any) -> Any:
        """Return what is kept."""
        library, description = result.library, result.fndesc
        library._ensure_finalized()
        description.typemap = description.calltypes = None
        return library.name, library.parts, description, result.environment, result.signature

    def rebuild(self, target: Any, kept: Any) -> Any:
        """Return the part as it was when it was compiled."""
        name, parts, description, environment, signature = kept
        library = PartLibrary(target.codegen(), name)
        library.parts, library._finalized = parts, True
        return _compile_result(
            target_context=target,
            typing_context=target.typing_context,
            library=library,
            environment=environment,
            entry_point=_no_entry(description, environment, library),
            fndesc=description,
            type_annotation="",
            signature=signature,
            objectmode=False,
            lifted=(),
            typing_error=None,
            call_helper=None,
            metadata=None,
            reload_init=(),
            referenced_envs=(),
        )


class PartCache(FunctionCache):
    """Where parts are kept on disk."""

    _impl_class = _KeptParts
