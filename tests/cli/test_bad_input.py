"""What cannot be done: one clear line, status 2, nothing half written; and the help that a newcomer sees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.conftest import Answer
from tensafe import __version__
from tensafe.findings import Finding, Record, Site, to_json

Call = Callable[..., Answer]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("frobnicate", "no command is called 'frobnicate': there are run, check"),
        ("chek src", "did you mean check?"),
        ("train.py", "did you mean `tensafe run train.py`?"),
        ("run", "say which script or `-m module` to run; see `tensafe run --help`"),
        ("run -m", "say which module to run"),
        ("run --frob s.py", "unrecognized arguments: --frob; see `tensafe run --help`"),
        ("run --format pdf s.py", "invalid choice: 'pdf'"),
        ("run --format", "expected one argument"),
        ("run --select lost-rite s.py", "no rule is called 'lost-rite': did you mean lost-write?"),
        ("run --select= s.py", "no rule is called ''"),
        ("run missing.py", "missing.py"),
        ("run .", "."),
        ("run -m no_such_module_here", "no_such_module_here"),
        ("run binary.py", "binary.py"),
        ("check --jobs 0 .", "'0' is not a positive number"),
        ("check --ignore TS9x .", "no rule is called 'TS9x'"),
        ("check --output missing/o .", "cannot write "),
        ("check missing", "missing"),
        ("check empty", "empty"),
        ("check - a.py", "standard input is checked alone: give `-` and no other path"),
        ("check --select TS1 --ignore TS .", "--select and --ignore leave no rule"),
        ("run --select TS1 --ignore TS binary.py", "--select and --ignore leave no rule"),
        ("check --output x.txt x.txt", "x.txt: it is one of the files to check"),
        ("check --output sources/../sources/a.py sources", "a.py: it is one of the files to check"),
        ("run --output binary.py binary.py", "binary.py: it is the program itself"),
        ("report --output text.json text.json", "text.json: not a tensafe record"),
        ("explain", "the following arguments are required: NAME"),
        ("explain lost-rite", "did you mean lost-write?"),
        ("report missing.json", "cannot read missing.json: No such file or directory"),
        ("report empty", "cannot read empty: Is a directory"),
        ("report binary.py", "cannot read binary.py: it is not UTF-8 text"),
        ("report text.json", "text.json: not a tensafe record: invalid JSON"),
    ],
)
def test_one_line_and_status_2(tensafe: Call, tmp_path: Path, command: str, words: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "binary.py").write_bytes(b"\x00\xff\x93NUMPY" * 9)
    (tmp_path / "text.json").write_text("x = 1\n")
    (tmp_path / "x.txt").write_text("x = 1\n")
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "a.py").write_text("x = 1\n")
    before = contents(tmp_path)
    answer = tensafe(*command.split())
    assert answer.status == 2, answer
    assert answer.out == ""
    assert answer.err.startswith("tensafe: ")
    assert answer.err.count("\n") == 1, answer.err
    assert words in answer.err
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("check --output pyproject.toml sources", "pyproject.toml: it is the settings of the project"),
        ("check --output my.toml --config my.toml sources", "my.toml: it is the settings of the project"),
        ("check --baseline my.toml --write-baseline --config my.toml sources", "my.toml: it is the settings"),
        ("check --isolated --output pyproject.toml sources", "it is there, and holds a project's settings"),
        ("check --isolated --output link.json sources", "it is there, and holds a project's settings"),
        ("check --output b.json --baseline b.json sources", "b.json: it is the baseline"),
        ("check --output other.py sources", "other.py: it is there, and holds source code"),
        ("check --baseline other.py --write-baseline sources", "it is there, and holds source code"),
        ("run --output pyproject.toml sources/a.py", "it is there, and holds a project's settings"),
        ("run --output sources/a.py -m sources.a", "it is there, and holds source code"),
        ("report --output pyproject.toml b.json", "it is there, and holds a project's settings"),
        ("report --output ./b.json b.json", "b.json: it is the record to show"),
        ("ops --output pyproject.toml", "it is there, and holds a project's settings"),
        ("tour --list --output other.py", "it is there, and holds source code"),
        ("inspect --output pyproject.toml x.npy", "it is there, and holds a project's settings"),
        ("inspect --output x.npy x.npy", "x.npy: it is the checkpoint to show"),
        ("inspect --output new --compact ./new x.npy", "new: the file of --compact goes there"),
    ],
)
def test_no_output_goes_over_what_the_user_wrote(
    tensafe: Call, tmp_path: Path, command: str, words: str
) -> None:
    (tmp_path / "sources").mkdir()
    for name in ("sources/a.py", "other.py"):
        (tmp_path / name).write_text("x = 1\n")
    for name in ("pyproject.toml", "my.toml"):
        (tmp_path / name).write_text("[tool.tensafe]\n")
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY")
    (tmp_path / "link.json").symlink_to("pyproject.toml")
    (tmp_path / "b.json").write_text(to_json(Record("check")))
    before = contents(tmp_path)
    answer = tensafe(*command.split())
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1), answer
    assert words in answer.err
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "command",
    [
        "run --format html train.py",
        "check --format html train.py",
        "report --format html b.json",
        "inspect --format html x.npy",
        "tour --html",
    ],
)
def test_no_page_runs_over_a_terminal(
    tensafe: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    (tmp_path / "train.py").write_text("open('ran', 'w')\n")
    (tmp_path / "b.json").write_text(to_json(Record("check")))
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY")
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(getattr(sys, name), "isatty", lambda: True)
    answer = tensafe(*command.split())
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1), answer
    assert "give --output FILE.html" in answer.err
    assert not (tmp_path / "ran").exists()


def contents(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def test_an_empty_path_is_not_this_folder(tensafe: Call) -> None:
    assert tensafe("check", "") == Answer(2, "", "tensafe: an empty path: give files or folders\n")


@pytest.mark.parametrize("words", ["", "--help", "-h", "help"])
def test_help_for_a_newcomer(tensafe: Call, words: str) -> None:
    answer = tensafe(*words.split())
    assert (answer.status, answer.err) == (0, "")
    assert "tensafe run train.py" in answer.out
    assert len(answer.out.splitlines()) < 25


def test_the_version(tensafe: Call) -> None:
    assert tensafe("--version") == Answer(0, f"tensafe {__version__}\n", "")


@pytest.mark.parametrize("command", ["run", "check", "explain", "rules", "report"])
def test_every_command_has_help(tensafe: Call, command: str) -> None:
    answer = tensafe(command, "--help")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.startswith(f"usage: tensafe {command} ")
    assert command in tensafe().out


def test_rules_and_explain(tensafe: Call) -> None:
    listed = tensafe("rules").out
    for line in listed.splitlines():
        code, name = line.split()[:2]
        page = tensafe("explain", name)
        assert page.out.startswith(f"# {name} ({code})\n")
        assert page.out == tensafe("explain", code.lower()).out
    assert [row["code"] for row in json.loads(tensafe("rules", "--format", "json").out)] == [
        line.split()[0] for line in listed.splitlines()
    ]


def command(
    *arguments: str, cwd: Path, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    source = Path(__file__).parent.parent.parent / "src"
    environment = {**os.environ, "PYTHONPATH": str(source)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment,
        text=True,
        stdout=stdout,
        stderr=stderr,
        timeout=100,
        check=False,
    )


def test_as_a_module_in_its_own_process(tmp_path: Path) -> None:
    done = command("-m", "tensafe", "explain", "lost-rite", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "tensafe: no rule is called 'lost-rite': did you mean lost-write?\n"


def test_starting_brings_neither_torch_nor_rich(tmp_path: Path) -> None:
    code = (
        "import sys; from tensafe.__main__ import main; main(['explain', 'lost-write'])\n"
        "print({'torch', 'numpy', 'rich'} & set(sys.modules), file=sys.stderr)"
    )
    assert command("-c", code, cwd=tmp_path).stderr == "set()\n"


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = command("-m", "tensafe", "explain", "lost-write", cwd=tmp_path, stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.fixture
def full() -> Iterator[int]:
    """A device on which there is never room."""
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    device = os.open("/dev/full", os.O_WRONLY)
    yield device
    os.close(device)


LOST = "import torch\nx = torch.zeros(3)\nx[[0, 1]].zero_()\n"


@pytest.mark.parametrize("colour", ["", "1"])
@pytest.mark.parametrize(
    "words",
    ["check a.py", "check --format json a.py", "check --diff a.py", "report a.json", "rules", "explain TS106",
     "--help", "--version", "check --help"],
)  # fmt: skip
def test_no_room_is_one_line(
    tmp_path: Path, full: int, words: str, colour: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", colour)
    (tmp_path / "a.py").write_text(LOST)
    record = Record("check", (Finding("TS106", "lost", Site("a.py", 3)),))
    (tmp_path / "a.json").write_text(to_json(record))
    done = command("-m", "tensafe", *words.split(), cwd=tmp_path, stdout=full)
    assert done.stderr == "tensafe: cannot write to standard output: No space left on device\n"
    assert done.returncode == 2


def test_no_room_for_the_report_costs_a_program_nothing(tmp_path: Path, full: int) -> None:
    pytest.importorskip("torch")
    (tmp_path / "a.py").write_text(f"{LOST}print('here')\nraise SystemExit(7)\n")
    done = command("-m", "tensafe", "run", "a.py", cwd=tmp_path, stderr=full)
    assert (done.returncode, done.stdout) == (7, "here\n")
    done = command("-m", "tensafe", "run", "--output", "/dev/full", "a.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, "here\n")
    assert done.stderr == "tensafe: cannot write /dev/full: No space left on device\n"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize(("words", "status"), [(["check", "a.py"], 1), (["nonsense"], 2), (["rules"], 0)])
def test_a_closed_stream_costs_only_what_it_would_show(
    tmp_path: Path, stream: str, words: list[str], status: int
) -> None:
    (tmp_path / "a.py").write_text(LOST)
    code = f"import sys; sys.{stream} = None; from tensafe.__main__ import main; sys.exit(main({words}))"
    done = command("-c", code, cwd=tmp_path)
    assert done.returncode == status
    assert "Traceback" not in done.stderr


def test_a_hostile_name_stays_on_one_line(tensafe: Call) -> None:
    answer = tensafe("check", "no\n::error::\x1b[31m")
    assert answer.err == "tensafe: no such file or folder: no\\n::error::\\x1b[31m\n"
