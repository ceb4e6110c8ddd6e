"""What `explain` shows in a notebook, read back."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from report.html import samples
from report.html.opened import Opened
from report.html.parsing import Parsed
from report.html.test_pages_parsed import FRAGMENT_TAGS, assert_harmless
from tensafe.aliases.model import Alias, Explanation, LinePlace, Reason, Region, SavedBy
from tensafe.memory.extent import Extent
from tensafe.report.characters import printable
from tensafe.report.html import explanation_fragment, explanation_page

WHOLE = Extent(0, (4, 6), (24, 4), 4)
ROWS = Extent(24, (2, 6), (24, 4), 4)
EXPLAINED = Explanation(
    names=("v", "rows"),
    kind="tensor",
    type_name="torch.Tensor",
    shape=(2, 6),
    strides=(6, 1),
    dtype="float32",
    itemsize=4,
    device="cpu",
    layout="strided",
    source="torch",
    regions=(Region("", ROWS, 48, "the storage of `w`", 96, "cpu", ("pinned",)),),
    aliases=(
        Alias(("w",), "tensor", "contains it", (4, 6), "float32", WHOLE, is_base=True),
        Alias(("array",), "array", "the same bytes", (2, 6), "float32", ROWS),
    ),
    unnamed_aliases=(Alias((), "tensor", "the same bytes", (2, 6), "float32", ROWS),),
    base="w",
    requires_grad=True,
    is_leaf=False,
    grad_fn="SliceBackward0",
    version=3,
    saved_by=(
        SavedBy("MulBackward0", "self", ("loss", "SumBackward0", "MulBackward0"), "the same bytes", True),
    ),
    reasons=(Reason("saved", "raises in backward", "`MulBackward0` saved it.", "Write to v.clone()."),),
    cautions=(Reason("shared", "note", "`w` changes too."),),
    written=LinePlace("add_", "train.py", 31),
    not_seen=("generator frames",),
)


def lines(explanation: Explanation) -> list[str]:
    """The text of each row and item, its words joined."""
    markup = re.sub(r"<style>.*?</style>", "", explanation_fragment(explanation), flags=re.DOTALL)
    blocks = re.split(r"</(?:tr|li|div)>|<ul[^>]*>", markup)
    return [" ".join("".join(Parsed(block).texts).split()) for block in blocks]


def test_everything_that_is_known_is_told() -> None:
    told = lines(EXPLAINED)
    for words in (
        "v and 1 other name 2 × 6 float32 on cpu tensor, torch.Tensor",
        "May it be written in place? No",
        "raises in backward: MulBackward0 saved it. Write to v.clone().",
        "w changes too.",
        "the storage of w, 96 B 48 B of it not reached · cpu · pinned",
        "bytes48 bytes, 96 bytes kept alive",
        "layoutcontiguous, stride (6, 1); view(-1) and reshape(-1) give a view",
        "view ofw",
        "graphmade by SliceBackward0, requires grad, version 3",
        "saved byMulBackward0.self (the same bytes) from loss ← SumBackward0 ← MulBackward0",
        "writtenlast by add_ at train.py:31",
        "not seengenerator frames",
    ):
        assert words in told
    assert "and 1 live tensor without a name" in " ".join(told)


def test_tensors_are_drawn_over_the_bytes_they_reach() -> None:
    parsed = Parsed(explanation_fragment(EXPLAINED))
    marks = [(a["class"], a["style"]) for tag, a in parsed.elements if tag == "i"]
    assert marks == [
        ("t-self", "left:25%;width:50%"),
        ("t-tensor", "left:0%;width:100%"),
        ("t-array", "left:25%;width:50%"),
    ]


def test_a_tensor_that_may_be_written() -> None:
    free = replace(EXPLAINED, reasons=(), requires_grad=False, is_leaf=True, version=None, names=())
    told = lines(free)
    assert "May it be written in place? Yes" in told
    assert "graphrequires no grad" in told
    assert any(line.startswith("a tensor without a name 2 × 6") for line in told)


def test_the_page_of_an_explanation_is_drawn_under_its_policy(opened: Opened) -> None:
    opened.open(explanation_page(EXPLAINED))
    widths = opened.run("return [...document.querySelectorAll('.t-bar i')].map((i) => i.offsetWidth)")
    assert widths[1] == widths[0] * 2 == widths[2] * 2 > 100
    assert opened.run("return document.querySelector('h1').textContent") == "Memory of v"
    assert opened.requests() == []
    assert opened.complaints() == []


def test_an_array_has_no_graph() -> None:
    told = lines(replace(EXPLAINED, source="numpy", kind="array", type_name="numpy.ndarray", saved_by=()))
    assert not [line for line in told if line.startswith("graph")]
    assert "view ofw" in told


def test_each_component_of_a_sparse_tensor_has_its_storage() -> None:
    parts = (
        Region("indices", ROWS, 48, "its own storage", 48, "cpu"),
        Region("values", WHOLE, 96, "its own storage", 96, "cpu"),
    )
    told = lines(replace(EXPLAINED, regions=parts, strides=None, layout="sparse_coo", aliases=()))
    assert "indices in its own storage, 48 B all reached · cpu" in told
    assert "values in its own storage, 96 B all reached · cpu" in told


@given(st.lists(samples.names, min_size=12, max_size=12))
def test_whatever_the_names_only_our_own_elements(words: list[str]) -> None:
    name = words[0]
    alias = replace(EXPLAINED.aliases[0], names=(words[1],), kind=words[2])
    saved = SavedBy(words[3], words[4], (words[5],), "the same bytes", None)
    evil = replace(
        EXPLAINED,
        names=(name,),
        kind=words[6],
        type_name=words[7],
        dtype=words[8],
        base=words[9],
        grad_fn=words[10],
        aliases=(alias,),
        saved_by=(saved,),
        reasons=(Reason("x", "raises", words[11], words[0]),),
        notes=(words[1],),
        not_seen=(words[2],),
        made=LinePlace(words[3], words[4], 1),
        regions=(Region(words[5], ROWS, 48, words[6], 96, words[7], (words[8],)),),
    )
    fragment = explanation_fragment(evil)
    fragment.encode("utf-8")
    parsed = Parsed(fragment)
    assert_harmless(parsed, FRAGMENT_TAGS)
    assert not parsed.scripts
    if name and len(name) <= 46:
        assert printable(name) in parsed.texts
