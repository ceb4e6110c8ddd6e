"""A finding, its evidence and its fix: plain frozen data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from tensafe.facts import Memory, Site


class Severity(str, Enum):
    """How a finding is shown: errors and warnings always, notices on request."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


When = Literal["", "before", "after"]
"""Whether a place comes before or after the line that does the wrong thing; empty where no rule says it."""


@dataclass(frozen=True, slots=True)
class Because:
    """Another place that belongs to the finding, and its part in it."""

    site: Site
    role: str  # a few words under the underline: "saved here"
    message: str = ""
    when: When = ""


@dataclass(frozen=True, slots=True)
class Wrap:
    """Put an expression into a template: `Wrap(site, "copy.deepcopy({})", imports=("copy",))`."""

    site: Site
    template: str
    imports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutOfPlace:
    """Turn the in-place statement at `site` into its out-of-place twin: `x += y` to `x = x + y`."""

    site: Site


@dataclass(frozen=True, slots=True)
class AssignThroughIndex:
    """Turn a write into an indexed copy (`x[mask].fill_(v)`) into one index assignment on the original."""

    site: Site


@dataclass(frozen=True, slots=True)
class CallInstead:
    """Replace the called function at `site`: `torch.tensor(losses, ...)` to `torch.stack(losses)`."""

    site: Site
    function: str
    drop_keywords: bool = True


@dataclass(frozen=True, slots=True)
class SetKeyword:
    """Give the call at `site` a keyword argument, replacing the one it has (`use_reentrant=False`)."""

    site: Site
    keyword: str
    value: str


@dataclass(frozen=True, slots=True)
class DropCall:
    """Leave out the method call at `site`, so that its receiver remains: `x[rows].clone()` to `x[rows]`."""

    site: Site


@dataclass(frozen=True, slots=True)
class Disallow:
    """Take names out of the comment `# tensafe: allow` at `site`; the comment too, when none is left."""

    site: Site
    names: tuple[str, ...]


Action = Wrap | OutOfPlace | AssignThroughIndex | CallInstead | SetKeyword | DropCall | Disallow


@dataclass(frozen=True, slots=True)
class Fix:
    """A source edit for the `fixes` room to carry out; `safe` when the author can only have meant that."""

    action: Action
    safe: bool
    title: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One reported fault: `at` is the line that does the wrong thing, `because` the other places.

    A rule fills `code`, `message`, `at`, `because`; the catalogue adds name, severity, help and fix.
    """

    code: str
    message: str
    at: Site
    because: tuple[Because, ...] = ()
    label: str = ""  # a few words under the primary underline: "modified in place here"
    name: str = ""
    severity: Severity = Severity.WARNING
    help: str = ""
    fix: Fix | None = None
    count: int = 1
    rank: int | None = None  # of the one rank that saw it
    processes: tuple[str, ...] = ()  # who saw it, where that was not the program's first process alone
    memory: tuple[Memory, ...] = ()  # where its tensors lay when it was first seen

    @property
    def location(self) -> Site:
        """The line that does the wrong thing."""
        return self.at

    def _repr_html_(self) -> str | None:
        return _drawn_by[-1](self) if _drawn_by else None


_drawn_by: list[Callable[[Finding], str]] = []


def draw_with(draw: Callable[[Finding], str]) -> None:
    """Let notebooks show findings as this makes them; data alone knows no HTML."""
    _drawn_by[:] = [draw]


@dataclass(frozen=True, slots=True)
class NotChecked:
    """Something that tensafe did not watch, and why."""

    what: str
    why: str
