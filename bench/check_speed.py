"""How fast `tensafe check` reads an installed package, on one core, and again; and TorchFix.

Memory is flat when the peak on the large tree is near the peak on the small one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

SMALL, LARGE = "torch/nn", "transformers"
REACH = 20_000  # lines a second a core
FASTER_THAN_TORCHFIX = 30


@dataclass(frozen=True)
class Measured:
    """One tool on one tree."""

    seconds: float
    peak_mib: float
    lines: int

    @property
    def speed(self) -> float:
        return self.lines / self.seconds


def folder_of(tree: str) -> Path:
    """A path as it is, or a folder inside an installed package: `torch/nn`."""
    if Path(tree).exists():
        return Path(tree).resolve()
    package, _, inside = tree.partition("/")
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{tree}: neither a folder nor an installed package")
    return Path(spec.origin).parent / inside


def lines_in(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("*.py"))


def measure(command: list[str], lines: int, scratch: str) -> Measured:
    """Runs a command from an empty folder, so that no cache of an earlier run helps it."""
    environment = {**os.environ, "XDG_CACHE_HOME": scratch}
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=scratch, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    complaint = process.stderr.read() if process.stderr else b""
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: {complaint.decode(errors='replace').strip()[-400:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Measured(seconds, usage.ru_maxrss * unit / 2**20, lines)


def tensafe(tree: str, jobs: int) -> tuple[Measured, Measured]:
    """A first check, and a second one that finds everything in the cache."""
    folder = folder_of(tree)
    with tempfile.TemporaryDirectory() as scratch:
        record = ["--format", "json", "--output", str(Path(scratch) / "findings.json")]
        command = [sys.executable, "-m", "tensafe", "check", *record, "--jobs", str(jobs), str(folder)]
        lines = lines_in(folder)
        return measure(command, lines, scratch), measure(command, lines, scratch)


def torchfix(tree: str, jobs: int) -> Measured | None:
    program = Path(sys.executable).with_name("torchfix")
    if not program.exists():
        return None
    folder = folder_of(tree)
    with tempfile.TemporaryDirectory() as scratch:
        command = [str(program), "--select", "ALL", "--jobs", str(jobs), str(folder)]
        return measure(command, lines_in(folder), scratch)


def show(tool: str, tree: str, it: Measured, note: str = "") -> None:
    print(
        f"{tool:14} {tree:20} {it.lines:9,} lines {it.seconds:7.1f} s {it.speed:9,.0f} lines/s"
        f" {it.peak_mib:6.0f} MiB  {note}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", default=SMALL, help="the tree for both tools, default %(default)s")
    parser.add_argument("--large", default=LARGE, help="the tree for tensafe alone, default %(default)s")
    parser.add_argument("--jobs", type=int, default=1, help="processes of either tool, default %(default)s")
    parser.add_argument("--no-torchfix", action="store_true")
    args = parser.parse_args()
    small, _ = tensafe(args.small, args.jobs)
    show("tensafe check", args.small, small)
    large, again = tensafe(args.large, args.jobs)
    reach = f"reach {REACH * args.jobs:,}; memory {large.peak_mib / small.peak_mib:.1f}x of the small tree's"
    show("tensafe check", args.large, large, reach)
    show("the same again", args.large, again, f"from the cache: {large.seconds / again.seconds:.0f}x as fast")
    theirs = None if args.no_torchfix else torchfix(args.small, args.jobs)
    if theirs is not None:
        ratio = f"tensafe is {small.speed / theirs.speed:.0f}x as fast, reach {FASTER_THAN_TORCHFIX}x"
        show("torchfix", args.small, theirs, ratio)
    elif not args.no_torchfix:
        print("torchfix is not installed here: `make bench` installs it")


if __name__ == "__main__":
    main()
