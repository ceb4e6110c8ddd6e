"""Runs a program as plain Python would: argv, `__main__`, exit status, traceback without our frames."""

from __future__ import annotations

import atexit
import builtins
import importlib.machinery
import importlib.util
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from tensafe.errors import TensafeError

_OURS = str(Path(__file__).parent.parent) + os.sep
_FROZEN_IMPORT = "<frozen importlib"


@dataclass(frozen=True, slots=True)
class Program:
    """A program that can start: a script with its code, or a module's name."""

    target: str
    arguments: tuple[str, ...]
    code: CodeType | SyntaxError | None  # None for a module

    @property
    def name(self) -> str:
        return self.target if self.code is None else Path(self.target).name


def read(target: str, arguments: Sequence[str], *, module: bool) -> Program:
    """Find the program before anything runs; raises `TensafeError` when it is missing or no Python at all."""
    if module:
        _require_module(target)
        return Program(target, tuple(arguments), None)
    path = Path(target)
    if path.is_dir():
        path = path / "__main__.py"
        if not path.exists():
            raise TensafeError(f"{target} is a directory without a __main__.py: give a script or `-m module`")
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise TensafeError(f"no such script: {target}") from None
    except OSError as error:
        raise TensafeError(f"cannot read {target}: {error.strerror}") from None
    if b"\0" in text:
        raise TensafeError(f"{target} is not a Python script: it holds NUL bytes")
    full = str(path.resolve()) if path.name == "__main__.py" else os.path.abspath(path)
    try:
        code: CodeType | SyntaxError = compile(text, full, "exec", dont_inherit=True)
    except SyntaxError as error:
        code = error
    return Program(target, tuple(arguments), code)


def _require_module(name: str) -> None:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        found = None
    if found is None:
        raise TensafeError(f"no module named {name}: is it installed, or below the current directory?")


def execute(program: Program, ended_by: Callable[[BaseException], None]) -> int:
    """Run it and return the exit status that plain Python would leave; an uncaught error is printed.

    `ended_by` hears of the exception that ends the program while its frames are still there.
    """
    interrupted = False
    sys.argv[:] = [program.target, *program.arguments]
    try:
        if isinstance(program.code, SyntaxError):
            raise program.code.with_traceback(None)
        if program.code is None:
            _run_module(program.target)
        else:
            _run_script(program.code, program.target)
        status = 0
    except SystemExit as error:
        ended_by(error)
        status = _exit_status(error)
    except BaseException as error:
        ended_by(error)
        _show(error)
        status = 1
        if isinstance(error, KeyboardInterrupt):
            interrupted = True
            status = 128 + signal.SIGINT
    _join_threads()
    _run_exit_callbacks()
    if interrupted:
        atexit.register(_die_interrupted)
    return status


def _run_script(code: CodeType, target: str) -> None:
    main = ModuleType("__main__")
    main.__file__ = code.co_filename
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", code.co_filename)
    main.__dict__.update(
        __builtins__=builtins, __annotations__={}, __cached__=None, __package__=None, __spec__=None
    )
    sys.modules["__main__"] = main
    if not getattr(sys.flags, "safe_path", False):
        folder = target if os.path.isdir(target) else os.path.dirname(os.path.realpath(target))
        sys.path[0] = os.path.abspath(folder)
    exec(code, main.__dict__)


def _run_module(name: str) -> None:
    import runpy

    main = ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __annotations__={})
    sys.modules["__main__"] = main
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()
    runpy._run_module_as_main(name)  # type: ignore[attr-defined]


def _exit_status(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code
    print(error.code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> None:
    """Through `sys.excepthook`, which the program may have replaced, after taking our frames out."""
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        part = pending.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        part.__traceback__ = without_our_frames(part.__traceback__)
        pending += [part.__cause__, part.__context__, *getattr(part, "exceptions", ())]
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except Exception:
        sys.__excepthook__(type(error), error, error.__traceback__)


def without_our_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The same traceback, less every entry that runs code of tensafe."""
    kept: list[TracebackType] = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_OURS):
            kept.append(traceback)
        traceback = traceback.tb_next
    result: TracebackType | None = None
    for entry in reversed(kept):
        result = types.TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result


def _join_threads() -> None:
    """Python waits for the program's threads, and lets executors end theirs, before it ends: so do we.

    `threading._shutdown` is what the interpreter calls; its second call then finds nothing left to do.
    """
    threading._shutdown()  # type: ignore[attr-defined]


def _run_exit_callbacks() -> None:
    """As the interpreter does when the threads have ended; one of them joins the children."""
    atexit._run_exitfuncs()


def _die_interrupted() -> None:
    """Plain Python ends by SIGINT after a KeyboardInterrupt."""
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


class _Loader:
    """Loads a module as its own loader does, then calls back; leaves no trace on the module."""

    def __init__(self, loader: Any, spec: importlib.machinery.ModuleSpec, loaded: Callable[[], None]) -> None:
        self._loader = loader
        self._spec = spec
        self._loaded = loaded

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        self._spec.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._loaded()


class WhenLoaded:
    """A finder that calls back once a module is imported: a program that never imports it pays nothing."""

    def __init__(self, module: str, loaded: Callable[[], None]) -> None:
        self._module = module
        self._loaded = loaded
        if module in sys.modules:
            loaded()
        else:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._module:
            return None
        self.remove()
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, spec, self._loaded)  # type: ignore[assignment]
        return spec

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
