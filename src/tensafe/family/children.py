"""Follows the children of a process: forks, multiprocessing's spawned workers, the ranks of `torchrun`."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
from collections.abc import Callable
from typing import Any, Protocol

from tensafe.family import names
from tensafe.family.home import Home
from tensafe.family.launches import in_child_command, is_unfollowed_python, spawned_start
from tensafe.family.settings import Settings
from tensafe.runtime.patches import Patches
from tensafe.runtime.program import WhenLoaded

TORCHRUN = "torch.distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler"

NotChecked = Callable[[str, str], None]


class Parent(Protocol):
    """A watched process, which may have children."""

    def forked(self, token: str) -> None:
        """This process is a child now, by a fork; without a token nobody will ask what it finds."""

    def renamed(self) -> None:
        """This forked child has got the name that the program gave it."""

    def end(self, status: int | None) -> None:
        """The process is about to end without unwinding."""


class Children:
    """The patches by which children are seen to start, and this process to end."""

    def __init__(self, parent: Parent, home: Home, settings: Settings, not_checked: NotChecked) -> None:
        self._parent = parent
        self._home = home
        self._settings = settings
        self._not_checked = not_checked
        self._patches = Patches()
        self._waiting: list[WhenLoaded] = []
        self._numbers = itertools.count(1)
        self._fork_token = ""
        self._names_known = False

    def follow(self) -> None:
        """From now on; what is not imported yet is patched when the program imports it."""
        self._patches.wrap(os, "_exit", self._exit)
        self._when_loaded("multiprocessing.spawn", "get_preparation_data", self._preparing)
        _following.append(self)
        _register_once()

    def follow_launches(self) -> None:
        """Also what is started as a command, by a program that uses torch."""
        self._when_loaded("subprocess", "Popen.__init__", self._launched)
        self._when_loaded(TORCHRUN, "SubprocessHandler._popen", self._rank)

    def leave(self) -> None:
        for waiting in self._waiting:
            waiting.remove()
        self._patches.undo()
        if self in _following:
            _following.remove(self)

    def _when_loaded(self, module: str, path: str, make: Callable[[Any], Any]) -> None:
        *owners, name = path.split(".")

        def loaded() -> None:
            with contextlib.suppress(AttributeError):  # another version of torch
                self._patches.wrap(functools.reduce(getattr, owners, sys.modules[module]), name, make)

        self._waiting.append(WhenLoaded(module, loaded))

    def _new_token(self, how: str) -> str:
        return f"{how}{os.getpid()}-{next(self._numbers)}"

    # --- forks

    def before_fork(self) -> None:
        try:
            self._home.ensure()
            self._fork_token = self._new_token("f")
        except OSError as error:
            self._fork_token = ""
            self._not_checked(
                "forked processes", f"there is no temporary folder for their findings ({error})"
            )
        registers = getattr(sys.modules.get("multiprocessing.util"), "register_after_fork", None)
        if registers is not None and not self._names_known:
            self._names_known = True
            registers(self, Children._named)

    def in_child(self) -> None:
        self._parent.forked(self._fork_token)

    def _named(self) -> None:
        """Multiprocessing says so when the child has its name."""
        self._parent.renamed()

    def _exit(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`os._exit` skips everything by which a program's end is seen; forked workers end so."""

        def _exit(status: int) -> Any:
            with contextlib.suppress(Exception):
                self._parent.end(status)
            return call(status)

        return functools.update_wrapper(_exit, call)

    # --- spawned workers and launched commands

    def _preparing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def get_preparation_data(name: str) -> Any:
            data = call(name)
            data["tensafe"] = _Start(self)
            return data

        return functools.update_wrapper(get_preparation_data, call)

    def start_spawned(self) -> str:
        """The source that a spawned child runs first; its token is expected from now on."""
        token = self._new_token("s")
        try:
            self._home.expect(token)
        except OSError as error:
            self._not_checked(
                "spawned processes", f"there is no temporary folder for their findings ({error})"
            )
            return ""
        return spawned_start(self._home.ensure(), token, self._settings.to_text(), names.rank())

    def _rank(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`torchrun` starts `python -u script.py`: the script is run under the engine there."""

        def _popen(handler: Any, args: Any, *others: Any, **more: Any) -> Any:
            token = self._new_token("r")
            with contextlib.suppress(OSError):
                folder = self._home.ensure()
                followed = in_child_command(args, folder, token, self._settings.to_text())
                if followed is not None:
                    self._home.expect(token)
                    return call(handler, followed, *others, **more)
            self._not_checked("what torchrun starts", "it is not `python script.py` or `python -m module`")
            return call(handler, args, *others, **more)

        return functools.update_wrapper(_popen, call)

    def _launched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(popen: Any, args: Any, *others: Any, **more: Any) -> None:
            if is_unfollowed_python(args, sys._getframe(1)):
                why = "each is a program of its own: start it with `tensafe run` to see what it does"
                self._not_checked("Python programs started by subprocess", why)
            call(popen, args, *others, **more)

        return functools.update_wrapper(__init__, call)


class _Start:
    """Rides in multiprocessing's preparation data; where it is unpickled, the engine starts."""

    def __init__(self, children: Children) -> None:
        self._children = children

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (self._children.start_spawned(), {})


_following: list[Children] = []
_registered = False


def _register_once() -> None:
    """At-fork functions cannot be taken back: these do nothing when nobody follows."""
    global _registered
    if not _registered and hasattr(os, "register_at_fork"):
        _registered = True
        os.register_at_fork(before=_before_fork, after_in_child=_in_child)


def _before_fork() -> None:
    for children in _following:
        children.before_fork()


def _in_child() -> None:
    for children in list(_following):
        children.in_child()
