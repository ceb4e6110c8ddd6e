"""What a call hands over, by place and by name."""

from __future__ import annotations

from dataclasses import dataclass, field

from tensafe.static.values import Constant, Value


@dataclass(slots=True)
class Arguments:
    """What a call hands over."""

    positional: list[Value]
    keywords: dict[str, Value] = field(default_factory=dict)
    rest: Value | None = None  # what `*` and `**` may hold besides

    def get(self, place: int, name: str) -> Value | None:
        """The argument given at this place or under this name."""
        if name in self.keywords:
            return self.keywords[name]
        return self.positional[place] if 0 <= place < len(self.positional) else None

    def flag(self, name: str, place: int = -1) -> bool | None:
        """A boolean argument: its value, None when it is not given or not known."""
        value = self.get(place, name)
        return bool(value.value) if type(value) is Constant else None

    @property
    def all(self) -> list[Value]:
        return [*self.positional, *self.keywords.values()]
