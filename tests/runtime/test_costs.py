"""Copies that nobody needs, storages that views keep alive, saves that take more than they show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from runtime.watching import line_of, loud, watch
from tensafe.findings import Record, Severity
from tensafe.findings.record import from_json, to_json

LARGE = "x = torch.randn(1000, 1000)\nrows = torch.arange(1000)\n"

FOUND = {
    ("TS301", "a clone that is only read"): """
        for _ in range(3):
            y = x.clone()  # here
            total = (y - y.mean()).sum()
        del y
        """,
    ("TS301", "a clone of what indexing has copied"): """
        for _ in range(3):
            total = x[rows].clone().sum()  # here
        """,
    ("TS301", "an array that is copied and dropped"): """
        def to_torch(parts):
            return torch.tensor(np.stack(parts))  # here
        batch = to_torch([np.zeros((100, 1000)) for _ in range(3)])
        """,
    ("TS302", "the same memory copied in each step"): """
        columns = x.t()
        for _ in range(5):
            first = columns.contiguous()[0]  # here
        """,
    ("TS303", "rows of activations in a list"): """
        class Log:
            def __init__(self):
                self.rows = []
            def add(self, activation):
                self.rows.append(activation[0])  # here
        def main():
            net, log = nn.Linear(8, 4096), Log()
            for _ in range(12):
                net(torch.randn(64, 8)).sum().backward()
                with torch.no_grad():
                    log.add(net(torch.randn(64, 8)))
        main()
        """,
    ("TS304", "rows that are pickled one by one"): """
        import pickle
        def store(row):
            return pickle.dumps({"row": row, "id": 1})  # here
        files = [store(x[i]) for i in range(5)]
        """,
    ("TS304", "a deep copy of views"): """
        part = copy.deepcopy({"a": x[0], "b": x[1]})  # here
        """,
    ("TS304", "one array under two names"): """
        import io
        np.savez(io.BytesIO(), one=x.numpy(), other=x.numpy())  # here
        """,
    ("TS305", "a model copied for each evaluation"): """
        net = nn.Linear(1000, 1000)
        for _ in range(4):
            judged = copy.deepcopy(net)  # here
            score = judged(torch.ones(1, 1000)).sum().item()
        """,
}


@pytest.mark.parametrize(("code", "name"), FOUND)
def test_what_costs_for_nothing_is_found_at_its_line(code: str, name: str, tmp_path: Path) -> None:
    snippet = FOUND[code, name]
    record = watch(LARGE + textwrap.dedent(snippet), tmp_path)
    marked = [line.strip() for line in snippet.splitlines() if "# here" in line]
    assert {line_of(finding) for finding in record.findings if finding.code == code} == set(marked)


NEEDED = {
    "the source is written": """
        for _ in range(3):
            before = x.clone()
            x.add_(1)
            change = (x - before).sum()
        del before
        """,
    "the copy is written": """
        for _ in range(3):
            y = x.clone()
            y[0] = 1
        del y
        """,
    "the copy lets a large one go": """
        kept = [torch.randn(4096, 256)[0].clone() for _ in range(12)]
        """,
    "another layout": """
        for _ in range(3):
            y = x.t().clone(memory_format=torch.contiguous_format)
            z = torch.ones(1, 1000).expand(1000, 1000).clone()
        del y, z
        """,
    "an array over the copy": """
        for _ in range(3):
            array = x.clone().numpy()
            array += 1
        del array
        """,
    "a target network and the best weights": """
        net = nn.Linear(1000, 1000)
        target, best = copy.deepcopy(net), None
        for _ in range(4):
            with torch.no_grad():
                for own, other in zip(target.parameters(), net.parameters()):
                    own.lerp_(other, 0.1)
                    other.add_(1)
            best = copy.deepcopy(net.state_dict())
        del target, best
        """,
    "each step copies another part": """
        for i in range(8):
            column = x.view(10, 100, 1000)[:, i].t().contiguous()
        """,
    "views of what is still there": """
        class Log:
            def __init__(self):
                self.rows, self.last = [], None
        def parts(table):
            yield table[0]
            yield table[1]
        def main():
            log, net = Log(), nn.Linear(1000, 10)
            large, listed = torch.randn(2000, 1000), [torch.randn(2000, 1000)]
            log.rows = [large[i] for i in range(5)]
            log.last = listed[0][0]
            for i in range(14):
                walk = parts(torch.randn(2000, 1000))
                log.first = next(walk)
                net(large[i]).sum().backward()
                log.weight = net.weight[0]
            return large.sum() + listed[0].sum() + next(walk).sum()
        main()
        """,
    "an activation that a later backward still needs": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b, self.seen = nn.Linear(8, 4096), nn.Linear(4096, 1), None
            def forward(self, x):
                hidden = self.a(x).relu()
                self.seen = hidden[:1]
                return self.b(hidden)
        net, other = Net(), nn.Linear(3, 1)
        out = net(torch.randn(256, 8))
        for _ in range(14):
            other(torch.randn(2, 3)).sum().backward()
        net.seen = None
        out.sum().backward()
        """,
    "a save of all parts": """
        import io, pickle
        torch.save({"upper": x[:500], "lower": x[500:]}, io.BytesIO())
        pickle.dumps([x[:, :500], x[:, 500:]])
        both = copy.deepcopy([x[:500], x])
        torch.save(nn.Linear(1000, 1000).state_dict(), io.BytesIO())
        np.savez(io.BytesIO(), one=x[:500].numpy(), other=x[500:].numpy())
        """,
}


@pytest.mark.parametrize("name", NEEDED)
def test_what_is_needed_is_no_finding(name: str, tmp_path: Path) -> None:
    record = watch(LARGE + textwrap.dedent(NEEDED[name]), tmp_path)
    assert [finding for finding in record.findings if finding.code.startswith("TS30")] == []


def test_large_waste_is_a_warning_and_small_waste_a_notice(tmp_path: Path) -> None:
    code = "for _ in range({}):\n    total = x[rows].clone().sum()\n"
    small, large = (watch(LARGE + code.format(times), tmp_path) for times in (3, 20))
    assert [finding.severity for finding in small.findings] == [Severity.NOTICE]
    assert [finding.severity for finding in loud(large)] == [Severity.WARNING]


def test_many_small_copies_are_a_notice(tmp_path: Path) -> None:
    code = "for _ in range(5_000):\n    total = x[rows[:5]].clone().sum()\n"
    found = watch(LARGE + code, tmp_path).findings
    assert [(finding.code, finding.severity) for finding in found] == [("TS301", Severity.NOTICE)]


def test_a_save_names_where_the_view_in_a_dict_was_made(tmp_path: Path) -> None:
    code = "import io\nsample = x[0]\ntorch.save({'x': sample, 'label': 1}, io.BytesIO())\n"
    (found,) = watch(LARGE + code, tmp_path).findings
    sites = [part.site for part in found.because]
    assert [Path(site.path).read_text().splitlines()[site.line - 1] for site in sites] == ["sample = x[0]"]


def test_a_function_mode_of_the_program_sees_clone_under_its_own_name(tmp_path: Path) -> None:
    code = """
        from torch.overrides import TorchFunctionMode
        seen = []
        class Mode(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append(func)
                return func(*args, **(kwargs or {}))
        with Mode():
            x.clone(); x.t().reshape(-1); x.contiguous()
        assert [torch.Tensor.clone, torch.Tensor.reshape, torch.Tensor.contiguous] == [
            f for f in seen if f is not torch.Tensor.t
        ]
        """
    assert "raised" not in watch(LARGE + textwrap.dedent(code), tmp_path).summary


PROGRAM = """
import copy
import torch
x = torch.randn(100, 100)
for _ in range(4):
    a = x.clone()
    b = x[torch.arange(50)]
    c = x.t().reshape(-1)
    d = torch.empty_like(x).copy_(x)
    e = x.view(-1)[:4]
print("done", a.shape, b.shape, c.shape, d.shape, e.shape)
"""


def test_the_table_of_copies(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    record = tmp_path / "record.json"
    told = _tensafe(["run", "--copies", "program.py"], tmp_path)
    rows = [line.split() for line in told.stderr.splitlines() if "program.py:" in line]
    assert sorted(row[-1] for row in rows) == [f"program.py:{line}" for line in (6, 7, 8, 9)]
    plain = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert told.stdout == plain.stdout
    _tensafe(["run", "--copies", "--format", "json", "--output", str(record), "program.py"], tmp_path)
    copies = {row["op"]: row for row in json.loads(record.read_text())["copies"]}
    assert {op: (row["times"], row["nbytes"]) for op, row in copies.items()} == {
        "Tensor.clone": (4, 160_000),
        "Tensor.__getitem__": (4, 80_000),
        "Tensor.reshape": (4, 160_000),
        "Tensor.copy_": (4, 160_000),
    }
    assert copies["Tensor.reshape"]["hidden"]
    assert copies["Tensor.reshape"]["needed"] == "again"
    assert not copies["Tensor.clone"]["hidden"]
    shown = _tensafe(["report", str(record)], tmp_path)
    assert "program.py:8" in shown.stdout


def test_a_record_with_copies_reads_back() -> None:
    from tensafe.facts import Site
    from tensafe.findings import CopyLine

    row = CopyLine(Site("a.py", 3, 1, 3, 9, "f"), "Tensor.clone", 2, 4096, False, "no")
    record = Record("run", summary={"seconds": 1}, copies=(row,))
    assert from_json(to_json(record)) == record
    assert from_json(to_json(Record("run"))).copies is None


def _tensafe(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "tensafe", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def test_what_was_kept_before_watching_is_not_this_stretchs_doing(tmp_path: Path) -> None:
    class Kept:
        def __init__(self) -> None:
            self.rows = [torch.zeros(1 << 20)[:4] for _ in range(3)]

    before = Kept()
    record = watch("torch.ones(1, requires_grad=True).sum().backward()", tmp_path)
    assert [finding.code for finding in record.findings] == []
    del before
