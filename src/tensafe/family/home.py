"""The private folder of one run, into which its child processes write what they found."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tensafe.errors import RecordError
from tensafe.findings import Finding, NotChecked, Record, Told, from_json, to_json
from tensafe.findings.record import finding_from_json, finding_to_json

MOST_NAMED = 4


class Home:
    """Made when the first child starts, removed by the process that made it."""

    def __init__(self, folder: str | None = None) -> None:
        self.folder = folder
        self._made_by: int | None = None

    def ensure(self) -> str:
        """The folder, made if need be; its place is not remembered by `tempfile` for the program."""
        if self.folder is None:
            known = tempfile.tempdir
            try:
                self.folder = tempfile.mkdtemp(prefix="tensafe-")
            finally:
                tempfile.tempdir = known
            self._made_by = os.getpid()
        return self.folder

    def expect(self, token: str) -> None:
        """A child is about to be started that will say its token; one that does not was not watched."""
        Path(self.ensure(), f"{token}.expected").touch()

    def sheet(self, token: str) -> Sheet:
        """What this process, started with this token, writes on."""
        return Sheet(Path(self.ensure(), f"{token}.{os.getpid()}"))

    def gather(self) -> tuple[list[Told], list[NotChecked]]:
        """What all children told so far, and what cannot be known of them."""
        if self.folder is None:
            return [], []
        folder = Path(self.folder)
        sheets = [
            _read(path) for path in sorted(folder.glob("*.begun"), key=lambda path: path.stat().st_mtime_ns)
        ]
        begun = {sheet.token for sheet in sheets}
        absent = [path.stem for path in folder.glob("*.expected") if path.stem not in begun]
        told = [Told(sheet.record, sheet.name, sheet.rank) for sheet in sheets]
        return told, list(_unknown([sheet.name for sheet in sheets if sheet.cut_short], len(absent)))

    def remove(self) -> None:
        if self.folder is not None and self._made_by == os.getpid():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None


class Sheet:
    """One child's file: a line for each new finding as it is made, and the whole record at the end."""

    def __init__(self, path: Path) -> None:
        self._begun = path.with_name(path.name + ".begun")
        self._done = path.with_name(path.name + ".done")

    def note(self, **what: Any) -> None:
        """Append one line; it is there even if the process is killed right afterwards."""
        with contextlib.suppress(OSError), open(self._begun, "a", encoding="utf-8") as file:
            file.write(json.dumps(what) + "\n")

    def found(self, finding: Finding, name: str, rank: int | None) -> None:
        self.note(name=name, rank=rank, watched=True, finding=finding_to_json(finding))

    def finish(self, record: Record, name: str, rank: int | None) -> None:
        """The whole record, beside and renamed; the lines stay for who finds no record."""
        self.note(name=name, rank=rank)
        beside = self._done.with_name(self._done.name + ".tmp")
        with contextlib.suppress(OSError):
            beside.write_text(to_json(record), encoding="utf-8")
            os.replace(beside, self._done)


@dataclass
class _Read:
    """A child's file as its parent finds it."""

    token: str
    name: str = "a child process"
    rank: int | None = None
    watched: bool = False
    done: bool = False
    record: Record = field(default_factory=lambda: Record("run"))

    @property
    def cut_short(self) -> bool:
        return self.watched and not self.done


def _read(path: Path) -> _Read:
    sheet = _Read(path.name.partition(".")[0])
    findings = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            said = json.loads(line)
        except ValueError:  # killed in the middle of a line
            continue
        sheet.name, sheet.rank = said.get("name", sheet.name), said.get("rank", sheet.rank)
        sheet.watched = sheet.watched or bool(said.get("watched"))
        if "finding" in said:
            findings.append(finding_from_json(said["finding"]))
    sheet.record = Record("run", tuple(findings))
    with contextlib.suppress(OSError, RecordError):
        sheet.record = from_json(path.with_suffix(".done").read_text(encoding="utf-8"))
        sheet.done = True
    return sheet


def _unknown(cut_short: list[str], absent: int) -> Iterator[NotChecked]:
    if cut_short:
        names = ", ".join(cut_short[:MOST_NAMED])
        more = f" and {len(cut_short) - MOST_NAMED} more" if len(cut_short) > MOST_NAMED else ""
        why = "killed, replaced by another program, or still running: only what was found before is told"
        yield NotChecked(f"the end of {names}{more}", why)
    if absent:
        what = "a child process" if absent == 1 else f"{absent} child processes"
        yield NotChecked(what, "tensafe could not start there, or it was killed before")
