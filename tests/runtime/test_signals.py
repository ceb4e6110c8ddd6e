"""A program that a signal ends dies as it would have, and its record is there."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runtime.children import LOSE, both, same
from tensafe.family.keeping import AT_ONCE, UNFINISHED, Keeping
from tensafe.findings import Record

ENDS = {
    "SIGTERM": "os.kill(os.getpid(), signal.SIGTERM)\n    time.sleep(60)",
    "SIGHUP": "os.kill(os.getpid(), signal.SIGHUP)\n    time.sleep(60)",
    "SIGINT": "os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(60)",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "SIGSEGV": "os.kill(os.getpid(), signal.SIGSEGV)",
    "abort": "os.abort()",
    "os._exit": "os._exit(5)",
    "os._exit in a thread": "threading.Thread(target=os._exit, args=(6,)).start()\n    time.sleep(60)",
    "its own handler": "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
    "    os.kill(os.getpid(), signal.SIGTERM)",
    "default again": "print(signal.getsignal(signal.SIGTERM))\n"
    "    print(signal.signal(signal.SIGTERM, signal.SIG_IGN))\n"
    "    print(signal.signal(signal.SIGTERM, signal.SIG_DFL), signal.getsignal(signal.SIGTERM), flush=True)\n"
    "    os.kill(os.getpid(), signal.SIGTERM)\n    time.sleep(60)",
    "threads that raise and exit": "for target in (lambda: 1 / 0, sys.exit):\n"
    "        thread = threading.Thread(target=target)\n        thread.start()\n        thread.join()",
}
AT_ITS_END = {"SIGKILL", "SIGSEGV", "abort"}
"""Nobody can say a word there: the record is the one written at the last finding."""


@pytest.mark.parametrize("how", ENDS)
def test_the_record_of_a_program_that_ends_so(how: str, tmp_path: Path) -> None:
    program = f"import signal, threading\nlose()\nprint('lost', flush=True)\nif True:\n    {ENDS[how]}\n"
    runs = both(program, tmp_path)
    assert same(runs)
    assert [finding.code for finding in runs.loud] == ["TS106"]
    assert (UNFINISHED in runs.record.not_checked) == (how in AT_ITS_END)
    if how not in AT_ITS_END:
        status = runs.plain.returncode
        assert runs.record.summary["exit_status"] == (128 - status if status < 0 else status)


def test_the_report_of_a_terminated_program_goes_to_standard_error(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        LOSE + "lose()\nprint('ready', flush=True)\nchild = os.fork()\nif child:\n    os.wait()\n"
        "lose()\nprint('child', flush=True)\nwhile True:\n    time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "tensafe", "run", "program.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["ready\n", "child\n"]
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == -signal.SIGTERM
    subprocess.run(["kill", "-KILL", "--", f"-{process.pid}"], check=False, capture_output=True)
    assert process.stderr is not None
    report = process.stderr.read()
    assert "(seen 2 times by main process, forked process 1)" in report
    assert "not checked: the end of forked process 1: killed" in report


def test_the_first_findings_are_written_as_they_come_and_later_ones_now_and_then() -> None:
    kept: list[Record] = []
    keeping = Keeping(lambda: Record("run"), kept.append)
    for _ in range(AT_ONCE + 50):
        keeping.write()
    assert len(kept) == AT_ONCE
    assert kept[0].not_checked == (UNFINISHED,)


def test_a_record_that_takes_long_to_write_is_written_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    now, written = [0.0], []

    def keep(record: Record) -> None:
        now[0] += 0.3
        written.append(now[0])

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    keeping = Keeping(lambda: Record("run"), keep)
    for _ in range(AT_ONCE):
        keeping.write()
        now[0] += 0.1
    assert len(written) < 8
    assert written[-1] > 6
