"""Programs on others' libraries print the same bytes and end alike under `tensafe run`, without an alarm."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from .side_by_side import side_by_side

PROGRAMS = Path(__file__).parent / "programs"
LIBRARY = {
    "gpt2_loop": "transformers",
    "gpt2_trainer": "transformers",
    "vit_loop": "transformers",
    "vit_trainer": "transformers",
    "lightning_fit": "lightning",
}
TRAINER_SECONDS = r"'(train|eval)_(runtime|samples_per_second|steps_per_second)': '[^']*'"
SECONDS = {"gpt2_trainer": TRAINER_SECONDS, "vit_trainer": TRAINER_SECONDS}


@pytest.mark.program
@pytest.mark.parametrize("name", sorted(path.stem for path in PROGRAMS.glob("*.py")))
def test_a_program_runs_as_under_plain_python(name: str, tmp_path: Path) -> None:
    if find_spec(LIBRARY.get(name, "torch")) is None:
        pytest.skip(f"{LIBRARY[name]} is not installed")
    both = side_by_side(PROGRAMS / f"{name}.py", tmp_path)
    assert both.plain.status == 0, both.plain.stderr
    assert both.plain.stdout
    assert not both.differences(SECONDS.get(name)), both.watched.stderr[-2000:]
    assert not both.alarms


UNLIKE = """
import sys
print("loss 0.5")
print("watched" if "tensafe" in sys.modules else "plain")
sys.exit(3 if "tensafe" in sys.modules else 0)
"""
LOST_WRITE = """
import torch
x = torch.ones(3)
x[x > 0].zero_()
print(x)
"""


def test_a_difference_is_seen(tmp_path: Path) -> None:
    program = tmp_path / "unlike.py"
    program.write_text(UNLIKE)
    both = side_by_side(program, tmp_path)
    assert both.differences() == ["exit status 3, plain 0", "stdout line 2 is 'watched', plain 'plain'"]


def test_an_alarm_is_seen(tmp_path: Path) -> None:
    program = tmp_path / "buggy.py"
    program.write_text(LOST_WRITE)
    both = side_by_side(program, tmp_path)
    assert not both.differences()
    assert [alarm.split()[:2] for alarm in both.alarms] == [["error", "TS106"]]


def test_a_missing_record_is_seen(tmp_path: Path) -> None:
    both = side_by_side(tmp_path / "absent.py", tmp_path)
    assert any(line.startswith("no record was written") for line in both.differences())
