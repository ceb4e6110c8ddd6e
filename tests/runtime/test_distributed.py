"""Two ranks on gloo: same results, one report, each finding with the ranks that saw it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from runtime.children import both, python, same
from tensafe.findings import from_json

TRAIN = """
import hashlib, os, sys
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

def lose():
    x = torch.ones(3)
    x[x > 0].zero_()

def train(rank, port):
    if port:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        dist.init_process_group("gloo", rank=rank, world_size=2)
    else:
        dist.init_process_group("gloo")
        rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.ReLU(True), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(8, 4, generator=generator)).square().mean().backward()
        optimizer.step()
    lose()
    if rank == 1:
        y = torch.ones(3)
        y[y > 0].fill_(2)
    data = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    gathered = [None, None]
    dist.all_gather_object(gathered, hashlib.sha256(data).hexdigest())
    if rank == 0:
        print(gathered, sys.argv[1:], flush=True)
    dist.destroy_process_group()
    os._exit(0)  # gloo's threads now and then abort an interpreter that ends on a busy machine
"""
SPAWNING = """
if __name__ == "__main__":
    torch.multiprocessing.spawn(train, ("{port}",), 2)
"""
LAUNCHED = """
train(None, "")
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def launcher() -> list[str]:
    return ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(free_port())]


@pytest.mark.parametrize("how", ["spawn", "torchrun"])
def test_ranks_print_the_same_and_are_told_as_one(how: str, tmp_path: Path) -> None:
    launched = how == "torchrun"
    code = LAUNCHED if launched else SPAWNING.format(port=free_port())
    runs = both(code, tmp_path, command=launcher() if launched else [], setup=TRAIN)
    assert same(runs)
    hashes = runs.plain.stdout.split("'")
    assert hashes[1] == hashes[3]
    assert [(finding.code, finding.count, finding.rank, finding.processes) for finding in runs.loud] == [
        ("TS106", 2, None, ("rank 0", "rank 1")),
        ("TS106", 1, 1, ("rank 1",)),
    ]
    assert not any("could not start" in line or "killed" in line for line in runs.unknown)
    assert runs.record.summary["processes"] == 3


def test_a_failing_rank_fails_the_launcher_as_ever(tmp_path: Path) -> None:
    code = """
    lose()
    sys.exit(7 if os.environ["RANK"] == "1" else 0)
    """
    runs = both(code, tmp_path, command=launcher())
    assert same(runs)
    assert runs.plain.returncode == 1
    assert [finding.code for finding in runs.loud] == ["TS106"]
    for text in (runs.plain.stderr, runs.watched.stderr):
        assert "exitcode  : 7" in text


def test_ranks_that_are_each_started_under_tensafe_write_a_file_each(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(TRAIN + LAUNCHED)
    inner = ["-m", "tensafe", "run", "--format", "json", "--output", "run.json", "program.py"]
    done = python([*launcher(), *inner], tmp_path)
    assert done.returncode == 0, done.stderr
    ranks = [from_json((tmp_path / f"run.rank{rank}.json").read_text()) for rank in (0, 1)]
    assert [{finding.rank for finding in record.findings} for record in ranks] == [{0}, {1}]
    assert not (tmp_path / "run.json").exists()
    told = python(["-m", "tensafe", "report", "run.rank0.json", "run.rank1.json"], tmp_path)
    assert told.stdout.count("(seen 2 times by rank 0, rank 1)") == 1
    assert told.stdout.count("(seen by rank 1)") == 1
