"""Writes of an optimizer's step: told as one write at the line of the step, whoever else writes beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime.watching import lines, loud, watch
from tensafe.findings import Record
from tensafe.runtime.calls.stepping import Stepping

MODEL = """
model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
loss = model(torch.ones(1, 2)).sum()
loss.backward(retain_graph=True)
"""
OPTIMIZERS = {
    "SGD": "momentum=0.9",
    "Adam": "",
    "AdamW": "foreach=True",
    "RMSprop": "",
    "Adagrad": "",
    "Adafactor": "",
    "NAdam": "",
}


def words(record: Record) -> str:
    return " ".join(
        f"{finding.message} {[item.role for item in finding.because]}" for finding in loud(record)
    )


@pytest.mark.parametrize(("name", "arguments"), OPTIMIZERS.items())
def test_a_step_before_a_second_backward_is_named_as_one_write(
    name: str, arguments: str, tmp_path: Path
) -> None:
    step = f"optimizer = torch.optim.{name}(model.parameters(), lr=0.1, {arguments})\n"
    record = watch(MODEL + step + "optimizer.step()\nloss.backward()\n", tmp_path)
    assert lines(record, "TS201") == ["optimizer.step()"]
    assert f"{name}.step" in words(record)


def test_the_later_write_of_a_hook_keeps_its_own_line(tmp_path: Path) -> None:
    record = watch(
        """
        weight = nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([weight], lr=0.1)

        def clamp(*_):
            with torch.no_grad():
                weight.clamp_(max=0.5)

        optimizer.register_step_post_hook(clamp)
        (weight * 2).sum().backward()
        loss = (weight * weight).sum()
        weight.grad = None
        loss.backward(retain_graph=True)
        optimizer.step()
        loss.backward()
        """,
        tmp_path,
    )
    assert lines(record, "TS201") == ["weight.clamp_(max=0.5)"]


def test_an_optimizer_of_the_program_is_named_by_its_own_writing_line(tmp_path: Path) -> None:
    record = watch(
        MODEL
        + """
class Descent(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.sub_(parameter.grad)

optimizer = Descent(model.parameters())
optimizer.step()
loss.backward()
""",
        tmp_path,
    )
    assert lines(record, "TS201") == ["parameter.sub_(parameter.grad)"]


def test_a_closure_may_write_in_the_middle_of_a_step(tmp_path: Path) -> None:
    record = watch(
        """
        weight = nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([weight], lr=0.1)

        def closure():
            optimizer.zero_grad()
            hidden = (weight * 2).exp()
            hidden.mul_(2)
            hidden.sum().backward()

        optimizer.step(closure)
        """,
        tmp_path,
    )
    assert lines(record, "TS201") == ["hidden.mul_(2)"]


def test_two_threads_that_step_at_once_keep_their_lines(tmp_path: Path) -> None:
    record = watch(
        """
        import threading

        def meet(*_):
            barrier.wait(10)

        def train(model, barrier):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            optimizer.register_step_pre_hook(meet)
            optimizer.register_step_post_hook(meet)
            loss = model(torch.ones(1, 2)).sum()
            loss.backward(retain_graph=True)
            optimizer.step()
            try:
                loss.backward()
            except RuntimeError:
                pass

        barrier = threading.Barrier(2)
        models = [nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)) for _ in range(2)]
        threads = [threading.Thread(target=train, args=(model, barrier)) for model in models]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """,
        tmp_path,
    )
    assert set(lines(record, "TS201")) == {"optimizer.step()"}


HOOKS = {
    "a hook that drops the gradients": "optimizer.zero_grad()",
    "a hook that raises": "raise FloatingPointError",
}


@pytest.mark.parametrize("hook", HOOKS)
def test_the_step_is_named_whatever_its_post_hooks_do(hook: str, tmp_path: Path) -> None:
    record = watch(
        MODEL
        + f"""
optimizer = torch.optim.Adam(model.parameters())

def after(*_):
    {HOOKS[hook]}

optimizer.register_step_post_hook(after)
try:
    optimizer.step()
except FloatingPointError:
    pass
loss.backward()
""",
        tmp_path,
    )
    assert lines(record, "TS201") == ["optimizer.step()"]


def test_writes_after_a_step_that_raised_keep_their_lines(tmp_path: Path) -> None:
    record = watch(
        """
        table = nn.Embedding(4, 2, sparse=True)
        optimizer = torch.optim.Adam(table.parameters())
        table(torch.tensor([1])).sum().backward()
        try:
            optimizer.step()
        except RuntimeError:
            pass

        weight = nn.Parameter(torch.ones(3))
        second = torch.optim.SGD([weight], lr=0.1)
        (weight * 2).sum().backward()
        scale = torch.ones(3, requires_grad=True)
        loss = (scale * weight.grad).sum()
        second.zero_grad(set_to_none=False)
        loss.backward()
        """,
        tmp_path,
    )
    assert lines(record, "TS201") == ["second.zero_grad(set_to_none=False)"]


def test_a_gradient_that_a_step_writes_is_named(tmp_path: Path) -> None:
    record = watch(
        """
        weight = nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9, nesterov=True, foreach=True)
        (weight * 2).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        (weight * 3).sum().backward()
        scale = torch.ones(3, requires_grad=True)
        loss = (scale * weight.grad).sum()
        optimizer.step()
        loss.backward()
        """,
        tmp_path,
    )
    assert lines(record, "TS201") == ["optimizer.step()"]


def test_threads_that_train_their_own_models_do_so(tmp_path: Path) -> None:
    program = tmp_path / "threads.py"
    program.write_text(
        """
import threading
import torch
from torch import nn

def train(number):
    torch.manual_seed(0)
    model = nn.Linear(4, 4)
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    for _ in range(150):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).pow(2).mean().backward()
        optimizer.step()

threads = [threading.Thread(target=train, args=(number,)) for number in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("trained")
"""
    )
    done = subprocess.run(
        [sys.executable, "-m", "tensafe", "run", str(program)], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr


def test_a_parameter_of_a_subclass_is_asked_nothing() -> None:
    seen: list[str] = []

    class Asked(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(function.__name__)
            return super().__torch_function__(function, types, args, kwargs or {})

    weight = torch.ones(3).as_subclass(Asked).requires_grad_()
    weight.grad = torch.ones(3)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    seen.clear()
    stepping = Stepping()
    stepping.begin(optimizer, (optimizer.step.__code__, 0), whole=True)
    assert stepping.entered_at_end
    stepping.settle()
    assert seen == []
