"""`deepcopy` as it is handed out: the function, with `deepcopy.installed` on it."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from tensafe.copies import deep
from tensafe.copies.installed import Installed
from tensafe.copies.walking.session import Graph

T = TypeVar("T")


class Deepcopy(Protocol):
    """The type of `tensafe.deepcopy`."""

    installed: type[Installed]

    def __call__(
        self, obj: T, memo: dict[Any, Any] | None = None, *, graph: Graph = "raise", grads: bool = False
    ) -> T: ...


def _handed_out() -> Deepcopy:
    function: Any = deep.deepcopy
    function.installed = Installed
    return function  # type: ignore[no-any-return]


deepcopy = _handed_out()
