"""What `Snapshot.diff()` shows in a notebook: the figures of the difference, and hostile names as text."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

import tensafe
from report.html import samples
from report.html.opened import Opened
from report.html.parsing import Parsed
from report.html.test_pages_parsed import FRAGMENT_TAGS, assert_harmless
from tensafe.report.characters import printable
from tensafe.snapshots import Diff


def rows(diff: Diff) -> list[list[str]]:
    """The cells of every table, as texts."""
    markup = re.sub(r"<style>.*?</style>", "", diff._repr_html_(), flags=re.DOTALL)
    lines = re.findall(r"<tr>(.*?)</tr>", markup, flags=re.DOTALL)
    return [["".join(Parsed(cell).texts) for cell in re.split(r"</td>", line)[:-1]] for line in lines]


def changed_diff() -> Diff:
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    state: dict[str, Any] = {"epoch": 3, "gone": 1}
    snap = tensafe.snapshot(net, optimizer, state)
    net(torch.ones(5, 4)).sum().backward()
    optimizer.step()
    with torch.no_grad():
        net[0].weight[0, :2] += 2.5
    optimizer.param_groups[0]["lr"] = 0.05
    state.update(epoch=4, new=[1])
    del state["gone"]
    return snap.diff()


def test_the_figures_are_those_of_the_difference() -> None:
    diff = changed_diff()
    assert diff.tensors
    shown = rows(diff)
    tensors = [
        [
            one.path,
            "",
            f"{one.changed:,} of {one.numel:,} element{'s' * (one.numel != 1)}",
            f"by at most {one.max_abs:.3g}",
        ]
        for one in diff.tensors
    ]
    values = [[one.path, f"{one.before!r} is now {one.after!r}"] for one in diff.values]
    assert shown == tensors + values
    text = Parsed(diff._repr_html_()).text
    assert all(path in text for path in (*diff.born, *diff.gone))
    assert f"{len(diff.tensors)} tensors" in text
    assert f"in {diff.compared:,} tensors and values" in text
    wide = re.findall(r"width:([\d.]+)%\"></i>", diff._repr_html_())
    shares = [100 * one.changed / one.numel for one in diff.tensors]
    assert [float(width) for width in wide] == pytest.approx(shares, abs=1e-4)


def test_it_prints_as_a_table_wherever_it_is_shown() -> None:
    diff = changed_diff()
    assert repr(diff) == str(diff)
    assert repr(diff).splitlines()[0] == str(diff.tensors[0])


def test_no_difference_is_said() -> None:
    weights = {"a": torch.ones(3), "n": 1}
    diff = tensafe.snapshot(weights).diff()
    assert not diff
    assert rows(diff) == []
    assert "no difference" in Parsed(diff._repr_html_()).text


def hostile_diff() -> Diff:
    tree: dict[str, Any] = {name: torch.zeros(2) for name in samples.HOSTILE_NAMES}
    tree["values"] = dict(enumerate(samples.HOSTILE_NAMES))
    snap = tensafe.snapshot(tree)
    for name in samples.HOSTILE_NAMES:
        tree[name].add_(float("nan"))
    tree["values"] = {number: f"{name}!" for number, name in enumerate(samples.HOSTILE_NAMES)}
    tree.update({f"{name}+": torch.ones(1) for name in samples.HOSTILE_NAMES})
    return snap.diff()


def test_hostile_names_and_values_are_text(opened: Opened) -> None:
    diff = hostile_diff()
    assert len(diff.tensors) == len(samples.HOSTILE_NAMES)
    markup = diff._repr_html_()
    assert_harmless(Parsed(markup), FRAGMENT_TAGS)
    opened.open(f"<!doctype html><meta charset=utf-8><body>{markup}")
    assert opened.run("return document.querySelectorAll('script, img, iframe').length") == 0
    assert opened.run("return window.broken === undefined")
    shown = opened.run("return document.body.textContent")
    assert printable(samples.HOSTILE_NAMES[1]) in shown
    assert opened.requests() == []
    assert opened.complaints() == []


def test_many_changes_are_counted() -> None:
    many = {f"p{number:03}": torch.zeros(1) for number in range(100)}
    snap = tensafe.snapshot(many)
    for one in many.values():
        one.add_(1)
    diff = snap.diff()
    assert len(rows(diff)) == 40
    assert "and 60 tensors more" in Parsed(diff._repr_html_()).text


def test_a_narrow_window_scrolls_only_downwards(opened: Opened) -> None:
    tree = {"ids": torch.zeros(1_000_000, dtype=torch.int64), "weight": torch.zeros(2_000_000)}
    snap = tensafe.snapshot(tree)
    tree["ids"][:123_456] = -(2**63)
    tree["weight"] += 1.23e30
    opened.open(f"<!doctype html><meta charset=utf-8><body>{snap.diff()._repr_html_()}", 400, 800)
    width = opened.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]["width"]
    assert width <= 400
