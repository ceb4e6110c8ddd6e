"""Bars for `--plot FILE` of the scripts beside this, by matplotlib: `pip install 'tensafe[plot]'`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

SUFFIXES = (".png", ".svg")


class Bar(NamedTuple):
    """One bar: under which label it stands, what it is of, how long it is, and the figure at its end."""

    group: str
    name: str
    value: float
    figure: str


def image(path: str) -> str:
    """The type of an argument: refused before anything is measured."""
    if Path(path).suffix not in SUFFIXES:
        raise argparse.ArgumentTypeError(f"{path}: name a file that ends in {' or '.join(SUFFIXES)}")
    if find_spec("matplotlib") is None:
        raise argparse.ArgumentTypeError("a plot needs matplotlib: pip install 'tensafe[plot]'")
    return path


def draw(bars: Sequence[Bar], path: str, axis: str, against: float | None = None) -> None:
    """Write one image. With `against`, the axis is logarithmic, and that value is marked."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
    from matplotlib import pyplot

    groups = list(dict.fromkeys(bar.group for bar in bars))
    names = list(dict.fromkeys(bar.name for bar in bars))
    figure, axes = pyplot.subplots(figsize=(10, 0.22 * len(bars) + 0.15 * len(groups) + 1.5))
    for name in names:
        mine = [(place, height, bar) for place, height, bar in _placed(bars, groups) if bar.name == name]
        places, heights = [place for place, _, _ in mine], [height for _, height, _ in mine]
        drawn = axes.barh(places, [bar.value for _, _, bar in mine], heights, align="edge", label=name)
        axes.bar_label(drawn, [bar.figure for _, _, bar in mine], padding=3, fontsize=7)
    axes.set_yticks([row + 0.4 for row in range(len(groups))], groups)
    axes.invert_yaxis()
    if against is not None:
        axes.set_xscale("log")
        axes.axvline(against, color="black", linewidth=0.8)
    axes.set_xlabel(axis)
    axes.margins(x=0.12)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)


def _placed(bars: Sequence[Bar], groups: Sequence[str]) -> list[tuple[float, float, Bar]]:
    """Where each bar begins and how high it is: those of a group share its row."""
    found = []
    for row, group in enumerate(groups):
        mine = [bar for bar in bars if bar.group == group]
        height = 0.8 / len(mine)
        found += [(row + number * height, height, bar) for number, bar in enumerate(mine)]
    return found
