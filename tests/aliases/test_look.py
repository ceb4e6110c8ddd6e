"""What people see: the text of explanations and maps, as pages, as JSON, and from the runtime's record."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from torch import nn

import tensafe
from tensafe import TensafeError, explain, memory_map
from tensafe.report.explanation import explanation_text
from tensafe.report.html.wording import size
from tensafe.report.memory_text import memory_text


def text(block: str) -> str:
    return textwrap.dedent(block).strip("\n")


def test_an_explanation_of_a_slice() -> None:
    table = torch.zeros(250_000)
    sample = table[:100]
    assert explanation_text(explain(sample), 88) == text("""
        sample:  float32 [100] on cpu, torch.Tensor, a view of `table`
          storage   SIZE (1,000,000 bytes), the storage of `table`
                    [▏···························································]
                    reaches bytes 0 to 400: 0.04% of the storage
          keeps     all 1,000,000 bytes alive, and torch.save, pickle and deepcopy write them
                    all; a clone() takes 400 bytes
          shares    table  contains it, its base: float32 [250000]
          layout    contiguous: view(-1) and reshape(-1) give a view
          autograd  requires no grad, version 0
          May I write here in place?  Yes, and:
            - `table` changes too: the memory is the same.
        """).replace("SIZE", size(1_000_000))


def test_an_explanation_of_what_a_graph_saved() -> None:
    weight = torch.ones(2, 3, requires_grad=True)
    hidden = weight.t().exp()
    loss = hidden.sum()
    assert explanation_text(explain(hidden), 88) == text("""
        hidden:  float32 [3, 2] on cpu, torch.Tensor
          storage   24 bytes, its own storage
          shares    with no other live tensor
          layout    permuted, stride [1, 3]
                    view(-1) raises and reshape(-1) copies: dimension 0 has stride 1, where
                    joining it to dimension 1 needs 6
          autograd  grad_fn ExpBackward0, version 0
          saved by  ExpBackward0, as result: hidden → ExpBackward0
          May I write here in place?  No:
            ✗ raises in backward: ExpBackward0 of `hidden` saved these bytes for backward, which
              raises after a write. Write to hidden.clone().
        """)
    loss.backward()


def test_a_map_of_a_small_model() -> None:
    model = nn.Sequential(*(nn.Linear(8, 8, bias=False) for _ in range(3)))
    model.append(nn.Linear(8, 4))
    model.tied = model[3].weight
    cache = torch.zeros(500)[10:20]
    assert memory_text(memory_map(model, cache), 88) == text("""
        model, cache: 6 tensors in 6 storages
          stored        2.8 KiB  2,912 bytes
            parameter     912 B    912 bytes
            tensor         40 B     40 bytes
          dead          1.9 KiB  1,960 bytes  reached by none of them

           2.0 KiB      [▒▏··························]  1,960 bytes dead
                        └ cache                      float32 [10]    bytes 40 to 80
             256 B × 3  model.*.weight               float32 [8, 8]  parameter
             128 B      model.tied = model.3.weight  float32 [4, 8]  parameter
              16 B      model.3.bias                 float32 [4]     parameter

        kept alive by small views:
          1,960 bytes of 2.0 KiB by cache

        one and the same:
          model.tied = model.3.weight
        """)


def test_a_narrow_terminal_that_knows_no_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = torch.zeros(1000)[:500]
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with contextlib.redirect_stdout(out):
        shown = str(explain(sample)), str(memory_map(sample))
    assert "[####" in shown[0]
    assert all("█" not in one for one in shown)


def test_control_characters_in_names_are_escaped() -> None:
    name = "a\x1b[31m\nb"
    things = {name: torch.zeros(2)}
    module = nn.Module()
    module.__dict__[name] = torch.zeros(2)
    shown = [str(memory_map(things)), str(explain(things[name]))]
    shown += [str(memory_map(module)), str(explain(module.__dict__[name]))]
    for text in shown:
        assert "\x1b" not in text
        assert r"a\x1b[31m\nb" in text


def test_json_and_pages(tmp_path: Path) -> None:
    sample = torch.zeros(1000)[:5]
    explained, mapped = explain(sample), memory_map(sample)
    assert json.loads(explained.to_json())["regions"][0]["storage_nbytes"] == 4000
    assert json.loads(explained.to_json())["may_write"] is True
    assert "sample" in mapped.to_json()
    assert "sample" in explained._repr_html_()
    assert "sample" in mapped._repr_html_()
    for number, shown in enumerate([explained, mapped]):
        path = tmp_path / f"{number}.html"
        shown.save_html(path)
        assert "sample" in path.read_text()
    with pytest.raises(TensafeError, match="cannot write"):
        mapped.save_html(tmp_path / "no" / "such.html")


RECORDED = """
import torch, tensafe
x = torch.zeros(5)
x.add_(2)
print(tensafe.explain(x[1:]).written)
"""


def test_the_last_write_where_the_runtime_engine_runs(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(RECORDED)
    watched = [sys.executable, "-m", "tensafe", "run", str(program)]
    done = subprocess.run(watched, capture_output=True, text=True, check=False)
    assert done.stdout == f"Tensor.add_ at {program}:4\n", done.stderr
    plain = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert plain.stdout == "None\n", plain.stderr


def test_looking_does_not_import_the_runtime() -> None:
    code = (
        "import sys, torch, tensafe; tensafe.explain(torch.ones(3)); print('tensafe.runtime' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "False\n", done.stderr


def test_public_names() -> None:
    assert tensafe.explain is explain
    assert tensafe.memory_map is memory_map
