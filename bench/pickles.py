"""`tensafe.dumps` and `loads` against pickle protocol 5 and torch.save, and what `share` and `readonly` cost.

Each way writes and reads the same state_dict, all ways in turn, round after round, so that a busy machine is
busy for all of them; the table has medians, and ratios to pickle in the same run. Memory that a process has
not touched before costs the system more than the copy into it: two copies of large tensors into fresh memory
vary most from run to run.
"""

from __future__ import annotations

import argparse
import io
import os
import pickle
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import plots
import torch

import tensafe

Trip = Callable[[dict[str, torch.Tensor]], Any]
WITH_COPIES, WITHOUT = 10, 100  # times as fast as pickle


def large() -> dict[str, torch.Tensor]:
    return {f"layers.{number}.weight": torch.randn(1024, 4096) for number in range(16)}


def small() -> dict[str, torch.Tensor]:
    return {f"layers.{number}.weight": torch.randn(256) for number in range(2_000)}


def by_pickle(state: dict[str, torch.Tensor]) -> Any:
    return pickle.loads(pickle.dumps(state, 5))


def by_torch_save(state: dict[str, torch.Tensor]) -> Any:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file)


def by_bytes(state: dict[str, torch.Tensor]) -> Any:
    """One copy into the bytes, one into tensors of their own."""
    return tensafe.loads(tensafe.dumps(state))


def by_bytes_read_in_place(state: dict[str, torch.Tensor]) -> Any:
    """One copy into the bytes; tensors look into them and are frozen."""
    return tensafe.loads(tensafe.dumps(state), writable=False)


def two_plain_copies(state: dict[str, torch.Tensor]) -> Trip:
    """What no way with two copies can beat: its memory is there and touched, and nothing else is done."""
    live = list(state.values())
    room = [torch.zeros_like(tensor) for tensor in live]

    def trip(state: dict[str, torch.Tensor]) -> Any:
        torch._foreach_copy_(room, live)
        torch._foreach_copy_(live, room)
        return state

    return trip


def by_buffers(state: dict[str, torch.Tensor]) -> Any:
    """No copy of what is large."""
    buffers: list[Any] = []
    data = tensafe.dumps(state, buffers=buffers)
    return tensafe.loads(data, buffers=buffers)


def by_sharing(state: dict[str, torch.Tensor]) -> Any:
    """One copy, into shared memory; attached by a process that asks for it."""
    with tensafe.share(state) as handle:
        return handle.attach()


WAYS: dict[str, Trip] = {
    "pickle, protocol 5": by_pickle,
    "torch.save, torch.load": by_torch_save,
    "dumps, loads (two copies)": by_bytes,
    "dumps, loads(writable=False)": by_bytes_read_in_place,
    "dumps, loads with buffers= (no copy)": by_buffers,
    "share, attach (one copy)": by_sharing,
}


def seconds(trip: Trip, state: dict[str, torch.Tensor]) -> float:
    begun = time.perf_counter()
    result = trip(state)
    spent = time.perf_counter() - begun
    assert torch.equal(result["layers.3.weight"], state["layers.3.weight"])
    return spent


def compare(name: str, state: dict[str, torch.Tensor], rounds: int) -> list[plots.Bar]:
    nbytes = sum(tensor.nbytes for tensor in state.values())
    ways = {**WAYS, "two copies into touched memory": two_plain_copies(state)}
    spent: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, trip in ways.items():
            spent[way].append(seconds(trip, state))
    plain = median(spent["pickle, protocol 5"])
    print(f"\n{name}: {len(state)} tensors, {nbytes / 2**20:.0f} MiB, medians of {rounds}")
    bars = []
    for way, times in spent.items():
        middle = median(times)
        print(f"  {way:38} {middle * 1e3:10.2f} ms   {plain / middle:8.1f}x pickle")
        bars.append(plots.Bar(name, way, plain / middle, f"{plain / middle:.1f}x"))
    return bars


def per_operation(rounds: int = 2_000) -> None:
    """What `readonly` adds to an operation that reads, and `freeze` does not."""
    x = torch.zeros(8)
    seen, frozen = tensafe.readonly(x), tensafe.freeze(x.clone())
    print("\nx + 1 of 8 elements, median")
    for name, tensor in (("plain", x), ("frozen", frozen), ("readonly", seen)):
        times = []
        for _ in range(rounds):
            begun = time.perf_counter()
            tensor + 1
            times.append(time.perf_counter() - begun)
        print(f"  {name:10} {median(times) * 1e6:6.2f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--plot", type=plots.image, help="an image to write, .png or .svg")
    args = parser.parse_args()
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {load}")
    print(f"to reach: {WITH_COPIES}x pickle with copies, {WITHOUT}x without")
    bars = compare("large tensors", large(), args.rounds) + compare("small tensors", small(), args.rounds)
    if args.plot:
        plots.draw(bars, args.plot, "times as fast as pickle, protocol 5 (medians of one run)", against=1)
    per_operation()


if __name__ == "__main__":
    main()
