"""`%load_ext tensafe` and the cell magic, in an IPython shell of its own."""

from __future__ import annotations

import subprocess
import sys

SHELL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor", colors_force=True)
for cell in {cells!r}:
    print("=*=")
    shell.run_cell(cell)
"""


def executed(*cells: str) -> list[str]:
    """What each cell printed."""
    command = [sys.executable, "-u", "-c", SHELL.format(cells=["import torch\n%load_ext tensafe", *cells])]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True, timeout=120
    )
    return done.stdout.split("=*=\n")[2:]


def test_a_cell_is_watched_and_its_findings_are_shown() -> None:
    first, second = executed(
        "%%tensafe\nx = torch.ones(3)\nx[x > 0].zero_()\nprint('hello')\nx.sum()", "x + 1"
    )
    assert first.startswith("hello\n")
    assert "tensor(3.)" in first
    assert "error[TS106] lost-write" in first
    assert "2 | x[x > 0].zero_()" in first
    assert "tensor([2., 2., 2.])" in second


def test_rules_are_chosen_and_mistakes_told() -> None:
    lose = "x = torch.ones(3)\nx[x > 0].zero_()"
    ignored, chosen, wrong, missing, unclosed = executed(
        f"%%tensafe --ignore TS106\n{lose}",
        f"%%tensafe --select=lost-write\n{lose}",
        f"%%tensafe --what\n{lose}",
        f"%%tensafe --select\n{lose}",
        f"%%tensafe --select 'TS1\n{lose}",
    )
    assert ignored.rstrip().endswith("tensafe: nothing found")
    assert "TS106" in chosen
    assert "knows no '--what'" in wrong
    assert "names of rules are missing" in missing
    assert unclosed == "UsageError: %%tensafe --select 'TS1: No closing quotation\n"


def test_an_error_in_the_cell_is_shown_as_ever() -> None:
    (shown,) = executed("%%tensafe\nraise KeyError('here')")
    assert "KeyError" in shown
    assert shown.endswith("tensafe: nothing found\nUsageError: the cell ended with the KeyError above\n")


def test_a_cell_that_failed_has_failed() -> None:
    """`Run all` and `nbconvert --execute` stop there."""
    shown = executed(
        "cell = '%%tensafe\\n1 / 0'", "print(get_ipython().run_cell(cell).success)", "print(get_ipython())"
    )
    assert shown[1].endswith("False\n")
