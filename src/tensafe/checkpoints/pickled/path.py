"""The names of tensors: the keys and attributes that lead to them, written as Python would."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from tensafe.checkpoints.pickled.values import Global, Payload, Value

LONGEST_KEY = 200
DEEPEST = 40  # steps of a name that are written out


@dataclass(frozen=True, slots=True)
class Path:
    """One step and all before it; the first is written as it is: a key of a state dict is a name already."""

    parent: Path | None
    step: str

    def key(self, key: Value) -> Path:
        """`.name` for a word, `["fc.weight"]` or `[0]` for any other key."""
        if isinstance(key, str):
            if self._is_root:
                return Path(self, _cut(key))
            return Path(self, f".{_cut(key)}" if key.isidentifier() else f'["{_cut(key)}"]')
        return Path(self, f"[{_spelled(key)}]")

    def attribute(self, name: str) -> Path:
        """`.name`."""
        return Path(self, _cut(name) if self._is_root else f".{_cut(name)}")

    def item(self, index: int) -> Path:
        """`[0]`."""
        return Path(self, f"[{index}]")

    @property
    def _is_root(self) -> bool:
        return self.parent is None and not self.step

    def __str__(self) -> str:
        steps: list[str] = []
        place: Path | None = self
        while place is not None and len(steps) <= DEEPEST:
            steps.append(place.step)
            place = place.parent
        return ("…" if place is not None else "") + "".join(reversed(steps)) or "(the whole)"


def _cut(key: str) -> str:
    """A key of bearable length; two long ones that begin alike stay two."""
    if len(key) <= LONGEST_KEY:
        return key
    return f"{key[:LONGEST_KEY]}…{zlib.crc32(key.encode('utf-8', 'surrogatepass')):08x}"


def _spelled(key: Value) -> str:
    if key is None or isinstance(key, (bool, int, float)):
        return repr(key)[:LONGEST_KEY]
    if isinstance(key, Payload):
        return f"{key.head.decode('ascii', 'backslashreplace')}… (at byte {key.start:,})"
    return key.name if isinstance(key, Global) else "…"
