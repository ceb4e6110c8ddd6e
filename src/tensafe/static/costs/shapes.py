"""Which operation gives its result which form: the order of the dimensions, and of what it is a part."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tensafe.ops import words
from tensafe.static import forms
from tensafe.static.forms import CONTIGUOUS, Form, Layout, Part
from tensafe.static.values import Constant, Library, Memory, Scalar, Sequence, Value

if TYPE_CHECKING:
    from tensafe.static.machine import Machine

Former = Callable[["Machine", list[Value], ast.AST], Form | None]
_EACH = words(
    """
    relu relu6 elu selu celu leaky_relu gelu silu mish softplus sigmoid tanh exp log sqrt rsqrt abs neg clamp
    clip dropout hardtanh hardswish hardsigmoid square sin cos add sub mul div clone pow where masked_fill
    batch_norm instance_norm
    """
)
_KEEP = words("softmax log_softmax masked_fill dropout clone")
_PRODUCTS = words("matmul bmm")
_SIZED = words("zeros ones rand randn empty")
BYTES_OF_FLOAT = 4


def of_view(m: Machine, name: str, operands: list[Value], node: ast.AST) -> Form | None:
    """The form of what a method that gives views made of its first operand."""
    former = _VIEWS.get(name)
    if former is not None:
        return former(m, operands, node)
    source = operands[0]
    return source.form.carried if type(source) is Memory and source.form is not None else None


def of_result(m: Machine, name: str, operands: list[Value], tensors: list[Memory]) -> Form | None:
    """The form of fresh memory, where the operation tells it."""
    if name == "stack":
        return _stacked(operands)
    if name in _PRODUCTS:
        return _product(tensors)
    first = tensors[0].form if tensors else None
    if first is None or first.layout is None:
        return Form(CONTIGUOUS) if name == "linear" else None
    if name in _KEEP:
        kept = forms.copied(first.layout)
        return _laid(kept, first)
    if name in _EACH:
        return _laid(_each(first.layout, operands), first)
    if name in ("linear", "layer_norm"):
        return _laid(forms.without_sizes(forms.contiguous([None] * len(first.layout))), None)
    if name.startswith("max_pool"):  # an average may be taken over all of the image, a maximum hardly ever is
        kept = forms.copied(first.layout)
        return _laid(forms.without_sizes(kept), first) if kept else None
    return None


def of_convolution(tensors: list[Memory], options: dict[str, Value]) -> Form | None:
    """A convolution keeps the order; one that may shrink an image to a single pixel leaves no order in it."""
    form, padding, stride = tensors[0].form, options.get("padding"), options.get("stride")
    is_padded = type(padding) is Constant and padding.value != 0
    is_strided = stride is not None and not (type(stride) is Constant and stride.value == 1)
    if form is None or form.layout is None or is_strided or not is_padded:
        return None
    kept = forms.copied(form.layout)
    return _laid(forms.without_sizes(kept), form) if kept else None


def _product(tensors: list[Memory]) -> Form | None:
    """A product of batches of matrices is contiguous; with a matrix on its left it may be turned."""
    ranks = [len(one.form.layout) if one.form and one.form.layout else 0 for one in tensors[:2]]
    return Form(forms.unknown_sizes(max(ranks))) if len(ranks) == 2 and ranks[0] > 2 else None


def _laid(layout: Layout | None, of: Form | None) -> Form | None:
    if layout is None:
        return None
    return Form(layout, None, of.made, of.frame) if of is not None else Form(layout)


def _each(layout: Layout, operands: list[Value]) -> Layout | None:
    """An operation on each element keeps the order, where all tensors have the same."""
    others = [one.form.layout if one.form else None for one in operands[1:] if type(one) is Memory]
    return forms.copied(layout) if all(other == layout for other in others) else None


def _stacked(operands: list[Value]) -> Form:
    items = operands[0] if operands and type(operands[0]) is Sequence else None
    first = (items.items[0] if items.items else items.rest) if items is not None else None
    known = first.form.layout if type(first) is Memory and first.form is not None else None
    return Form(forms.contiguous([None] * (len(known) + 1)) if known else CONTIGUOUS)


def of_sizes(name: str, given: list[Value]) -> Form:
    """The form of a tensor that was made with these sizes."""
    if name not in _SIZED or not given:
        return Form(CONTIGUOUS)
    if len(given) == 1 and type(given[0]) is not Constant:
        items = given[0]
        if type(items) is not Sequence or items.rest is not None:
            return Form(CONTIGUOUS)
        given = items.items
    return Form(forms.contiguous([_integer(value) for value in given]))


def _integer(value: Value) -> int | None:
    known = value.value if type(value) is Constant else None
    return known if isinstance(known, int) and not isinstance(known, bool) else None


def nbytes(layout: Layout | None) -> int:
    """The bytes of a tensor of floats, 0 when its sizes are not known."""
    total = BYTES_OF_FLOAT if layout else 0
    for dim in layout or ():
        total *= dim.size or 0
    return total


def rank_of(arguments: list[Value]) -> int | None:
    """How many dimensions the arguments of `view` ask for; None when they do not tell."""
    if len(arguments) == 1:
        only = arguments[0]
        if type(only) is Sequence:
            return len(only.items) if only.rest is None else None
        return 1 if type(only) is Scalar or _integer(only) is not None else None
    return len(arguments) if arguments else None


def _numbers(arguments: list[Value]) -> list[int] | None:
    """Literal places of dimensions, in a tuple or one by one."""
    if len(arguments) == 1 and type(arguments[0]) is Sequence:
        arguments = arguments[0].items
    found = [_integer(value) for value in arguments]
    return [number for number in found if number is not None] if None not in found else None


def _source(operands: list[Value]) -> Form | None:
    first = operands[0]
    return first.form if type(first) is Memory else None


def _storages(operands: list[Value]) -> tuple[int, ...]:
    first = operands[0]
    return first.storages if type(first) is Memory else ()


def _permute(m: Machine, operands: list[Value], node: ast.AST) -> Form | None:
    form, order = _source(operands), _numbers(operands[1:])
    known = form is not None and form.layout is not None and order
    layout = (
        forms.permuted(form.layout, order) if form and known and order and form.layout is not None else None
    )
    return forms.arranged(form, layout, node, m.frame)


def _transpose(m: Machine, operands: list[Value], node: ast.AST) -> Form | None:
    form, places = _source(operands), _numbers(operands[1:])
    if form is None or not form.layout or places is None or len(places) != 2:
        return form.carried if form else None
    return forms.arranged(form, forms.swapped(form.layout, *places), node, m.frame)


def transposed(m: Machine, source: Memory, node: ast.AST, matrix: bool = False) -> Form | None:
    """`.t()`, `.T` and `.mT`."""
    form = source.form
    if form is None or form.layout is None:
        return form.carried if form else None
    layout: Layout | None = form.layout
    if not layout:  # of two dimensions, or all of them
        layout = forms.unknown_sizes(2) if not matrix else None
    if layout is not None:
        layout = forms.swapped(layout, -1, -2) if matrix and len(layout) > 1 else tuple(reversed(layout))
    return forms.arranged(form, layout, node, m.frame)


def _t(m: Machine, operands: list[Value], node: ast.AST) -> Form | None:
    first = operands[0]
    return transposed(m, first, node) if type(first) is Memory else None


def _unsqueeze(m: Machine, operands: list[Value], node: ast.AST) -> Form | None:
    form, places = _source(operands), _numbers(operands[1:])
    if form is None or not form.layout or places is None or len(places) != 1:
        return form.carried if form else None
    return replace(form, layout=forms.unsqueezed(form.layout, places[0]))


def _expand(m: Machine, operands: list[Value], node: ast.AST) -> Form | None:
    form = _source(operands)
    arguments = operands[1:]
    if len(arguments) == 1 and type(arguments[0]) is Sequence:
        arguments = arguments[0].items
    if form is None or not form.layout or any(type(one) is Sequence for one in arguments):
        return form.carried if form else None
    return forms.arranged(
        form, forms.expanded(form.layout, [_integer(one) for one in arguments]), node, m.frame
    )


def _view(m: Machine, operands: list[Value], node: ast.AST) -> Form | None:
    """A view or reshape of what is contiguous is contiguous."""
    form = _source(operands)
    if form is None or form.layout is None or not forms.is_contiguous(form.layout):
        return form.carried if form else None
    rank = rank_of(operands[1:])
    return replace(form, layout=forms.unknown_sizes(rank) if rank else CONTIGUOUS)


def _flatten(m: Machine, operands: list[Value], node: ast.AST) -> Form | None:
    form = _source(operands)
    if form is None or form.layout is None or not forms.is_contiguous(form.layout):
        return None
    return replace(form, layout=forms.unknown_sizes(1) if len(operands) == 1 else CONTIGUOUS)


def _contiguous(m: Machine, operands: list[Value], node: ast.AST) -> Form | None:
    form = _source(operands)
    if form is None or form.layout is None:
        return Form(CONTIGUOUS)
    if forms.is_contiguous(form.layout):
        return form
    return Form(forms.contiguous([dim.size for dim in form.layout]))


def _to(m: Machine, operands: list[Value], node: ast.AST) -> Form | None:
    """A cast or a move keeps the order, unless it is told another; it may be a copy, and no part then."""
    named = [one.path.rpartition(".")[2] for one in operands[1:] if type(one) is Library]
    for name in named:
        if name.startswith("channels_last"):
            return Form(forms.channels_last(5 if name.endswith("3d") else 4), None, node, m.frame)
    if "contiguous_format" in named:
        return Form(CONTIGUOUS)
    form = _source(operands)
    return Form(form.layout, None, form.made, form.frame) if form and form.layout is not None else None


def _piece(m: Machine, operands: list[Value], node: ast.AST) -> Form | None:
    """One of several pieces: `chunk`, `split`, `unbind`."""
    form = _source(operands)
    whole = form.layout if form is not None else None
    count = _integer(operands[1]) if len(operands) > 1 else None
    chunks = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "chunk"
    share = 1 / count if chunks and count else 1.0
    return Form(None, Part(node, m.frame, _storages(operands), True, share=share, nbytes=nbytes(whole)))


def _narrow(m: Machine, operands: list[Value], node: ast.AST) -> Form | None:
    form = _source(operands)
    if any(type(one) is Constant and isinstance(one.value, str) for one in operands[1:]):
        return form.carried if form else None  # `select` of a dictionary of tensors
    fixed = _numbers(operands[1:]) is not None
    return Form(
        None,
        Part(
            node,
            m.frame,
            _storages(operands),
            False,
            fixed=fixed,
            nbytes=nbytes(form.layout if form else None),
        ),
    )


_VIEWS: dict[str, Former] = {
    "permute": _permute,
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), _transpose),
    "t": _t,
    "unsqueeze": _unsqueeze,
    "expand": _expand,
    "view": _view,
    "reshape": _view,
    "flatten": _flatten,
    "ravel": _flatten,
    "contiguous": _contiguous,
    **dict.fromkeys(words("to float double half bfloat16 cpu cuda type type_as"), _to),
    **dict.fromkeys(words("chunk split tensor_split unbind hsplit vsplit"), _piece),
    **dict.fromkeys(words("narrow select"), _narrow),
}
