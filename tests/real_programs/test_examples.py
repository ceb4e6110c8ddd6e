"""Both engines name the bug of every program in examples/, at its line, and no other."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from .side_by_side import side_by_side

EXAMPLES = Path(__file__).parents[2] / "examples"
BUGS = {
    "train_residual": ("saved-tensor-modified", "out += x"),
    "early_stopping": ("live-reference-snapshot", "best_weights = model.state_dict()"),
    "masked_targets": ("lost-write", "targets[targets == PAD].fill_(IGNORED)"),
    "lightning_fit": ("silent-gradient-corruption", "hidden.data.mul_(0.9)"),
    "hf_trainer_fit": ("lost-write", "hidden[hidden < 0].mul_(0.01)"),
}
LIBRARY = {"lightning_fit": "lightning", "hf_trainer_fit": "transformers", "accelerate_loop": "accelerate"}
WITHOUT_A_BUG_TO_NAME = {  # shown in the README
    "accelerate_loop",
    "copy_a_batch",
    "look_at_memory",
    "roll_back",
    "save_a_slice",
    "send_and_share",
}


def bug(name: str) -> tuple[str, int]:
    """The rule that must report an example, and the number of its line."""
    rule, line = BUGS[name]
    lines = [text.strip() for text in (EXAMPLES / f"{name}.py").read_text().splitlines()]
    return rule, lines.index(line) + 1


def test_every_example_has_its_bug_here() -> None:
    assert {*BUGS, *WITHOUT_A_BUG_TO_NAME} == {path.stem for path in EXAMPLES.glob("*.py")}


def needs(name: str) -> None:
    if find_spec(LIBRARY.get(name, "torch")) is None:
        pytest.skip(f"{LIBRARY[name]} is not installed")


@pytest.mark.parametrize("name", BUGS)
def test_run_names_the_bug(name: str, tmp_path: Path) -> None:
    needs(name)
    both = side_by_side(EXAMPLES / f"{name}.py", tmp_path)
    assert both.record is not None, both.watched.stderr
    assert not both.differences()
    loud = [found for found in both.record["findings"] if found["severity"] != "notice"]
    assert [(found["name"], found["location"]["line"]) for found in loud] == [bug(name)]
    assert not both.record["not_checked"]


@pytest.mark.parametrize("name", LIBRARY)
def test_an_example_for_a_trainer_tells_what_it_found_and_puts_the_best_back(name: str) -> None:
    needs(name)
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "are back" in done.stdout or "BestWeights: " in done.stdout
    rule, line = bug(name) if name in BUGS else ("tensafe: nothing found", 0)
    assert rule in done.stdout + done.stderr
    assert not line or f"{name}.py:{line}:" in done.stderr


@pytest.mark.parametrize("name", BUGS)
def test_check_names_the_bug(name: str, tmp_path: Path) -> None:
    output = tmp_path / "record.json"
    command = [sys.executable, "-m", "tensafe", "check", "--format", "json", "--output", str(output)]
    done = subprocess.run(
        [*command, str(EXAMPLES / f"{name}.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    findings = json.loads(output.read_text())["findings"]
    assert [(found["name"], found["location"]["line"]) for found in findings] == [bug(name)]
