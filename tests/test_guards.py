"""`tensafe.watching()`: the engine as a context manager."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

import tensafe


@pytest.fixture(autouse=True)
def nothing_was_compiled() -> None:
    """What other tests compiled in this process would be told as not checked."""
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is not None:
        utils.counters.clear()


def spoil() -> None:
    weight = torch.ones(3, requires_grad=True)
    gate = weight.tanh()
    gate.data.mul_(2)
    gate.sum().backward()


def lose() -> None:
    x = torch.ones(3)
    x[x > 0].zero_()


def lose_and_raise() -> None:
    lose()
    raise KeyError


def codes(seen: tensafe.guards.Watching) -> list[str]:  # type: ignore[name-defined]
    return [finding.code for finding in seen.findings if finding.severity.value != "notice"]


def test_findings_afterwards() -> None:
    with tensafe.watching() as seen:
        spoil()
    (finding,) = (finding for finding in seen.findings if finding.code == "TS202")
    assert finding.name == "silent-gradient-corruption"
    assert finding.severity == "error"
    assert finding.location.path == __file__
    assert finding.location.line == spoil.__code__.co_firstlineno + 3
    assert "TS202" in repr(seen)
    assert "gate.data.mul_(2)" in str(seen)
    for shown in (seen._repr_html_(), finding._repr_html_() or ""):
        assert "silent-gradient-corruption" in shown
        assert "<mark>gate.data.mul_(2)</mark>" in shown
        assert "bytes 0 to 12" in shown
        assert "<script" not in shown
    assert json.loads(seen.to_json())["findings"][0]["code"]
    assert "add_" not in vars(torch.Tensor)


def test_a_clean_stretch_says_so() -> None:
    with tensafe.watching() as seen:
        torch.ones(2).add_(1)
    assert seen.findings == ()
    assert repr(seen) == "tensafe: nothing found"


def test_select_and_ignore() -> None:
    with tensafe.watching(select="TS1") as seen, tensafe.watching(ignore=["lost-write"]) as inner:
        spoil()
        lose()
    assert codes(seen) == ["TS106"]
    assert "TS106" not in codes(inner)
    assert "TS202" in codes(inner)
    with pytest.raises(tensafe.TensafeError):
        tensafe.watching(select="no-such-rule")


def test_nested_ones_share_the_engine_and_both_are_told() -> None:
    with tensafe.watching() as outer:
        spoil()
        with tensafe.watching() as inner:
            lose()
        assert "add_" in vars(torch.Tensor)
    assert codes(outer) == ["TS202", "TS106"]
    assert codes(inner) == ["TS106"]
    assert [item.what for item in inner.not_checked] == ["what only the end of a run shows"]
    assert outer.not_checked == ()


def test_an_outer_one_that_ends_first() -> None:
    outer, inner = tensafe.watching(), tensafe.watching()
    outer.__enter__()
    inner.__enter__()
    lose()
    outer.__exit__(None, None, None)
    lose()
    inner.__exit__(None, None, None)
    assert codes(inner) == ["TS106"]
    assert [item.what for item in inner.not_checked] == ["what came later"]
    assert "add_" not in vars(torch.Tensor)


def test_an_error_goes_through() -> None:
    seen = tensafe.watching()
    with pytest.raises(KeyError), seen:
        lose_and_raise()
    assert codes(seen) == ["TS106"]
    with pytest.raises(tensafe.TensafeError, match="once"), seen:
        pass


def test_with_safe_inplace_inside_there_is_nothing_to_report() -> None:
    with tensafe.watching() as seen:
        with tensafe.safe_inplace():
            spoil()
        spoil()
    assert [finding.count for finding in seen.findings if finding.code == "TS202"] == [1]


KEPT: list[torch.Tensor] = []


def pin() -> None:
    table = torch.ones(24 << 20)
    KEPT.append(table[:2])


def test_what_an_earlier_stretch_keeps_is_told_once_and_a_later_one_is_still_looked_at() -> None:
    """A stretch in which no large memory came needs no look; the one behind it needs one."""
    stretches: list[list[str]] = []
    told: set[str] = set()
    for pins in (True, False, True, True, False):
        with tensafe.watching() as seen:
            if pins:
                pin()
        stretches.append(codes(seen))
        told.update(finding.message for finding in seen.findings)
    KEPT.clear()
    assert stretches == [["TS303"], [], ["TS303"], ["TS303"], []]
    assert len(told) == 1, told  # each of one view alone


SHORT = """
import torch, tensafe
with tensafe.watching():
    torch.ones(3).mul(2)
from tensafe.runtime.costs import looking
swept = []
live_tensors = looking.live_tensors
looking.live_tensors = lambda: swept.append(1) or live_tensors()
for _ in range(5):
    with tensafe.watching():
        torch.ones(3).mul(2)
print(len(swept))
with tensafe.watching():
    kept = torch.ones(1 << 20)
print(len(swept))
"""


def test_a_short_stretch_goes_through_no_object_of_the_process() -> None:
    """But for the first, and for one in which a large storage came: it ends with a look."""
    done = subprocess.run([sys.executable, "-c", SHORT], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n1\n"
