"""The runner against plain Python: same argv, output, exit status, traceback; whatever the program does."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAMS = {
    "argv and names": """
        import sys, os
        print(sys.argv, __name__, __file__, __spec__, __package__, __doc__, sorted(globals()))
        print(sys.path[0] == os.path.dirname(os.path.abspath(__file__)), sys.modules["__main__"].__file__)
        print(type(__loader__).__name__, __builtins__)
        """,
    "exit status": "import sys; print('bye'); sys.exit(7)",
    "exit message": "import sys; sys.exit('no data')",
    "exit none": "raise SystemExit",
    "exit true": "raise SystemExit(True)",
    "uncaught": "def f():\n    return 1 / 0\nprint('before')\nf()",
    "chained": "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('no a') from e",
    "syntax error": "print('x'\nprint(",
    "own excepthook": "import sys\nsys.excepthook = lambda *a: print('mine', a[0].__name__)\n1 / 0",
    "failing excepthook": "import sys\nsys.excepthook = lambda *a: None\nraise ValueError('quiet')",
    "atexit": "import atexit\natexit.register(print, 'last')\nprint('first')",
    "threads": "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()\nprint('main')",
    "executor": "from concurrent.futures import ThreadPoolExecutor\n"
    "pool = ThreadPoolExecutor(1)\nprint(pool.submit(lambda: 5).result())",
    "daemon thread": "import threading, time\n"
    "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nprint('main')",
    "pickle of a main class": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))))",
    "fork": "import os\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\n"
    "print('parent' if pid else 'child', flush=True)",
    "subprocess": "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'print(5)'], "
    "capture_output=True, text=True).stdout)",
    "spawn": """
        import multiprocessing
        def work(x): return x * x
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(work, [1, 2, 3]))
        """,
    "stdin": "print(input())",
    "non-ascii": "print('größer', '日本')\nraise RuntimeError('schön')",
}


def _both(
    command: list[str], folder: Path, extra: tuple[str, ...] = ()
) -> tuple[subprocess.CompletedProcess[str], ...]:
    plain = _python(command, folder)
    watched = _python(["-m", "tensafe", "run", *extra, *command], folder)
    return plain, watched


def _python(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=folder, input="a line\n", capture_output=True, text=True, timeout=120
    )


def _without_report(stderr: str) -> str:
    """Our own lines begin at `not checked: ` or `tensafe: `."""
    own = ("not checked: ", "tensafe: ")
    return "".join(line for line in stderr.splitlines(keepends=True) if not line.startswith(own))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_script_behaves_as_under_plain_python(name: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAMS[name]))
    plain, watched = _both(["program.py", "--strict", "-x", "a b"], tmp_path)
    assert watched.stdout == plain.stdout
    assert watched.returncode == plain.returncode
    assert _without_report(watched.stderr) == plain.stderr


def test_a_module_behaves_as_under_plain_python(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    text = (
        "import sys\nfrom . import other\nprint(sys.argv, __name__, __spec__.name, sys.path[0])\nother.f()\n"
    )
    (tmp_path / "package" / "__main__.py").write_text(text)
    (tmp_path / "package" / "other.py").write_text("def f():\n    raise ValueError('in other')\n")
    plain, watched = _both(["-m", "package", "--output", "x"], tmp_path)
    assert watched.stdout == plain.stdout
    assert watched.returncode == plain.returncode == 1
    assert _without_report(watched.stderr) == plain.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["nowhere.py"], "no such script: nowhere.py"),
        (["-m", "no_such_module_here"], "no module named no_such_module_here"),
        (["folder"], "folder is a directory without a __main__.py"),
        (["data.bin"], "data.bin is not a Python script: it holds NUL bytes"),
        (["--output", "missing/folder/out.json", "fine.py"], "missing/folder"),
    ],
)
def test_what_cannot_be_run_is_told_in_one_line(command: list[str], words: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "data.bin").write_bytes(b"\x00\x01")
    (tmp_path / "fine.py").write_text("print('must not run')")
    done = _python(["-m", "tensafe", "run", *command], tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.bin", "fine.py", "folder"]


def test_ctrl_c_ends_by_the_signal_as_plain_python_does(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import os, signal\nprint('go', flush=True)\nos.kill(os.getpid(), signal.SIGINT)"
    )
    plain, watched = _both(["program.py"], tmp_path)
    assert watched.returncode == plain.returncode == -signal.SIGINT
    assert watched.stdout == plain.stdout == "go\n"
    assert _without_report(watched.stderr) == plain.stderr


def test_a_traceback_through_torch_shows_no_frame_of_ours(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import torch\nx = torch.ones(2)\nx.add_('no number')\n")
    plain, watched = _both(["program.py"], tmp_path)
    assert _without_report(watched.stderr) == plain.stderr


def test_the_shown_warning_is_the_programs_own_line(tmp_path: Path) -> None:
    text = "import torch\nfor _ in range(3):\n    torch.tensor(torch.ones(2))\ntorch.tensor(torch.ones(2))\n"
    (tmp_path / "program.py").write_text(text)
    plain, watched = _both(["program.py"], tmp_path)
    assert plain.stderr.count("UserWarning") == 2
    assert _without_report(watched.stderr) == plain.stderr


def test_torch_is_imported_by_the_program_not_before_it(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys\nprint('torch' in sys.modules, 'numpy' in sys.modules)")
    _, watched = _both(["program.py"], tmp_path)
    assert watched.stdout == "False False\n"


def test_strict_turns_findings_into_an_exit_status(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import torch\nx = torch.ones(3)\nx[x > 0].zero_()\n")
    assert _python(["-m", "tensafe", "run", "program.py"], tmp_path).returncode == 0
    assert _python(["-m", "tensafe", "run", "--strict", "program.py"], tmp_path).returncode == 1
