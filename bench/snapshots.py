"""What a snapshot costs beside `copy.deepcopy` and `torch._foreach_copy_` into touched memory, from one run.

Rivals take turns, so that a busy machine is busy for all of them; each turn is one time that is not timed and
one that is, as in `copies.py`. A ratio is between medians of one run.
`--clock cpu` counts the processor's seconds of all threads, for machines that are busy with something else.
"""

from __future__ import annotations

import argparse
import copy
import gc
import os
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import plots
import torch
from copies_subjects import gpt2, module, state_dict, stepped

import tensafe

CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
Action = Callable[[], Any]


def stepped_optimizer() -> Any:
    """The optimizer of the module, which it keeps alive, after a step."""
    optimizer = stepped(module())
    optimizer.zero_grad()
    return optimizer


SUBJECTS: dict[str, Callable[[], Any]] = {
    "2,000 x 1 KB state_dict": state_dict,
    "module, 576 parameters": module,
    "AdamW of it": stepped_optimizer,
    "GPT-2-sized module": gpt2,
}


def tensors_of(obj: Any) -> list[torch.Tensor]:
    return list(tensafe.snapshot(obj, grads=False, lazy=True)._copies.pieces.live)


def copied(obj: Any) -> Any:
    """What people write: a deep copy of the state."""
    return copy.deepcopy(obj.state_dict() if hasattr(obj, "state_dict") else obj)


def actions(obj: Any) -> dict[str, Action]:
    live = tensors_of(obj)
    with torch.no_grad():
        for one in live:
            one.add_(0)  # nothing is lazy any more
    touched = [torch.zeros_like(one) for one in live]
    snap = tensafe.snapshot(obj, lazy=False)
    lazy = tensafe.snapshot(obj, lazy=True)

    def foreach() -> None:
        with torch.no_grad():
            torch._foreach_copy_(touched, live)

    return {
        "copy.deepcopy": lambda: copied(obj),
        "_foreach_copy_": foreach,
        "lazy clones": lambda: [torch._lazy_clone(one) for one in live],
        "snapshot": lambda: tensafe.snapshot(obj, lazy=False),
        "update": snap.update,
        "restore": snap.restore,
        "snapshot lazy": lambda: tensafe.snapshot(obj, lazy=True),
        "update lazy": lazy.update,
    }


def measured(obj: Any, rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    doing = actions(obj)
    for _ in range(rounds):
        for name, action in doing.items():
            gc.collect()
            action()
            start = clock()
            kept = action()
            found.setdefault(name, []).append(clock() - start)
            del kept
    return {name: median(times) for name, times in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--subject", choices=SUBJECTS, action="append")
    parser.add_argument("--plot", type=plots.image, help="an image to write, .png or .svg")
    args = parser.parse_args()
    bars = []
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads{load}, {args.clock} clock")
    for name in args.subject or SUBJECTS:
        obj = SUBJECTS[name]()
        count = len(tensors_of(obj))
        times = measured(obj, args.rounds, CLOCKS[args.clock])
        print(f"\n{name}: {count:,} tensors")
        for action, seconds in times.items():
            against = times["copy.deepcopy"] / seconds
            speed = times["_foreach_copy_"] / seconds
            each = seconds / count * 1e6
            print(
                f"  {action:15} {seconds * 1e3:9.2f} ms  {each:8.2f} us a tensor  "
                f"{against:7.1f}x copy.deepcopy  {speed:5.2f}x _foreach_copy_"
            )
            bars.append(plots.Bar(name, action, against, f"{against:.1f}x"))
    if args.plot:
        plots.draw(bars, args.plot, "times as fast as copy.deepcopy (medians of one run)", against=1)


if __name__ == "__main__":
    main()
