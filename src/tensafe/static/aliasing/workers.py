"""What a `DataLoader` does with its dataset in other processes: caches lost, state unseen, batches kept."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensafe.facts import Certainty, Kind, Moment
from tensafe.facts import Value as Fact
from tensafe.static import definitions
from tensafe.static.aliasing.meant import mentions
from tensafe.static.arguments import Arguments
from tensafe.static.invocation import invoke
from tensafe.static.machine import Machine
from tensafe.static.values import (
    NONE,
    NOTHING_KNOWN,
    Class,
    Constant,
    Frame,
    Function,
    Instance,
    Mapping,
    Memory,
    Scalar,
    Sequence,
    Value,
)
from tensafe.syntax.reading import dotted

_FETCHES = ("__getitem__", "__getitems__", "__iter__")
Method = ast.FunctionDef | ast.AsyncFunctionDef


def loader(m: Machine, given: Arguments, node: ast.Call, made: Memory) -> None:
    """`DataLoader(dataset, ...)`: its items come from `__getitem__`, perhaps in other processes."""
    dataset, workers = given.get(0, "dataset"), given.get(5, "num_workers")
    has_workers = workers is not None and not (type(workers) is Constant and not workers.value)
    stays = given.flag("persistent_workers") is True
    if has_workers and type(workers) is Constant:
        m.books.loaders[made.storages[0]] = m.moment(Kind.SHARED, "", node, note="workers")
    if type(dataset) is Instance:
        empty = {name for name, value in dataset.attributes.items() if _is_empty(value)}
        fetch(m, dataset, Scalar(), node)
        if has_workers and stays:
            m.books.in_workers[id(dataset)] = (dataset, m.moment(Kind.SHARED, "", node, note="workers"))
        elif has_workers:
            _look_for_cache(m, dataset, empty, node, type(workers) is Constant)


def fetch(m: Machine, dataset: Instance, index: Value, node: ast.AST) -> Value:
    """`dataset[index]`."""
    found = definitions.find_method(dataset.cls, "__getitem__")
    if found is None:
        return NOTHING_KNOWN
    cls, body = found
    return invoke(m, Function(body, cls.source, (cls.scope,), dataset, cls), [index], {}, node)


def _look_for_cache(m: Machine, dataset: Instance, empty: set[str], node: ast.AST, certain: bool) -> None:
    """An attribute that the dataset fills while it fetches, reads again, and has in private memory."""
    for cls, method in _fetching(dataset.cls):
        for part in ast.walk(method):
            name = _filled(part)
            if name not in empty or not _is_asked(method, name):
                continue
            made = _made(dataset.cls, name)
            frame = Frame(cls.source, {}, (), f"{cls.node.name}.{method.name}")
            if m.books.tells((cls.source.path, "cache", getattr(part, "lineno", 0))):
                start = (_at(m, made),) if made is not None else ()
                trail = (*start, m.moment(Kind.SHARED, "", node, note="workers"))
                certainty = Certainty.MAY if certain else Certainty.OFTEN_MEANT
                values = {"shared": Fact(frozenset(), trail, f"self.{name}")}
                m.put(Kind.SHARED, "", part, frame, values, certainty=certainty, note="cache")
            return


def _at(m: Machine, made: tuple[Class, ast.AST]) -> Moment:
    cls, node = made
    return Moment(Kind.MADE, "", cls.source.site(node, f"{cls.node.name}.__init__"), m.past.tick())


def _fetching(cls: Class) -> list[tuple[Class, Method]]:
    """The methods that fetch a sample, and those that they call on the object itself."""
    reached = [found for name in _FETCHES if (found := definitions.find_method(cls, name)) is not None]
    for _, method in reached:
        for node in ast.walk(method):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called = definitions.find_method(cls, node.func.attr) if _is_self(node.func.value) else None
                if called is not None and called not in reached and len(reached) < 12:
                    reached.append(called)
    return reached


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _filled(node: ast.AST) -> str:
    """The attribute in `self.cache[key] = value`."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Constant):
            holder = target.value
            if isinstance(holder, ast.Attribute) and _is_self(holder.value):
                return holder.attr
    return ""


def _is_asked(method: ast.AST, name: str) -> bool:
    """Whether the method that fills the attribute also asks whether it is there already."""
    text = f"self.{name}"
    for node in ast.walk(method):
        if isinstance(node, ast.If | ast.IfExp) and mentions([node.test], text) and _names(node.test, text):
            return True
        if isinstance(node, ast.Call) and dotted(node.func) == f"{text}.get":
            return True
        if isinstance(node, ast.Try) and any(_names(item, text) for item in node.body):
            return True
    return False


def _names(part: ast.AST, text: str) -> bool:
    return any(isinstance(node, ast.Attribute) and dotted(node) == text for node in ast.walk(part))


def _made(cls: Class, name: str) -> tuple[Class, ast.AST] | None:
    """The statement of a constructor that makes the attribute."""
    found = definitions.find_method(cls, "__init__")
    for node in ast.walk(found[1]) if found is not None else ():
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if any(isinstance(target, ast.Attribute) and target.attr == name for target in targets):
            assert found is not None
            return found[0], node
    return None


def _is_empty(value: Value) -> bool:
    """Whether a value is an empty dict, or a list of `None`."""
    if type(value) is Mapping:
        return not value.items and value.rest is None
    if type(value) is Sequence and value.items:
        return all(
            type(item) is Constant and item.value is None for item in (*value.items, value.rest or NONE)
        )
    return False


def attribute_set(m: Machine, owner: Instance, name: str, value: Value, target: ast.AST) -> None:
    """An attribute of a dataset is set while workers that stay alive have it as it was."""
    known = m.books.in_workers.get(id(owner))
    if known is None or not isinstance(value, Constant | Scalar) or name.startswith("_"):
        return
    read = next(_read_in(owner.cls, name), None)
    if read is None:
        return
    cls, node = read
    if m.books.tells((m.frame.source.path, "state", getattr(target, "lineno", 0))):
        frame = Frame(cls.source, {}, (), cls.node.name)
        reading = Moment(Kind.COPIED, "", frame.source.site(node, frame.label), m.past.tick())
        values = {"shared": Fact(frozenset(), (reading, known[1]), f"self.{name}")}
        m.put(Kind.SHARED, "", target, m.frame, values, note="state")


def _read_in(cls: Class, name: str) -> Iterator[tuple[Class, ast.AST]]:
    """Where fetching reads an attribute that it does not set itself."""
    for owner, method in _fetching(cls):
        nodes = [node for node in ast.walk(method) if isinstance(node, ast.Attribute) and node.attr == name]
        if any(isinstance(node.ctx, ast.Store) for node in nodes):
            return
        yield from ((owner, node) for node in nodes if _is_self(node.value))


def kept(m: Machine, value: Value, node: ast.Call) -> None:
    """`kept.append(batch)`: a batch is kept as a worker sent it."""
    if type(value) is not Memory or value.moved or type(value.owner) is not Memory or not node.args:
        return
    received = m.books.loaders.get(value.owner.storages[0]) if value.owner.storages else None
    if received is None or not isinstance(node.args[0], ast.Name):
        return
    if m.books.tells((m.frame.source.path, "batches", node.lineno)):
        values = {"shared": Fact(frozenset(), (received,))}
        m.put(Kind.SHARED, "", node, m.frame, values, certainty=Certainty.OFTEN_MEANT, note="kept")
