"""`tensafe run --heal`: the whole program under value semantics, findings told all the same."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from runtime.test_guest import PROGRAMS, SETUP


def run(script: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *options, str(script)]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=script.parent, check=False, timeout=300
    )


def heal(script: Path) -> tuple[subprocess.CompletedProcess[str], list[dict[str, str]]]:
    record = script.with_suffix(".json")
    done = run(script, "-m", "tensafe", "run", "--heal", "--format", "json", "--output", str(record))
    return done, json.loads(record.read_text())["findings"]


def test_it_goes_on_with_the_right_gradient_and_reports(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""
        import threading
        import torch
        from torch.utils.checkpoint import checkpoint

        def step(write):
            w = torch.ones(2, dtype=torch.double, requires_grad=True)
            y = w.exp()
            write(y)
            y.sum().backward()
            print(torch.equal(w.grad, w.detach().exp()))

        step(lambda y: y.add_(1))
        step(lambda y: y.data.add_(1))
        step(lambda y: y.detach().numpy().fill(0))
        thread = threading.Thread(target=step, args=(lambda y: y.detach()[:1].zero_(),))
        thread.start()
        thread.join()

        def block(x):
            y = x.sigmoid()
            y.mul_(2)
            return y.sum()

        x = torch.zeros(2, requires_grad=True)
        checkpoint(block, x, use_reentrant=False).backward()
        print(x.grad.tolist())
        try:
            x.add_(1)
        except RuntimeError:
            print("still refused")
        """)
    )
    done, findings = heal(script)
    assert done.stdout.splitlines() == ["True"] * 4 + ["[0.5, 0.5]", "still refused"], done.stderr
    assert done.returncode == 0
    healed = [item for item in findings if item["code"] in ("TS201", "TS202")]
    assert [item["code"] for item in healed] == ["TS201", "TS202", "TS202", "TS201"]
    assert all("healed" in item["message"] for item in healed)


@pytest.mark.parametrize(
    "name", ["own hooks", "torch.func", "checkpoint", "TorchScript and tracing", "compile"]
)
def test_other_programs_print_what_they_print(name: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(SETUP + textwrap.dedent(PROGRAMS[name]))
    plain, (healed, findings) = run(script), heal(script)
    assert healed.stdout == plain.stdout, healed.stderr
    assert healed.returncode == plain.returncode == 0
    assert not [item for item in findings if item["code"] in ("TS201", "TS202")]
