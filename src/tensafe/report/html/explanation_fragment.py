"""What `explain` says of one tensor, in a notebook: the verdict first, then where it and others lie."""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.aliases.model import Alias, Explanation, Reason, Region, SavedBy
from tensafe.memory.extent import Extent
from tensafe.report.html.elements import Html, element, join
from tensafe.report.html.fragment import (
    OWN,
    code,
    extent_bar,
    facts,
    faint,
    fragment,
    listed,
    prose,
    row,
    table,
)
from tensafe.report.html.wording import count, exact, shape, size

MOST_ALIASES = 8
MOST_REASONS = 8
MOST_SAVED = 4
WIDTHS = ("34%", "36%", "18%", "12%")


def explanation_fragment(explanation: Explanation) -> str:
    """What an `Explanation` shows in a notebook: no script, no id, its own style under one class."""
    return fragment(
        _head(explanation),
        _verdict(explanation),
        *(_region(region, explanation) for region in explanation.regions),
        facts([*_layout(explanation), *_graph(explanation), *_records(explanation), *_notes(explanation)]),
    )


def _head(explanation: Explanation) -> Html:
    name = element("b", code(explanation.name) if explanation.name else "a tensor without a name")
    others = len(explanation.names) - 1
    also = f" and {count(others, 'other name')}" if others > 0 else ""
    words = f" {shape(explanation.shape)} {explanation.dtype} on {explanation.device} "
    about = f"{explanation.kind}, {explanation.type_name}"
    return element("div", name, faint(also), words, faint(about), class_="t-head")


def _verdict(explanation: Explanation) -> Html:
    answer = ("Yes", "t-yes") if explanation.may_write else ("No", "t-no")
    verdict = element("span", answer[0], class_=f"t-verdict {answer[1]}")
    against = listed(map(_reason, explanation.reasons), MOST_REASONS)
    besides = listed(map(_reason, explanation.cautions), MOST_REASONS)
    return element("div", "May it be written in place? ", verdict, against, besides)


def _reason(reason: Reason) -> Html:
    effect = element("b", f"{reason.effect}: ") if reason.effect != "note" else ""
    return join([effect, prose(reason.says), faint(" ", prose(reason.instead)) if reason.instead else ""])


def _region(region: Region, explanation: Explanation) -> Html:
    """The storage at full width, and on it the tensor and the others, the nearest first."""
    whole = region.storage_nbytes
    reached = f"{size(region.unviewed_nbytes)} of it not reached" if region.unviewed_nbytes else "all reached"
    place = f"{region.name} in {region.storage}" if region.name else region.storage
    about = " · ".join([reached, region.device, *region.notes])
    title = element("div", prose(place), f", {size(whole)} ", faint(about), class_="t-head")
    here = [alias for alias in explanation.aliases if alias.region == region.name]
    rows = [
        _drawn(region.name or explanation.name or "this tensor", "", region.extent, OWN, whole),
        *(_alias(alias, whole) for alias in here[:MOST_ALIASES]),
    ]
    left = [
        f"{len(here) - MOST_ALIASES:,} more" if len(here) > MOST_ALIASES else "",
        _unnamed(region, explanation),
    ]
    said = " and ".join(part for part in left if part)
    return element("div", title, table(WIDTHS, rows), faint(f"and {said}") if said else "")


def _alias(alias: Alias, whole: int) -> Html:
    base = ", its base" if alias.is_base else ""
    return _drawn(alias.name or "without a name", alias.relation + base, alias.extent, alias.kind, whole)


def _drawn(name: str, relation: str, extent: Extent, kind: str, whole: int) -> Html:
    drawing = extent_bar(extent, kind, whole, whole)
    return row(code(name), drawing, faint(relation), size(extent.nbytes), right=1)


def _unnamed(region: Region, explanation: Explanation) -> str:
    others = sum(1 for alias in explanation.unnamed_aliases if alias.region == region.name)
    return f"{count(others, 'live tensor')} without a name" if others else ""


Fact = tuple[str, str]
"""A label and what is said under it."""


def _layout(explanation: Explanation) -> Iterator[Fact]:
    taken, kept = explanation.nbytes, explanation.storage_nbytes
    yield "bytes", exact(taken) if taken == kept else f"{exact(taken)}, {exact(kept)} kept alive"
    if explanation.strides is not None:
        strides = code(str(explanation.strides))
        yield (
            "layout",
            join([explanation.memory_format, ", stride ", strides, f"; {explanation.view_as(-1)}"]),
        )


def _graph(explanation: Explanation) -> Iterator[Fact]:
    if explanation.base:
        yield "view of", code(explanation.base)
    if explanation.is_array:
        return  # NumPy keeps none
    counted = explanation.version is not None
    yield "graph", join([_origin(explanation), f", version {explanation.version:,}" if counted else ""])
    for saved in explanation.saved_by[:MOST_SAVED]:
        yield "saved by", _saved(saved)
    left = len(explanation.saved_by) - MOST_SAVED
    if left > 0:
        yield "saved by", f"{left:,} more"


def _origin(explanation: Explanation) -> str:
    if explanation.is_inference:
        return "an inference tensor, which autograd never records"
    if not explanation.requires_grad:
        return "requires no grad"
    if explanation.is_leaf:
        return "a leaf that requires grad"
    return join(["made by ", code(explanation.grad_fn), ", requires grad"])


def _saved(saved: SavedBy) -> Html:
    path = code(" ← ".join(saved.path))
    return join([code(f"{saved.node}.{saved.argument}"), faint(f" ({saved.relation}) from "), path])


def _records(explanation: Explanation) -> Iterator[Fact]:
    if explanation.made:
        yield "made", code(str(explanation.made))
    if explanation.written:
        yield "written", join(["last by ", code(str(explanation.written))])


def _notes(explanation: Explanation) -> Iterator[Fact]:
    yield from (("note", prose(note)) for note in explanation.notes)
    yield from (("not seen", prose(note)) for note in explanation.not_seen)
