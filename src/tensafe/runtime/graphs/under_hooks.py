"""The program's own saved-tensor hooks over ours: theirs decide what is kept, ours see if it was changed.

Only the innermost pair of hooks runs, and PyTorch checks nothing under any. Theirs get and give the very
tensors that they would get and give unwatched, in the same order. Where they give back the memory that was
saved, its values are compared; a copy, as `save_on_cpu` or a checkpoint makes, is no business of ours.
Nothing lives longer: the clone that is compared lies with the storage and goes with it, or with the graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch

from tensafe.runtime.graphs.saved import WRITES_THROUGH_SAVED, OnChanged, Saved, _same_bytes
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.storages.ledger import ledger_of
from tensafe.uncompiled import leave_uncompiled

Pack = Callable[[torch.Tensor], Any]
Hooks = tuple[Pack, Callable[[Any], torch.Tensor]]
Compose = Callable[[Hooks], Hooks]
OnFailure = Callable[[str, Exception], None]


_NOTHING: Any = None
_THEIRS = "_tensafe_theirs"


class Token:
    """What is known of a saved tensor, without its memory: the clone lies under it in the ledger."""

    __slots__ = ("__weakref__", "saved")

    def __init__(self, saved: Saved) -> None:
        self.saved = saved


class _Under(NamedTuple):
    """What their hooks made of a tensor, and ours."""

    theirs: Any
    token: Token | None


def composing(look: Pack, on_changed: OnChanged, on_failure: OnFailure) -> Compose:
    """Makes a pair that is theirs over ours; `look` is our pack hook."""

    def noted(tensor: torch.Tensor) -> Token | None:
        try:
            return _token(look(tensor))
        except Exception as error:
            on_failure("a tensor saved under other hooks", error)
            return None

    def compared(token: Token, given: Any) -> None:
        try:
            changed = _changed(token, given)
        except Exception as error:
            on_failure("a tensor saved under other hooks", error)
            return
        if changed is not None:
            on_changed(changed, False)

    def composed(theirs: Hooks) -> Hooks:
        their_pack, their_unpack = theirs

        def pack(tensor: torch.Tensor) -> Any:
            packed = their_pack(tensor)
            return _Under(packed, noted(tensor))

        def unpack(packed: Any) -> torch.Tensor:
            if type(packed) is not _Under:
                return their_unpack(packed)
            given = their_unpack(packed.theirs)
            if packed.token is not None:
                compared(packed.token, given)
            return given

        leave_uncompiled(pack, unpack)
        setattr(pack, _THEIRS, their_pack)
        return pack, unpack

    return composed


def under(pack: Pack) -> Any:
    """The program's pack hook, where one is composed over ours."""
    return getattr(pack, _THEIRS, pack)


def _token(saved: Any) -> Token | None:
    if type(saved) is not Saved or saved.clone is None or saved.ledger is None:
        return None
    ledger = saved.ledger
    token = Token(saved._replace(tensor=_NOTHING, ledger=None, clone=None))
    if ledger.under is None:
        ledger.under = WeakKeyDictionary()
    ledger.under[token] = saved.clone
    return token


def _changed(token: Token, given: Any) -> Saved | None:
    """The saved tensor, where they give back its memory with other values."""
    if type(given) not in PLAIN or given.layout is not torch.strided:
        return None
    ledger = ledger_of(given)
    clone = ledger.under.get(token) if ledger.under is not None else None
    if clone is None or (clone.shape, clone.dtype, clone.stride()) != (
        given.shape,
        given.dtype,
        given.stride(),
    ):
        return None
    is_cow: Callable[[torch.Tensor], bool] = torch._C._is_cow_tensor  # type: ignore[attr-defined]
    saved = token.saved._replace(tensor=given, ledger=ledger, clone=clone)
    untouched = ledger.lazy and ledger.generation == saved.generation and is_cow(given)
    changed = not untouched and not _same_bytes(clone, given)
    node: Any = torch._C._current_autograd_node()
    if node is not None and node.name() in WRITES_THROUGH_SAVED:
        given.data_ptr()
    return saved if changed else None


def _layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.shape, tensor.dtype, tensor.stride()


@contextlib.contextmanager
def swapped(hooks: Any, compose: Compose) -> Iterator[None]:
    """While `hooks` (a `saved_tensors_hooks`) are entered, they are composed over ours."""
    own = hooks.pack_hook, hooks.unpack_hook
    hooks.pack_hook, hooks.unpack_hook = compose(own)
    try:
        yield
    finally:
        hooks.pack_hook, hooks.unpack_hook = own
