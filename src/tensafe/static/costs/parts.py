"""What an index or an iteration takes of a tensor: its form, and how much of the whole it leaves out."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tensafe.ops import words
from tensafe.static.costs.shapes import nbytes
from tensafe.static.forms import CONTIGUOUS, NARROWED, STEPPED, Dim, Form, Layout, Part
from tensafe.static.indexing import Slice
from tensafe.static.values import Constant, Memory, Sequence, Value

if TYPE_CHECKING:
    from tensafe.static.machine import Machine


def of_item(m: Machine, source: Memory) -> Form:
    """One of the items that a loop over a tensor gives."""
    form = source.form
    layout = form.layout[1:] or CONTIGUOUS if form is not None and form.layout else None
    if form is not None and form.layout == CONTIGUOUS:
        layout = CONTIGUOUS
    return Form(
        layout, Part(None, m.frame, source.storages, True, nbytes=nbytes(form.layout if form else None))
    )


def of_index(m: Machine, source: Memory, index: Value, node: ast.AST | None) -> Form | None:
    """`x[index]` of slices and numbers."""
    form = source.form
    layout = form.layout if form is not None else None
    indices = index.items if type(index) is Sequence else [index]
    cut = _Cut(layout)
    for one in indices:
        cut.take(one, len(indices))
    old = form.part if form is not None else None
    if not cut.takes or node is None:
        return Form(cut.left(), old) if old or cut.left() is not None else None
    part = Part(
        node,
        m.frame,
        source.storages,
        cut.sure or cut.share <= 0.5 or (old is not None and old.sure),
        cut.stepped,
        not cut.varies and (cut.telling or cut.share <= 0.5) and (old is None or old.fixed),
        cut.share * (old.share if old is not None and old.share is not None else 1.0),
        old.nbytes if old is not None else nbytes(layout),
    )
    return Form(cut.left(), part, node, m.frame)


class _Cut:
    """Goes through the parts of an index, dimension by dimension."""

    def __init__(self, layout: Layout | None) -> None:
        self.layout = layout
        self.place = 0
        self.dims: list[Dim] = []
        self.share = 1.0  # at most
        self.takes = self.sure = self.stepped = self.varies = self.telling = False
        self.lost = layout is None or layout == CONTIGUOUS

    def take(self, index: Value, count: int) -> None:
        value = index.value if type(index) is Constant else 0
        if value is None:
            self.dims.append(Dim(0, 0, 1))
        elif value is Ellipsis:
            self._skip(count)
        elif type(index) is Slice:
            self._slice(index)
        else:
            self._number(index)

    def left(self) -> Layout | None:
        """The layout of the result, None when it is not known."""
        if self.lost or self.layout is None or self.place > len(self.layout):
            return CONTIGUOUS if self.layout == CONTIGUOUS and self._stays_whole() else None
        return (*self.dims, *self.layout[self.place :])

    def _stays_whole(self) -> bool:
        return not self.takes

    def _next(self) -> Dim | None:
        self.place += 1
        known = self.layout is not None and self.place <= len(self.layout)
        return self.layout[self.place - 1] if self.layout is not None and known else None

    def _skip(self, count: int) -> None:
        if self.layout is not None:
            rest = len(self.layout) - (count - 1) - self.place
            for _ in range(max(rest, 0)):
                dim = self._next()
                if dim is not None:
                    self.dims.append(dim)

    def _number(self, index: Value) -> None:
        dim = self._next()
        self.takes = True
        if type(index) is not Constant:
            self.varies = self.sure = True
            return
        # `x[0]` takes the one item of a batch of one as often; nobody counts from the end for that
        self.telling = self.telling or self.place > 1 or index.value != 0
        if dim is not None and dim.size:
            self.share /= dim.size

    def _slice(self, index: Slice) -> None:
        dim = self._next()
        lower, upper, step = (*index.bounds, None, None, None)[:3]
        stepped = step is not None and not (type(step) is Constant and step.value in (None, 1))
        cut = STEPPED if stepped else NARROWED if lower is not None or upper is not None else 0
        if dim is not None:
            self.dims.append(dim._replace(cut=cut or dim.cut, size=None if cut else dim.size))
        if stepped:
            self.takes = self.sure = self.stepped = True
            self.share /= step.value if type(step) is Constant and isinstance(step.value, int) else 2
        elif cut and not _is_sliver(lower, upper):
            self.takes = True
            self.telling = self.telling or type(upper) is Constant
            self.varies = self.varies or any(
                type(one) not in (Constant, type(None)) for one in (lower, upper)
            )
            self._narrow(dim, lower, upper)

    def _narrow(self, dim: Dim | None, lower: Value | None, upper: Value | None) -> None:
        first = lower.value if type(lower) is Constant else 0 if lower is None else None
        last = upper.value if type(upper) is Constant else None
        if dim is None or not dim.size or not isinstance(first, int):
            return
        if upper is not None and type(upper) is not Constant:
            return
        if last is None or isinstance(last, int):
            self.share *= len(range(dim.size)[first:last]) / dim.size


def _is_sliver(lower: Value | None, upper: Value | None) -> bool:
    """`x[1:]` and `x[:-1]` leave out too little to speak of."""
    first = lower.value if type(lower) is Constant else None
    last = upper.value if type(upper) is Constant else None
    starts = lower is None or (isinstance(first, int) and first >= 0)
    ends = upper is None or (isinstance(last, int) and last < 0)
    return starts and ends


def is_of_tensor(node: ast.expr) -> bool:
    """Whether an expression is a call that lists do not have: `g.flatten()`."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OF_TENSORS
    )


_OF_TENSORS = words("flatten reshape view ravel detach squeeze unsqueeze permute transpose contiguous")
