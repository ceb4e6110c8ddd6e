"""Errors that PyTorch raises about memory and graphs: both lines are named when the program stops on them."""

from __future__ import annotations

import contextlib
import gc
import json
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import torch

from runtime.watching import line_of, lines, loud, watch
from tensafe.facts import Call, Kind
from tensafe.findings import Finding, Severity
from tensafe.runtime.engine import Engine

HEAD = "import copy\nimport numpy as np\nimport torch\nfrom torch import nn\n"


def related(finding: Finding) -> list[str]:
    """The source text of the other places."""
    sites = [item.site for item in finding.because]
    return [Path(site.path).read_text().splitlines()[site.line - 1].strip() for site in sites]


def run(code: str, folder: Path) -> tuple[list[dict[str, object]], subprocess.CompletedProcess[str]]:
    """The findings of a program in a process of its own, and how it ended."""
    script, record = folder / "program.py", folder / "record.json"
    script.write_text(HEAD + code)
    command = [
        sys.executable,
        "-m",
        "tensafe",
        "run",
        "--format",
        "json",
        "--output",
        str(record),
        str(script),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    return json.loads(record.read_text())["findings"], done


# --- who is told, and how loud


@pytest.mark.parametrize(
    "code",
    [
        "torch.ones(3, requires_grad=True).add_(1)",
        "torch.ones(3, requires_grad=True).numpy()",
        "torch.ones(3, 4).t().view(-1)",
        "copy.deepcopy(torch.ones(3, requires_grad=True) * 2)",
        "torch.ones(1).expand(3).add_(1)",
        "(torch.ones(3, 4, requires_grad=True) * 2).unbind()[0].add_(1)",
        "loss = (torch.ones(3, requires_grad=True) ** 2).sum()\n    loss.backward()\n    loss.backward()",
    ],
)
def test_an_error_that_the_program_handles_is_a_notice_at_most(code: str, tmp_path: Path) -> None:
    record = watch(f"try:\n    {code}\nexcept RuntimeError:\n    pass\n", tmp_path)
    assert loud(record) == []
    uncaught = watch(code.replace("    ", ""), tmp_path)
    assert len(loud(uncaught)) == 1


@pytest.mark.parametrize(
    ("ending", "severity"),
    [
        ("raise", Severity.ERROR),
        ("raise ValueError(f'step 1: {error}')", Severity.ERROR),
        ("raise ValueError('step 1') from error", Severity.ERROR),
        ("raise SystemExit(3)", Severity.ERROR),
        ("raise ValueError('another one')", Severity.NOTICE),
        ("raise ValueError('another one') from None", Severity.NOTICE),
    ],
)
def test_the_handler_decides_whether_the_program_stops_on_it(
    ending: str, severity: Severity, tmp_path: Path
) -> None:
    code = (
        "weight = torch.ones(3, requires_grad=True)\n"
        f"try:\n    weight.add_(1)\nexcept RuntimeError as error:\n    {ending}\n"
    )
    if "SystemExit" in ending:
        found, done = run(code, tmp_path)
        assert done.returncode == 3
        assert [item["severity"] for item in found] == ["error"]
    else:
        assert [item.severity for item in watch(code, tmp_path).findings] == [severity]


def test_an_error_that_ends_a_thread_is_told_and_the_program_goes_on(tmp_path: Path) -> None:
    found, done = run(
        "import threading\n"
        "def work():\n    torch.ones(3, requires_grad=True).add_(1)\n"
        "thread = threading.Thread(target=work)\nthread.start()\nthread.join()\nprint('went on')\n",
        tmp_path,
    )
    assert [item["name"] for item in found] == ["leaf-inplace"]
    assert (done.stdout, done.returncode) == ("went on\n", 0)


def test_an_error_from_a_loader_worker_names_the_line_of_the_worker(tmp_path: Path) -> None:
    found, _ = run(
        "class Rows(torch.utils.data.Dataset):\n"
        "    weight = torch.ones(3, requires_grad=True)\n"
        "    def __len__(self):\n        return 2\n"
        "    def __getitem__(self, index):\n        return (self.weight * index).numpy()\n"
        "for batch in torch.utils.data.DataLoader(Rows(), num_workers=1):\n    pass\n",
        tmp_path,
    )
    assert [item["location"]["line"] for item in found] == [10]  # type: ignore[index]


def test_error_status_and_traceback_are_those_of_plain_python(tmp_path: Path) -> None:
    code = "def update(weight):\n    weight -= 1\n\nupdate(torch.ones(3, requires_grad=True))\n"
    _, done = run(code, tmp_path)
    plain = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    told = plain.stderr.replace(str(tmp_path) + "/", "").replace("program.py", str(tmp_path / "program.py"))
    assert told.splitlines()[-1] in done.stderr
    assert "tensafe/runtime" not in done.stderr


def write_in_vain() -> weakref.ref[torch.Tensor]:
    """A handled refusal of a tensor that nobody else holds."""
    weight = torch.ones(3, requires_grad=True)
    with contextlib.suppress(RuntimeError):
        weight.add_(1)
    return weakref.ref(weight)


def test_nothing_of_a_handled_error_is_kept_alive() -> None:
    calls: list[Call] = []
    engine = Engine(lambda call, history: calls.append(call), lambda what, why: None)
    engine.start()
    gc.disable()
    try:
        assert write_in_vain()() is None
    finally:
        gc.enable()
        engine.stop()
    assert [call.kind for call in calls] == [Kind.REFUSED]


# --- leaves


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("def step(p):\n    p -= 0.1\n\nstep(weight)", "p -= 0.1"),
        ("weight[[0, 1]] = weight[[1, 0]]", "weight[[0, 1]] = weight[[1, 0]]"),
        ("nn.ReLU(inplace=True)(weight)", "nn.ReLU(inplace=True)(weight)"),
        ("torch._foreach_mul_([weight], 2)", "torch._foreach_mul_([weight], 2)"),
        ("torch.mul(weight.detach(), 2, out=weight)", "torch.mul(weight.detach(), 2, out=weight)"),
        ("weight.view(-1).clamp_(0, 1)", "weight.view(-1).clamp_(0, 1)"),
    ],
)
def test_a_write_to_a_leaf_and_where_the_leaf_comes_from(code: str, line: str, tmp_path: Path) -> None:
    record = watch(f"weight = torch.ones(3, requires_grad=True)\n{code}\n", tmp_path)
    assert lines(record, "TS203") == [line]
    if "foreach" not in code:
        assert related(loud(record)[0])[:1] == ["weight = torch.ones(3, requires_grad=True)"]


def test_out_with_another_tensor_is_no_write_to_a_leaf(tmp_path: Path) -> None:
    record = watch(
        "weight = torch.ones(3, requires_grad=True)\ntorch.mul(weight, 2, out=torch.ones(3))", tmp_path
    )
    assert "raised" in record.summary
    assert loud(record) == []


# --- views


@pytest.mark.parametrize(
    ("make", "write", "origin"),
    [
        ("a, b = torch.chunk(x, 2)", "b.tanh_()", "a, b = torch.chunk(x, 2)"),
        ("a, b, c, d = x", "b[0] = 1", "a, b, c, d = x"),
        ("parts = x.split(2)\nfirst = parts[0]", "first += 1", "parts = x.split(2)"),
        ("with torch.no_grad():\n    row = x[0]", "row.mul_(2)", "row = x[0]"),
        ("last = x[-1]", "last.detach_()", "last = x[-1]"),
        ("y = Same.apply(x)", "y += 1", "y = Same.apply(x)"),
    ],
)
def test_a_write_to_a_forbidden_view_and_what_made_it(
    make: str, write: str, origin: str, tmp_path: Path
) -> None:
    setup = """
class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad

x = torch.ones(4, 3, requires_grad=True) * 2
"""
    record = watch(f"{setup}{make}\n{write}\n", tmp_path)
    assert lines(record, "TS204") == [write]
    assert related(loud(record)[0]) == [origin]


def test_a_base_written_while_its_views_are_still_used(tmp_path: Path) -> None:
    record = watch(
        """
        x = torch.ones(2, 3, requires_grad=True) * 2
        a, b = x.unbind()
        x.mul_(2)
        loss = a.sum()
        """,
        tmp_path,
    )
    assert lines(record, "TS204") == ["x.mul_(2)"]
    assert related(loud(record)[0]) == ["a, b = x.unbind()", "loss = a.sum()"]


def test_of_several_hooked_modules_the_one_that_runs_is_named(tmp_path: Path) -> None:
    record = watch(
        """
        first, second = nn.Linear(3, 3), nn.ReLU(inplace=True)
        first.register_full_backward_hook(lambda module, before, after: None)
        second.register_full_backward_hook(lambda module, before, after: None)
        second(torch.ones(3, requires_grad=True) * 2)
        """,
        tmp_path,
    )
    assert related(loud(record)[0]) == [
        "second.register_full_backward_hook(lambda module, before, after: None)"
    ]


# --- arrays and strides


@pytest.mark.parametrize(
    ("fill", "read", "guilty"),
    [
        ("kept.append(loss)", "np.mean(kept)", "kept.append(loss)"),
        ("logs['loss'] = [loss]", "for values in logs.values(): np.mean(values)", "logs['loss'] = [loss]"),
        ("kept += [loss, loss]", "np.array(kept)", "kept += [loss, loss]"),
        ("value = loss", "np.log(value)", "np.log(value)"),
        ("value = loss", "value.numpy()", "value.numpy()"),
    ],
)
def test_the_line_that_keeps_a_live_tensor_for_numpy(
    fill: str, read: str, guilty: str, tmp_path: Path
) -> None:
    head = "kept, logs = [], {}\nloss = torch.ones(3, requires_grad=True).pow(2).mean()\n"
    record = watch(f"{head}{fill}\n{read}\n", tmp_path)
    assert lines(record, "TS208") == [guilty]


@pytest.mark.parametrize(
    ("make", "origin"),
    [
        ("x = torch.rand(2, 3, 4).permute(2, 0, 1)", "x = torch.rand(2, 3, 4).permute(2, 0, 1)"),
        ("y = torch.rand(4, 6)\nx = y[:, :3]", "x = y[:, :3]"),
        ("def load():\n    return torch.rand(4, 6).T\n\nx = load()", "return torch.rand(4, 6).T"),
        ("y = torch.rand(4, 6)\ny = y.t()\nx = y.eq(1)", "y = y.t()"),
        ("x = torch.rand(3).expand(4, 3)", "x = torch.rand(3).expand(4, 3)"),
        (
            "x = torch.rand(1, 3, 4, 4).to(memory_format=torch.channels_last)",
            "x = torch.rand(1, 3, 4, 4).to(memory_format=torch.channels_last)",
        ),
    ],
)
def test_the_call_that_made_a_tensor_unfit_for_view(make: str, origin: str, tmp_path: Path) -> None:
    record = watch(f"{make}\nx.view(-1)\n", tmp_path)
    assert lines(record, "TS307") == ["x.view(-1)"]
    assert related(loud(record)[0]) == [origin]


# --- copies


def test_a_copied_tensor_with_a_graph_is_told_by_its_path(tmp_path: Path) -> None:
    record = watch(
        """
        class Probe(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Sequential(nn.Linear(2, 2))
                self.seen = {"out": []}
                self.net[0].register_forward_hook(self.keep)

            def keep(self, module, args, out):
                self.seen["out"].append(out)

        probe = Probe()
        probe.net(torch.ones(1, 2))
        copy.deepcopy({"model": probe})
        """,
        tmp_path,
    )
    assert lines(record, "TS306") == ['self.seen["out"].append(out)']
    assert ".seen['out'][0]`" in loud(record)[0].message


def test_what_cannot_be_copied_is_found_inside_a_library_object(tmp_path: Path) -> None:
    record = watch(
        """
        import queue

        class Agent:
            def __init__(self):
                self.net = nn.Linear(2, 2)
                self.inbox = queue.Queue()

        agent = Agent()
        for name, value in {"steps": 3}.items():
            setattr(agent, name, value)
        copy.deepcopy(agent)
        """,
        tmp_path,
    )
    assert lines(record, "TS305") == ["self.inbox = queue.Queue()"]
    assert "inbox.mutex" in loud(record)[0].message


def test_a_failed_copy_without_tensors_is_none_of_our_business(tmp_path: Path) -> None:
    record = watch("import threading\ncopy.deepcopy({'lock': threading.Lock()})\n", tmp_path)
    assert "raised" in record.summary
    assert record.findings == ()


# --- a graph gone through twice


@pytest.mark.parametrize(
    ("code", "made"),
    [
        (
            "code = net(x).tanh()\nfor _ in range(2):\n    (code * torch.rand(3)).sum().backward()",
            "code = net(x).tanh()",
        ),
        (
            "y = net(x)\na, b = y.pow(2).sum(), y.exp().sum()\na.backward()\nb.backward()",
            "y = net(x)",
        ),
        (
            "total = 0\nfor _ in range(2):\n    loss = net(x).pow(2).sum()\n    total = total + loss\n"
            "    total.backward()",
            "total = total + loss",
        ),
        (
            "loss = net(x).pow(2).sum()\ntorch.autograd.grad(loss, net.weight)\nloss.backward()",
            "loss = net(x).pow(2).sum()",
        ),
    ],
)
def test_the_shared_part_of_two_backwards_is_named(code: str, made: str, tmp_path: Path) -> None:
    record = watch(f"net, x = nn.Linear(2, 3), torch.rand(4, 2)\n{code}\n", tmp_path)
    assert lines(record, "TS206") == [made]


def test_the_backward_that_freed_the_graph_is_named_among_others(tmp_path: Path) -> None:
    record = watch(
        """
        generator, critic = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 1), nn.Tanh())
        fake = generator(torch.rand(4, 2)).tanh()
        critic(torch.rand(4, 2)).sum().backward()
        guess = critic(fake).sum()
        guess.backward()
        critic(torch.rand(4, 2)).sum().backward(retain_graph=True)
        critic(fake).sum().backward()
        """,
        tmp_path,
    )
    assert lines(record, "TS206") == ["fake = generator(torch.rand(4, 2)).tanh()"]
    assert "guess.backward()" in related(loud(record)[0])


def test_lines_of_saving_are_known_inside_other_hooks(tmp_path: Path) -> None:
    record = watch(
        """
        weight = torch.ones(3, requires_grad=True)
        other = (weight * 3).exp()
        with torch.autograd.graph.save_on_cpu():
            code = weight.exp()
        code.sum().backward()
        code.sum().backward()
        """,
        tmp_path,
    )
    assert [line_of(finding) for finding in loud(record)] == ["code = weight.exp()"]
