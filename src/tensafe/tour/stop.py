"""One stop of the tour: what the guides say, a program that shows it, and what tensafe makes of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stop:
    """One technique.

    `code` and `call` are programs, run one after the other in one namespace; a line that ends in `#> value`
    claims what its expression gives, or which error it raises (`#> RuntimeError: ...`). `drawn` names the
    tensors and arrays whose memory and graph are shown after the code. `holds` says whether the guides'
    advice stands as they give it.
    """

    name: str
    title: str
    says: str  # what the guides say
    holds: bool
    code: str
    happens: str  # what happens to memory and graph, in words
    call: str
    drawn: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()  # names of the rules that find the fault
