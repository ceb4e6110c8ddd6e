"""A storage drawn to scale in one line of text, with the bytes that are reached."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tensafe.memory.covered import Run, covered
from tensafe.memory.extent import Extent

MOST_RUNS = 5_000


class Blocks(NamedTuple):
    """The characters of a bar."""

    full: str
    part: str
    trace: str
    none: str


BLOCKS = Blocks("█", "▒", "▏", "·")
ASCII = Blocks("#", "=", "|", ".")


def blocks_for(encoding: str | None) -> Blocks:
    """Block characters where the stream can print them."""
    try:
        "".join(BLOCKS).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


def bar(extents: Iterable[Extent], nbytes: int, cells: int, blocks: Blocks = BLOCKS) -> str:
    """`cells` characters for the `nbytes` of a storage: reached whole, in part, barely, or not at all."""
    if nbytes <= 0:
        return blocks.none * cells
    reached = covered(extents, MOST_RUNS)
    listed = sum(stop - start for start, stop in reached.runs)
    density = reached.nbytes / listed if listed else 0.0
    shares = _shares(reached.runs, nbytes, cells)
    return "".join(_block(share * density, blocks) for share in shares)


def _shares(runs: Iterable[Run], nbytes: int, cells: int) -> list[float]:
    """How much of each cell lies in the runs, 0 to 1."""
    shares = [0.0] * cells
    for start, stop in runs:
        first, last = start * cells / nbytes, min(stop * cells / nbytes, cells)
        for cell in range(int(first), min(cells, int(last) + 1)):
            shares[cell] += max(0.0, min(last, cell + 1) - max(first, cell))
    return shares


def _block(share: float, blocks: Blocks) -> str:
    if share > 0.999:
        return blocks.full
    if share > 0.2:
        return blocks.part
    return blocks.trace if share > 0 else blocks.none
