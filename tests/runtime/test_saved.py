"""Saved tensors: every route of a write is seen, values stay PyTorch's own, correct code is silent."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from runtime.watching import lines, loud, watch

# (how the write goes, whether the version counter moves)
ROUTES = {
    "gate.mul_(0.5)": True,
    "gate.detach().mul_(0.5)": True,
    "gate[1:].zero_()": True,
    "gate[0] = 0.0": True,
    "gate += 1.0": True,
    "torch.relu_(gate.neg_())": True,
    "F.dropout(gate, 0.5, True, inplace=True)": True,
    "torch._foreach_mul_([gate], 0.5)": True,
    "torch.nn.init.zeros_(gate.detach())": True,
    "gate.data.mul_(0.5)": False,
    "gate.data[1:].zero_()": False,
    "gate.data[0] = 0.0": False,
    "gate.data += 1.0": False,
}


@pytest.mark.parametrize("write", ROUTES)
def test_each_route_of_a_write_is_named(write: str, tmp_path: Path) -> None:
    record = watch(
        f"""
        gate = torch.ones(3, requires_grad=True).tanh()
        {write}
        gate.sum().backward()
        """,
        tmp_path,
    )
    code = "TS201" if ROUTES[write] else "TS202"
    assert lines(record, code) == [write]
    assert loud(record)[0].because[0].site.line == 7
    assert bool(record.summary.get("raised")) is ROUTES[write]


@pytest.mark.parametrize("write", [write for write, counted in ROUTES.items() if not counted])
def test_the_gradient_is_the_one_plain_pytorch_gives(write: str, tmp_path: Path) -> None:
    code = f"gate = weight.tanh()\n{write}\ngate.sum().backward()\n"
    plain = {"torch": torch, "weight": torch.ones(3, requires_grad=True)}
    exec(code, plain)
    expected = plain["weight"].grad
    setup = "weight = torch.ones(3, requires_grad=True)\n"
    text = f"{setup}{code}assert weight.grad.tolist() == {expected.tolist()}\n"
    assert "raised" not in watch(text, tmp_path).summary


def test_the_error_is_pytorchs_with_both_places(tmp_path: Path) -> None:
    record = watch(
        """
        hidden = torch.ones(3, requires_grad=True).exp()
        hidden += 1
        hidden.sum().backward()
        """,
        tmp_path,
    )
    raised = str(record.summary["raised"])
    opening = (
        "one of the variables needed for gradient computation has been modified by an inplace operation:"
    )
    assert raised.startswith(f"RuntimeError: {opening}")
    assert "[torch.FloatTensor [3]]" in raised
    assert "is at version 1; expected version 0 instead" in raised
    assert ".py:7" in raised
    assert ".py:8" in raised


def test_a_fused_step_before_a_second_backward(tmp_path: Path) -> None:
    record = watch(
        """
        model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
        loss = model(torch.ones(1, 2)).sum()
        loss.backward(retain_graph=True)
        optimizer.step()
        loss.backward()
        """,
        tmp_path,
    )
    assert lines(record, "TS202") == ["optimizer.step()"]


def test_a_write_through_an_array_or_a_pointer_names_where_the_memory_was_handed_out(tmp_path: Path) -> None:
    record = watch(
        """
        import ctypes

        def scale(address, count):
            cells = (ctypes.c_float * count).from_address(address)
            for i in range(count):
                cells[i] = cells[i] * 0.5

        gate = torch.ones(3, requires_grad=True).tanh()
        scale(gate.data_ptr(), 3)
        gate.sum().backward()
        """,
        tmp_path,
    )
    named = [*lines(record, "TS202"), *(item.role for finding in loud(record) for item in finding.because)]
    assert any("data_ptr" in text for text in named)


@pytest.mark.parametrize(
    "code",
    [
        "gate.detach().numpy().sum()",
        "gate.data_ptr()",
        "gate.data.mul_(1.0)",
        "gate.data[1:] = gate.data[1:]",
        "F.batch_norm(torch.ones(4, 3), gate.detach().clone(), torch.ones(3), training=True)",
    ],
)
def test_reading_or_writing_the_same_values_is_no_finding(code: str, tmp_path: Path) -> None:
    setup = "gate = torch.tensor([1.0, float('nan'), 2.0], requires_grad=True).tanh()\n"
    text = f"{setup}{code}\ngate.sum().backward()\n"
    record = watch(text, tmp_path)
    assert loud(record) == []
    assert "raised" not in record.summary


@pytest.mark.parametrize(
    "code",
    [
        "model = nn.BatchNorm1d(3)\n(model(torch.rand(4, 3)) + model(torch.rand(4, 3))).sum().backward()",
        "F.rrelu(torch.randn(8, requires_grad=True), training=True).sum().backward()",
        "nn.LSTM(2, 3)(torch.rand(4, 1, 2))[0].sum().backward()",
        "log = torch.randn(50, 16, 20, requires_grad=True).log_softmax(2)\n"
        "sizes = torch.full((16,), 50), torch.full((16,), 30)\n"
        "F.ctc_loss(log, torch.randint(1, 20, (16, 30)), *sizes).backward()",
        "x = torch.rand(4, 3, requires_grad=True).to_sparse()\ntorch.sparse.sum(x * 2).backward()",
        "x = torch.ones(3, device='meta', requires_grad=True)\n(x * x).sum().backward()",
        "w = torch.rand(3, requires_grad=True)\n"
        "(g,) = torch.autograd.grad((w**3).sum(), w, create_graph=True)\n"
        "g.pow(2).sum().backward()",
        "x = torch.rand(3, requires_grad=True)\nfor _ in range(2):\n    y = F.relu(x * 2, inplace=True)\n"
        "    y.sum().backward()",
    ],
    ids=["batch norm twice", "rrelu", "lstm", "ctc", "sparse", "meta", "double backward", "relu in place"],
)
def test_kernels_with_habits_of_their_own_stay_silent(code: str, tmp_path: Path) -> None:
    record = watch(code, tmp_path)
    assert loud(record) == []
    assert "raised" not in record.summary


def test_an_optimizer_step_is_the_line_of_its_writes_and_a_closure_has_its_own(tmp_path: Path) -> None:
    record = watch(
        """
        model = nn.Linear(2, 1)
        weights = list(model.parameters())
        for optimizer in (torch.optim.AdamW(weights), torch.optim.LBFGS(weights, max_iter=1)):
            before = model(torch.ones(1, 2, requires_grad=True)).sum()

            def closure():
                hidden = model(torch.ones(1, 2)).tanh()
                F.relu(hidden, inplace=True)
                try:
                    hidden.sum().backward()
                except RuntimeError:
                    pass
                optimizer.zero_grad()
                loss = model(torch.ones(1, 2)).sum()
                loss.backward()
                return loss

            closure()
            optimizer.step(closure)
            try:
                before.backward()
            except RuntimeError:
                pass
        """,
        tmp_path,
    )
    assert sorted({*lines(record, "TS201")}) == ["F.relu(hidden, inplace=True)", "optimizer.step(closure)"]


def test_data_replaced_between_forward_and_backward(tmp_path: Path) -> None:
    record = watch(
        """
        weight = torch.ones(3, requires_grad=True)
        loss = (weight * weight).sum()
        weight.data = torch.zeros(3)
        loss.backward()
        """,
        tmp_path,
    )
    assert lines(record, "TS202") == ["weight.data = torch.zeros(3)"]


def test_a_default_device_switches_nothing_off(tmp_path: Path) -> None:
    record = watch(
        """
        with torch.device("cpu"):
            gate = torch.ones(3, requires_grad=True).tanh()
            gate.data.mul_(0.5)
            gate.sum().backward()
        """,
        tmp_path,
    )
    assert lines(record, "TS202") == ["gate.data.mul_(0.5)"]


@pytest.mark.parametrize(
    ("writes", "code", "named"),
    [
        ("buffer[0] = 2.0; buffer[3] = 1.0", "TS201", "buffer[0] = 2.0"),
        ("buffer.data[0] = 2.0; buffer.data[3] = 1.0", "TS202", "buffer.data[0] = 2.0"),
        ("buffer.data[0] = 2.0; buffer.data.t_()", "TS202", "buffer.data[0] = 2.0"),
        ("buffer.t_()", "TS201", "buffer.t_()"),
    ],
)
def test_of_several_writes_the_first_is_named(writes: str, code: str, named: str, tmp_path: Path) -> None:
    text = "weight, buffer = torch.ones(3, requires_grad=True), torch.zeros(4, 3)\n"
    spread = writes.replace("; ", "\n")
    record = watch(f"{text}y = (weight * buffer[0]).sum()\n{spread}\ny.backward()\n", tmp_path)
    assert lines(record, code) == [named]


def test_a_function_with_out_is_a_writer_like_any_other(tmp_path: Path) -> None:
    record = watch(
        """
        weight, x = torch.ones(3, requires_grad=True), torch.ones(3)
        y = weight * x
        torch.add(x, 1, out=x)
        y.sum().backward()
        """,
        tmp_path,
    )
    assert lines(record, "TS201") == ["torch.add(x, 1, out=x)"]
    assert "`torch.add` changes" in loud(record)[0].message


def test_a_saver_that_overwrites_its_own_operand_keeps_both_places(tmp_path: Path) -> None:
    record = watch(
        """
        x = torch.ones(3, requires_grad=True) * 2
        x /= x.norm()
        x.sum().backward()
        """,
        tmp_path,
    )
    assert lines(record, "TS201") == ["x /= x.norm()"]
    assert [item.site.line for item in loud(record)[0].because] == [8, 9]
