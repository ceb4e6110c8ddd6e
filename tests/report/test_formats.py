"""JSON, GitHub annotations and SARIF read back; files written whole or not at all."""

from __future__ import annotations

import io
import json
import os
import stat
from pathlib import Path

import pytest

from tensafe.errors import TensafeError
from tensafe.findings import Because, Finding, NotChecked, Record, Severity, Site, from_json
from tensafe.report import formats, terminal, write
from tensafe.report.sarif import RuleText
from tensafe.report.terminal import progress, wants_colour, width_of, write_lines, write_text
from tensafe.report.text import View

ROOT = "/project"
AT = Site("/project/src/a b,c.py", 3, 5, 3, 9, "Net.forward")
FAR = Site("/elsewhere/b.py", 1, 1, 2, 4)
FINDING = Finding(
    "TS201",
    "100% wrong:\nreally",
    AT,
    (Because(FAR, "saved here", "as output"),),
    "changed",
    "saved-tensor-modified",
    Severity.ERROR,
    "write a copy",
    count=2,
)
NOTICE = Finding("TS302", "a copy", FAR, name="hidden-copy", severity=Severity.NOTICE)
RECORD = Record("run", (FINDING, NOTICE), (NotChecked("torch.compile", "opaque"),), {"seconds": 1.5}, "0.1.0")
RULES = [RuleText("TS201", "saved-tensor-modified", "A headline.", "# A page", Severity.ERROR)]


def rendered(format: str, notices: bool = False) -> str:
    return formats.renderer(format, RULES)(RECORD, View(root=ROOT, notices=notices))


def test_json_is_the_record() -> None:
    assert from_json(rendered("json")) == RECORD


def test_github_annotations() -> None:
    assert rendered("github").splitlines() == [
        "::error file=src/a b%2Cc.py,line=3,endLine=3,title=TS201 saved-tensor-modified,col=5,endColumn=9"
        "::100%25 wrong:%0Areally%0A/elsewhere/b.py:1: saved here%0Ahelp: write a copy",
        "::notice::tensafe did not check torch.compile: opaque",
    ]
    assert "::notice file=/elsewhere/b.py,line=1,endLine=2,title=TS302 hidden-copy::a copy" in rendered(
        "github", True
    )


def test_sarif() -> None:
    log = json.loads(rendered("sarif"))
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    assert run["tool"]["driver"]["version"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["TS201"]
    assert run["originalUriBaseIds"]["ROOT"]["uri"] == "file:///project/"
    (result,) = run["results"]
    assert (result["ruleId"], result["ruleIndex"], result["level"], result["occurrenceCount"]) == (
        "TS201",
        0,
        "error",
        2,
    )
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "src/a%20b%2Cc.py", "uriBaseId": "ROOT"}
    assert place["region"] == {"startLine": 3, "endLine": 3, "startColumn": 5, "endColumn": 9}
    (related,) = result["relatedLocations"]
    assert related["physicalLocation"]["artifactLocation"] == {"uri": "file:///elsewhere/b.py"}
    assert related["message"]["text"] == "saved here: as output"
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"].endswith(
        "torch.compile: opaque"
    )


def test_sarif_with_notices_and_unknown_rules() -> None:
    results = json.loads(rendered("sarif", notices=True))["runs"][0]["results"]
    assert [(result["level"], "ruleIndex" in result) for result in results] == [
        ("error", True),
        ("note", False),
    ]


def test_a_clean_record_in_a_file_says_so() -> None:
    assert (
        formats.renderer("text")(Record("check", summary={"files": 2}), View())
        == "tensafe: nothing found in 2 files\n"
    )


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write.write_whole(path, b"one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_umask()
    path.chmod(0o640)
    write.write_whole(path, b"two")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"two", 0o640)
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("one")
    (tmp_path / "link").symlink_to("real")
    write.write_whole(tmp_path / "link", b"two")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "two"


def test_a_device_is_written_not_replaced() -> None:
    write.refuse_unwritable(Path(os.devnull))
    write.write_whole(Path(os.devnull), b"gone")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("name", ["missing/run.json", ".", "file/run.json", "x" * 300, "a\0b"])
def test_what_cannot_be_written_is_known_before(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("one")
    for attempt in (write.refuse_unwritable, lambda path: write.write_whole(path, b"x")):
        with pytest.raises(TensafeError, match="cannot write ") as caught:
            attempt(tmp_path / name)
        assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(TensafeError, match="No space left"):
        write.write_whole(path, b"new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


class Terminal(io.StringIO):
    """A stream that says it is watched."""

    def isatty(self) -> bool:
        return True


def test_colour_goes_to_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    line = (("error", "error"), (": [bold]not markup[/bold]", ""))
    watched, pipe = Terminal(), io.StringIO()
    write_lines([line], watched)
    write_lines([line], pipe)
    assert pipe.getvalue() == "error: [bold]not markup[/bold]\n"
    assert "\x1b[" in watched.getvalue()
    assert ": [bold]not markup[/bold]" in watched.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour(Terminal())
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert wants_colour(io.StringIO())


def test_a_coloured_line_is_not_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    write_lines([(("x" * 500, ""),)], stream)
    assert stream.getvalue() == "x" * 500 + "\n"


def test_a_stream_that_cannot_encode_gets_escapes() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", newline="")
    write_text("日é\n", stream)
    assert raw.getvalue() == b"\\u65e5\\xe9\n"


def test_a_bar_comes_late_on_a_terminal_and_never_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with progress("checking", io.StringIO()) as none:
        assert none is None
    for seconds, drawn in ((100.0, False), (-1.0, True)):
        monkeypatch.setattr(terminal, "SECONDS_BEFORE_A_BAR", seconds)
        stream = Terminal()
        with progress("checking", stream) as show:
            assert show is not None
            show(1, 2)
        assert ("checking" in stream.getvalue()) is drawn


def test_a_closed_stream_is_no_terminal() -> None:
    stream = io.StringIO()
    stream.close()
    assert width_of(stream) > 0


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
