"""What is compiled after the engine has gone is compiled as if it had never been there."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import torch
import tensafe

def frames():
    from torch._dynamo.testing import CompileCounterWithBackend
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("eager")
    net = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(net.parameters(), foreach=True)
    step = torch.compile(optimizer.step, backend=counter)
    for _ in range(2):
        net(torch.ones(1, 2)).sum().backward()
        step()
    grown = torch.compile(lambda x: x.add_(1).mul_(2).sin(), backend=counter)
    grown(torch.ones(2))
    return counter.frame_count

around = {"watching": tensafe.watching, "safe_inplace": tensafe.safe_inplace}.get(sys.argv[1])
if around is not None:
    with around():
        frames()
print(frames())
"""


@pytest.mark.parametrize("around", ["watching", "safe_inplace"])
def test_the_first_compilation_under_the_engine_leaves_nothing(around: str) -> None:
    assert counted(around) == counted("nothing")


def counted(around: str) -> str:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, around]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
