"""What `tensafe run` costs in memory over a long run: resident sizes along the way, beside plain Python.

The program trains a small model and does what the engine keeps books on: a fresh batch each step, views,
writes, snapshots, a replay buffer, a list of metrics, arrays, and a fault that is found at every step. Each
run is a process of its own; the difference between them is the checker's.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import os, sys
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
steps, told = int(sys.argv[1]), {int(n) for n in sys.argv[2].split(",")}
page = os.sysconf("SC_PAGE_SIZE")
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(inplace=True), nn.BatchNorm1d(64), nn.Linear(64, 8))
optimizer = torch.optim.AdamW(model.parameters())
replay = torch.zeros(256, 64)
history, best, cleaned = [], None, 0


def batch_of(step):
    batch = torch.randn(32, 64)
    replay[step % 256].copy_(batch[0])
    return batch


for step in range(1, steps + 1):
    batch = batch_of(step)
    batch[:, 0].mul_(0.5)
    optimizer.zero_grad()
    hidden = model[0](batch)
    hidden.add_(1)
    out = model[1:](hidden)
    loss = out.pow(2).mean() + replay[: step % 200 + 8].mean()
    loss.backward()
    optimizer.step()
    history = [*history[-99:], loss.detach()]
    if step % 100 == 0:
        best = {name: value.clone() for name, value in model.state_dict().items()}
        array = batch.numpy()
        total = float(array.sum()) + loss.item()
    batch[batch > 2 + 0.001 * (step % 900)].zero_()
    if step in told:
        with open("/proc/self/statm") as statm:
            print(step, int(statm.read().split()[1]) * page, flush=True)
"""


def sizes(prefix: list[str], steps: int, told: list[int], folder: Path) -> dict[int, int]:
    """Resident bytes by step."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, *prefix, str(program), str(steps), ",".join(map(str, told))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    return {int(step): int(nbytes) for step, nbytes in rows}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=10_000)
    args = parser.parse_args()
    told = sorted({max(1, args.steps // 10), max(1, args.steps // 2), args.steps})
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        record = folder / "record.json"
        run = ["-m", "tensafe", "run", "--format", "json", "--output", str(record)]
        plain = sizes([], args.steps, told, folder)
        watched = sizes(run, args.steps, told, folder)
        print(f"{'step':>8} {'plain':>12} {'tensafe run':>12} {'its own':>10}  reach: 5 % + 50 MB")
        for step in told:
            own, reach = watched[step] - plain[step], 0.05 * plain[step] + 50e6
            verdict = "" if own <= reach else "  over"
            print(
                f"{step:>8} {plain[step] / 1e6:>9.1f} MB {watched[step] / 1e6:>9.1f} MB {own / 1e6:>7.1f} MB"
                f"  {reach / 1e6:.1f} MB{verdict}"
            )
        print(f"record: {record.stat().st_size / 1e3:.1f} kB")


if __name__ == "__main__":
    main()
