"""The table of `bench/copies.py` as bars: how many times as fast as `copy.deepcopy`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot


class Timed(Protocol):
    @property
    def median(self) -> float: ...


def draw(table: Mapping[str, Mapping[str, Timed]], against: str, path: str) -> None:
    """Write one image: a group of bars for each subject, on a logarithmic axis; 1 is `copy.deepcopy`."""
    names = list(dict.fromkeys(name for found in table.values() for name in found if name != against))
    figure, axes = pyplot.subplots(figsize=(10, 0.75 * len(table) + 1.5))
    height = 0.8 / len(names)
    for place, name in enumerate(names):
        rows = [(row, found) for row, found in enumerate(table.values()) if name in found]
        ratios = [found[against].median / found[name].median for _, found in rows]
        axes.barh([row + place * height for row, _ in rows], ratios, height, left=0, label=name)
    axes.set_yticks([row + 0.4 - height / 2 for row in range(len(table))], list(table))
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel(f"times as fast as {against} (medians of one run)")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
    figure.savefig(path, dpi=120)
