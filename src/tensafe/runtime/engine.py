"""The runtime engine: installs hooks and wrappers, makes facts of what they see, asks, undoes itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.compiler import is_compiling
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from tensafe.facts import Call, History, Kind, Memory, Moment, Value
from tensafe.runtime.calls.backwards import Backwards
from tensafe.runtime.calls.events import Events
from tensafe.runtime.calls.exact import Exact
from tensafe.runtime.calls.functions import Functions
from tensafe.runtime.calls.outs import Outs
from tensafe.runtime.calls.stepping import Stepping
from tensafe.runtime.calls.writers import Writers
from tensafe.runtime.costs.copies_table import CopiesTable
from tensafe.runtime.graphs.cuts import Cuts
from tensafe.runtime.graphs.saved import Saved, make_pack, make_unpack
from tensafe.runtime.graphs.under_hooks import composing
from tensafe.runtime.guest import Guest
from tensafe.runtime.modes import unseen
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import site_of, user_place
from tensafe.runtime.processes.ranks import Ranks
from tensafe.runtime.references.ownership import Ownership
from tensafe.runtime.storages.ledger import Event, LedgerHistory, Write, clock, write_moment
from tensafe.runtime.storages.pictures import Drawn, memory_of, written_by
from tensafe.runtime.values.healed import Healed
from tensafe.runtime.violation import message
from tensafe.runtime.watcher import Context
from tensafe.runtime.watchers import make_watchers
from tensafe.runtime.writes.discarded import Temporaries

Ask = Callable[[Call, History], None]
NotChecked = Callable[[str, str], None]


class Guarded:
    """Makes watchers that cannot hurt the program: a failure of ours becomes a line of the report."""

    def __init__(self, on_failure: Callable[[str, Exception], None]) -> None:
        self._on_failure = on_failure

    def __call__(self, what: str, watcher: Callable[..., Any]) -> Callable[..., None]:
        on_failure = self._on_failure
        functions, dispatches = torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack

        def guarded(*args: Any, **kwargs: Any) -> None:
            try:
                if functions() or dispatches():
                    with unseen():
                        watcher(*args, **kwargs)
                else:
                    watcher(*args, **kwargs)
            except Exception as error:
                on_failure(what, error)

        return guarded

    def watcher(self, what: str) -> Callable[[Callable[..., Any]], Callable[..., None]]:
        """The same as a decorator."""
        return lambda watcher: self(what, watcher)


class Engine:
    """One watched stretch of a program; `start()` and `stop()` bracket it, once each."""

    def __init__(
        self,
        ask: Ask,
        not_checked: NotChecked,
        *,
        heal: bool = False,
        forks_followed: bool = False,
        on_rank: Callable[[int], None] | None = None,
        exact: bool = False,
    ) -> None:
        self._ask = ask
        self._not_checked = not_checked
        self._patches = Patches()
        guarded = self._guarded = Guarded(self._failed)
        self._cuts = Cuts(ask)
        self._ownership = Ownership(ask)
        self._watchers = make_watchers(Context(ask, guarded, not_checked))
        self._backwards = Backwards(self._cuts, guarded, self._each, self._step_is_over)
        functions = Functions(self._cuts, guarded)
        graph_values = self._backwards.graph_values
        self._stepping = Stepping()
        writers = Writers(
            Temporaries(ask),
            graph_values.entries,
            functions.graph_dropped,
            self._failed,
            self._stepping,
            self._each,
        )
        self._heal = heal
        self._hooks = (make_pack(self._failed), make_unpack(self._changed))
        healed = Healed(self._hooks) if heal else None
        self._hooks = healed.hooks if healed else self._hooks
        self._functions = functions
        self._outs = Outs(guarded)
        compose = None if heal else composing(self._hooks[0], self._changed, self._failed)
        self._guest = Guest(self._hooks, not_checked, self._forget, forks_followed, compose)
        self._exact = Exact(not_checked, self._failed) if exact else None
        self._parts: tuple[Any, ...] = (
            writers,
            Events(self._cuts, self._ownership, guarded),
            self._backwards,
            functions,
            self._outs,
            self._guest,
            *([healed] if healed else []),
            *([Ranks(on_rank, guarded)] if on_rank else []),
            *([self._exact] if self._exact else []),
            *self._watchers,
        )
        self._step_hooks: list[Any] = []

    def copies_table(self) -> CopiesTable:
        """A table of all copies, to be started and stopped beside this engine."""
        return CopiesTable(Guarded(self._failed), self._not_checked)

    def start(self, *, hooks: bool = True) -> None:
        """Without `hooks` this thread gets none: a fork that began under others of the program."""
        try:
            for part in self._parts:
                part.install(self._patches)
        except BaseException:
            self._patches.undo()
            raise
        before = register_optimizer_step_pre_hook(self._step_hook(self._before_step))
        after = register_optimizer_step_post_hook(self._step_hook(self._after_step))
        self._step_hooks = [before, after]
        self._guest.enter(hooks)

    def ended_by(self, error: BaseException) -> None:
        """The program ends by this exception; called before `stop()`."""
        self._each("ended_by", error)

    def stop(self) -> None:
        """Undo every patch, then report what only the end can show."""
        self._go(self._guest.leave)
        self._ownership.finish()
        self._cuts.finish()
        self._each("finish")

    def abandon(self) -> bool:
        """Undo every patch and report nothing: a forked child does not tell what its parent knows.

        False where our hooks had to stay under others of the program.
        """
        return self._go(self._guest.abandon)

    def _go(self, leave: Callable[[], bool]) -> bool:
        try:
            left = leave()
            self._outs.stop()
            if self._exact:
                self._exact.stop()
            for handle in self._step_hooks:
                handle.remove()
        finally:
            self._patches.undo()
        return left

    def _each(self, event: str, *details: Any) -> None:
        """Tell every watcher; one that fails becomes a line of the report."""
        for watcher in self._watchers:
            try:
                getattr(watcher, event)(*details)
            except Exception as error:
                self._failed(type(watcher).__name__.lower(), error)

    def _forget(self, tensor: Any) -> None:
        """Hold no weak reference to this tensor any more."""
        self._cuts.forget(tensor)
        self._ownership.forget(tensor)
        self._functions.forget(tensor)
        self._backwards.graph_values.forget(tensor)
        self._each("forget", tensor)

    def _step_hook(self, see: Callable[..., None]) -> Callable[..., None]:
        """A hook that a compiled step does not look into."""
        guarded = self._guarded("an optimizer step", see)

        def hook(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
            if not is_compiling():
                guarded(optimizer, args, kwargs)

        return hook

    def _before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        self._stepping.begin(optimizer, user_place(2), whole=closure is None)
        self._cuts.step(optimizer)
        self._each("before_step", optimizer)
        if self._exact and closure is None and type(optimizer).__module__.startswith("torch.optim."):
            self._exact.pause()

    def _after_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        self._step_is_over()
        self._cuts.stepped(optimizer)
        place = user_place(2)
        self._ownership.stepped(optimizer, place)
        self._each("stepped", optimizer, place)

    def _step_is_over(self) -> None:
        """Also called where a step may have ended by an exception, which no hook of PyTorch tells."""
        self._stepping.settle()
        if self._exact:
            self._exact.resume()

    def _failed(self, what: str, error: Exception) -> None:
        self._not_checked(what, f"tensafe failed there ({type(error).__name__}: {error})")

    def _changed(self, saved: Saved, counted: bool) -> None:
        """A backward reads a saved tensor that was changed: tell, and raise where PyTorch would."""
        call: Call | None = None
        history: LedgerHistory | None = None
        try:
            node: Any = torch._C._current_autograd_node()
            reader = node.name() if node is not None else "a backward"
            if not counted and _is_benign(saved, reader):
                if saved.ledger is not None:
                    saved.ledger.benign = not saved.tensor.requires_grad
                return
            call, history = _backward_facts(saved, counted, reader)
            self._ask(call, history)
        except Exception as error:
            self._failed("a changed saved tensor", error)
        if counted and not self._heal:
            raise RuntimeError(message(saved, call, history)).with_traceback(None)


def _is_benign(saved: Saved, reader: str) -> bool:
    """Changed contents that say nothing.

    No wrapped call wrote and nobody holds a pointer (a kernel updates its running statistics), or they are
    the statistics of a batch norm, which its backward does not read in training.
    """
    ledger = saved.ledger
    if ledger is None or (
        "BatchNorm" in reader and saved.tensor.dim() == 1 and not saved.tensor.requires_grad
    ):
        return True
    written = ledger.write_since(saved.order, bytes_changed=True)
    return written is None and ledger.exported is None


def _backward_facts(saved: Saved, counted: bool, reader: str) -> tuple[Call, LedgerHistory]:
    ledger = saved.ledger
    place = (saved.code, saved.offset) if saved.code is not None else None
    kept = Moment(Kind.SAVED, reader, site_of(place), saved.order)
    now = next(clock)
    exports: Sequence[Moment] = _export_moments(ledger.exported) if ledger is not None else ()
    storage = ledger.id if ledger is not None else None
    value = Value(frozenset() if storage is None else frozenset({storage}), (*exports, kept))
    write = ledger.write_since(saved.order, bytes_changed=not counted) if ledger is not None else None
    if write is None and counted and ledger is not None and ledger.write is not None:
        one_call = ledger.write.place == place  # saved and written by one and the same call
        write = ledger.write if one_call else None
    moment = write_moment(write, saved.order + 1, counted)
    call = Call(
        Kind.BACKWARD,
        reader,
        site_of(user_place(4)),
        now,
        {"saved": value},
        memory=_memory(saved, write, reader),
    )
    return call, LedgerHistory({} if storage is None else {storage: moment})


def _memory(saved: Saved, write: Write | None, reader: str) -> tuple[Memory, ...]:
    """What was saved, and what the write reached: one of the first of its line, or of that very tensor."""
    written = written_by(write, saved.ledger)
    parts = [Drawn(f"saved for {reader}", saved.tensor)]
    if write is not None and not written and write.tensor == id(saved.tensor):
        parts.append(Drawn(f"written by `{write.op}`", saved.tensor))
    return memory_of(*parts, also=written)


def _export_moments(event: Event | None) -> Sequence[Moment]:
    """An export and its callers as moments; the last is the line that made the array."""
    if event is None:
        return ()
    return [Moment(Kind.EXPORTED, event.op, site_of(place), event.order) for place in reversed(event.places)]
