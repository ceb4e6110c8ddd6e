"""Inspects files in a process of little memory that stops at any import, execution or write from a file.

python guarded.py SOURCE SOUND_FOLDER DAMAGED_FOLDER OUT_FOLDER REPORT.json [--read-only]
"""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import resource
import sys
import time
import traceback
from pathlib import Path
from typing import Any

MEMORY = 300 << 20
FORBIDDEN = (
    "import",
    "exec",
    "compile",
    "os.",
    "subprocess.",
    "socket.",
    "pickle.",
    "ctypes.",
    "shutil.",
    "webbrowser.",
)
ALLOWED = ("os.scandir", "os.listdir")
WHILE_WRITING = ("os.rename", "os.remove", "os.chmod")
FORMATS = ("text", "json", "html")
state: dict[str, Any] = {"armed": False, "writing": False, "seen": []}


def watch(event: str, given: tuple[Any, ...]) -> None:
    if not state["armed"] or event in ALLOWED or (state["writing"] and event in WHILE_WRITING):
        return
    opens_to_write = event == "open" and given[1] is not None and set(str(given[1])) & set("wax+")
    if event.startswith(FORBIDDEN) or (opens_to_write and not state["writing"]):
        state["seen"].append(f"{event} {given!r:.200}")


def peak() -> int:
    """The most bytes that this very process held; `ru_maxrss` begins with what its parent held."""
    (line,) = [row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def inspect(arguments: list[str]) -> dict[str, Any]:
    from tensafe.__main__ import main

    out, errors = io.StringIO(), io.StringIO()
    begun, seen = time.perf_counter(), len(state["seen"])
    state["armed"] = True
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            status: int | str = main(["inspect", *arguments])
    except BaseException:
        status = traceback.format_exc()
    finally:
        state["armed"] = False
    return {
        "arguments": arguments,
        "status": status,
        "seconds": time.perf_counter() - begun,
        "errors": errors.getvalue()[:2000],
        "shown": len(out.getvalue()),
        "events": state["seen"][seen:],
        "peak": peak(),
    }


def main() -> None:
    source, sound, damaged, out, report, *options = sys.argv[1:]
    sys.path.insert(0, source)
    sys.addaudithook(watch)
    for path in sorted(Path(sound).iterdir()):  # loads our own modules; nothing of this is judged
        for form in FORMATS:
            inspect([str(path), "--format", form])
        inspect([str(path), "--duplicates", "--compact", str(Path(out) / path.name)])
    inspect([str(Path(out) / "absent.pt")])
    for codec in ("unicode_escape", "raw_unicode_escape", "latin-1", "utf-8"):
        codecs.lookup(codec)
    state["seen"].clear()
    baseline = peak()
    virtual = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (virtual + MEMORY, virtual + MEMORY))
    results = []
    for index, path in enumerate(sorted(Path(damaged).iterdir())):
        results.append(inspect([str(path), "--format", FORMATS[index % 3]]))
        if options:
            continue
        state["writing"] = True
        results.append(inspect([str(path), "--duplicates", "--compact", str(Path(out) / path.name)]))
        state["writing"] = False
    Path(report).write_text(json.dumps({"baseline": baseline, "results": results}))


main()
