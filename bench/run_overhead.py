"""What `tensafe run` and `safe_inplace()` cost a training step: they and plain take turns, burst by burst.

All workers of a workload live at once and wait; one at a time is told to train for a moment, so that a slow
phase of the machine meets all of them alike. A ratio is the median, over the rounds, of a burst's time to the
plain burst's time in the same round; `plain again` is a second plain worker and shows the noise. Where a
process happens to lie in memory makes it some percent faster or slower for life, so all workers are started
anew a few times. `safe_inplace()` is entered for a burst and left again by the plain worker itself.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import plots

BENCH = Path(__file__).parent
BURST = 0.15  # seconds of plain training that a burst should take
PLAIN, AGAIN, ANOMALY, TENSAFE, SAFE = "plain", "plain again", "anomaly mode", "tensafe run", "safe_inplace"
EXACT = "depth exact"
REACH = {
    "mlp": {TENSAFE: 1.5, SAFE: 1.2},
    "conv": {TENSAFE: 1.1, SAFE: 1.03},
    "transformer": {TENSAFE: 1.1, SAFE: 1.03},
}
PAUSE = 0.02  # seconds; OpenMP's threads of the last worker spin for a while before they sleep


@dataclass
class Worker:
    """One process that trains when told to."""

    name: str
    process: subprocess.Popen[str]
    manner: str = ""  # "safe": inside safe_inplace()
    bursts: list[float] = field(default_factory=list)

    def train(self, steps: int) -> float:
        """Seconds a step, over this many steps."""
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError(f"{self.name}: worker has no pipes")
        try:
            self.process.stdin.write(f"{steps} {self.manner}\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise SystemExit(f"{self.name}: the worker ended with {self.process.wait()}, see above")
        return float(answer) / steps

    def stop(self) -> int:
        if self.process.stdin:
            # what a worker that has died did not read any more
            with suppress(BrokenPipeError):
                self.process.stdin.close()
        return self.process.wait(timeout=60)


def command(mode: str, workload: str, options: list[str], scratch: Path) -> list[str]:
    script = [str(BENCH / "step_worker.py"), workload, *options]
    if mode == ANOMALY:
        return [sys.executable, *script, "--anomaly"]
    if mode in (TENSAFE, EXACT):
        record = ["--format", "json", "--output", str(scratch / f"{workload}-{mode}.json")]
        depth = ["--depth", "exact"] if mode == EXACT else []
        return [sys.executable, "-m", "tensafe", "run", *record, *depth, *script]
    return [sys.executable, *script]


def start(mode: str, workload: str, options: list[str], scratch: Path) -> Worker:
    # anomaly mode warns once that it is slow, which is what this program is about to say with figures
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen(
        command(mode, workload, options, scratch),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if mode == ANOMALY else None,
        text=True,
        env=environment,
    )
    return Worker(mode, process)


def take_turns(workers: list[Worker], rounds: int) -> None:
    """Bursts of every worker in every round, in an order drawn anew."""
    for worker in workers:
        worker.train(5)
    steps = max(2, round(BURST / min(worker.train(10) for worker in workers)))
    for _ in range(rounds):
        for worker in random.sample(workers, len(workers)):
            worker.bursts.append(worker.train(steps))
            time.sleep(PAUSE)


def generation(workload: str, modes: list[str], options: list[str], rounds: int) -> list[Worker]:
    """Workers that were started, took turns and ended."""
    with tempfile.TemporaryDirectory() as scratch:
        started = [mode for mode in random.sample(modes, len(modes)) if mode != SAFE]
        workers = [start(mode, workload, options, Path(scratch)) for mode in started]
        if SAFE in modes:
            workers.append(Worker(SAFE, workers[started.index(PLAIN)].process, "safe"))
        try:
            take_turns(workers, rounds)
        finally:
            ended = [worker.stop() for worker in workers]
    for worker, status in zip(workers, ended, strict=True):
        if status:
            print(f"{workload}: the worker of {worker.name} ended with {status}", file=sys.stderr)
    return workers


def ratios_of(bursts: list[float], plain: list[float]) -> list[float]:
    return sorted(mine / its for mine, its in zip(bursts, plain, strict=True))


def row(workload: str, name: str, bursts: list[float], plain: list[float]) -> str:
    ratios = ratios_of(bursts, plain)
    low, high = ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]
    reach = f"  reach {REACH[workload][name]:.2f}x" if name in REACH[workload] else ""
    return (
        f"{workload:12} {name:13} {median(bursts) * 1000:8.2f} ms"
        f"  {median(ratios):5.2f}x  ({low:.2f} to {high:.2f}){reach}"
    )


def measure(
    workload: str, modes: list[str], options: list[str], rounds: int, restarts: int
) -> list[plots.Bar]:
    bursts: dict[str, list[float]] = {mode: [] for mode in modes}
    for _ in range(restarts):
        for worker in generation(workload, modes, options, rounds):
            bursts[worker.name] += worker.bursts
    bars = []
    for mode in modes:
        print(row(workload, mode, bursts[mode], bursts[PLAIN]), flush=True)
        ratio = median(ratios_of(bursts[mode], bursts[PLAIN]))
        bars.append(plots.Bar(workload, mode, ratio, f"{ratio:.2f}x"))
    return bars


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--restarts", type=int, default=5)
    parser.add_argument("--workloads", default=",".join(REACH), help="some of %(default)s")
    modes = ",".join((AGAIN, ANOMALY, TENSAFE, EXACT, SAFE))
    parser.add_argument("--modes", default=modes, help="some of %(default)s")
    parser.add_argument(
        "--cpu-time", action="store_true", help="one thread and its CPU time, on a busy machine"
    )
    parser.add_argument("--plot", type=plots.image, help="an image to write, .png or .svg")
    args = parser.parse_args()
    options = ["--cpu-time"] if args.cpu_time else []
    print(f"{'workload':12} {'mode':13} {'a step':>11}  {'ratio':>6}  (quartiles of the ratio)")
    bars = []
    for workload in args.workloads.split(","):
        bars += measure(workload, [PLAIN, *args.modes.split(",")], options, args.rounds, args.restarts)
    if args.plot:
        plots.draw(bars, args.plot, "a training step, times as long as plain (median of the ratios)")


if __name__ == "__main__":
    main()
