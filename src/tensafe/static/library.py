"""Calls into torch, NumPy, the standard library and the builtins."""

from __future__ import annotations

import ast

from tensafe.ops import OPS, TAKES_INPLACE, Dtype, Op, out_of_place, words
from tensafe.static import (
    arrays,
    autograd_functions,
    builtin_functions,
    modules,
    operations,
    rebuilt,
    reexports,
    standard,
    training,
)
from tensafe.static.aliasing import layers, overlaps, repeats, savers, ties, workers
from tensafe.static.arguments import Arguments
from tensafe.static.calls import dispatch
from tensafe.static.copies import copy_of
from tensafe.static.costs import fresh_copies, saved_parts, shapes
from tensafe.static.graphs import deep_copies, finished, keeping, to_arrays
from tensafe.static.iteration import rounds
from tensafe.static.machine import Machine
from tensafe.static.past import history
from tensafe.static.tensor_methods import extreme, finish
from tensafe.static.unknowns import unknown
from tensafe.static.values import (
    LIKELY,
    NO,
    NOTHING_KNOWN,
    POINTER,
    TENSOR,
    THING,
    YES,
    Constant,
    Function,
    Instance,
    Library,
    Memory,
    Sequence,
    Value,
)

_MADE = words(
    """
    zeros ones rand randn empty full eye arange linspace logspace zeros_like ones_like rand_like
    randn_like empty_like full_like normal bernoulli randint randperm poisson randint_like tril_indices
    triu_indices
    """
)
# Not in the table: one result, with a gradient for each argument.
_COMPUTED = words(
    """
    cholesky cholesky_solve inv inverse pinv det logdet cosine_similarity pairwise_distance pad index_add
    scatter diag addcdiv matrix_exp multi_dot vector_norm matrix_norm triplet_margin_loss
    """
)
_INTEGERS = words("arange randint randperm tril_indices triu_indices randint_like")
_SIZED = words("randint randint_like")
_CONTAINERS = ("torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict")


def called(m: Machine, name: Library, given: Arguments, node: ast.Call) -> Value:
    """Call an imported name: the project's own where it can be found."""
    found = reexports.resolve(m, name)
    if found is name:
        return call(m, name.path, given, node)
    return dispatch(m, found, given, node)


def call(m: Machine, path: str, given: Arguments, node: ast.Call) -> Value:
    """Call the library function of this dotted name."""
    top = path.split(".", 1)[0]
    if top == "torch":
        return of_torch(m, path, given, node)
    if top == "numpy":
        to_arrays.given(m, path.rpartition(".")[2], path, given, node)
        return arrays.function(m, path.rpartition(".")[2], path, given, node)
    if top == "builtins":
        if path == "builtins.open":
            return deep_copies.made(m, path, node) or NOTHING_KNOWN
        return builtin_functions.call(m, path.rpartition(".")[2], given, node)
    if path == "copy.deepcopy" or path in saved_parts.SAVERS:
        saved_parts.saved(m, path, given, node)
    if path in ("copy.deepcopy", "copy.copy"):
        return copy_of(m, given, node, deep=path.endswith("deepcopy"))
    if top == "ctypes":
        return _pointer(m, given)
    return foreign(m, path, given, node)


def foreign(m: Machine, path: str, given: Arguments, node: ast.Call) -> Value:
    """A library that is neither torch nor NumPy."""
    name = path.rpartition(".")[2]
    if path.startswith(("matplotlib", *to_arrays.CONVERTING)):
        to_arrays.given(m, name, path, given, node)
    uncopyable = deep_copies.made(m, path, node)
    if uncopyable is not None:
        return savers.thread(m, path, given, uncopyable)
    operated = standard.call(m, path, given, node)
    if operated is not None:
        return operated
    if path in ("functools.partial",) and given.positional:
        return given.positional[0]
    if path == "collections.defaultdict":
        return keeping.default_dict(given)
    if path == "itertools.repeat" and len(given.positional) > 1:
        return Sequence([], repeats.repeated(m, given.positional[0], node))
    if path == "itertools.chain" and len(given.positional) > 1:
        return Sequence([item for one in given.positional for item in rounds(m, one)])
    if path in ("collections.OrderedDict", "collections.deque", "itertools.chain"):
        made = builtin_functions.call(m, "dict" if name == "OrderedDict" else "list", given, node)
        if type(made) is Sequence and given.get(1, "maxlen") is not None:
            made.kind = finished.BOUNDED
        return made
    if name[:1].isupper() and m.frame.owner is not None and m.frame.label.endswith("__init__"):
        return modules.foreign_layer(m, name, given)
    return savers.thread(m, path, given, unknown(m, given, name))


def _pointer(m: Machine, given: Arguments) -> Value:
    for value in given.all:
        if type(value) is Memory and value.kind == POINTER:
            return value
    return m.thing()


def of_torch(m: Machine, path: str, given: Arguments, node: ast.Call) -> Value:
    name = path.rpartition(".")[2]
    if path.startswith("torch.optim.") and name[:1].isupper() and "lr_scheduler" not in path:
        optimizer = training.make_optimizer(m, name, given)
        ties.optimizer_made(m, optimizer, node)
        return optimizer
    if path.startswith("torch.nn.init."):
        return _initialise(m, name, given, node)
    if path.startswith("torch.nn.") and (name[:1].isupper() or name == "weight_norm"):
        return _of_nn(m, path, name, given, node)
    special = _SPECIAL.get(path) or _SPECIAL.get(name)
    if special is not None:
        return special(m, given, node)
    if path.startswith("torch.distributions.") and name[:1].isupper():
        return distribution(m, given)
    return _operation(m, name, given, node)


def _of_nn(m: Machine, path: str, name: str, given: Arguments, node: ast.Call) -> Value:
    if name in ("Parameter", "Buffer"):
        if given.flag("requires_grad", 1) is not False:
            overlaps.held_by_module(m, given.get(0, "data"), "Optimizer.step", node)
        made = _parameter(m, given) if name == "Parameter" else m.fresh(TENSOR)
        ties.parameter_made(m, made, given.get(0, "data"), node)
        return made
    if path.startswith("torch.nn.utils"):
        if path == "torch.nn.utils.weight_norm":
            return deep_copies.weight_normed(m, given, node)
        return unknown(m, given, name)
    layer = modules.make_layer(m, name, given)
    tied = given.keywords.get("_weight")
    if type(tied) is Memory and tied.leaf:
        ties.weight_tied(m, tied, node)
        layer.attributes["weight"] = tied
    if m.books.repeats:
        repeats.all_adopted(m, [*layer.children, *given.positional, given.rest], node)
    if layer.inplace:
        m.books.inplace_layers[layer.storage] = layers.told(m, node)
    return layer


def _parameter(m: Machine, given: Arguments) -> Memory:
    made = m.fresh(TENSOR)
    made.grad, made.leaf = YES, True
    told = given.get(1, "requires_grad")
    if told is not None:
        made.grad = NO if given.flag("requires_grad", 1) is False else LIKELY
    if given.flag("requires_grad", 1) is True:
        made.grad = YES
    return made


def _initialise(m: Machine, name: str, given: Arguments, node: ast.Call) -> Value:
    target = given.get(0, "tensor")
    if name.endswith("_") and type(target) is Memory:
        grad_on, m.grad_on = m.grad_on, False
        operations.write(m, target, f"nn.init.{name}", node)
        m.grad_on = grad_on
        return target
    return unknown(m, given)


def _made(m: Machine, name: str, given: Arguments) -> Memory:
    made = m.fresh(TENSOR)
    if given.flag("requires_grad"):
        made.grad, made.leaf = YES, True
    dtype = given.keywords.get("dtype")
    if type(dtype) is Library:
        made.dtype = rebuilt.dtype_named(dtype.path)
    elif name in _INTEGERS:
        made.dtype, made.spread = Dtype.INTEGER, name not in _SIZED or _has_dimensions(given)
    made.data = made.grad == NO
    made.form = shapes.of_sizes(name, given.positional)
    return made


def _has_dimensions(given: Arguments) -> bool:
    """Whether `size` certainly names a dimension: `()` makes a number."""
    size = given.keywords.get("size") or next(
        (one for one in given.positional if type(one) is Sequence), None
    )
    return type(size) is Sequence and bool(size.items)


def _operation(m: Machine, name: str, given: Arguments, node: ast.Call) -> Value:
    """An operation of `torch` or `torch.nn.functional`."""
    if name in _MADE:
        return _write_out(m, given, node, name) or _made(m, name, given)
    operands = given.positional or list(given.keywords.values())
    tensors = operations.tensors_of(operands)
    base = out_of_place(name)
    if base is not None and tensors and type(operands[0]) is Memory:
        operands[0].kind = TENSOR
        return operations.in_place(m, base, operands[0], operands[1:], node)
    op = OPS.get(name) or (Op(name) if name in _COMPUTED else None)
    if op is None or not tensors:
        return _write_out(m, given, node, name) or unknown(m, given, name)
    for tensor in tensors[: 1 if op.dtype is not Dtype.UNKNOWN else 2]:
        tensor.kind = TENSOR if tensor.kind == THING else tensor.kind
    first = operands[0]
    if name in TAKES_INPLACE and given.flag("inplace") and type(first) is Memory:
        return operations.in_place(m, op, first, operands[1:], node)
    written = _write_out(m, given, node, name)
    if written is not None:
        return written
    if name in ("max", "min") and type(first) is Memory:
        return extreme(m, name, first, Arguments(operands[1:], given.keywords), node)
    result = operations.compute(m, op, operands, tensors, node)
    return finish(m, name, result, tensors[0])


def _write_out(m: Machine, given: Arguments, node: ast.Call, name: str) -> Value | None:
    out = given.keywords.get("out")
    if type(out) is not Memory:
        return None
    _records_nothing(m, [*operations.tensors_of(given.positional), out])
    operations.write(m, out, f"torch.{name}", node)
    return out


def _records_nothing(m: Machine, tensors: list[Memory]) -> None:
    """A call with `out=` refuses what requires grad: what was only likely to have a graph has none."""
    if m.trains and not any(tensor.grad == YES for tensor in tensors):
        for tensor in tensors:
            for one in history(tensor) if tensor.grad == LIKELY else ():
                one.grad = NO


def distribution(m: Machine, given: Arguments) -> Value:
    """A distribution: what it computes belongs to the graph of its parameters."""
    tensors = operations.tensors_of(given.all)
    grad = max((tensor.grad for tensor in tensors), default=NO)
    made = m.fresh(THING, grad, tuple(tensors))
    made.label = "distribution"
    return made


def _where(m: Machine, given: Arguments, node: ast.Call) -> Value:
    if len(given.positional) == 1:
        index = m.fresh(TENSOR)
        index.dtype, index.spread = Dtype.INTEGER, True
        return Sequence([], index, "tuple")
    tensors = operations.tensors_of(given.all[1:])
    return operations.compute(m, OPS["where"], given.all[1:], tensors, node) if tensors else m.fresh(TENSOR)


def _set_grad(m: Machine, given: Arguments, node: ast.Call) -> Value:
    enabled = given.flag("mode", 0)
    if enabled is not None:
        m.grad_on = enabled
    return m.thing()


def _variable(m: Machine, given: Arguments, node: ast.Call) -> Value:
    source = given.get(0, "data")
    if type(source) is not Memory:
        return unknown(m, given)
    source.kind = TENSOR
    made = operations.compute(m, OPS["detach"], [source], [source], node)
    if given.flag("requires_grad") is True:
        made.grad, made.leaf = YES, True
    elif source.grad >= 2:
        return source
    return made


def _grad_function(m: Machine, given: Arguments, node: ast.Call) -> Value:
    return training.autograd_grad(m, given, node)


def _autograd_backward(m: Machine, given: Arguments, node: ast.Call) -> Value:
    loss = given.get(0, "tensors")
    if loss is not None:
        training.backward(m, loss, given, node)
    return Constant(None)


def _checkpoint(m: Machine, given: Arguments, node: ast.Call) -> Value:
    return autograd_functions.checkpoint(m, given, node)


def _embedding(m: Machine, given: Arguments, node: ast.Call) -> Value:
    weight = given.get(1, "weight")
    if type(weight) is not Memory:
        return unknown(m, given)
    if "max_norm" in given.keywords:
        operations.write(m, weight, "embedding_renorm_", node)
    return operations.compute(m, Op("embedding"), [weight], [weight], node)


def _padded(m: Machine, given: Arguments, node: ast.Call) -> Value:
    """`pad_sequence(tensors)`: a new tensor, whatever is known of the others."""
    made = unknown(m, given, "pad_sequence")
    made.kind = TENSOR
    return made


def _save(m: Machine, given: Arguments, node: ast.Call) -> Value:
    saved_parts.saved(m, "torch.save", given, node)
    return unknown(m, given, "save")


def _loader(m: Machine, given: Arguments, node: ast.Call) -> Value:
    """A `DataLoader`: its batches are what the program's own collate function makes of items."""
    collate = given.keywords.get("collate_fn")
    loader = unknown(m, given, "DataLoader")
    if isinstance(collate, Function | Instance):
        batch = dispatch(m, collate, Arguments([Sequence([], m.thing())]), node)
        loader.children = {("item", 0): batch, ("item", 1): batch}
    workers.loader(m, given, node, loader)
    return loader


def _clone(m: Machine, given: Arguments, node: ast.Call) -> Value:
    source = given.get(0, "input")
    if type(source) is Memory and node.args:
        fresh_copies.copied(m, "torch.clone", source, node.args[0], node)
    return _operation(m, "clone", given, node)


_SPECIAL = {
    "torch.save": _save,
    "torch.utils.data.DataLoader": _loader,
    "torch.clone": _clone,
    "torch.tensor": rebuilt.tensor,
    "torch.Tensor": rebuilt.typed,
    "torch.FloatTensor": rebuilt.typed,
    "torch.as_tensor": rebuilt.as_tensor,
    "torch.asarray": rebuilt.as_tensor,
    "torch.from_numpy": rebuilt.from_numpy,
    "torch.frombuffer": rebuilt.from_numpy,
    "torch.where": _where,
    "torch.set_grad_enabled": _set_grad,
    "torch.autograd.Variable": _variable,
    "torch.autograd.grad": _grad_function,
    "torch.autograd.backward": _autograd_backward,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "torch.nn.functional.embedding": _embedding,
    "torch.nn.utils.rnn.pad_sequence": _padded,
    "torch.equal": builtin_functions.compared_call,
    "torch.allclose": builtin_functions.compared_call,
    "torch.dist": builtin_functions.compared_call,
}
