"""The interpreter's state, and how it walks from one node to the next."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensafe.facts import Call, Certainty, History, Kind, Moment, Site, StorageId
from tensafe.facts import Value as Fact
from tensafe.static.aliasing.books import Books
from tensafe.static.cuts import SecondOrder
from tensafe.static.evaluation import is_evaluation
from tensafe.static.graphs.finished import Finished
from tensafe.static.graphs.known import Known
from tensafe.static.graphs.leaks import Sent
from tensafe.static.hazards import Hazards
from tensafe.static.past import OneWrite, Past
from tensafe.static.past import moment as make_moment
from tensafe.static.project import Project
from tensafe.static.source import Source
from tensafe.static.values import (
    NO,
    NOTHING_KNOWN,
    THING,
    Frame,
    Instance,
    Memory,
    Path,
    State,
    Value,
)

if TYPE_CHECKING:
    from tensafe.static.costs.repeated_copies import Repeated

Ask = Callable[[Call, History], None]
Journal = list[tuple[dict[Any, Value], Any, Value | None]]
DEEPEST = 9


class OutOfBudget(Exception):
    """The root being interpreted is not worth more time."""


class Arm:
    """One way through a condition: while it is entered, a machine notes its path and what it binds.

    A class, as branches are many and a generator costs three times as much.
    """

    __slots__ = ("journal", "machine", "outer_journal", "outer_path", "step")

    def __init__(self, machine: Machine, key: object, taken: int) -> None:
        self.machine = machine
        self.step = (key, taken)
        self.journal: Journal = []

    def __enter__(self) -> Journal:
        machine = self.machine
        self.outer_path, self.outer_journal = machine.path, machine.journal
        machine.path = (*machine.path, self.step)
        machine.journal = self.journal
        return self.journal

    def __exit__(self, *error: object) -> None:
        machine, outer = self.machine, self.outer_journal
        machine.path, machine.journal = self.outer_path, outer
        if outer is not None:
            outer.extend(self.journal)


class Machine:
    """One file's interpreter; `ask` is told of every moment at which a rule may have an opinion."""

    def __init__(self, source: Source, project: Project, ask: Ask) -> None:
        self.source = source
        self.project = project
        self.ask = ask
        self.past = Past()
        self.hazards = Hazards(self)
        self.books = Books()
        self.graphs = Known()
        self.finished = Finished()
        self.sent: list[Sent] = []
        self.frame = Frame(source, {}, (), "")
        self.grad_on = True
        self.path: Path = ()
        self.journal: Journal | None = None
        self.depth = 0
        self.budget = 0
        self.calling: list[ast.AST] = []
        self.called_from: list[tuple[ast.AST, Frame]] = []
        self.touched: Callable[[ast.AST, Memory], None] | None = None
        self.unseen_write: Callable[[ast.AST, Frame, Memory], None] | None = None
        self.instances: dict[int, Instance] = {}  # one of each class, for its methods
        self.gave_up = 0
        self.started = 0  # when the root at work was begun
        self.backwards: list[Memory] = []  # the losses of this root, in order
        self.second_order: list[SecondOrder] = []
        self.statement: ast.stmt | None = None
        self.round_began = 0  # the newest storage when the loop at work began its round
        self.repeated: list[Repeated] = []

    # Names

    def bind(self, scope: dict[Any, Value], name: Any, value: Value) -> None:
        """Give a name or an attribute a value; a branch can take it back."""
        if self.journal is not None:
            self.journal.append((scope, name, scope.get(name)))
        scope[name] = value

    def look_up(self, name: str) -> Value | None:
        """What a name stands for here."""
        frame = self.frame
        if name in frame.scope:
            return frame.scope[name]
        for scope in frame.closure:
            if name in scope:
                return scope[name]
        return None

    # Branches

    def arm(self, key: object, taken: int) -> Arm:
        """Interpret on the path where the condition `key` took this arm; yields the names bound meanwhile."""
        return Arm(self, key, taken)

    # Memory

    def fresh(self, kind: str, grad: int = NO, parents: tuple[Memory, ...] = ()) -> Memory:
        """A value with memory of its own."""
        return Memory(kind, (self.past.storage(),), grad if self.grad_on else NO, parents)

    def thing(self, label: str = "", grad: int = NO) -> Memory:
        """Something of which nothing is known, but which may share memory with others."""
        memory = Memory(THING, (self.past.storage(),), grad)
        memory.label = label
        return memory

    def moment(self, kind: Kind, op: str, node: ast.AST, counted: bool = True, note: str = "") -> Moment:
        return make_moment(kind, op, self.past, node, self.frame, counted, note)

    # Questions

    def put(
        self,
        kind: Kind,
        op: str,
        node: ast.AST | None,
        frame: Frame,
        values: dict[str, Fact],
        write: Moment | None = None,
        certainty: Certainty = Certainty.MAY,
        note: str = "",
    ) -> None:
        """Ask the rules."""
        site = frame.source.site(node, frame.label) if node is not None else None
        self.ask(Call(kind, op, site, self.past.tick(), values, certainty, note), OneWrite(write))

    def ask_at(self, site: Site, kind: Kind, op: str, values: dict[str, Fact], note: str) -> None:
        """Ask the rules about a place that is known as such."""
        self.ask(Call(kind, op, site, self.past.tick(), values, Certainty.MAY, note), OneWrite(None))

    def ask_kept(self, kind: Kind, node: ast.AST, kept: State | Memory, write: Moment, op: str) -> None:
        """A live reference is used as if it were a copy; a step is told from where it was kept."""
        frame = self.frame
        taken = kept.trail[-1]
        if kind is not Kind.STEPPED and taken.order in self.past.meant:
            return  # whoever writes through a live reference knows that it is live
        if (
            type(kept) is State
            and type(kept.owner) is Memory
            and not self.past.is_module(kept.owner.storages)
        ):
            return
        kept_in = taken.site
        if kind is Kind.STEPPED and kept_in is not None:
            for caller, outer in self.called_from:
                if outer.label == kept_in.function and outer.source.path == kept_in.path:
                    node, frame = caller, outer
                    break
        fact = Fact(frozenset(map(StorageId, kept.storages)), kept.trail, "")
        certainty = Certainty.OFTEN_MEANT if self._asserts_equal() else Certainty.MAY
        self.put(kind, op, node, frame, {"kept": fact}, write, certainty)

    def _asserts_equal(self) -> bool:
        """Whether the statement at work is a check that two live references are still one."""
        statement = self.statement
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            name = ast.unparse(statement.value.func).rpartition(".")[2].lower()
            return name.startswith("assert") and "not" not in name and "false" not in name
        if not isinstance(statement, ast.Assert):
            return False
        test = statement.test
        if isinstance(test, ast.Compare):
            return all(isinstance(op, ast.Eq | ast.LtE | ast.Lt) for op in test.ops)
        return not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))

    @property
    def trains(self) -> bool:
        """Whether what happens here is recorded by autograd."""
        return self.grad_on and not self.evaluates

    @property
    def evaluates(self) -> bool:
        """Whether the path at work is taken in evaluation only."""
        return any(isinstance(key, str) and is_evaluation(key, taken) for key, taken in self.path)

    # Walking

    def eval(self, node: ast.expr) -> Value:
        handler = EXPRESSIONS.get(type(node))
        return handler(self, node) if handler else NOTHING_KNOWN

    def block(self, body: list[ast.stmt]) -> bool:
        """Run statements; true when control leaves the block before its end."""
        for statement in body:
            self.budget -= 1
            if self.budget < 0:
                raise OutOfBudget
            self.statement = statement
            handler = STATEMENTS.get(type(statement))
            if handler and handler(self, statement):
                return True
        return False

    def statement_is(self, node: ast.expr) -> bool:
        """Whether this expression is all of the statement at work, so that its value is dropped."""
        return isinstance(self.statement, ast.Expr) and self.statement.value is node


EXPRESSIONS: dict[type, Callable[[Machine, ast.expr], Value]] = {}
STATEMENTS: dict[type, Callable[[Machine, ast.stmt], bool | None]] = {}
