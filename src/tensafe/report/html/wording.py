"""Sizes, shapes and long names as words that fit a line."""

from __future__ import annotations

from collections.abc import Sequence

from tensafe.memory.extent import Extent
from tensafe.memory.map import Storage

UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
ELLIPSIS = "…"


def size(nbytes: int) -> str:
    """`"1.5 MiB"`: three figures at least, exact below 1 KiB. In integers, as a file may claim any size."""
    if nbytes < 1024:
        return f"{nbytes} B"
    if nbytes >= 1 << 70:
        return "over 1,024 EiB"
    power = (nbytes.bit_length() - 1) // 10
    if _rounded(nbytes, power, 1) >= 1024 and power < len(UNITS):
        power += 1
    tenths = _rounded(nbytes, power, 10)
    figures = f"{tenths // 10}.{tenths % 10}" if tenths < 1000 else f"{_rounded(nbytes, power, 1):,}"
    return f"{figures} {UNITS[power - 1]}"


def _rounded(nbytes: int, power: int, parts: int) -> int:
    """In units of 1024 ** power / parts, the nearest."""
    return (nbytes * parts + (1 << (10 * power)) // 2) >> (10 * power)


def exact(nbytes: int) -> str:
    return f"{nbytes:,} byte{'' if nbytes == 1 else 's'}"


def count(number: int, one: str, many: str = "") -> str:
    """`"1 tensor"`, `"10,000 tensors"`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def shape(sizes: Sequence[int]) -> str:
    """`"768 × 3072"`; a tensor without dimensions is a scalar."""
    return " × ".join(map(str, sizes)) if sizes else "scalar"


def reached_words(extent: Extent, storage_nbytes: int) -> str:
    """What the drawing of a tensor shows: `"bytes 4 to 16 of 24"`."""
    if not extent.numel:
        return "no bytes"
    return f"bytes {extent.start:,} to {extent.stop:,} of {storage_nbytes:,}"


def kept_words(storage: Storage) -> str:
    """What the drawing of a storage shows: `"4.0 MiB, 1.0 MiB dead, 512 B shared"`."""
    dead = f"{size(storage.dead_nbytes)} dead" if storage.dead_nbytes else "none dead"
    shared = f", {size(storage.shared_nbytes)} shared" if storage.shared_nbytes else ""
    return f"{size(storage.nbytes)}, {dead}{shared}"


def percent(part: int, whole: int) -> str:
    """A share for an attribute, `"12.5%"`."""
    return f"{ratio(part, whole) * 100:.4f}".rstrip("0").rstrip(".") + "%"


def ratio(part: int, whole: int) -> float:
    """Between 0 and 1, also of integers that no float holds."""
    return min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0


def portion(part: int, whole: int) -> str:
    """A share in words, `"62.5%"`; what is not all is not called 100 %."""
    share = ratio(part, whole)
    return "over 99.9%" if part < whole and share > 0.9995 else f"{share:.1%}".replace(".0%", "%")


def shortened(name: str, most: int) -> str:
    """A long name without its middle: both ends tell tensors apart."""
    if len(name) <= most:
        return name
    kept = max(2, most - 1)
    return name[: kept - kept // 2] + ELLIPSIS + name[-(kept // 2) :]
