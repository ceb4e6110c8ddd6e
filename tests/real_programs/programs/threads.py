"""Two threads, each with its own model, and a backward in a thread that did not run the forward."""

import threading

import torch
from torch import nn


def train(seed: int, seen: dict[int, list[float]]) -> None:
    generator = torch.Generator().manual_seed(seed)
    model = nn.Linear(4, 1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.5, 0.5, generator=generator)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        x = torch.randn(8, 4, generator=generator)
        loss = (model(x).relu_() - x.sum(dim=1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.setdefault(seed, []).append(loss.item())


def main() -> None:
    torch.set_num_threads(1)
    seen: dict[int, list[float]] = {}
    threads = [threading.Thread(target=train, args=(seed, seen)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, losses in sorted(seen.items()):
        print(seed, *(f"{loss:.9f}" for loss in losses[::5]))

    weight = torch.full((3,), 2.0, requires_grad=True)
    loss = weight.exp().sum()
    backward = threading.Thread(target=loss.backward)
    backward.start()
    backward.join()
    print(weight.grad)


if __name__ == "__main__":
    main()
