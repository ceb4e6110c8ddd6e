"""How fast objects are copied, beside `copy.deepcopy` and others: time, peak memory, aliases; from one run.

Rivals take turns, so that a busy machine is busy for all of them; each turn is one copy that is not timed and
one that is. A ratio is between medians of one run. `--clock cpu` counts the processor's seconds of all
threads, for machines that are busy with something else.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import plots
import torch
from copies_rivals import RIVALS, Copy, is_copy, keeps_aliases
from copies_subjects import SUBJECTS, Subject

import tensafe

OURS, THEIRS = "tensafe.deepcopy", "copy.deepcopy"
FEWEST_FOR_PEAK = 50 << 20
"""Bytes; below this, what the interpreter itself allocates hides the copy."""
Clock = Callable[[], float]
CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "cpu": time.process_time}
SHORTEST = 0.002
"""Seconds that one timing takes at least: short copies are made several times in it."""


@dataclass
class Measured:
    """One rival on one subject."""

    times: int  # copies in one timing
    seconds: list[float] = field(default_factory=list)  # of one copy, per round
    peak_nbytes: int | None = None

    @property
    def median(self) -> float:
        return median(self.seconds)


def resident(entry: str) -> int:
    """`VmRSS` or `VmHWM`, in bytes; 0 where there is no /proc."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(entry))


def peak_of(rival: Copy, tree: Any) -> int | None:
    """Bytes by which the process grows at most while it copies."""
    try:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError):
        return None
    before = resident("VmRSS")
    copied = rival(tree)
    peak = resident("VmHWM") - before
    del copied
    return peak


def once(rival: Copy, tree: Any, times: int, clock: Clock) -> float:
    """Seconds of one copy; what it made is freed outside of the timing."""
    kept = []
    begun = clock()
    for _ in range(times):
        kept.append(rival(tree))
    seconds = (clock() - begun) / times
    kept.clear()
    return seconds


def measure(
    subject: Subject, rivals: dict[str, Copy], rounds: int, clock: Clock
) -> tuple[int, dict[str, Measured]]:
    torch.manual_seed(0)
    tree = subject.make()
    nbytes = tensafe.plan(tree).nbytes
    found = {}
    for name, rival in rivals.items():
        if is_copy(rival, tree):
            first = once(rival, tree, 1, clock)
            found[name] = Measured(max(1, min(1000, int(SHORTEST / max(first, 1e-7)))))
    for _ in range(rounds):
        for name, measured in found.items():
            gc.collect()
            once(rivals[name], tree, 1, clock)  # memory that the last rival left behind is nobody's gain
            measured.seconds.append(once(rivals[name], tree, measured.times, clock))
    if nbytes >= FEWEST_FOR_PEAK:
        for name, measured in found.items():
            measured.peak_nbytes = peak_of(rivals[name], tree)
    return nbytes, found


def show(subject: Subject, nbytes: int, found: dict[str, Measured], refused: list[str]) -> bool:
    """Print one subject; whether ours reaches what it is to reach."""
    stock = found[THEIRS].median
    ratio = stock / found[OURS].median
    reached = ratio >= subject.reach
    print(f"\n{subject.name} ({nbytes / 1e6:,.1f} MB; to reach: {subject.reach:g}x)")
    for name, one in found.items():
        peak = "" if one.peak_nbytes is None else f"  peak +{one.peak_nbytes / nbytes:.3f} of the bytes"
        mark = ("  reached" if reached else "  NOT REACHED") if name == OURS else ""
        print(f"  {name:18} {one.median * 1e3:11.4f} ms  {stock / one.median:7.2f}x{peak}{mark}")
    if refused:
        print(f"  does not copy it: {', '.join(refused)}")
    sys.stdout.flush()
    return reached


def bars(table: dict[str, dict[str, Measured]]) -> list[plots.Bar]:
    """How many times as fast as `copy.deepcopy`."""
    ratios = [
        (subject, name, found[THEIRS].median / one.median)
        for subject, found in table.items()
        for name, one in found.items()
        if name != THEIRS
    ]
    return [plots.Bar(subject, name, ratio, f"{ratio:.2f}x") for subject, name, ratio in ratios]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="subjects whose name holds this")
    parser.add_argument("--rounds", type=int, default=0, help="of each subject, instead of its own number")
    parser.add_argument("--rivals", default="", help="names, with commas between; default: all")
    parser.add_argument("--plot", type=plots.image, help="an image to write, .png or .svg")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    args = parser.parse_args()
    wanted = [THEIRS, OURS, *args.rivals.split(",")] if args.rivals else list(RIVALS)
    rivals = {name: rival for name, rival in RIVALS.items() if name in wanted}
    load = ", ".join(f"{number:.1f}" for number in os.getloadavg())
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, load {load}, {args.clock} seconds")
    for name, rival in rivals.items():
        print(f"  aliases kept by {name}: {keeps_aliases(rival)}")
    table = {}
    short = []
    for subject in SUBJECTS:
        if args.only in subject.name:
            nbytes, found = measure(subject, rivals, args.rounds or subject.rounds, CLOCKS[args.clock])
            table[subject.name] = found
            refused = [name for name in rivals if name not in found]
            if not show(subject, nbytes, found, refused):
                short.append(subject.name)
    print(f"\nload at the end {os.getloadavg()[0]:.1f}; not reached: {', '.join(short) or 'none'}")
    if args.plot:
        plots.draw(bars(table), args.plot, f"times as fast as {THEIRS} (medians of one run)", against=1)


if __name__ == "__main__":
    main()
