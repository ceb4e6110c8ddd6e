"""Indexing forms, read and assigned: which are views, which are copies, and which writes are lost."""

from __future__ import annotations

from tensafe.ops.row import IN_BETWEEN, Facts, Graph, Result, Row

COPIES_SURE = "to be sure of a copy: x.clone()"


def form(
    name: str,
    gives: Result,
    *examples: str,
    of: str = "x",
    when: str = "",
    writes: str = "",
    graph: Graph = Graph.KEPT,
    graph_when: str = "",
    saves: str = "",
    saves_when: str = "",
    spelled: str = "",
    see: str = "",
    note: str = "",
    also: str = "",
) -> Row:
    """A row; `also` names a second argument."""
    shared = gives in (Result.VIEW, Result.EITHER, Result.ITSELF)
    facts = Facts(
        arguments=(of, also) if also else (of,),
        gives=gives,
        of=(of,) if shared else (),
        when=when,
        writes=(writes,) if writes else (),
        graph=graph,
        graph_when=graph_when,
        saves=(("x", tuple(saves.split("; "))),) if saves else (),
        saves_when=saves_when,
        seen=True,
    )
    names = tuple(one.strip() for one in (spelled or name).split(";"))
    return Row(name=name, kind="form", groups=(facts,), spelled=names, examples=examples, see=see, note=note)


BASIC = "basic indexing: whole numbers, slices, `...` and None only"
LOST = "reading by a tensor or a list makes a copy, so the write goes into memory that nobody keeps"
_READS = [
    form(
        "x[key]",
        Result.EITHER,
        "y = x[0]  # a view of x",
        "y = x[[0, 2]]  # a copy",
        when="a view for whole numbers, slices, `...`, None and integer tensors without dimensions; "
        "a copy for masks, lists and index tensors",
        saves=f"key; {IN_BETWEEN}",
        also="key",
        spelled="x[key]; x.__getitem__",
        note="a write into the view reaches x, a write into the copy is lost",
        see="which form it is, said in full: tensafe ops 'x[mask]', 'x[0]', 'x[torch.tensor([0, 2])]'",
    ),
    form(
        "x[0]",
        Result.VIEW,
        "y = x[0]  # a view of x",
        "y = x[1, 2]  # a view of x",
        spelled="x[0]; x[1, 2]; x[-1]",
        note=f"{BASIC}; one element is a view too",
        see="to be sure of a copy: x[0].clone(); as a number: x[0].item()",
    ),
    form(
        "x[1:3]",
        Result.VIEW,
        "y = x[1:3]  # a view of x",
        "y = x[:, ::2]  # a view of x",
        spelled="x[1:3]; x[:, 0]; x[::2]; x[:]",
        note=f"{BASIC}; the view keeps the whole storage alive",
        see="to let the rest go: x[1:3].clone()",
    ),
    form(
        "x[..., None]",
        Result.VIEW,
        "y = x[..., None]  # a view of x",
        "y = x[None]  # a view of x",
        spelled="x[..., None]; x[None]; x[...]; x[:, None]",
        note=BASIC,
    ),
    form(
        "x[mask]",
        Result.COPY,
        "y = x[mask]  # a copy",
        "x[mask].zero_()  # x unchanged",
        saves="mask",
        spelled="x[mask]; x[x > 0]",
        note="a write into x[mask] is lost; x[mask] = v is not",
        see="to write: x[mask] = v, or x.masked_fill_(mask, v)",
    ),
    form(
        "x[index]",
        Result.COPY,
        "y = x[index]  # a copy",
        "x[index].add_(1)  # x unchanged",
        saves="index",
        spelled="x[index]; x[index_tensor]; x[rows, columns]; x[:, index]",
        note="for an index tensor of one dimension or more: a copy, also beside slices; a range or an "
        "array counts as one; an index that is a whole number gives a view, see x[0]; "
        "a write into it is lost",
        see="to write: x[index] = v, or x.index_add_(0, index, v)",
    ),
    form(
        "x[[0, 2]]",
        Result.COPY,
        "y = x[[0, 2]]  # a copy",
        "x[[0, 2]].zero_()  # x unchanged",
        saves="the indices",
        spelled="x[[0, 2]]; x[[True, False, True]]; x[:, [0, 2]]",
        note="a list counts as an index tensor; a write into it is lost",
        see="to write: x[[0, 2]] = v",
    ),
    form(
        "x[0-dim tensor]",
        Result.VIEW,
        "y = x[torch.tensor(1)]  # a view of x",
        spelled="x[0-dim tensor]; x[torch.tensor(1)]; x[x.argmax()]",
        note="an integer tensor without dimensions counts as a whole number; the index is read at the call",
    ),
    form(
        "x[True]",
        Result.COPY,
        "y = x[True]  # a copy",
        "y = x[torch.tensor(True)]  # a copy",
        saves="the indices",
        spelled="x[True]; x[torch.tensor(True)]",
        note="a truth value counts as a mask",
    ),
]
WRITES_BACK = "*= and every other such operator the same, which also keeps what x *= v keeps"
_TWICE = "where an index occurs twice, which value stays is not defined"
_ASSIGNMENTS = [
    form(
        "x[key] = v",
        Result.NOTHING,
        "x[0] = v  # writes x",
        "x[[0, 2]] = v  # writes x",
        writes="x",
        saves="key",
        saves_when="where it is a mask, a list or an index tensor; nothing for numbers and slices",
        spelled="x[key] = v; x.__setitem__",
        note="whatever the key is, x itself is written; x joins the graph of v; counted by autograd",
    ),
    form(
        "x[i] = v",
        Result.NOTHING,
        "x[0] = v  # writes x",
        "x[1:3] = 0.0  # writes x",
        writes="x",
        spelled="x[i] = v; x[0] = v; x[1:3] = v; x[...] = v; x[:] = v",
        note="copies v into x; x joins the graph of v; counted by autograd",
        see="whole tensor: x.copy_(v)",
    ),
    form(
        "x[mask] = v",
        Result.NOTHING,
        "x[mask] = 0.0  # writes x",
        writes="x",
        saves="mask",
        spelled="x[mask] = v",
        note="writes x itself; a write into mask before backward is an error, for it is kept as it is",
        see="as an operation: x.masked_fill_(mask, v)",
    ),
    form(
        "x[index] = v",
        Result.NOTHING,
        "x[index] = v  # writes x",
        "x[[0, 2]] = v  # writes x",
        writes="x",
        saves="index",
        spelled="x[index] = v; x[[0, 2]] = v",
        note=f"writes x itself; a write into index before backward is an error, for it is kept as it is "
        f"(a list is copied first); {_TWICE}",
        see="to add up where an index occurs twice: x.index_put_((index,), v, accumulate=True)",
    ),
    form(
        "x[mask][0] = v",
        Result.NOTHING,
        "x[mask][0] = 5.0  # x unchanged",
        "x[index][0] = 5.0  # x unchanged",
        spelled="x[mask][0] = v; x[index][0] = v; x[[0, 2]][0] = v",
        note=f"LOST: {LOST}",
        see="one index, one write: x[index[0]] = v; x[mask] = torch.where(...)",
    ),
    form(
        "x[0][1] = v",
        Result.NOTHING,
        "x[0][1] = 5.0  # writes x",
        writes="x",
        spelled="x[0][1] = v; x[1:3][0] = v",
        note="x[0] is a view, so the write reaches x; x[0, 1] = v says the same in one step",
    ),
    form(
        "x[0] += v",
        Result.NOTHING,
        "x[0] += 1.0  # writes x",
        "x[:, 1] *= 2.0  # writes x",
        writes="x",
        spelled="x[0] += v; x[1:3] += v",
        note=f"adds into the view, then copies it onto itself: two counted writes; {WRITES_BACK}",
        see="in one write: x[0].add_(v)",
    ),
    form(
        "x[mask] += v",
        Result.NOTHING,
        "x[mask] += 1.0  # writes x",
        "x[index] += 1.0  # writes x",
        writes="x",
        saves="mask",
        spelled="x[mask] += v; x[index] += v; x[[0, 2]] += v",
        note="reads a copy, adds, writes back, and keeps the mask or index for both; "
        f"where an index occurs twice, it is added to once; {WRITES_BACK}",
        see="to add up every occurrence: x.index_add_(0, index, v)",
    ),
    form(
        "x[key] += v",
        Result.NOTHING,
        "x[0] += 1.0  # writes x",
        "x[mask] += 1.0  # writes x",
        writes="x",
        saves="key",
        saves_when="where it is a mask, a list or an index tensor; nothing for numbers and slices",
        spelled="x[key] += v",
        note=f"whatever the key is, x itself is written; {WRITES_BACK}",
    ),
]
INDEXING: tuple[Row, ...] = (*_READS, *_ASSIGNMENTS)
