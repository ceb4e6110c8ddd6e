"""In-place layers that overwrite an input which somebody still reads: a skip, a list, a forward hook."""

from __future__ import annotations

import ast
import functools
import inspect
import weakref
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType, MethodType
from typing import Any

import torch

from tensafe.facts import Certainty, Kind, Moment, Site
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.calling import Caller, outside
from tensafe.runtime.places.frames import INTERNAL, Place, site_of, user_places
from tensafe.runtime.places.reading import read_after, syntax_in
from tensafe.runtime.places.source import expressions_at, site_of_node, syntax_of
from tensafe.runtime.places.variables import attribute, first_argument, held, shares
from tensafe.runtime.places.writing import scope_of
from tensafe.runtime.storages.ledger import clock
from tensafe.runtime.storages.weak import WeakFacts
from tensafe.syntax.chains import alias_of, made_from
from tensafe.syntax.reading import binds, dotted

MOST_HOOKS = 256
NEVER_NEGATIVE = ("Relu", "Sigmoid", "Softmax", "Exp", "Abs")
POOLING = ("MaxPool", "AvgPool", "AdaptiveAvgPool", "View", "Dropout")
KEEPERS = frozenset({"append", "insert", "add", "extend", "setdefault"})

Report = Callable[..., bool]


class Overwritten:
    """Looks at writes that a layer of the library makes on behalf of a line of the program."""

    def __init__(self, report: Report, guarded: Callable[..., Any]) -> None:
        self._report = report
        self._guarded = guarded
        self._made: WeakFacts[tuple[Place, ...]] = WeakFacts()  # in-place layers
        self._hooks: list[weakref.ref[Any]] = []

    def install(self, patches: Patches) -> None:
        for layer in _inplace_layers():
            patches.wrap(layer, "__init__", self._layer)
        patches.wrap(torch.nn.Module, "register_forward_hook", self._register)

    def _layer(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def put(layer: Any) -> None:
            if getattr(layer, "inplace", False) is True:
                self._made.put(layer, user_places(4, 3))

        remember = self._guarded("an in-place layer", put)

        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            call(self, *args, **kwargs)
            remember(self)

        return functools.update_wrapper(init, call)

    def _register(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def put(hook: Any) -> None:
            if len(self._hooks) < MOST_HOOKS and isinstance(hook, FunctionType | MethodType):
                own = weakref.WeakMethod(hook) if isinstance(hook, MethodType) else weakref.ref(hook)
                self._hooks.append(own)

        remember = self._guarded("a forward hook", put)

        def register_forward_hook(self: Any, hook: Any, *args: Any, **kwargs: Any) -> Any:
            remember(hook)
            return call(self, hook, *args, **kwargs)

        return functools.update_wrapper(register_forward_hook, call)

    def by_library(self, op: str, target: torch.Tensor, arguments: tuple[Any, ...]) -> bool:
        """Whether a frame of the library makes this write; if so, it is looked at here."""
        frame = outside(3)
        if frame is None or not INTERNAL[frame.f_code.co_filename]:
            return False
        if op.startswith("Tensor.") or _does_nothing(op, target, arguments):
            return True
        user: FrameType | None = frame
        while user is not None and INTERNAL[user.f_code.co_filename]:
            user = user.f_back
        if user is not None:
            caller, storage = Caller(user), target.untyped_storage()
            made = self._layer_site(frame)
            for look in (self._hooked, self._read_again, self._collected):
                if look(op, caller, storage, made):
                    break
        return True

    def _layer_site(self, frame: FrameType | None) -> tuple[Moment, ...]:
        """Where the layer that runs was told to work in place."""
        while frame is not None and INTERNAL[frame.f_code.co_filename]:
            if frame.f_code.co_name == "forward":
                places = self._made.get(first_argument(frame))
                if places:
                    site = next((site for place in places if (site := _asks(place))), site_of(places[0]))
                    return (Moment(Kind.MADE, "", site, next(clock)),)
            frame = frame.f_back
        return ()

    def _read_again(self, op: str, caller: Caller, storage: Any, made: tuple[Moment, ...]) -> bool:
        """`out = self.act(x)`, and `x` is read afterwards as if it were unchanged."""
        call, statement = caller.call, caller.statement
        if call is None or statement is None or isinstance(statement, ast.Expr):
            return False
        scope = scope_of(caller.place, statement)
        for argument in call.args:
            if not isinstance(argument, ast.Name | ast.Attribute) or scope is None:
                continue
            name = dotted(argument)
            if not shares(caller.names.value(argument), storage):
                continue
            if self._kept_name_read(op, caller, call, name, storage, made):
                return True
            later = [
                node
                for node in syntax_in(scope).reads(statement, name)
                if node is not argument and _position(node) > _position(call)
            ]
            if not later and (binds(statement, name) or isinstance(statement, ast.Return)):
                return False
            read = later[0] if later else read_after(caller.place, statement, name)
            if read is not None:
                trail = (*made, _read(caller.place, read))
                return self._report(site_of_node(caller.place, call), op, "layer", trail, Certainty.DID, name)
        return False

    def _kept_name_read(
        self, op: str, caller: Caller, call: ast.Call, name: str, storage: Any, made: tuple[Moment, ...]
    ) -> bool:
        """`identity = x; x = self.act(x)`, and `identity` is read afterwards as if it were unchanged."""
        statement = caller.statement
        scope = scope_of(caller.place, statement) if statement is not None else None
        if statement is None or scope is None:
            return False
        syntax = syntax_in(scope)
        for kept, value in caller.names.own.items():
            if kept == name or not shares(value, storage):
                continue
            origin = made_from(syntax, kept, statement.lineno - 1)
            if origin is None or dotted(origin.root) != name or origin.makers:
                continue
            here = syntax.reads(statement, kept)
            later = [node for node in here if _position(node) > _position(call)]
            read = later[0] if later else read_after(caller.place, statement, kept)
            if read is not None:
                trail = (*made, _read(caller.place, read))
                return self._report(site_of_node(caller.place, call), op, "layer", trail, Certainty.DID, kept)
        return False

    def _collected(self, op: str, caller: Caller, storage: Any, made: tuple[Moment, ...]) -> bool:
        """The input was put into a list before, which is read afterwards."""
        statement = caller.statement
        scope = scope_of(caller.place, statement) if statement is not None else None
        if statement is None or scope is None:
            return False
        for name, container in caller.names.own.items():
            if type(container) not in (list, dict) or not any(
                shares(item, storage) for _, item in held(container, 64)
            ):
                continue
            kept = _kept_at(scope, name)
            if kept is None or read_after(caller.place, statement, name) is None:
                continue
            written = Moment(Kind.WRITTEN, op, caller.site, next(clock))
            site = site_of_node(caller.place, kept)
            return self._report(site, op, "collected", (*made, written), Certainty.MAY, name)
        return False

    def _hooked(self, op: str, caller: Caller, storage: Any, made: tuple[Moment, ...]) -> bool:
        """A forward hook kept the output of the layer before without a copy."""
        for ref in self._hooks:
            hook = ref()
            if hook is None:
                continue
            for site, container in _kept_by_hook(hook):
                values = (
                    [container] if isinstance(container, torch.Tensor) else [v for _, v in held(container)]
                )
                if any(shares(value, storage) for value in values):
                    written = Moment(Kind.WRITTEN, op, caller.site, next(clock))
                    return self._report(site, op, "hook", (*made, written), Certainty.DID)
        return False


def _does_nothing(op: str, target: torch.Tensor, arguments: tuple[Any, ...]) -> bool:
    """Dropout while evaluating; `relu_` of what is seen to come out of another one."""
    if "dropout" in op:
        return any(item is False for item in arguments)
    if not op.endswith(".relu_") or target.is_inference() or target._is_view():
        return False
    before = _first(target.grad_fn)
    while before is not None and before.name().startswith(POOLING):
        before = _first(before)
    return before is not None and before.name().startswith(NEVER_NEGATIVE)


def _first(node: Any) -> Any:
    """The node of the first operand."""
    return node.next_functions[0][0] if node is not None and node.next_functions else None


def _position(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _inplace_layers() -> Iterator[type]:
    """The layers of the library that can be told to work in place, and define that themselves."""
    for layer in (*vars(torch.nn).values(), torch.nn.modules.dropout._DropoutNd):
        if isinstance(layer, type) and "__init__" in vars(layer) and _takes_inplace(vars(layer)["__init__"]):
            yield layer


@functools.lru_cache(512)
def _takes_inplace(init: Callable[..., None]) -> bool:
    try:
        return "inplace" in inspect.signature(init).parameters
    except (TypeError, ValueError):
        return False


def _asks(place: Place) -> Site | None:
    """The line, if it says `inplace=True` itself."""
    for node in expressions_at(place):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == "inplace" and ast.unparse(keyword.value) == "True":
                    return site_of(place)
            if any(isinstance(item, ast.Constant) and item.value is True for item in node.args):
                return site_of(place)
    return None


def _kept_at(scope: ast.AST, name: str) -> ast.expr | ast.stmt | None:
    """The statement that puts a tensor as it is into the list or dict of this name."""
    for node in ast.walk(scope):
        kept, value = _container(node)
        if kept is None or value is None or not isinstance(node, ast.expr | ast.stmt):
            continue
        if dotted(kept) == name and alias_of(value) is not None:
            return node
    return None


def _container(node: ast.AST) -> tuple[ast.expr | None, ast.expr | None]:
    """The container, or attribute, that a statement puts a value into, and the value."""
    if isinstance(node, ast.Assign):
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            return target.value, node.value
        return (target, node.value) if isinstance(target, ast.Attribute) else (None, None)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in KEEPERS:
        return node.func.value, node.args[-1] if node.args else None
    return None, None


def _kept_by_hook(hook: Any) -> Iterator[tuple[Site, Any]]:
    """The statements of a hook that keep its output as it is, with what they keep it in."""
    function = hook.__func__ if isinstance(hook, MethodType) else hook
    code = function.__code__
    place: Place = (code, 0)
    syntax = syntax_of(code.co_filename)
    if syntax is None or INTERNAL[code.co_filename]:
        return
    arguments = code.co_varnames[: code.co_argcount]
    output = arguments[-1] if len(arguments) > 2 else ""
    for tree in syntax.parents:
        lines = getattr(tree, "lineno", 0)
        if not isinstance(tree, ast.FunctionDef | ast.Lambda) or lines != code.co_firstlineno:
            continue
        for node in ast.walk(tree):
            kept = _keeps(node, output)
            if kept is not None and isinstance(node, ast.expr | ast.stmt):
                yield site_of_node(place, node), _value(kept, function, hook)


def _keeps(node: ast.AST, output: str) -> ast.expr | None:
    """The container, or attribute, that gets the output as it is."""
    kept, value = _container(node)
    alias = alias_of(value) if value is not None else None
    return kept if alias is not None and dotted(alias[0]) == output else None


def _value(node: ast.expr, function: Any, hook: Any) -> Any:
    """What an expression holds, seen from inside a function."""
    if isinstance(node, ast.Name):
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
            if name == node.id:
                return _content(cell)
        if isinstance(hook, MethodType) and node.id == function.__code__.co_varnames[0]:
            return hook.__self__
        return function.__globals__.get(node.id)
    if isinstance(node, ast.Attribute):
        return attribute(_value(node.value, function, hook), node.attr)
    return None


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _read(place: Place, node: ast.expr) -> Moment:
    return Moment(Kind.COPIED, "", site_of_node(place, node), next(clock), note="read")
