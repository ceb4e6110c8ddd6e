"""How a run watches: what its child processes are told so that they watch alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tensafe.rules._loader import Rule, select


@dataclass(frozen=True)
class Settings:
    """The same for every process of a run."""

    codes: tuple[str, ...]
    heal: bool = False
    copies: bool = False
    depth: str = "writers"

    @classmethod
    def of(cls, rules: Sequence[Rule], heal: bool, copies: bool, depth: str) -> Settings:
        return cls(tuple(rule.code for rule in rules), heal, copies, depth)

    @property
    def rules(self) -> tuple[Rule, ...]:
        return select(list(self.codes), [])

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Settings:
        fields = json.loads(text)
        return cls(tuple(fields.pop("codes")), **fields)
