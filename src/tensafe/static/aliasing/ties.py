"""Tensors that were to be one memory are two: after a copy, a conversion, a load, or under an optimizer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensafe.facts import Kind, Moment
from tensafe.facts import Value as Fact
from tensafe.ops import words
from tensafe.static.aliasing.books import Copied, Held, Unlinked
from tensafe.static.aliasing.repeats import has_parameters
from tensafe.static.aliasing.writing import Writing, moment_in
from tensafe.static.iteration import view_of
from tensafe.static.machine import Machine
from tensafe.static.past import history
from tensafe.static.values import (
    YES,
    Frame,
    Instance,
    Layer,
    Mapping,
    Memory,
    Optimizer,
    Sequence,
    State,
    Value,
)
from tensafe.syntax.reading import dotted

CONVERTING = words("double half bfloat16 float cuda to")
_CERTAIN = words("double half bfloat16")


# --- an optimizer, and a module that is replaced after it was made


def optimizer_made(m: Machine, optimizer: Optimizer, node: ast.AST) -> None:
    """An optimizer takes the parameters of the modules that stand there now."""
    m.books.replaced = [
        (held, site) for held, site in m.books.replaced if not _steps(m, optimizer, held.module)
    ]
    m.books.optimizers.append((optimizer, m.moment(Kind.KEPT, "", node)))


def group_added(m: Machine, optimizer: Value) -> None:
    """`optimizer.add_param_group(...)`: what was replaced is known again."""
    m.books.replaced = [(held, site) for held, site in m.books.replaced if held.optimizer is not optimizer]


def module_stored(m: Machine, owner: Value, old: Value | None, value: Value, target: ast.expr) -> None:
    """A module of the model is replaced by a new one, which no optimizer made before can know."""
    if type(value) is Memory:
        if not (value.leaf and value.grad == YES and type(old) is Memory and old.leaf and old is not value):
            return
    elif not has_parameters(value) or not isinstance(old, Layer | Instance | Memory | None):
        return
    storages = (*_storages(owner), *(_storages(old) if isinstance(old, Layer | Instance) else ()))
    for optimizer, made in m.books.optimizers:
        if not any(m.past.is_within(one, other) for one in storages for other in optimizer.storages):
            continue
        if optimizer.made < m.started or _steps(m, optimizer, value, own=False):
            continue
        m.books.replaced.append((Held(optimizer, value, m.frame, target, made), dotted(target)))


def stepped(m: Machine, optimizer: Value, node: ast.AST, losses: list[Memory]) -> None:
    """An optimizer steps after these backwards: has a module taken the place of one of its own?"""
    for held, label in m.books.replaced:
        made = held.made.site
        if held.optimizer is optimizer and made and m.books.tells((made.path, "replaced", made.line)):
            step = m.moment(Kind.STEPPED, "Optimizer.step", node)
            fact = Fact(frozenset(), (held.made, step), f"`{label}`")
            values = {"tied": fact}
            m.put(Kind.UNTIED, "Optimizer.step", held.node, held.frame, values, note="replaced")
    if isinstance(optimizer, Optimizer):
        lonely = m.books.lonely.get(id(optimizer))
        if lonely is not None and m.books.tells((lonely[1], "orphans")):
            step = m.moment(Kind.STEPPED, "Optimizer.step", node)
            fact = Fact(frozenset(), (step,), "the model")
            m.put(Kind.UNTIED, "Optimizer.step", lonely[1], lonely[2], {"tied": fact}, note="orphans")
        elif m.books.twins:
            _check_copy(m, optimizer, node, losses)


def _check_copy(m: Machine, optimizer: Optimizer, node: ast.AST, losses: list[Memory]) -> None:
    """What was trained is a deep copy of the model whose parameters the optimizer has."""
    leaves = [one for loss in losses for one in history(loss) if one.leaf and one.grad == YES]
    made = next((moment for other, moment in m.books.optimizers if other is optimizer), None)
    if not leaves or made is None:
        return
    if any(_is_in(m, one.storages, optimizer) for one in leaves):
        return
    if not all(any(_is_in(m, (m.books.twins[s],), optimizer) for s in _around(m, one)) for one in leaves):
        return
    if made.site is not None and m.books.tells((made.site.path, "orphans", made.site.line)):
        step = m.moment(Kind.STEPPED, "Optimizer.step", node)
        fact = Fact(frozenset(), (step,), "the copy")
        m.ask_at(made.site, Kind.UNTIED, "Optimizer.step", {"tied": fact}, "orphans")


def _around(m: Machine, memory: Memory) -> list[int]:
    """The deep copies of modules that a parameter lies in."""
    storages = (memory.storages[0], *m.past.around(memory.storages[0]))
    return [storage for storage in storages if storage in m.books.twins]


def _is_in(m: Machine, storages: tuple[int, ...], optimizer: Optimizer) -> bool:
    return any(m.past.is_within(one, other) for one in storages for other in optimizer.storages)


def _steps(m: Machine, optimizer: Optimizer, module: Value, own: bool = True) -> bool:
    """Whether an optimizer steps a module's parameters, through the model around it or of its own."""
    inner = _storages(module)
    if not own:
        return bool(set(inner) & set(optimizer.storages))
    return _is_in(m, inner, optimizer)


def _storages(value: Value) -> tuple[int, ...]:
    if isinstance(value, Layer | Instance):
        return (value.storage,)
    return value.storages if type(value) is Memory else ()


# --- parts of a model that are copied one by one


def parts_copied(m: Machine, value: Value, node: ast.AST) -> None:
    """`copy.deepcopy(part)`: a weight that another part shares is copied twice."""
    if not isinstance(value, Layer | Instance):
        return
    for storage in _weights(value):
        known = m.books.copied.get(storage)
        if known is None or known.frame.node is not m.frame.node:
            m.books.copied[storage] = Copied(value, node, m.frame)
        elif known.value is not value and not _tied_again(m, node):
            tied = m.books.tied.get(storage)
            trail = (tied,) if tied is not None else ()
            _tell(m, node, "copy.deepcopy", "parted", trail, "the weights of both parts")


def optimizer_copied(m: Machine, twin: Value, node: ast.AST) -> None:
    """`copy.deepcopy(optimizer)`: with it, and without the model, its parameters are copied."""
    if type(twin) is Optimizer:
        m.books.lonely[id(twin)] = (twin, node, m.frame)


def assigned(m: Machine, module: Value, node: ast.AST) -> None:
    """`module.load_state_dict(..., assign=True)` gives the module other parameters."""
    for optimizer, made in m.books.optimizers:
        if optimizer.made >= m.started and _is_in(m, _storages(module), optimizer):
            m.books.replaced.append((Held(optimizer, module, m.frame, node, made), "the model"))


def _weights(value: Layer | Instance) -> Iterator[int]:
    """The storages of the parameters that a part has itself."""
    for held in value.attributes.values():
        if type(held) is Memory and held.leaf and len(held.storages) == 1:
            yield held.storages[0]


def _tied_again(m: Machine, node: ast.AST) -> bool:
    """Whether the function goes on to tie: it assigns a weight, or calls what says so."""
    line = getattr(node, "lineno", 0)
    for part in ast.walk(m.frame.node):
        if getattr(part, "lineno", 0) <= line:
            continue
        if isinstance(part, ast.Assign) and any("weight" in ast.unparse(one) for one in part.targets):
            return True
        if isinstance(part, ast.Call) and "tie" in ast.unparse(part.func).lower():
            return True
    return False


# --- a flat buffer and the parameters that are views of it


def parameter_made(m: Machine, made: Memory, data: Value | None, node: ast.AST) -> None:
    """`nn.Parameter(self.flat[:4])`: the parameter lies in the buffer's memory."""
    if type(data) is Memory and data.leaf and isinstance(data.owner, Layer | Instance) and data.exact:
        m.books.data_ties.append((data.storages[0], m.moment(Kind.VIEWED, "", node)))
    elif type(data) is Memory and data.base is not None and data.exact and len(data.storages) == 1:
        moment = m.moment(Kind.VIEWED, "", node)
        m.books.windows[made.storages[0]] = (data.storages[0], moment)
        m.books.unlinked.pop(data.storages[0], None)


def instance_copied(m: Machine, value: Value, twin: Value, node: ast.AST) -> None:
    """A deep copy of a module gives its flat buffer and its parameters memory of their own."""
    if isinstance(value, Instance | Layer) and isinstance(twin, Instance | Layer):
        m.books.twins[twin.storage] = value.storage
    if type(value) is not Instance or type(twin) is not Instance:
        return
    own = {held.storages[0]: name for name, held in value.attributes.items() if type(held) is Memory}
    for held in value.attributes.values():
        window = m.books.windows.get(held.storages[0]) if type(held) is Memory else None
        name = own.get(window[0]) if window is not None else None
        copied = twin.attributes.get(name) if name is not None else None
        if window is not None and type(copied) is Memory:
            m.books.unlinked.setdefault(copied.storages[0], Unlinked(node, m.frame, window[1]))


def unlinked_write(at: Writing) -> bool:
    """The copy's buffer is written, and its parameters stay as they are."""
    unlinked = at.m.books.unlinked.pop(at.target.storages[0], None)
    if unlinked is None:
        return False
    written = moment_in(at.m, at.frame, Kind.WRITTEN, at.op, at.node)
    _tell(at.m, unlinked.node, "copy.deepcopy", "unlinked", (unlinked.made, written), "", unlinked.frame)
    return True


# --- a table of buffers, and weights tied by `.data`, in a module that is converted


def table_stored(m: Machine, owner: Instance, value: Value, statement: ast.stmt) -> None:
    """`self.table = {"mean": self.mean}`: the table keeps tensors that a conversion replaces."""
    if owner.cls.kind != "module" or not isinstance(value, Mapping | Sequence):
        return

    def tabled(item: Value) -> Value:
        if type(item) is not Memory or item.storages[0] not in m.books.buffers:
            return item
        twin = view_of(item)
        twin.base = None
        m.books.tabled[id(twin)] = (twin, owner, statement, m.frame)
        return twin

    if type(value) is Mapping:
        value.items = {key: tabled(item) for key, item in value.items.items()}
    elif type(value) is Sequence:
        value.items = [tabled(item) for item in value.items]


def stale_write(at: Writing) -> bool:
    """The table is written after a conversion gave the module other buffers."""
    memory: Memory | None = at.target if at.m.books.tabled else None
    while memory is not None:
        tabled = at.m.books.tabled.get(id(memory))
        if tabled is not None:
            _, owner, statement, frame = tabled
            converted = at.m.books.converted.get(id(owner))
            if converted is not None:
                written = moment_in(at.m, at.frame, Kind.WRITTEN, at.op, at.node)
                _tell(at.m, statement, converted.op, "stale", (converted, written), "", frame)
            return converted is not None
        memory = memory.base
    return False


def data_tied(m: Machine, owner: Memory, value: Value, node: ast.AST) -> None:
    """`self.dec.weight.data = self.enc.weight.data`: two parameters over one memory."""
    if type(value) is not Memory or not owner.leaf or owner.owner is None or len(value.storages) != 1:
        return
    other = value.owner
    if isinstance(other, Layer | Instance) and other is not owner.owner and value.leaf and value.exact:
        m.books.data_ties.append((value.storages[0], m.moment(Kind.VIEWED, "", node)))


def converted(m: Machine, module: Layer | Instance, name: str, given: list[Value], node: ast.AST) -> None:
    """`module.double()`, `module.to(...)`: every buffer and parameter is replaced, each on its own."""
    if name not in CONVERTING or (name == "to" and not given):
        return
    m.books.converted[id(module)] = m.moment(Kind.COPIED, f"Module.{name}", node)
    for storage, tied in m.books.data_ties:
        if m.past.is_within(storage, module.storage) and name != "float":
            _tell(m, node, f"Module.{name}", "parted", (tied,), "two weights that were tied by `.data`")


def weight_tied(m: Machine, value: Value, node: ast.AST) -> None:
    """`self.head.weight = self.emb.weight`, and `nn.Embedding(..., _weight=weight)`."""
    if type(value) is Memory and value.leaf and value.owner is not None:
        m.books.tied[value.storages[0]] = m.moment(Kind.VIEWED, "", node)


# --- a checkpoint with two values for one parameter


def loaded(m: Machine, target: Value, state: Value, node: ast.AST) -> None:
    """A model that ties two weights loads the state of one that does not."""
    if type(target) is not Instance or type(state) is not State or type(state.owner) is not Instance:
        return
    source = state.owner
    if source.cls is not target.cls:
        return
    theirs = dict(_named_weights(source))
    seen: dict[int, str] = {}
    for name, storage in _named_weights(target):
        first = seen.setdefault(storage, name)
        if first != name and first in theirs and name in theirs and theirs[first] != theirs[name]:
            label = f"`{first}` and `{name}`"
            tied = m.books.tied.get(storage)
            trail = (tied,) if tied is not None else ()
            _tell(m, node, "Module.load_state_dict", "checkpoint", trail, label)
            return


def _named_weights(module: Instance) -> Iterator[tuple[str, int]]:
    for name, held in module.attributes.items():
        if isinstance(held, Layer) and held.op is not None and held.op.owns_parameters:
            weight = held.attributes.get("weight")
            known = weight.storages[0] if type(weight) is Memory else -held.storage
            yield f"{name}.weight", known


def _tell(
    m: Machine,
    node: ast.AST,
    op: str,
    note: str,
    trail: tuple[Moment, ...],
    label: str,
    frame: Frame | None = None,
) -> None:
    frame = frame or m.frame
    if m.books.tells((frame.source.path, note, getattr(node, "lineno", 0))):
        m.put(Kind.UNTIED, op, node, frame, {"tied": Fact(frozenset(), trail, label)}, note=note)
