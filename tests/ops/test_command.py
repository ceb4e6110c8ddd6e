"""`tensafe ops`: what it prints, in which order, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tensafe.cli.ops import carry_out
from tensafe.errors import TensafeError
from tensafe.ops._pages import page
from tensafe.ops.stored import stored

PAGE = Path(__file__).parent.parent.parent / "docs" / "ops" / "README.md"


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert carry_out(argv) == 0
    return capsys.readouterr().out


def test_reshape_is_told_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "reshape")
    assert text.splitlines()[0] == "reshape(x, shape)"
    for words in (
        "result    a view when the strides allow the new shape, else a copy",
        "writes    nothing",
        "spelled   x.reshape, torch.reshape",
        "to be sure of a copy: x.clone(); of a view: x.view(), which raises",
        "y = x.reshape(4, 3)  # a view of x",
    ):
        assert words in text


def test_an_in_place_operation_names_its_twin(capsys: pytest.CaptureFixture[str]) -> None:
    assert "in place  relu_" in told(capsys, "F.relu")
    assert "writing nothing  mul" in told(capsys, "*=")


def test_what_is_saved_is_told_by_whose_gradient_needs_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert "keeps x for the gradient of other; other for the gradient of x" in told(capsys, "mul")


def test_overloads_that_differ_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "max")
    assert "overload  max.dim" in text
    assert "keeps indices" in text


def test_another_operation_of_the_same_name_is_mentioned(capsys: pytest.CaptureFixture[str]) -> None:
    assert "tensafe ops 'F.unfold'" in told(capsys, "unfold")


@pytest.mark.parametrize(
    ("option", "inside", "outside"),
    [
        ("--views", "transpose", "reshape"),
        ("--either", "reshape", "transpose"),
        ("--in-place", "add_", "add"),
        ("--cuts", "argmax", "add"),
    ],
)
def test_a_list_holds_its_kind(
    option: str, inside: str, outside: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [line.split("  ")[0] for line in told(capsys, option).splitlines()]
    assert inside in names
    assert outside not in names


def test_two_options_list_what_is_in_either(capsys: pytest.CaptureFixture[str]) -> None:
    names = {line.split("  ")[0] for line in told(capsys, "--views", "--in-place").splitlines()}
    assert {"transpose", "add_"} <= names
    assert not {"add", "exp"} & names


@pytest.mark.parametrize("argv", [("-x",), ("--", "-x"), ("-x", "--format", "text"), ("--format=text", "-y")])
def test_a_minus_is_an_operation_and_no_option(
    argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(capsys, *argv).startswith("neg(x)")


def test_an_assignment_with_minus_is_no_option_either(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "-=").startswith("sub_(x")


def test_an_option_that_does_not_exist_is_still_told() -> None:
    with pytest.raises(TensafeError, match="unrecognized arguments: --nonsense"):
        carry_out(["--nonsense"])


def test_several_operations_are_told_in_turn_and_in_all(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, "x.detach().clone()").splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["x.detach().clone()", ".detach()", ".clone()", "in"]
    assert "a copy: memory of its own; writes nothing; cut" in lines[3]


def test_several_operations_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(told(capsys, "x.data[0] = 1", "--format", "json"))
    assert data["in_all"].startswith("writes x, uncounted")
    assert [one["row"]["name"] for one in data["steps"]] == ["x.data", "x[i] = v"]


def test_json_is_the_row(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = json.loads(told(capsys, "reshape", "--format", "json"))
    assert row["name"] == "reshape"
    assert row["groups"][0]["gives"] == "either"


def test_output_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "views.txt"
    assert told(capsys, "--views", "--output", str(target)) == ""
    assert "transpose" in target.read_text()


def test_a_file_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(TensafeError, match="cannot write"):
        carry_out(["reshape", "--output", str(tmp_path)])


@pytest.mark.parametrize("name", ["rehsape", "", "\x1b[31mred", "no such thing"])
def test_an_unknown_name_is_an_error_of_one_line(name: str) -> None:
    with pytest.raises(TensafeError) as caught:
        carry_out([name])
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(stored()), "run `python -m tensafe.ops._pages`"


def test_the_page_has_every_table_row_whole() -> None:
    widths = set()
    for line in page(stored()).splitlines():
        if line.startswith("|"):
            widths.add(line.replace("\\|", "").count("|"))
    assert widths == {3, 5}
