"""A followed child process: begins watching before the child does anything, and writes home at its end."""

from __future__ import annotations

import atexit
import os
import sys

from tensafe.collector import Collector, Healing
from tensafe.family import names
from tensafe.family.home import Home
from tensafe.family.process import Process
from tensafe.family.settings import Settings
from tensafe.runtime import program as programs


def begin(folder: str, token: str, settings: str, rank: int | None) -> None:
    """In a worker that multiprocessing spawned, while it reads how it was prepared."""
    if rank is not None:
        names.belongs_to(rank)
    process = _process("a spawned process", folder, settings)
    process.begin(token=token)
    atexit.register(process.end, None)


def main() -> None:
    """`FOLDER TOKEN SETTINGS (script.py | -m module) ...`, as a launcher starts one rank."""
    folder, token, settings, *command = sys.argv[1:]
    module = command[0] == "-m"
    target, arguments = (command[1], command[2:]) if module else (command[0], command[1:])
    try:
        program = programs.read(target, arguments, module=module)
        process = _process(program.name, folder, settings)
        names.rank_from_environment()
        process.begin(token=token)
    except Exception:
        os.execv(sys.executable, [sys.executable, *(["-u"] if _unbuffered() else []), *command])
    status = programs.execute(program, process.ended_by)
    process.end(status)
    sys.exit(status)


def _process(program: str, folder: str, text: str) -> Process:
    settings = Settings.from_text(text)
    collector = (Healing if settings.heal else Collector)(settings.rules)
    return Process(program, collector, settings, Home(folder), None)


def _unbuffered() -> bool:
    return bool(getattr(sys.stdout, "write_through", False))
