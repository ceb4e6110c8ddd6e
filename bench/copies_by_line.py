"""The lines of a program that copy most, as bars, from a record of `tensafe run --copies`.

    tensafe run --copies --format json --output run.json train.py
    python bench/copies_by_line.py run.json --plot copies.svg

Without `--plot` it prints the figures.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from plots import Bar, draw, image

from tensafe.findings import CopyLine, Record, from_json, size

WORDS = {"yes": "needed", "no": "not needed", "again": "again: same memory", "": "not shown by the run"}


def bars(record: Record, most: int) -> list[Bar]:
    """The lines with most bytes, the largest first."""
    rows = sorted(record.copies or (), key=lambda row: -row.nbytes)[:most]
    return [Bar(_label(row), WORDS.get(row.needed, row.needed), row.nbytes, size(row.nbytes)) for row in rows]


def _label(row: CopyLine) -> str:
    hidden = " (hidden)" if row.hidden else ""
    return f"{Path(row.site.path).name}:{row.site.line} {row.op}{hidden}".replace("$", r"\$")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("record", type=Path, help="what `--format json --output` wrote")
    parser.add_argument("--most", type=int, default=25, help="so many lines")
    parser.add_argument("--plot", type=image, help="an image to write, .png or .svg")
    args = parser.parse_args()
    found = bars(from_json(args.record.read_text()), args.most)
    if not found:
        parser.error(f"{args.record} holds no table of copies: record it with `tensafe run --copies`")
    if args.plot:
        draw(found, args.plot, "bytes copied")
    else:
        print("\n".join(f"{bar.figure:>10}  {bar.name:22}  {bar.group}" for bar in found))


if __name__ == "__main__":
    main()
