"""Where PyTorch raises an error about memory or graphs: what led there, told when the program stops on it.

An error that ends the program is reported at once. One that the program catches may be what it wants: that
is a notice.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from tensafe.facts import Call, Certainty
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import Place, user_place
from tensafe.runtime.refusals import arrays, copies, writes
from tensafe.runtime.refusals.frames import Trace, site_in_worker
from tensafe.runtime.refusals.graphs import SecondBackward
from tensafe.runtime.refusals.refusal import Refusal, Seen, value_of
from tensafe.runtime.refusals.trail import trail
from tensafe.runtime.refusals.views import Views
from tensafe.runtime.storages.ledger import LedgerHistory
from tensafe.runtime.storages.weak import WeakFacts
from tensafe.runtime.watcher import Context, Watcher

MOST_PENDING = 1_000
MOST_HOOK_PLACES = 3
NO_COPY = re.compile(r"(cannot|can't|can not) (pickle|copy|deepcopy)")
SECOND_BACKWARD = "Trying to backward through the graph a second time"

Diagnose = Callable[[Seen], "Refusal | None"]
DIAGNOSES: tuple[tuple[str, Diagnose], ...] = (
    ("view of a leaf Variable that requires grad", writes.leaf),
    ("a leaf Variable that requires grad", writes.leaf),
    ("don't support automatic differentiation, but one of the arguments", writes.leaf_as_output),
    ("is the output of a function that returns multiple views", writes.one_of_several),
    ("was created inside a custom Function", writes.of_a_function),
    ("A view was created in no_grad mode", writes.without_recording),
    ("A view was created in inference mode", writes.without_recording),
    ("Inplace update to inference tensor outside InferenceMode", writes.without_recording),
    ("Can't detach views in-place", writes.detached_in_place),
    ("more than one element of the written-to tensor refers to a single", writes.overlapping),
    ("some elements of the input tensor and the written-to tensor refer", writes.overlapping),
    ("Can't call numpy() on Tensor that requires grad", arrays.array),
    ("view size is not compatible with input tensor's size and stride", arrays.stride),
    ("self.stride(-1) must be 1 to view", arrays.stride),
    ("Tensor must have a last dimension with stride 1", arrays.stride),
    ("support the deepcopy protocol", copies.nonleaf),
)
"""Words of PyTorch's messages, and who explains them."""


class Refusals(Watcher):
    """Diagnoses refusals from their tracebacks; nothing of the program is kept."""

    def __init__(self, context: Context) -> None:
        self._ask = context.ask
        self._guarded = context.guarded
        self._second = SecondBackward()
        self._pending: dict[tuple[str, Place | None], Call] = {}
        self._backward_hooks: WeakFacts[Place] = WeakFacts()
        self._pre_hooks: WeakFacts[Place] = WeakFacts()

    def install(self, patches: Patches) -> None:
        trail.clear()
        Views().install(patches)
        module = torch.nn.Module
        for name in ("register_full_backward_hook", "register_full_backward_pre_hook"):
            patches.wrap(module, name, self._registers_backward_hook)
        patches.wrap(module, "register_forward_pre_hook", self._registers_pre_hook)
        patches.wrap(threading, "_make_invoke_excepthook", self._threads_end)
        for name in ("__enter__", "__exit__"):
            patches.wrap(torch.autograd.graph.saved_tensors_hooks, name, _blank)

    # --- hooks that explain a later refusal

    def _registers_backward_hook(self, call: Callable[..., Any]) -> Callable[..., Any]:
        note = self._guarded("a module hook", self._backward_hooks.put)

        def register(self: Any, *args: Any, **kwargs: Any) -> Any:
            note(self, user_place(2))
            return call(self, *args, **kwargs)

        return _dressed(register, call)

    def _registers_pre_hook(self, call: Callable[..., Any]) -> Callable[..., Any]:
        note = self._guarded("a module hook", self._pre_hooks.put)

        def register(self: Any, hook: Any, *args: Any, **kwargs: Any) -> Any:
            if hasattr(hook, "__weakref__"):
                note(hook, user_place(2))
            return call(self, hook, *args, **kwargs)

        return _dressed(register, call)

    def _hook_places(self, trace: Trace) -> Sequence[Place]:
        """Where full backward hooks were put on: on a module that runs in these frames, else on any."""
        for step in reversed(trace.passed):
            module = trace.owner(step) if step.frame.f_code.co_name == "_call_impl" else None
            place = self._backward_hooks.get(module) if module is not None else None
            if place is not None:
                return [place]
        places = [place for _, place in self._backward_hooks.items()]
        return list(dict.fromkeys(reversed(places)))[:MOST_HOOK_PLACES]

    def _threads_end(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """An error that ends a thread has been caught by nobody."""
        ended = self._guarded("a thread's error", self.ended_by)

        def make_invoke_excepthook() -> Any:
            invoke = call()

            def invoke_excepthook(thread: Any) -> None:
                import sys

                error = sys.exc_info()[1]
                if error is not None:
                    ended(error)
                del error
                invoke(thread)

            return invoke_excepthook

        return _dressed(make_invoke_excepthook, call)

    # --- moments

    def refused(self, op: str, target: Any, arguments: tuple[Any, ...], error: Exception) -> None:
        self._wait(error, Trace(error, {"label": op, "self": target, "args": arguments}))

    def backward(self, roots: list[torch.Tensor], retained: bool, place: Place | None) -> None:
        self._second.ended(roots, retained, place)

    def backward_refused(self, roots: list[torch.Tensor], error: Exception, place: Place | None) -> None:
        if SECOND_BACKWARD in str(error) and ("second backward", place) not in self._pending:
            refusal = self._second.refused(roots, place)
            self._pending["second backward", place] = refusal.call(Certainty.OFTEN_MEANT)

    def forget(self, tensor: torch.Tensor) -> None:
        self._second.forget(tensor)

    def ended_by(self, error: BaseException) -> None:
        """The program, or one of its threads, ends by this exception."""
        told: set[str] = set()
        for part, certain in reversed(list(_behind(error))):
            words = _words(str(part))
            if words not in told:  # an error that repeats the words of its cause is the same refusal
                self._tell(part, Trace(part), Certainty.DID if certain else Certainty.OFTEN_MEANT)
            told |= {words} - {""}

    def finish(self) -> None:
        for call in self._pending.values():
            self._ask(call, LedgerHistory({}))
        self._pending.clear()

    # --- asking

    def _wait(self, error: BaseException, trace: Trace) -> None:
        """Keep the facts of an error that the program may catch."""
        words = _words(str(error))
        key = (words, trace.place())
        if not words or key in self._pending or len(self._pending) >= MOST_PENDING:
            return
        refusal = self._diagnose(error, trace)
        if refusal is not None:
            self._pending[key] = refusal.call(Certainty.OFTEN_MEANT)

    def _tell(self, error: BaseException, trace: Trace, certainty: Certainty) -> None:
        if SECOND_BACKWARD in str(error):
            for key in [key for key in self._pending if key == ("second backward", trace.place())]:
                call = self._pending.pop(key)
                self._ask(replace(call, certainty=certainty), LedgerHistory({}))
            return
        refusal = self._diagnose(error, trace)
        if refusal is not None:
            self._pending.pop((_words(str(error)), trace.place()), None)
            self._ask(refusal.call(certainty), LedgerHistory({}))
            if refusal.note == "graph tensor of a hook":
                self._ask(refusal.call(Certainty.OFTEN_MEANT), LedgerHistory({}))

    def _diagnose(self, error: BaseException, trace: Trace) -> Refusal | None:
        text = str(error)
        seen = Seen(text, error, trace, lambda: self._hook_places(trace), self._pre_hooks.get)
        words = _words(text)
        if words:
            refusal = dict(DIAGNOSES)[words](seen)
            site = site_in_worker(text)
            if site is None or refusal is None:
                return refusal
            return refusal._replace(op="", site=site, target=value_of("", []), operand=None, memory=())
        return copies.uncopyable(seen) if _is_copying(text, trace) else None


def _words(text: str) -> str:
    return next((words for words, _ in DIAGNOSES if words in text), "")


def _is_copying(text: str, trace: Trace) -> bool:
    """Whether the exception says that `copy.deepcopy` cannot copy, and is none of code that it called."""
    innermost = trace.passed[-1].filename.replace("\\", "/") if trace.passed else ""
    return innermost.endswith(("/copy.py", "/copyreg.py")) or bool(NO_COPY.search(text))


def _behind(error: BaseException) -> Iterator[tuple[BaseException, bool]]:
    """The error and those that led to it, and whether the program ends for each.

    An error that was being handled ends it when the handler exits with a status, or raises another error
    that repeats the words of the first.
    """
    part: BaseException | None = error
    certain = True
    for _ in range(20):
        if part is None:
            return
        if part.__traceback__ is not None:
            yield part, certain
        if part.__cause__ is not None:
            part = part.__cause__
        elif part.__context__ is not None and not part.__suppress_context__:
            inner = part.__context__
            gives_up = isinstance(part, SystemExit) and part.code not in (None, 0)
            certain = certain and (gives_up or str(inner)[:60] in str(part))
            part = inner
        else:
            return


def _blank(call: Callable[..., Any]) -> Callable[..., Any]:
    """While hooks of the program are innermost, ours do not see what is saved."""

    def change(self: Any, *args: Any) -> Any:
        trail.pause()
        return call(self, *args)

    return _dressed(change, call)


def _dressed(wrapper: Callable[..., Any], call: Callable[..., Any]) -> Callable[..., Any]:
    import functools

    return functools.update_wrapper(wrapper, call)
