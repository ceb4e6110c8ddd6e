"""The memory of a finding: each storage as a bar to scale, and below it what each tensor reaches."""

from __future__ import annotations

from collections.abc import Sequence

from tensafe.findings import Memory, Reached
from tensafe.report.html.drawing import MIXED, Marks, marks_of
from tensafe.report.html.elements import Html, element, join
from tensafe.report.html.findings.words import words
from tensafe.report.html.wording import count, exact, percent, shortened, size

MOST_STORAGES = 4
MOST_TENSORS = 8
NAME_CHARACTERS = 80
WRITES = ("written", "to be written")


def picture(memory: Sequence[Memory]) -> Html:
    """All storages on one scale; nothing where the engine knew of none."""
    drawn = [one for one in memory[:MOST_STORAGES] if one.nbytes]
    widest = max((one.nbytes for one in drawn), default=0)
    return join(_storage(one, widest) for one in drawn)


def _storage(memory: Memory, widest: int) -> Html:
    title = f"{size(memory.nbytes)} on {shortened(memory.device, NAME_CHARACTERS)}"
    head = element(
        "tr",
        element("th", "storage", scope="row"),
        element("td", _bar([], memory.nbytes, widest)),
        element("td", title, title=exact(memory.nbytes)),
    )
    first = marks_of(memory.tensors[0].extent, memory.nbytes) if memory.tensors else None
    rows = [
        _tensor(tensor, memory, widest, first if number else None)
        for number, tensor in enumerate(memory.tensors[:MOST_TENSORS])
    ]
    left = len(memory.tensors) - len(rows)
    rest = element("p", f"and {count(left, 'more tensor')}", class_="f-faint") if left else ""
    label = "A storage and the tensors on it"
    table = element("table", element("tbody", head, *rows), class_="f-memory", aria_label=label)
    return join([table, rest])


def _tensor(tensor: Reached, memory: Memory, widest: int, first: Marks | None) -> Html:
    marks = marks_of(tensor.extent, memory.nbytes)
    kind = "f-write" if tensor.role.startswith(WRITES) else "f-read"
    place = reach(tensor)
    label = element("code", shortened(tensor.label, NAME_CHARACTERS)) if tensor.label else ""
    common = _common(marks, first)
    met = f"; shares {common} with the first" if common else ""
    form = f"{tensor.dtype} {_form(tensor)}".strip()
    return element(
        "tr",
        element("th", words(tensor.role, NAME_CHARACTERS), " " if label else "", label, scope="row"),
        element("td", _bar(_stretches(marks, kind), memory.nbytes, widest)),
        element("td", form, " ", element("span", place + met, class_="f-faint")),
    )


def reach(tensor: Reached) -> str:
    """`bytes 0 to 400`, and its stride where the elements do not lie one after the other."""
    extent = tensor.extent
    if not extent.numel:
        return "no bytes"
    place = f"bytes {extent.start:,} to {extent.stop:,}"
    return place if extent.is_contiguous else f"{place}, stride {_stride(tensor)}"


def _form(tensor: Reached) -> str:
    return shortened(f"[{', '.join(map(str, tensor.shape))}]", NAME_CHARACTERS)


def _stride(tensor: Reached) -> str:
    """In elements, as `Tensor.stride()` says, where that is possible."""
    if any(stride % tensor.itemsize for stride in tensor.strides):
        return shortened(f"({', '.join(map(str, tensor.strides))}) bytes", NAME_CHARACTERS)
    return shortened(f"({', '.join(str(s // tensor.itemsize) for s in tensor.strides)})", NAME_CHARACTERS)


def _stretches(marks: Marks, kind: str) -> list[tuple[int, int, str]]:
    classes = f"{kind} f-{MIXED}" if marks.fine else kind
    return [(start, stop, classes) for start, stop in marks.runs]


def _bar(stretches: Sequence[tuple[int, int, str]], nbytes: int, widest: int) -> Html:
    """One storage, as wide as its bytes on the scale of the widest; the words beside it say the same."""
    parts = [
        element("rect", class_=kind, x=percent(start, nbytes), width=percent(stop - start, nbytes))
        for start, stop, kind in stretches
    ]
    return element("svg", *parts, width=percent(nbytes, widest), aria_hidden="true")


def _common(marks: Marks, first: Marks | None) -> str:
    """How many bytes lie in both, where each run of both is known."""
    if first is None or marks.fine or first.fine:
        return ""
    nbytes = sum(
        max(0, min(stop, other_stop) - max(start, other_start))
        for start, stop in marks.runs
        for other_start, other_stop in first.runs
    )
    return size(nbytes) if nbytes else "nothing"
