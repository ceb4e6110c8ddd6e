"""Trains one of three workloads; for each `steps` or `steps safe` on standard input, answers with seconds."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

Step = Callable[[], None]


def training_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, loss_of: Callable[[], torch.Tensor]
) -> Step:
    def step() -> None:
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()

    model.train()
    return step


def tiny_mlp() -> Step:
    """About 1.5 ms: the cost of Python and dispatch."""
    x, y = torch.randn(64, 64), torch.randint(10, (64,))
    layers: list[nn.Module] = []
    for _ in range(8):
        layers += [nn.Linear(64, 64), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    return training_step(model, optimizer, lambda: nn.functional.cross_entropy(model(x), y))


def conv_net() -> Step:
    """About 14 ms: large activations, in-place ReLUs, batch norm."""
    x, y = torch.randn(8, 3, 32, 32), torch.randint(10, (8,))
    layers: list[nn.Module] = []
    for inputs, outputs, stride in [(3, 32, 1), (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2)]:
        layers += [
            nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        ]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return training_step(model, optimizer, lambda: nn.functional.cross_entropy(model(x), y))


def transformer() -> Step:
    """About 36 ms: many small operations around matrix products."""
    tokens, targets = torch.randint(1000, (8, 40)), torch.randint(1000, (8 * 40,))
    layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    model = nn.Sequential(nn.Embedding(1000, 128), encoder, nn.Linear(128, 1000))
    optimizer = torch.optim.AdamW(model.parameters())
    return training_step(
        model, optimizer, lambda: nn.functional.cross_entropy(model(tokens).flatten(0, 1), targets)
    )


WORKLOADS: dict[str, Callable[[], Step]] = {"mlp": tiny_mlp, "conv": conv_net, "transformer": transformer}


def seconds(step: Step, steps: int, clock: Callable[[], float]) -> float:
    begun = clock()
    for _ in range(steps):
        step()
    return clock() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument(
        "--anomaly", action="store_true", help="under torch.autograd.set_detect_anomaly(True)"
    )
    parser.add_argument("--cpu-time", action="store_true", help="one thread, and the time it had a core")
    args = parser.parse_args()
    if args.cpu_time:
        torch.set_num_threads(1)
    clock = time.process_time if args.cpu_time else time.perf_counter
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(args.anomaly)
    step = WORKLOADS[args.workload]()
    for line in sys.stdin:
        steps, *safe = line.split()
        with safe_inplace() if safe else nullcontext():
            step()  # the first step inside meets what was saved outside
            print(seconds(step, int(steps), clock), flush=True)


def safe_inplace() -> AbstractContextManager[object]:
    import tensafe

    return tensafe.safe_inplace()


if __name__ == "__main__":
    main()
