"""Every tensor, array and storage that a tree of objects holds, with every name that leads there."""

from __future__ import annotations

import collections
import gc
import itertools
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from tensafe.aliases.attributes import is_kind, kind_name, module_of, mro_of
from tensafe.aliases.contents import (
    Child,
    contents_of,
    is_array_type,
    is_storage_type,
    is_tensor_type,
    reader_of,
)
from tensafe.aliases.steps import Path, spelled

MOST_OBJECTS = 5_000_000
MOST_VISITS = 8
"""How often one list, tuple, dictionary or module is entered, each time under another name."""
MOST_NAMES = 32
MOST_PEEKED = 100
"""Of the items beyond the first ones, to tell a long list of numbers from one of tensors."""
SEVERAL_NAMES = (dict, list, tuple, torch.nn.Module)
LEAVES = frozenset(["tensor", "array", "storage", "buffer"])
INHERITED = ("optimizer state", "held")


@dataclass(eq=False)
class Found:
    """One tensor, array or storage, and the ways to it."""

    value: Any
    kind: str  # "tensor", "parameter", "array", …
    paths: list[Path] = field(default_factory=list)
    more: int = 0  # ways beyond `MOST_NAMES`


class Walk:
    """Goes through objects breadth first, so that the shortest way to each comes first.

    Bounded by `most_objects`; what was left out is in `not_seen`. It keeps what it found alive.
    """

    def __init__(self, most_objects: int = MOST_OBJECTS, most_items: int = MOST_OBJECTS) -> None:
        self.found: dict[int, Found] = {}
        self.not_seen: list[str] = []
        self._left = most_objects
        self._most = most_objects
        self._most_items = most_items
        self._visits: dict[int, int] = {}
        self._torchs: dict[int, bool] = {}
        self._sorts: dict[int, str] = {}  # by `id`: hashing a type may run its metaclass
        self._kinds: list[type] = []  # kept, so that no other gets the `id` of one
        self._names: dict[int, str] = {}
        self._opened: dict[int, tuple[object, Any]] = {}

    def go(self, roots: Iterable[tuple[str, object]]) -> Walk:
        """Walk these named objects."""
        queue = collections.deque(Path(None, "root", name, value) for name, value in roots)
        while queue:
            path = queue.popleft()
            sort = self._sort(type(path.value))
            if sort == "atom":
                continue
            if sort in LEAVES:
                if not self._keep(path, sort):
                    continue
                path = self.found[id(path.value)].paths[0]
            elif not self._enter(path, sort):
                continue
            if not self._push(path, queue):
                break
        return self

    def name(self, value: object) -> str | None:
        """The shortest name of a tensor that was found."""
        known = self.found.get(id(value))
        if known is None or not known.paths:
            return None
        if id(value) not in self._names:
            self._names[id(value)] = _piece_of(known)  # what a name that leads through itself gets
            self._names[id(value)] = min((self.spell(path) for path in _best(known)), key=_shortness)
        return self._names[id(value)]

    def spell(self, path: Path) -> str:
        """One way as a name."""
        return spelled(path, self.name)

    def names(self, found: Found) -> tuple[str, ...]:
        """All names, the shortest first; that an optimizer holds it counts only where nothing else does."""
        names = dict.fromkeys(self.spell(path) for path in _best(found))
        return tuple(sorted(names, key=_shortness))

    def _sort(self, kind: type) -> str:
        known = self._sorts.get(id(kind))
        if known is None:
            known = self._sorts[id(kind)] = _sort_of(kind)
            self._kinds.append(kind)
        return known

    def _keep(self, path: Path, sort: str) -> bool:
        """Note the way to a tensor; whether it is new."""
        if sort == "buffer" and not self._open(path):
            return False
        known = self.found.get(id(path.value))
        if known is None:
            known = self.found[id(path.value)] = Found(path.value, _kind(path, sort))
        elif known.kind == "tensor" and path.kind not in ("", "held"):
            known.kind = path.kind
        if len(known.paths) < MOST_NAMES:
            known.paths.append(path)
        else:
            known.more += 1
        return len(known.paths) == 1 and sort in ("tensor", "array")

    def _open(self, path: Path) -> bool:
        """Take a memoryview as the array over its memory; False where it has none any more."""
        if id(path.value) not in self._opened:
            array = sys.modules["numpy"].asarray(path.value)
            self._opened[id(path.value)] = (path.value, array)
        array = self._opened[id(path.value)][1]
        if array.dtype.hasobject:  # NumPy's answer to a view that was released
            return False
        path.value = array
        return True

    def _enter(self, path: Path, sort: str) -> bool:
        """Whether to look into a container that may have been seen before."""
        seen = self._visits.get(id(path.value), 0)
        if seen and (seen >= MOST_VISITS or sort != "several" or _passed(path)):
            return False
        self._visits[id(path.value)] = seen + 1
        return True

    def _push(self, path: Path, queue: collections.deque[Path]) -> bool:
        """Queue what an object holds; False when the walk has to stop."""
        inherited = path.kind if path.kind in INHERITED else ""
        in_state = path.how == "state"
        keeps = path.is_private or self._keeps_private(type(path.value))
        sorts = self._sorts
        try:
            contents = contents_of(path.value)
            for how, step, value, kind in itertools.islice(contents, self._most_items):
                self._left -= 1
                if self._left < 0:
                    self.not_seen.append(f"the search stopped after {self._most:,} objects")
                    return False
                sort = sorts.get(id(type(value)))
                if sort == "atom" or (sort is None and self._sort(type(value)) == "atom"):
                    continue
                spelling = "attribute" if in_state and how == "item" and type(step) is str else how
                is_private = path.is_private or _is_private(how, step, keeps)
                queue.append(Path(path, spelling, step, value, kind or inherited, is_private))
            self._leave_out(path, contents)
        except Exception as error:  # another thread changes the container, or a broken subclass
            name = spelled(path, self.name)
            self.not_seen.append(f"{name}: {kind_name(type(error))} while it was read")
        if self._sort(type(path.value)) == "tensor":
            gradient = gradient_of(path.value)  # type: ignore[arg-type]
            if gradient is not None:
                queue.append(Path(path, "attribute", "grad", gradient, "gradient", path.is_private))
        return True

    def _leave_out(self, path: Path, rest: Iterator[Child]) -> None:
        """Say which items of a large container have no names, as far as its next ones may hold tensors."""
        if any(self._sort(type(value)) != "atom" for _, _, value, _ in itertools.islice(rest, MOST_PEEKED)):
            name = spelled(path, self.name)
            self.not_seen.append(f"`{name}`: names are looked for in its first {self._most_items:,} items")

    def _keeps_private(self, kind: type) -> bool:
        """Whether a class is of torch's own making: what it keeps under `_names` is its bookkeeping."""
        known = self._torchs.get(id(kind))
        if known is None:
            known = self._torchs[id(kind)] = _is_torchs(kind)
            self._kinds.append(kind)
        return known


def gradient_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """The gradient of a leaf, None where there is none or asking for it would warn."""
    own: Any = torch.Tensor  # its descriptors, whatever a subclass makes of them
    with torch._C.DisableTorchFunctionSubclass():
        try:
            if own.requires_grad.__get__(tensor) and own.is_leaf.__get__(tensor):
                gradient: torch.Tensor | None = own.grad.__get__(tensor)
                return gradient
        except RuntimeError:  # a view whose base was changed in a way that autograd refuses
            return None
    return None


def _sort_of(kind: type) -> str:
    if is_tensor_type(kind):
        return "tensor"
    if is_array_type(kind):
        return "array"
    if is_storage_type(kind):
        return "storage"
    if kind is memoryview and "numpy" in sys.modules:
        return "buffer"
    if reader_of(kind) is None:
        return "atom"
    return "several" if any(is_kind(kind, several) for several in SEVERAL_NAMES) else "container"


def _kind(path: Path, sort: str) -> str:
    if path.kind and path.kind != "held":
        return path.kind
    if sort == "buffer":
        return "array"
    if sort == "tensor" and is_parameter(path.value):
        return "parameter"
    return sort


def is_parameter(tensor: object) -> bool:
    """Whether it is a Parameter; of other tensor types (DTensor), those that `Parameter()` marked."""
    if type(tensor) is torch.Tensor:
        return False
    if is_kind(type(tensor), torch.nn.Parameter):
        return True
    return any(type(held) is dict and "_is_param" in held for held in gc.get_referents(tensor))


def _passed(path: Path) -> bool:
    return path.before is not None and path.before.passes(path.value)


def _best(found: Found) -> list[Path]:
    """The ways that people write: not through an optimizer's lists, nor through torch's own books."""
    owned = [path for path in found.paths if path.kind != "held"] or found.paths
    return [path for path in owned if not path.is_private] or owned


def _is_private(how: str, step: object, is_torchs: bool) -> bool:
    """Whether a step goes into bookkeeping: `lstm._flat_weights`, `ddp._module_parameters`."""
    if how != "attribute" or type(step) is not str or not step.startswith("_"):
        return False
    return is_torchs or step.startswith("__composable_api_state_key")


def _is_torchs(kind: type) -> bool:
    """Whether it is, or derives from, a class of torch other than `torch.nn.Module` itself."""
    return any(
        module_of(place).startswith("torch.")
        for place in mro_of(kind)
        if place is not torch.nn.Module and not is_kind(place, torch.Tensor)
    )


def _shortness(name: str) -> tuple[int, str]:
    return len(name), name


def _piece_of(found: Found) -> str:
    return f"<{kind_name(type(found.value))}>"
