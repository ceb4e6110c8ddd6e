"""Numbers of bytes in words."""

from __future__ import annotations


def size(nbytes: int) -> str:
    """`1.5 MiB`, `300 bytes`."""
    amount = float(nbytes)
    for unit in ("KiB", "MiB", "GiB"):
        amount /= 1024
        if amount < 1024 or unit == "GiB":
            figures = f"{amount:.3g}" if amount < 999.5 else f"{amount:.0f}"
            return f"{nbytes} bytes" if nbytes < 1024 else f"{figures} {unit}"
    return ""
