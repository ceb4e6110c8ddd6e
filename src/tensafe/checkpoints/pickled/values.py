"""What a pickle describes, as symbols: nothing is imported, called or built."""

from __future__ import annotations

from typing import TypeAlias

Value: TypeAlias = object
"""None, bool, int, float, str, or one of the classes below."""


class Global:
    """A name that loading would import."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    @property
    def full_name(self) -> str:
        return f"{self.module}.{self.name}"


class Tuple:
    """A tuple; `places` are where its items' instructions stand in the pickle."""

    __slots__ = ("is_shared", "items", "places")

    def __init__(self, items: list[Value], places: list[int]) -> None:
        self.items, self.places = tuple(items), tuple(places)
        self.is_shared = False  # fetched again from the memo: an edit here would show in two places


class List:
    """A list, set or frozenset; plain numbers behind the first many are only counted."""

    __slots__ = ("items", "left_out")

    def __init__(self, items: list[Value]) -> None:
        self.items, self.left_out = items, 0


class Dict:
    """A dict: keys and values in turn."""

    __slots__ = ("items", "left_out")

    def __init__(self, items: list[Value]) -> None:
        self.items, self.left_out = items, 0

    def pairs(self) -> list[tuple[Value, Value]]:
        return list(zip(self.items[::2], self.items[1::2], strict=True))

    def get(self, key: str) -> Value:
        """The value of a string key, None without it; the last one wins, as in a dict."""
        found: Value = None
        for name, value in self.pairs():
            if isinstance(name, str) and name == key:
                found = value
        return found


class Made:
    """An object that loading would make by calling `function`, then fill with items and a state."""

    __slots__ = ("arguments", "entries", "function", "items", "keywords", "place", "states")

    def __init__(self, function: Value, arguments: Value, place: int, keywords: Value = None) -> None:
        self.function, self.arguments, self.keywords, self.place = function, arguments, keywords, place
        self.states: tuple[Value, ...] = ()  # of BUILD
        self.items: List | None = None  # of APPENDS, ADDITEMS
        self.entries: Dict | None = None  # of SETITEMS

    @property
    def name(self) -> str:
        """The full name of the function, "" when it is no plain name."""
        return self.function.full_name if isinstance(self.function, Global) else ""

    @property
    def positional(self) -> tuple[Value, ...]:
        return self.arguments.items if isinstance(self.arguments, Tuple) else ()


class Stored:
    """A persistent id: something that lies outside of the pickle."""

    __slots__ = ("identity", "place")

    def __init__(self, identity: Value, place: int) -> None:
        self.identity, self.place = identity, place


class Payload:
    """Bytes or a long text inside the pickle, not read: where they lie and how they are written."""

    __slots__ = ("encoding", "head", "nbytes", "start")

    def __init__(self, start: int, nbytes: int, head: bytes, encoding: str) -> None:
        self.start, self.nbytes, self.head = start, nbytes, head
        self.encoding = encoding  # "raw", "utf-8", "raw-unicode-escape", "quoted"


class Absent:
    """A value that is not in the file: an out-of-band buffer, an entry of the extension registry."""

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        self.what = what
