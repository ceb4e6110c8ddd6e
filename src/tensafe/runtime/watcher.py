"""What a part of the engine may see: each watcher overrides what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensafe.runtime.patches import Patches

if TYPE_CHECKING:
    import torch

    from tensafe.runtime.engine import Ask, Guarded, NotChecked
    from tensafe.runtime.places.frames import Place


class Context(NamedTuple):
    """What the engine hands to its watchers."""

    ask: Ask  # puts a call to the rules
    guarded: Guarded  # makes a function that cannot hurt the program
    not_checked: NotChecked  # (what, why), a line of the report


class Watcher:
    """One family of things to see. The engine guards every call: an exception becomes a line of the
    report.
    """

    def install(self, patches: Patches) -> None:
        """Wrap what must be wrapped."""

    def refused(self, op: str, target: Any, arguments: tuple[Any, ...], error: Exception) -> None:
        """A wrapped writer raised: `op` on `target`; the error goes on to the program."""

    def overlapping(self, op: str, target: torch.Tensor, arguments: tuple[Any, ...]) -> None:
        """A wrapped writer got an argument from the storage that it writes; called after the write."""

    def first_writes(self, op: str, target: torch.Tensor, arguments: tuple[Any, ...]) -> None:
        """One of the first writes at a line of the program, through a wrapped method or function."""

    def backward(self, roots: list[torch.Tensor], retained: bool, place: Place | None) -> None:
        """A backward ended well; `retained` is its `retain_graph`."""

    def backward_refused(self, roots: list[torch.Tensor], error: Exception, place: Place | None) -> None:
        """A backward raised."""

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer is about to step."""

    def stepped(self, optimizer: torch.optim.Optimizer, place: Place | None) -> None:
        """An optimizer stepped."""

    def ended_by(self, error: BaseException) -> None:
        """The program, or one of its threads, ends by this exception; its traceback holds every frame."""

    def forget(self, tensor: torch.Tensor) -> None:
        """Hold no weak reference to this tensor any more (`torch.utils.swap_tensors`)."""

    def finish(self) -> None:
        """The program ended and every patch is undone: report what only the end can show."""
