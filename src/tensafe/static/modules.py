"""Modules: building them, and what their call does to its input."""

from __future__ import annotations

import ast
import re

from tensafe.ops import LAYERS, Dtype, LayerOp, Op, Saves, words
from tensafe.static import autograd_functions, definitions, operations, training
from tensafe.static.aliasing import hooks, overlaps, repeats, ties
from tensafe.static.arguments import Arguments
from tensafe.static.attributes import of_layer
from tensafe.static.calls import dispatch
from tensafe.static.containers import flattened
from tensafe.static.costs import recurrent, shapes
from tensafe.static.graphs import known, leaks, refused_writes
from tensafe.static.hazards import memories
from tensafe.static.invocation import invoke
from tensafe.static.machine import Machine
from tensafe.static.unknowns import unknown
from tensafe.static.values import (
    LIKELY,
    NO,
    NOTHING_KNOWN,
    TENSOR,
    THING,
    YES,
    Choice,
    Class,
    Constant,
    Function,
    Instance,
    Layer,
    Memory,
    Sequence,
    Value,
)

_CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict"})
_WITHOUT_PARAMETERS = re.compile(
    r"(Pad|Pool|Unpool)[123]d$|Loss$|Pad$|Shrink$|Distance$|Similarity$|[Ss]huffle$"
    r"|^(Fold|Unfold|Threshold|RReLU|Softmin|Softmax2d|LocalResponseNorm)$"
)
_KNOWN_PARAMETERS = words(
    """
    LSTM GRU RNN MultiheadAttention TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder
    TransformerDecoder Transformer Bilinear LSTMCell GRUCell RNNCell
    """
)
_SEVERAL = words("LSTM GRU RNN MultiheadAttention LSTMCell")  # those that give a tuple


def make_layer(m: Machine, name: str, given: Arguments) -> Layer:
    """`nn.Name(...)`."""
    layer = Layer(name, LAYERS.get(name), m.past.storage())
    layer.options = given.keywords
    if name in _CONTAINERS:
        layer.children = flattened(given, m)
        for child in layer.children:
            adopt(m, child, layer)
    elif layer.op is not None and layer.op.takes_inplace:
        place = (
            0
            if layer.op.op.name in ("relu", "relu6", "silu", "mish", "selu", "hardswish", "hardsigmoid")
            else 1
        )
        layer.inplace = given.flag("inplace", place) is True
    return layer


def adopt(m: Machine, child: Value, owner: Layer | Instance) -> None:
    for option in child.options if type(child) is Choice else (child,):
        if isinstance(option, Layer | Instance):
            m.past.put_inside(option.storage, owner.storage)


def foreign_layer(m: Machine, name: str, given: Arguments) -> Value:
    """Something that a constructor builds from another library: perhaps a module."""
    thing = m.thing(name)
    return thing


def construct(m: Machine, cls: Class, given: Arguments, node: ast.AST) -> Value:
    """An instance of a project class, its `__init__` interpreted."""
    instance = Instance(cls, m.past.storage())
    base = definitions.library_base(cls)
    if cls.kind == "optimizer":
        return training.make_optimizer(m, cls.node.name, given)
    found = definitions.find_method(cls, "__init__")
    if found:
        function = Function(found[1], found[0].source, (found[0].scope,), instance, found[0])
        invoke(m, function, given.positional, given.keywords, node, given.rest)
    elif cls.kind != "module":
        _fill_dataclass(cls, instance, given)
    if base in ("torch.nn.Sequential", "torch.nn.ModuleList") and not found:
        instance.attributes["*"] = make_layer(m, base.rpartition(".")[2], given)
    return instance


def _fill_dataclass(cls: Class, instance: Instance, given: Arguments) -> None:
    names = [
        one.target.id
        for one in cls.node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    ]
    instance.attributes.update(zip(names, given.positional, strict=False))
    instance.attributes.update(given.keywords)


def run_instance(m: Machine, instance: Instance, given: Arguments, node: ast.Call) -> Value:
    """`instance(...)`: `forward` of a module, `__call__` of anything else."""
    for name in ("forward", "__call__") if instance.cls.kind == "module" else ("__call__",):
        found = definitions.find_method(instance.cls, name)
        if found:
            cls, body = found
            function = Function(body, cls.source, (cls.scope,), instance, cls)
            result = invoke(m, function, given.positional, given.keywords, node, given.rest)
            return leaks.called(m, result, instance.cls.node.name, node)
    if instance.cls.kind == "module":
        inner = instance.attributes.get("*")
        if type(inner) is Layer:
            return run_layer(m, inner, given, node)
        base = definitions.library_base(instance.cls).rpartition(".")[2]
        if base in LAYERS:
            return run_layer(m, Layer(base, LAYERS[base], instance.storage), given, node)
    return module_result(m, given)


def module_result(m: Machine, given: Arguments) -> Value:
    """What a module that cannot be looked into returns: a tensor of the graph, most likely."""
    tensors = operations.tensors_of(given.all)
    result = m.fresh(THING, LIKELY, tuple(tensors))
    return result


def run_layer(m: Machine, layer: Layer, given: Arguments, node: ast.Call) -> Value:
    """`layer(...)`."""
    hook = m.graphs.hooked.get(layer.storage) if m.graphs.hooked else None
    if hook is not None and given.positional:
        given.positional[0] = refused_writes.behind_hook(m, given.positional[0], hook)
    result = _run_layer(m, layer, given, node)
    for one in memories(result):
        if one.made is None and one.base is None and not one.leaf:
            one.made = known.here(m, layer.name, node)
    if m.books.hooked:
        hooks.ran(m, layer.storage, result)
    return refused_writes.behind_hook(m, result, hook) if hook is not None else result


def _run_layer(m: Machine, layer: Layer, given: Arguments, node: ast.Call) -> Value:
    if layer.name == "Identity":
        return given.positional[0] if given.positional else NOTHING_KNOWN
    if layer.name == "Sequential":
        value: Value = given.positional[0] if given.positional else m.thing()
        for child in layer.children:
            value = dispatch(m, child, Arguments([value]), node)
        return value
    operands = given.positional or list(given.keywords.values())
    tensors = operations.tensors_of(operands)
    if layer.op is None or not tensors:
        result = _unknown_layer(m, layer, tensors)
        if layer.name in recurrent.LAYERS:
            recurrent.lay_out(m, layer, result, node)
        return result
    for tensor in tensors[:2]:
        tensor.kind = TENSOR if tensor.kind == THING else tensor.kind
    return _known_layer(m, layer, layer.op, operands, tensors, node)


def _unknown_layer(m: Machine, layer: Layer, tensors: list[Memory]) -> Value:
    own = YES if layer.name in _KNOWN_PARAMETERS else LIKELY
    if _WITHOUT_PARAMETERS.search(layer.name):
        own = NO
    grad = max([own, *(tensor.grad for tensor in tensors)])
    kind = TENSOR if layer.name in _KNOWN_PARAMETERS else THING
    cuts = operations.cuts_of(list(tensors))
    weight = (of_weight(m, layer),) if kind == TENSOR else ()

    def result(*parents: Memory) -> Memory:
        made = m.fresh(kind, grad, parents)
        made.cuts = cuts
        return made

    first = result(*tensors, *weight)
    if layer.name not in _SEVERAL:
        return first
    if layer.name == "LSTM":  # all of them come from one node of the graph
        return Sequence([first, Sequence([result(first), result(first)], None, "tuple")], None, "tuple")
    return Sequence([first, result(first)], None, "tuple")


def _known_layer(
    m: Machine, layer: Layer, known: LayerOp, operands: list[Value], tensors: list[Memory], node: ast.Call
) -> Value:
    first = operands[0]
    if layer.inplace and type(first) is Memory:
        m.books.inplace = m.books.inplace_layers.get(layer.storage)
        written = operations.in_place(m, known.op, first, operands[1:], node)
        m.books.inplace = None
        return written
    if known.owns_parameters:
        return _with_parameters(m, layer, known.op, operands, tensors, node)
    return operations.compute(m, known.op, operands, tensors, node)


def _with_parameters(
    m: Machine, layer: Layer, op: Op, operands: list[Value], tensors: list[Memory], node: ast.Call
) -> Value:
    weight = of_weight(m, layer)
    if layer.name.startswith("Embedding") and "max_norm" in layer.options:
        grad_on, m.grad_on = m.grad_on, False
        operations.write(m, weight, "embedding_renorm_", node)
        m.grad_on = grad_on
    grad = max(weight.grad, tensors[0].grad if op.name != "embedding" else NO)
    result = m.fresh(TENSOR, grad, (*tensors, weight))
    result.dtype = Dtype.FLOAT
    if op.name.startswith("conv"):
        result.form = shapes.of_convolution(tensors, layer.options)
    else:
        result.form = shapes.of_result(m, op.name, operands, tensors)
    result.cuts = operations.cuts_of(list(operands))
    if result.grad >= LIKELY and op.saves is not Saves.NOTHING:
        kept = [tensors[0]] if weight.grad >= LIKELY or op.saves is Saves.INPUT else []
        if tensors[0].grad >= LIKELY:
            kept.append(weight)
        m.hazards.save(operations.grad_name(op.name), node, result, *kept)
    return result


def of_weight(m: Machine, layer: Layer) -> Memory:
    weight = of_layer(m, layer, "weight")
    return weight if type(weight) is Memory else m.fresh(TENSOR)  # a program may put anything in its place


def call_method(m: Machine, receiver: Layer | Instance, name: str, given: Arguments, node: ast.Call) -> Value:
    """A method that every module has."""
    if type(receiver) is Instance and receiver.cls.kind == "context":
        return autograd_functions.context_call(m, receiver, name, given)
    if name in ("parameters", "named_parameters", "state_dict", "load_state_dict"):
        return training.of_module(m, receiver, name, given, node)
    if name in (
        "to",
        "cuda",
        "cpu",
        "train",
        "eval",
        "half",
        "float",
        "double",
        "apply",
        "share_memory",
        "bfloat16",
    ):
        ties.converted(m, receiver, name, given.all, node)
        return receiver
    if name == "requires_grad_":
        if given.all and given.flag("requires_grad", 0) is not True:
            known.freeze(m, receiver)
            freeze(receiver)
        else:
            known.thaw(m, receiver)
        return receiver
    if type(receiver) is Instance and name in ("register_buffer", "register_parameter"):
        if name == "register_buffer" and given.flag("persistent", 2) is not False:
            overlaps.held_by_module(m, given.get(1, "tensor"), "Module.load_state_dict", node)
        return _register(m, receiver, name, given)
    if name == "zero_grad":
        leaks.zeroed(m, (receiver.storage,))
        return NOTHING_KNOWN
    if name == "register_forward_hook":
        hooks.registered(m, receiver.storage, given)
    if name == "get_submodule" and type(receiver) is Layer:
        return hooks.submodule(receiver, given) or unknown(m, given, name)
    if name in ("register_full_backward_hook", "register_full_backward_pre_hook"):
        return refused_writes.hook(m, receiver.storage, name, node)
    if name in ("modules", "children", "named_modules", "named_children"):
        return _modules(m, receiver, name)
    if name == "append" and given.positional:
        repeats.appended(m, given.positional[0], node)
        repeats.adopted(m, given.positional[0], node)
    if name in ("append", "extend", "insert", "add_module", "register_module"):
        return _append(m, receiver, given)
    if name == "forward":
        if type(receiver) is Layer:
            return run_layer(m, receiver, given, node)
        base = definitions.library_base(receiver.cls).rpartition(".")[2] if type(receiver) is Instance else ""
        if base in LAYERS:
            return run_layer(m, Layer(base, LAYERS[base], receiver.storage), given, node)
    if name in ("items", "values", "keys") and type(receiver) is Layer:
        pairs: list[Value] = [Sequence([NOTHING_KNOWN, child], None, "tuple") for child in receiver.children]
        return Sequence(pairs if name == "items" else list(receiver.children))
    if type(receiver) is Layer and receiver.attributes.get(name) is not None:
        return dispatch(m, receiver.attributes[name], given, node)
    return unknown(m, given, name)


def freeze(receiver: Layer | Instance) -> None:
    """`requires_grad_(False)`."""
    for value in receiver.attributes.values():
        if type(value) is Memory and value.leaf:
            value.grad = NO
        elif isinstance(value, Layer | Instance):
            freeze(value)


def _register(m: Machine, receiver: Instance, name: str, given: Arguments) -> Value:
    key, value = given.get(0, "name"), given.get(1, "tensor") or given.get(1, "param")
    if type(key) is Constant and isinstance(key.value, str) and value is not None:
        m.bind(receiver.attributes, key.value, value)
        if type(value) is Memory:
            m.past.put_inside(value.storages[0], receiver.storage)
            if name == "register_buffer":
                m.books.buffers.add(value.storages[0])
    return NOTHING_KNOWN


def _append(m: Machine, receiver: Layer | Instance, given: Arguments) -> Value:
    if type(receiver) is Layer and given.positional:
        for child in flattened(Arguments(given.positional[-1:]), m):
            receiver.children.append(child)
            adopt(m, child, receiver)
    return receiver


def _modules(m: Machine, receiver: Layer | Instance, name: str) -> Value:
    found: list[Value] = []
    _collect(receiver, found, name.endswith("modules"))
    if name.startswith("named"):
        return Sequence([Sequence([NOTHING_KNOWN, one], None, "tuple") for one in found])
    return Sequence(found)


def _collect(owner: Value, found: list[Value], deep: bool) -> None:
    if owner in found or len(found) > 40:
        return
    if deep:
        found.append(owner)
    children = owner.children if type(owner) is Layer else []
    if type(owner) is Instance:
        children = [value for value in owner.attributes.values() if isinstance(value, Layer | Instance)]
    for child in children:
        if deep:
            _collect(child, found, True)
        else:
            found.append(child)
