"""Two ranks on gloo: buckets, broadcast buffers, accumulation without sync, a checkpoint by rank 0."""

import hashlib
import os
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANKS = 2


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(inplace=True))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(len(x))
        return x + self.layers(x)


def digest(model: nn.Module) -> str:
    state = b"".join(value.detach().cpu().numpy().tobytes() for value in model.state_dict().values())
    return hashlib.sha256(state).hexdigest()[:16]


def train(rank: int, folder: str) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=RANKS)
    model = DistributedDataParallel(nn.Sequential(Block(8), Block(8), nn.Linear(8, 1)), bucket_cap_mb=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    x = torch.randn(64, 8)
    data = TensorDataset(x, x.sum(dim=1, keepdim=True))
    sampler = DistributedSampler(data, RANKS, rank, shuffle=True)
    losses = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for step, (inputs, wanted) in enumerate(DataLoader(data, 8, sampler=sampler, num_workers=1)):
            if step % 2 == 0:
                with model.no_sync():
                    (model(inputs) - wanted).square().mean().backward()
                continue
            loss = (model(inputs) - wanted).square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            total = loss.detach().clone()
            dist.all_reduce(total)
            losses.append(total.div_(RANKS).item())
    if rank == 0:
        torch.save({"model": model.module.state_dict()}, Path(folder, "model.pt"))
    dist.barrier()
    saved = torch.load(Path(folder, "model.pt"))
    model.module.load_state_dict(saved["model"])
    digests = [None] * RANKS
    dist.all_gather_object(digests, digest(model.module))
    Path(folder, f"rank{rank}.txt").write_text(f"{rank} {digests} {[f'{loss:.9f}' for loss in losses]}")
    dist.destroy_process_group()
    os._exit(0)  # gloo's threads now and then abort a process that unwinds, under plain Python, too


def main() -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, (folder,), RANKS)
        for rank in range(RANKS):
            print(Path(folder, f"rank{rank}.txt").read_text())


if __name__ == "__main__":
    if sys.platform != "linux":
        print("the name of the loopback device is Linux's")
    else:
        main()
