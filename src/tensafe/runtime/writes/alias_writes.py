"""Writes through one name that change what another name still reads."""

from __future__ import annotations

import ast
import gc
import threading
from types import FunctionType
from typing import Any

import torch

from tensafe.facts import Call, Certainty, Kind, Moment, Site, Value
from tensafe.runtime.arrays.histories import SETS, brings_data
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.calling import Caller, Writing, writing_at
from tensafe.runtime.places.frames import Place
from tensafe.runtime.places.reading import read_after
from tensafe.runtime.places.source import site_of_node
from tensafe.runtime.places.variables import first_argument, held, shares, stored
from tensafe.runtime.storages.ledger import LedgerHistory, clock
from tensafe.runtime.storages.pictures import Drawn, memory_of, written_part
from tensafe.runtime.watcher import Context, Watcher
from tensafe.runtime.writes.alias_uses import brings_no_data, gives_back, is_meant, returned
from tensafe.runtime.writes.overwritten import Overwritten
from tensafe.syntax.chains import Origin, argument_for, default_of, made_from, parameter_of
from tensafe.syntax.reading import binds, dotted


class _OfThread(threading.local):
    """The tensors of the write that one thread looks at."""

    def __init__(self) -> None:
        self.parts: tuple[Drawn, ...] = ()


class AliasWrites(Watcher):
    """Looks at the first writes of each line: which other names have that memory, and are they read again?"""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._told: set[tuple[str, int]] = set()
        self._own = _OfThread()
        self._overwritten = Overwritten(self._report, context.guarded)

    def install(self, patches: Patches) -> None:
        self._overwritten.install(patches)

    def first_writes(self, op: str, target: torch.Tensor, arguments: tuple[Any, ...]) -> None:
        if target.layout is not torch.strided:
            return
        self._own.parts = (Drawn(f"written by `{op}`", written_part(op, target, arguments)),)
        try:
            self._look(op, target, arguments)
        finally:
            self._own.parts = ()

    def _look(self, op: str, target: torch.Tensor, arguments: tuple[Any, ...]) -> None:
        if self._overwritten.by_library(op, target, arguments):
            return
        writing = writing_at(op, target, arguments)
        if writing is None:
            return
        for look in (
            self._dataset_item,
            self._default_argument,
            self._two_names,
            self._kept_name,
            self._own_attribute,
            self._callers_argument,
        ):
            self._own.parts = self._own.parts[:1]
            if look(writing):
                return

    # --- within one function

    def _default_argument(self, at: Writing) -> bool:
        """The default value of an argument, which is made once and then written in every call."""
        default = default_of(at.scope, at.name)
        if default is None or at.name.startswith("_"):
            return False
        value = at.names.value(at.root)
        if not self._shares("the default", at.name, value, at.storage) or not _is_default(at.place, value):
            return False
        made = Moment(Kind.MADE, "", site_of_node(at.place, default), next(clock))
        return self._tell(at, "default", (made,), Certainty.DID)

    def _two_names(self, at: Writing) -> bool:
        """`labels = input_ids; labels.masked_fill_(...)`, and both are read afterwards."""
        origin = made_from(at.syntax, at.name, at.statement.lineno)
        if origin is None or dotted(origin.root) == at.name or not self._surprises(at, origin):
            return False
        name = dotted(origin.root)
        if not self._shares("the other name", name, at.names.value(origin.root), at.storage):
            return False
        read = read_after(at.place, at.statement, name)
        if read is None or read_after(at.place, at.statement, at.name) is None:
            return False
        return self._tell(at, "names", (*_made(at, origin), _read(at.place, read)), Certainty.MAY, name)

    def _surprises(self, at: Writing, origin: Origin) -> bool:
        """Whether one may take the two names for two tensors."""
        value = at.names.value(origin.root)
        if not origin.makers and isinstance(origin.statement, ast.Assign):
            plain = isinstance(origin.statement.value, ast.Name) and isinstance(at.root, ast.Name)
            return plain and not isinstance(value, torch.nn.Parameter)
        if "data" in origin.makers or (origin.detaches and isinstance(value, torch.nn.Parameter)):
            return False
        return origin.may_copy or origin.detaches

    def _kept_name(self, at: Writing) -> bool:
        """`before = x; x.add_(1)`, and both are read afterwards."""
        value = at.names.value(at.root)
        if isinstance(value, torch.nn.Parameter) or not isinstance(at.root, ast.Name):
            return False
        for kept, held_value in at.names.own.items():
            if kept == at.name or not self._shares("kept", kept, held_value, at.storage):
                continue
            origin = made_from(at.syntax, kept, at.statement.lineno - 1)
            if origin is None or dotted(origin.root) != at.name or "data" in origin.makers:
                continue
            if any(maker not in ("detach", "cpu", "to", "float", "contiguous") for maker in origin.makers):
                continue
            if origin.statement is None or not _is_plain(origin.statement):
                continue
            read = read_after(at.place, at.statement, kept)
            if read is None or read_after(at.place, at.statement, at.name) is None:
                continue
            written = Moment(Kind.WRITTEN, at.op, at.site, next(clock))
            trail = (written, _read(at.place, read))
            site = site_of_node(at.place, origin.statement)
            return self._report(site, at.op, "kept", trail, Certainty.MAY, kept)
        return False

    def _own_attribute(self, at: Writing) -> bool:
        """`mask = self.mask.to(x.dtype); mask += x`: whether that changes the attribute hangs on a type."""
        origin = made_from(at.syntax, at.name, at.statement.lineno)
        if origin is None or not origin.converts or not dotted(origin.root).startswith("self."):
            return False
        name = dotted(origin.root)
        if not self._shares("the attribute", name, at.names.value(origin.root), at.storage):
            return False
        if any(isinstance(node, ast.stmt) and binds(node, name) for node in ast.walk(at.scope)):
            return False
        if read_after(at.place, at.statement, at.name) is None:
            return False
        return self._tell(at, "names", _made(at, origin), Certainty.MAY, name)

    def _dataset_item(self, at: Writing) -> bool:
        """An item of a dataset is written while it is fetched, and with it what the dataset holds."""
        if at.name.startswith("self.") or not _converts_item(at):
            return False
        for caller in at.callers(4):
            if caller.frame.f_code.co_name == "__getitem__":
                name = _attribute_over(first_argument(caller.frame), at.storage)
                if name:
                    fetched = Moment(Kind.VIEWED, "", caller.site, next(clock))
                    return self._tell(at, "dataset", (fetched,), Certainty.DID, f"self.{name}")
        return False

    # --- across a call

    def _callers_argument(self, at: Writing) -> bool:
        """An argument is written in passing, and the caller goes on to read what it gave."""
        function = at.scope
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or is_meant(function):
            return False
        found = parameter_of(at.syntax, at.root, at.statement.lineno)
        if found is None or found[0] in ("self", "cls") or not returned(function):
            return False
        name, origin = found
        gives = gives_back(function, {name, at.name})
        if not origin.makers and (gives or not _only_converts(at)):
            return False
        if (gives and not origin.converts) or brings_data(function, at.name):
            return False
        reads = [read_after(at.place, at.statement, text) for text in {name, at.name}]
        if not gives and not any(reads):
            return False
        callers = at.callers(2)
        return len(callers) > 1 and self._caller_reads(at, callers[1], function, name, origin)

    def _caller_reads(
        self, at: Writing, caller: Caller, function: ast.AST, name: str, origin: Origin
    ) -> bool:
        call, statement = caller.call, caller.statement
        if call is None or statement is None or not isinstance(function, ast.FunctionDef):
            return False
        given = argument_for(function, call, name)
        if given is None:
            return False
        for text in caller.spellings(given, at.storage):
            if binds(statement, text):
                return False
            read = read_after(caller.place, statement, text)
            if read is not None:
                passed = Moment(Kind.COPIED, "", site_of_node(caller.place, call), next(clock), note="passed")
                trail = (*_made(at, origin), passed, _read(caller.place, read))
                key = (at.place[0].co_filename, -function.lineno)  # once for a function that writes it twice
                if key in self._told:
                    return True
                self._told.add(key)
                return self._tell(at, "argument", trail, Certainty.MAY, text)
        return False

    def _shares(self, role: str, name: str, value: Any, storage: Any) -> bool:
        """Whether this name has the written memory; it is drawn, if something is told."""
        if not shares(value, storage):
            return False
        self._own.parts = (*self._own.parts[:1], Drawn(role, value, name))
        return True

    def _tell(
        self, at: Writing, note: str, trail: tuple[Moment, ...], certainty: Certainty, label: str = ""
    ) -> bool:
        return self._report(at.site, at.op, note, trail, certainty, label)

    def _report(
        self,
        site: Site | None,
        op: str,
        note: str,
        trail: tuple[Moment, ...],
        certainty: Certainty,
        label: str = "",
    ) -> bool:
        if site is not None and (site.path, site.line) not in self._told:
            self._told.add((site.path, site.line))
            value = Value(frozenset(), trail, label)
            roles, memory = {"alias": value}, memory_of(*self._own.parts)
            call = Call(Kind.WRITTEN, op, site, next(clock), roles, certainty, note, memory)
            self._context.ask(call, LedgerHistory({}))
        return True


def _only_converts(at: Writing) -> bool:
    return brings_no_data(at.statement, at.name, at.arguments)


def _converts_item(at: Writing) -> bool:
    """Whether a write changes the values of an item that is then used, and does not fill a cache."""
    name = at.op.rpartition(".")[2]
    if name in SETS and not (
        name in ("__setitem__", "masked_fill_") and type(at.arguments[-1]) in (int, float)
    ):
        return False
    used = isinstance(at.statement, ast.Return) or read_after(at.place, at.statement, at.name) is not None
    return used and not brings_data(at.scope, at.name)


def _attribute_over(owner: Any, storage: Any) -> str:
    """The attribute in which an object holds this memory."""
    for name, value in stored(owner).items() if owner is not None else ():
        if shares(value, storage) or any(shares(item, storage) for _, item in held(value, 4096)):
            return name
    return ""


def _made(at: Writing, origin: Origin) -> tuple[Moment, ...]:
    if origin.statement is None:
        return ()
    made = ".".join(origin.makers[:1])
    return (Moment(Kind.VIEWED, made, site_of_node(at.place, origin.statement), next(clock)),)


def _read(place: Place, node: ast.expr) -> Moment:
    return Moment(Kind.COPIED, "", site_of_node(place, node), next(clock), note="read")


def _is_plain(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and all(
        isinstance(target, ast.Name) for target in statement.targets
    )


def _is_default(place: Place, value: Any) -> bool:
    """Whether a tensor is the default of an argument of the running function."""
    for function in gc.get_referrers(place[0]):
        if isinstance(function, FunctionType) and function.__code__ is place[0]:
            defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
            if any(item is value for item in defaults):
                return True
    return False
