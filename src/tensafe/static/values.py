"""The abstract values of the interpreter: what a name can stand for, as far as memory and graph go."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tensafe.facts import Moment
from tensafe.ops import Dtype, LayerOp

if TYPE_CHECKING:
    from tensafe.static.forms import Form
    from tensafe.static.source import Source

# Whether a value is part of a graph. LIKELY is a float tensor that a training step hands in.
NO, UNKNOWN, LIKELY, YES = range(4)


class Value:
    """Anything a name can stand for; itself, it is something of which nothing is known."""

    __slots__ = ()


class Opaque(Value):
    """A value that cannot share memory with a tensor: a number, a string, a configuration."""

    __slots__ = ()


NOTHING_KNOWN = Opaque()


class Constant(Value):
    """A literal of the source."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


NONE = Constant(None)


class Cut:
    """Where a value left its graph, and the value that still had it."""

    __slots__ = ("moment", "rebuilt", "scored", "source")

    def __init__(self, moment: Moment, source: Memory, rebuilt: bool) -> None:
        self.moment = moment
        self.source = source
        self.rebuilt = rebuilt  # made anew with torch.tensor, which nobody does to stop a gradient
        self.scored = False  # handed to a network as it is


class Memory(Value):
    """A tensor, an array, or a thing that may be one: its storages and its place in the graph."""

    __slots__ = (
        "base",
        "children",
        "cuts",
        "data",
        "dtype",
        "exact",
        "folded",
        "form",
        "grad",
        "hidden",
        "joined",
        "kept",
        "kind",
        "label",
        "leaf",
        "made",
        "maybe_number",
        "moved",
        "owner",
        "parents",
        "spread",
        "storages",
        "trail",
        "via",
    )

    def __init__(
        self, kind: str, storages: tuple[int, ...], grad: int, parents: tuple[Memory, ...] = ()
    ) -> None:
        self.kind = kind
        self.storages = storages
        self.grad = grad
        self.parents = parents
        self.dtype = Dtype.UNKNOWN
        self.exact = True  # lives in these storages for certain
        self.hidden = False  # writes through it pass autograd's version counter
        self.leaf = False
        self.moved = False  # by `.to(...)`, which copies a tensor and returns a module itself
        self.spread = False  # has at least one dimension, so that it copies when used as an index
        self.maybe_number = False  # an item of an array, which is a number if that has one dimension
        self.data = False  # made of numbers alone: it has no history until something live is written into it
        self.folded: Moment | None = None  # where several of its elements became one place in memory
        self.base: Memory | None = None
        self.cuts: tuple[Cut, ...] = ()
        self.trail: tuple[Moment, ...] = ()
        self.children: dict[object, Value] | None = None
        self.owner: Value | None = None
        self.label = ""
        self.joined = False  # one of several values, by a condition that is not known
        self.made: Made | None = None
        self.form: Form | None = None  # how it lies in its memory
        self.via: Made | None = None  # the call of the module that gave it
        self.kept: Made | None = None  # where it was put into a list or an attribute

    def __repr__(self) -> str:
        return f"Memory({self.kind}, {self.storages}, grad={self.grad})"


Made = tuple[str, ast.AST, "Source", str]
"""An operation, and where it was done: node, file and function."""

THING = "thing"  # may be a tensor, a number, a module, anything
TENSOR = "tensor"
ARRAY = "array"
POINTER = "pointer"


class Scalar(Value):
    """A Python number taken out of a tensor."""

    __slots__ = ("cuts",)

    def __init__(self, cuts: tuple[Cut, ...] = ()) -> None:
        self.cuts = cuts


class Sequence(Value):
    """A list, tuple or generator: the items known one by one, and one that stands for all others."""

    __slots__ = ("items", "kind", "rest", "trail")

    def __init__(self, items: list[Value], rest: Value | None = None, kind: str = "list") -> None:
        self.items = items
        self.rest = rest
        self.kind = kind
        self.trail: tuple[Moment, ...] = ()


class Mapping(Value):
    """A dict: the values of known keys, and one that stands for all others."""

    __slots__ = ("factory", "items", "rest", "trail")

    def __init__(self, items: dict[object, Value], rest: Value | None = None) -> None:
        self.items = items
        self.rest = rest
        self.factory = ""  # "list" or "dict": what a `defaultdict` makes for a key that is not there
        self.trail: tuple[Moment, ...] = ()


class State(Value):
    """A `state_dict()` or the parameters of a module, live."""

    __slots__ = ("kind", "owner", "storages", "trail")

    def __init__(
        self, kind: str, owner: Value, storages: tuple[int, ...], trail: tuple[Moment, ...] = ()
    ) -> None:
        self.kind = kind  # "state_dict", "parameters", "named_parameters", "optimizer"
        self.owner = owner
        self.storages = storages
        self.trail = trail


class Library(Value):
    """A name of torch, NumPy or another library, or one imported from another file of the project."""

    __slots__ = ("level", "origin", "path")

    def __init__(self, path: str, origin: Source | None = None, level: int = 0) -> None:
        self.path = path
        self.origin = origin  # the file that imports it, where it may belong to the project
        self.level = level


class Method(Value):
    """A method of a built-in kind of value, not called yet."""

    __slots__ = ("name", "receiver")

    def __init__(self, receiver: Value, name: str) -> None:
        self.receiver = receiver
        self.name = name


class Function(Value):
    """A function of the project, perhaps bound to its instance."""

    __slots__ = ("closure", "node", "owner", "receiver", "source")

    def __init__(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        source: Source,
        closure: tuple[Scope, ...] = (),
        receiver: Value | None = None,
        owner: Class | None = None,
    ) -> None:
        self.node = node
        self.source = source
        self.closure = closure
        self.receiver = receiver
        self.owner = owner


Scope = dict[str, Value]


class Class(Value):
    """A class of the project: its methods, and the library class it descends from."""

    __slots__ = ("attributes", "bases", "kind", "methods", "node", "scope", "source")

    def __init__(self, node: ast.ClassDef, source: Source, bases: list[Value]) -> None:
        self.node = node
        self.source = source
        self.bases = bases
        self.methods: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self.attributes: Scope = {}
        self.kind = ""  # "module", "function" (torch.autograd.Function), "optimizer", "dataset" or ""
        self.scope: Scope = {}


class Instance(Value):
    """An object of a project class; a module owns one storage that stands for all its parameters."""

    __slots__ = ("attributes", "cls", "storage")

    def __init__(self, cls: Class, storage: int) -> None:
        self.cls = cls
        self.storage = storage
        self.attributes: Scope = {}


class Layer(Value):
    """A module of `torch.nn`, or of another library (`op` is None then)."""

    __slots__ = ("attributes", "children", "inplace", "name", "op", "options", "storage")

    def __init__(self, name: str, op: LayerOp | None, storage: int) -> None:
        self.name = name
        self.op = op
        self.storage = storage
        self.inplace = False
        self.options: dict[str, Value] = {}
        self.children: list[Value] = []
        self.attributes: Scope = {}


class Optimizer(Value):
    """An optimizer: the storages it steps, and one of its own for its state."""

    __slots__ = ("borrowers", "fused", "made", "name", "seen", "storage", "storages")

    def __init__(self, name: str, storages: tuple[int, ...], storage: int, fused: bool) -> None:
        self.name = name
        self.storages = storages
        self.storage = storage
        self.fused = fused
        self.made = 0  # when, in program order
        self.seen = 0  # how many backwards there were at its last step
        self.borrowers: list[Moment] = []  # where another optimizer took this one's state as its own


class Choice(Value):
    """One of several values, by a condition that is not known."""

    __slots__ = ("options",)

    def __init__(self, options: tuple[Value, ...]) -> None:
        self.options = options


class Save:
    """A tensor that autograd keeps: for which operation, from where, and on which path."""

    __slots__ = ("done", "frame", "memory", "node", "op", "order", "output", "path")

    def __init__(
        self, op: str, node: ast.AST, frame: Frame, order: int, path: Path, output: Memory, memory: Memory
    ) -> None:
        self.op = op
        self.node = node
        self.frame = frame
        self.order = order
        self.path = path
        self.output = output
        self.memory = memory
        self.done = False


class Frame:
    """One function at work: its names, where it was defined, and what it has returned so far."""

    __slots__ = (
        "closure",
        "label",
        "node",
        "owner",
        "returns",
        "scope",
        "self_value",
        "source",
        "trusted",
        "yields",
    )

    def __init__(self, source: Source, scope: Scope, closure: tuple[Scope, ...], label: str) -> None:
        self.source = source
        self.scope = scope
        self.closure = closure
        self.label = label
        self.node: ast.AST = source.tree  # the function, or the whole file
        self.owner: Class | None = None
        self.self_value: Value | None = None
        self.returns: list[Value] = []
        self.yields: list[Value] | None = None
        self.trusted = False  # what it returns goes into a backward


Path = tuple[tuple[object, int], ...]
"""The decisions taken so far: each condition, and which of its arms."""
