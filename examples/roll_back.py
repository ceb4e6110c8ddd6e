"""A step that goes wrong is undone, bit for bit; the best weights are kept; a run goes on from a file."""

import tempfile
from pathlib import Path

import torch
from torch import nn

import tensafe


def make() -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
    return model, torch.optim.AdamW(model.parameters(), lr=0.1)


def step(model: nn.Module, optimizer: torch.optim.Optimizer, scale: float = 1.0) -> float:
    optimizer.zero_grad()
    loss = (scale * model(torch.randn(16, 4))).pow(2).mean()
    loss.backward()
    optimizer.step()
    if not torch.isfinite(loss):
        raise ArithmeticError("the loss is not finite")
    return loss.item()


def main() -> None:
    torch.manual_seed(0)
    model, optimizer = make()
    step(model, optimizer)

    snap = tensafe.snapshot(model, optimizer, tensafe.rng)
    losses = [step(model, optimizer) for _ in range(3)]
    print(str(snap.diff()).splitlines()[0])
    snap.restore()
    print("the same losses again:", losses == [step(model, optimizer) for _ in range(3)])

    try:
        with tensafe.rollback(model, optimizer):
            step(model, optimizer, scale=float("inf"))
    except ArithmeticError as error:
        print(f"{error}, and the weights are: {bool(torch.isfinite(model[0].weight).all())}")

    best = tensafe.BestWeights(model, patience=3)
    scores = []
    while not best.should_stop:
        scores.append(step(model, optimizer))
        best.update(scores[-1])
    best.restore()
    print("kept the best of all:", best.score == min(scores))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.safetensors"
        tensafe.snapshot(model, optimizer, tensafe.rng).save(path)
        expected = step(model, optimizer)
        other = make()
        tensafe.Snapshot.load(path).restore(*other, tensafe.rng)
        print("goes on from the file:", step(*other) == expected)


if __name__ == "__main__":
    main()
