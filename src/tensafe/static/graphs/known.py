"""What is known of graphs in the root at work: whether it records, what was frozen or hooked."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tensafe.facts import Kind, Moment
from tensafe.static.past import history
from tensafe.static.values import LIKELY, NO, TENSOR, THING, YES, Instance, Layer, Made, Memory, Optimizer

if TYPE_CHECKING:
    from tensafe.static.machine import Machine
    from tensafe.static.values import Value

MOST_VIEWS = 20


class Known:
    """The facts about graphs that no single value carries."""

    def __init__(self) -> None:
        self.from_top = False  # the root is the file's own statements: nobody calls it under `no_grad`
        self.first_storage = 0  # storages from here on were made by the root itself
        self.optimizers: list[Optimizer] = []  # those that the program's own statements step
        self.refusal_expected = 0  # how many `try` and `raises` around wait for PyTorch's error
        self.inferring = False  # inside `torch.inference_mode()`
        self.handed: set[int] = set()  # storages of modules that a call out of sight was given
        self.frozen: set[int] = set()  # storages of modules whose parameters require no gradient
        self.normed: dict[int, Moment] = {}  # storages of layers under the older `weight_norm`, and where
        self.hooked: dict[int, Moment] = {}  # storages of layers with a full backward hook, and where

    def begin(self, from_top: bool, first_storage: int) -> None:
        """A new root starts."""
        self.from_top, self.first_storage = from_top, first_storage
        self.refusal_expected, self.inferring = 0, False
        self.hooked.clear()
        self.handed.clear()
        self.optimizers.clear()


def here(m: Machine, op: str, node: ast.AST) -> Made:
    """What happens now, at this node."""
    return (op, node, m.frame.source, m.frame.label)


def moment_of(made: Made, kind: Kind, note: str = "") -> Moment:
    """The moment at which something was made or kept."""
    op, node, source, label = made
    return Moment(kind, op, source.site(node, label), 0, note=note)


def made_of(tensor: Memory) -> Made | None:
    """The operation that gave a tensor, or the one that it is a view of."""
    memory = tensor
    for _ in range(MOST_VIEWS):
        if memory.made is not None or memory.leaf or not memory.parents:
            break
        memory = memory.base or memory.parents[0]
    return memory.made


def past_of(tensor: Memory) -> tuple[Moment, ...]:
    """Where a tensor was made, and where it was put into something that keeps it."""
    made = made_of(tensor)
    past = [moment_of(made, Kind.MADE)] if made is not None else []
    return (*past, moment_of(tensor.kept, Kind.KEPT)) if tensor.kept is not None else tuple(past)


def always_trains(m: Machine) -> bool:
    """Whether the modules of this program are in training mode for certain: nobody ever switches it."""
    text = m.source.text
    return m.graphs.from_top and ".eval(" not in text and ".train(" not in text and ".training =" not in text


def records(m: Machine, tensor: Memory) -> bool:
    """Whether autograd certainly records what happens here to this tensor."""
    known = m.graphs
    if not m.trains or known.refusal_expected:
        return False
    return known.from_top or bool(m.backwards) or is_new(m, tensor)


def surely_requires_grad(m: Machine, tensor: Memory) -> bool:
    """Whether a tensor requires grad for certain, whoever calls this function."""
    if tensor.kind != TENSOR or tensor.hidden or tensor.joined or m.graphs.refusal_expected or m.evaluates:
        return False
    if tensor.leaf or m.graphs.from_top or m.backwards:
        return True
    return any(one.leaf and one.grad == YES and _is_made_here(m, one) for one in history(tensor, 200))


def _is_made_here(m: Machine, leaf: Memory) -> bool:
    """Whether the root at work made a leaf that requires grad itself, so that it records on purpose."""
    return leaf.owner is None and leaf.storages[0] > m.graphs.first_storage


def is_new(m: Machine, tensor: Memory) -> bool:
    """Whether a leaf was made in the root at work, or in a constructor."""
    if tensor.base is not None and not tensor.leaf:
        return is_new(m, tensor.base)
    owner = tensor.owner
    storage = owner.storage if isinstance(owner, Layer | Instance) else tensor.storages[0]
    return tensor.leaf and storage > m.graphs.first_storage


def is_frozen(m: Machine, storage: int) -> bool:
    """Whether the parameters in this storage were told to require no gradient."""
    frozen = m.graphs.frozen
    return bool(frozen) and (storage in frozen or any(one in frozen for one in m.past.around(storage)))


def may_be_replaced(m: Machine, leaf: Memory) -> bool:
    """Whether somebody out of sight was given the module of a parameter, and may have given it another."""
    handed = m.graphs.handed
    return bool(handed) and any(storage in handed for storage in m.past.around(leaf.storages[0]))


def freeze(m: Machine, value: Value) -> None:
    """`requires_grad_(False)` of a module or of one tensor."""
    if isinstance(value, Layer | Instance):
        m.graphs.frozen.add(value.storage)
    elif type(value) is Memory:
        m.graphs.frozen.update(value.storages)


def live_leaf(tensor: Memory) -> Memory | None:
    """The leaf that requires grad which this tensor is, or is a view of."""
    memory: Memory | None = tensor
    while memory is not None and memory.exact and not memory.joined and not memory.moved:
        if memory.leaf:
            return memory if memory.grad == YES and not memory.hidden else None
        memory = memory.base
    return None


def thaw(m: Machine, value: Layer | Instance) -> None:
    """`requires_grad_()` of a module."""
    m.graphs.frozen -= {value.storage, *m.past.within(value.storage)}


def set_requires_grad(m: Machine, tensor: Memory, wanted: bool, node: ast.AST | None = None) -> None:
    """`tensor.requires_grad = wanted`; what is not known to be true counts as false."""
    if tensor.kind == THING and node is not None:
        tensor.kind = TENSOR
    if not wanted:
        if tensor.leaf or tensor.owner is not None:
            freeze(m, tensor)
        tensor.grad = NO
    elif m.path:  # on one way of several: what follows may have come by another
        tensor.grad, tensor.leaf, tensor.joined = max(tensor.grad, LIKELY), tensor.grad < YES, True
    elif tensor.grad < YES and (tensor.kind == TENSOR or node is None):
        tensor.grad, tensor.leaf = YES, True
        where = node or m.statement
        tensor.made = here(m, "requires_grad_", where) if where is not None else None
