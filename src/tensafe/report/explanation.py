"""What `explain` says, as a few aligned lines of text: where it lies, who shares it, may it be written."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from tensafe.aliases.model import Alias, Explanation, Reason, Region, SavedBy
from tensafe.report.bar import BLOCKS, Blocks, bar
from tensafe.report.characters import cells, printable
from tensafe.report.html.wording import exact, shortened, size

MOST_ALIASES = 8
MOST_SAVED = 4
MOST_PATH = 4
MOST_NAMES = 4
LONGEST_NAME = 40
INDENT = "  "
LABEL = 10
NARROWEST = 60

Row = tuple[str, str]
"""A label, "" for a further line under the same one, and its text."""


def explanation_text(explanation: Explanation, width: int = 100, blocks: Blocks = BLOCKS) -> str:
    """The explanation in lines of at most `width` columns where names allow it; ends without a newline."""
    width = max(width, NARROWEST)
    rows = [
        *_other_names(explanation, width),
        *_regions(explanation, width, blocks),
        *_sharing(explanation, width),
        *_layout(explanation),
        *_graph(explanation),
        *_records(explanation),
        *(("note", note) for note in explanation.notes),
        *(("not seen", note) for note in explanation.not_seen),
    ]
    lines = [_title(explanation, width), *_aligned(rows, width), *_verdict(explanation, width)]
    return "\n".join(printable(line).rstrip() for line in lines)


def _title(explanation: Explanation, width: int) -> str:
    name = shortened(explanation.name or "(no name)", max(LONGEST_NAME, width // 3))
    also = "" if _names_are_long(explanation) else _also(explanation.names, width)
    what = f"{explanation.dtype} {list(explanation.shape)}"
    return f"{name}{' = ' if also else ''}{also}:  {what} on {explanation.device}, {_kind(explanation)}"


def _names_are_long(explanation: Explanation) -> bool:
    return sum(map(cells, explanation.names[:MOST_NAMES])) > LONGEST_NAME


def _also(names: Sequence[str], width: int) -> str:
    """The other names."""
    shown = ", ".join(shortened(name, max(LONGEST_NAME, width // 3)) for name in names[1:MOST_NAMES])
    left = len(names) - MOST_NAMES
    return f"{shown} and {left} more names" if left > 0 else shown


def _other_names(explanation: Explanation, width: int) -> Iterator[Row]:
    """In a line of their own where they are long."""
    if len(explanation.names) > 1 and _names_are_long(explanation):
        yield "also", _also(explanation.names, width)


def _kind(explanation: Explanation) -> str:
    kind = explanation.type_name.removeprefix("torch.nn.parameter.")
    said = (
        ""
        if explanation.kind in ("tensor", "array") or explanation.kind in kind.lower()
        else explanation.kind
    )
    base = explanation.base
    view = f"a view of {base if base.startswith(('a ', 'an ')) else f'`{base}`'}" if base else ""
    return ", ".join(part for part in (kind, said, view) if part)


def _regions(explanation: Explanation, width: int, blocks: Blocks) -> Iterator[Row]:
    for region in explanation.regions:
        label = "storage" if not region.name else region.name
        notes = "".join(f", {note}" for note in region.notes)
        yield label, f"{_amount(region.storage_nbytes)}, {region.storage}{notes}"
        if region.viewed_nbytes < region.storage_nbytes or not region.is_exact:
            yield from _extent(region, width, blocks)
    if explanation.unviewed_nbytes and all(region.device != "meta" for region in explanation.regions):
        whole, own = exact(explanation.storage_nbytes), exact(explanation.nbytes)
        if explanation.is_array:
            yield "keeps", f"all {whole} alive; a copy() takes {own}"
        else:
            saved = "torch.save, pickle and deepcopy write them all"
            if not explanation.is_leaf:
                saved = "torch.save and pickle write them all (deepcopy raises: it is no leaf)"
            yield "keeps", f"all {whole} alive, and {saved}; a clone() takes {own}"


def _extent(region: Region, width: int, blocks: Blocks) -> Iterator[Row]:
    extent = region.extent
    room = max(16, min(60, width - LABEL - 4))
    yield "", f"[{bar([extent], region.storage_nbytes, room, blocks)}]"
    share = f"{region.fraction:.2%}" if region.fraction >= 0.0001 else "less than 0.01%"
    if not region.is_exact:
        most = f"at most {region.viewed_nbytes:,} of the bytes {extent.start:,} to {extent.stop:,}"
        yield "", f"reaches {most}: at most {share} of the storage"
        return
    whole = region.viewed_nbytes == extent.stop - extent.start
    some = "" if whole else f"{region.viewed_nbytes:,} of the "
    yield "", f"reaches {some}bytes {extent.start:,} to {extent.stop:,}: {share} of the storage"


def _amount(nbytes: int) -> str:
    return exact(nbytes) if nbytes < 1024 else f"{size(nbytes)} ({exact(nbytes)})"


def _sharing(explanation: Explanation, width: int) -> Iterator[Row]:
    aliases = explanation.aliases
    apart = [alias for alias in aliases if alias.relation == "no common byte"]
    near = [alias for alias in aliases if alias.relation != "no common byte"]
    shown = near[:MOST_ALIASES] + apart[: max(0, 3 - len(near))]
    names = [shortened(alias.name, max(16, width // 3)) for alias in shown]
    column = max(map(cells, names), default=0)
    for alias, name in zip(shown, names, strict=True):
        pad = " " * (column - cells(name))
        yield "shares", f"{name}{pad}  {_alias(alias)}"
    left = len(aliases) - len(shown)
    unnamed = len(explanation.unnamed_aliases)
    if left or unnamed:
        parts = [f"{left} more" if left else "", f"{unnamed} without a name" if unnamed else ""]
        lead = "and " if shown else ""
        yield "shares", lead + " and ".join(part for part in parts if part)
    if not aliases and not unnamed:
        yield "shares", "with no other live tensor"


def _alias(alias: Alias) -> str:
    piece = f" ({alias.region})" if alias.region else ""
    base = ", its base" if alias.is_base else ""
    what = f"{alias.dtype} {list(alias.shape)}"
    kind = "" if alias.kind in ("tensor", "array") else f", {alias.kind}"
    array = "NumPy " if alias.kind == "array" else ""
    return f"{RELATIONS[alias.relation]}{base}{piece}: {array}{what}{kind}"


RELATIONS = {
    "the same tensor": "the same tensor",
    "the same bytes": "the same bytes",
    "contains it": "contains it",
    "inside it": "lies inside it",
    "overlaps it": "overlaps it",
    "no common byte": "same storage, no common byte",
    "cannot tell": "same storage, cannot tell",
}


def _layout(explanation: Explanation) -> Iterator[Row]:
    if explanation.strides is None:
        yield "layout", explanation.layout
        return
    flat = explanation.view_as(-1)
    if explanation.is_contiguous:
        yield "layout", f"contiguous: {flat}"
    else:
        yield "layout", f"{explanation.memory_format}, stride {list(explanation.strides)}"
        yield "", str(flat)


def _graph(explanation: Explanation) -> Iterator[Row]:
    if explanation.is_array:
        return
    version = "" if explanation.version is None else f", version {explanation.version}"
    if explanation.is_inference:
        yield "autograd", "an inference tensor"
    elif not explanation.requires_grad:
        yield "autograd", f"requires no grad{version}"
    elif explanation.is_leaf:
        yield "autograd", f"a leaf that requires grad{version}"
    else:
        yield "autograd", f"grad_fn {explanation.grad_fn}{version}"
    yield from _saved(explanation.saved_by)


def _saved(saved_by: Sequence[SavedBy]) -> Iterator[Row]:
    together: dict[tuple[str, ...], list[SavedBy]] = {}
    for saved in saved_by:
        together.setdefault(saved.path, []).append(saved)
    for group in list(together.values())[:MOST_SAVED]:
        saved = group[0]
        arguments = " and ".join(dict.fromkeys(one.argument for one in group))
        path = [one for one in saved.path if one]
        if len(path) > MOST_PATH:
            path = [*path[:2], "…", *path[-2:]]
        where = "" if saved.relation == "the same bytes" else f" ({RELATIONS[saved.relation]})"
        yield "saved by", f"{saved.node}, as {arguments}{where}: {' → '.join(path)}"
    if len(together) > MOST_SAVED:
        yield "saved by", f"and {len(together) - MOST_SAVED} more nodes"


def _records(explanation: Explanation) -> Iterator[Row]:
    if explanation.made:
        yield "made", str(explanation.made)
    if explanation.written:
        yield "written", f"last by {explanation.written}"


def _aligned(rows: Iterable[Row], width: int) -> Iterator[str]:
    """The label in its own column, once where it repeats."""
    listed = list(rows)
    column = max(LABEL, *(cells(label) + 2 for label, _ in listed))
    before = ""
    for label, text in listed:
        shown = "" if label == before else label
        before = label or before
        yield from _wrapped(f"{INDENT}{shown:<{column}}", text, width)


def _wrapped(start: str, text: str, width: int) -> list[str]:
    if cells(text) <= width - len(start):
        return [start + text]
    return textwrap.wrap(
        text,
        width,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _verdict(explanation: Explanation, width: int) -> Iterator[str]:
    answer = "Yes" if explanation.may_write else "No"
    told = explanation.reasons or explanation.cautions
    end = "." if not told else ", and:" if explanation.may_write else ":"
    yield f"{INDENT}May I write here in place?  {answer}{end}"
    for reason in explanation.reasons:
        yield from _wrapped(f"{INDENT * 2}✗ ", _told(reason), width)
    for caution in explanation.cautions:
        yield from _wrapped(f"{INDENT * 2}- ", _told(caution), width)


def _told(reason: Reason) -> str:
    effect = EFFECTS[reason.effect]
    return f"{effect}{reason}" if effect else str(reason)


EFFECTS = {
    "raises": "raises: ",
    "raises in backward": "raises in backward: ",
    "silently wrong": "silently wrong: ",
    "raises later": "raises later: ",
    "note": "",
}
