"""What changed since a snapshot, in a notebook: how many elements of which tensors, and which values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tensafe.report.html.elements import Html, element, join
from tensafe.report.html.fragment import OWN, bar, code, faint, fragment, listed, row, table
from tensafe.report.html.wording import count

MOST_ROWS = 40
TENSOR_WIDTHS = ("40%", "26%", "20%", "14%")
VALUE_WIDTHS = ("40%", "60%")


class TensorRow(Protocol):
    """A tensor with other elements than before."""

    @property
    def path(self) -> str: ...
    @property
    def changed(self) -> int: ...
    @property
    def numel(self) -> int: ...
    @property
    def max_abs(self) -> float: ...


class ValueRow(NamedTuple):
    """A value that is another, both as words."""

    path: str
    before: str
    after: str


class Difference(Protocol):
    """What a comparison found."""

    @property
    def tensors(self) -> Sequence[TensorRow]: ...
    @property
    def born(self) -> Sequence[str]: ...
    @property
    def gone(self) -> Sequence[str]: ...
    @property
    def compared(self) -> int: ...


def difference_fragment(difference: Difference, values: Sequence[ValueRow]) -> str:
    """What a `Diff` shows in a notebook: no script, no id, its own style under one class."""
    return fragment(
        _head(difference, len(values)),
        _rows(TENSOR_WIDTHS, [_tensor(one) for one in difference.tensors[:MOST_ROWS]]),
        _rest(len(difference.tensors), "tensor"),
        _rows(VALUE_WIDTHS, [_value(one) for one in values[:MOST_ROWS]]),
        _rest(len(values), "value"),
        _paths("new since the snapshot", difference.born),
        _paths("gone since the snapshot", difference.gone),
    )


def _head(difference: Difference, values: int) -> Html:
    parts = [
        count(number, one)
        for number, one in ((len(difference.tensors), "tensor"), (values, "value"))
        if number
    ]
    parts += [f"{len(difference.born):,} new"] if difference.born else []
    parts += [f"{len(difference.gone):,} gone"] if difference.gone else []
    of = faint(f" since the snapshot, in {difference.compared:,} tensors and values")
    return element("div", element("b", ", ".join(parts) or "no difference"), of, class_="t-head")


def _rows(widths: Sequence[str], rows: Sequence[Html]) -> Html:
    return table(widths, rows) if rows else Html("")


def _tensor(one: TensorRow) -> Html:
    share = bar([(0, one.changed, f"t-{OWN}")], one.numel, one.numel)
    figures = f"{one.changed:,} of {count(one.numel, 'element')}"
    return row(code(one.path), share, figures, f"by at most {one.max_abs:.3g}", right=2)


def _value(one: ValueRow) -> Html:
    return row(code(one.path), join([code(one.before), faint(" is now "), code(one.after)]))


def _rest(number: int, what: str) -> Html:
    left = number - MOST_ROWS
    return element("div", faint(f"and {count(left, what)} more")) if left > 0 else Html("")


def _paths(what: str, paths: Sequence[str]) -> Html:
    if not paths:
        return Html("")
    return element("div", faint(what), listed(map(code, paths), MOST_ROWS))
