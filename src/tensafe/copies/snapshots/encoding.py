"""A snapshot's nodes as JSON, and back; nothing in it is ever run."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import torch

from tensafe.copies.snapshots.nodes import Array, Held, Node, Opaque, Plain, Stream, step
from tensafe.copies.snapshots.values import UNKNOWN
from tensafe.errors import TensafeError

_WORDS = (torch.dtype, torch.layout, torch.memory_format)


class Encoder:
    """Nodes to JSON. Containers are numbered, so that one which stands in two places stays one.

    Below attributes of modules and schedulers, what JSON cannot hold is code and settings: it is marked, and
    left alone by a restore. Elsewhere it is somebody's value, and an error.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def node(self, node: Node, path: str, lenient: bool) -> Any:
        """JSON for a node: a list of its kind and what belongs to it."""
        if type(node) is int:
            return ["tensor", node]
        if isinstance(node, Plain):
            return self._plain(node.value, path, lenient)
        if isinstance(node, Opaque):
            if node.ref is UNKNOWN or lenient:
                return ["unknown"]
            raise _refusal(node.ref, path)
        if isinstance(node, Array):
            return ["array", _value(node.saved, path)]
        if isinstance(node, Stream):
            return ["stream", node.kind, _value(node.state, path)]
        assert isinstance(node, Held)
        return self._held(node, path, lenient)

    def _plain(self, value: Any, path: str, lenient: bool) -> Any:
        try:
            return ["plain", _value(value, path)]
        except TensafeError:
            if lenient:
                return ["unknown"]
            raise

    def _held(self, node: Held, path: str, lenient: bool) -> Any:
        if id(node) in self._numbers:
            return ["again", self._numbers[id(node)]]
        inside = lenient
        lenient = lenient or node.kind in ("attributes", "wrapper")
        detail = len(node.detail["parameters"]) if node.kind == "state" else node.detail
        if inside and not _all_fit(node.keys):
            return ["unknown"]
        number = self._numbers[id(node)] = len(self._numbers)
        children = []
        for key, child in zip(node.keys, node.children, strict=True):
            here = path + step(node, key)
            children.append([_value(key, here), self.node(child, here, lenient)])
        return ["held", number, node.kind, _value(detail, path), children]


def _all_fit(keys: list[Any]) -> bool:
    try:
        return bool(_value(keys, "") or True)
    except TensafeError:
        return False


def decoded(told: Any, known: dict[int, Held]) -> Node:
    """The node that JSON tells of. What is no such JSON raises `ValueError`, `TypeError` or `KeyError`."""
    kind, *rest = told
    if kind == "tensor":
        return int(rest[0])
    if kind == "plain":
        return Plain(value_of(rest[0]))
    if kind == "unknown":
        return Opaque(UNKNOWN)
    if kind == "array":
        return Array(None, value_of(rest[0]))
    if kind == "stream":
        return Stream(rest[0], None, value_of(rest[1]))
    if kind == "again":
        return known[rest[0]]
    if kind != "held":
        raise ValueError(f"no node is a {kind}")
    number, kind, detail, children = rest
    node = Held(kind, None, [value_of(key) for key, _ in children], value_of(detail))
    known[number] = node
    node.children = [decoded(child, known) for _, child in children]
    return node


def _value(value: Any, path: str) -> Any:
    """JSON for a plain value, or for the state of a source of random numbers."""
    if value is None or type(value) in (bool, int, str):
        return value
    for family, tell in _TELLERS:
        if isinstance(value, family):
            return tell(value, path)
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):
        return _array(value, path)
    raise _refusal(value, path)


def _array(value: Any, path: str) -> Any:
    if value.dtype.hasobject or value.dtype.names:
        raise TensafeError(f"{path} is an array of {value.dtype}, which JSON cannot hold: leave it out")
    return {"array": [value.dtype.str, list(value.shape), _text(value.tobytes())]}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _refusal(value: Any, path: str) -> TensafeError:
    return TensafeError(
        f"{path} is a {type(value).__name__}, which JSON cannot hold: keep it out, or make it "
        "a number, a string, a list or a dictionary of them"
    )


_Teller = Callable[[Any, str], Any]
_TELLERS: list[tuple[Any, _Teller]] = [
    (float, lambda value, path: {"float": float(value).hex()}),
    (bytes, lambda value, path: {"bytes": _text(value)}),
    (complex, lambda value, path: {"complex": [value.real.hex(), value.imag.hex()]}),
    (torch.device, lambda value, path: {"device": str(value)}),
    (_WORDS, lambda value, path: {"word": str(value).removeprefix("torch.")}),
    (torch.Size, lambda value, path: {"size": list(value)}),
    (torch.Tensor, lambda value, path: {"state": _text(bytes(value.tolist()))}),
    (list, lambda value, path: {"list": [_value(one, path) for one in value]}),
    (tuple, lambda value, path: {"tuple": [_value(one, path) for one in value]}),
    (dict, lambda value, path: {"dict": [[_value(k, path), _value(v, path)] for k, v in value.items()]}),
]


def value_of(told: Any) -> Any:
    """The plain value that JSON tells of."""
    if not isinstance(told, dict):
        return told
    ((kind, inner),) = told.items()
    return _MAKERS[kind](inner)


def _made_array(told: Any) -> Any:
    try:
        import numpy
    except ImportError:
        raise TensafeError("the snapshot holds arrays, which need NumPy: pip install numpy") from None
    dtype, shape, text = told
    return numpy.frombuffer(base64.b64decode(text), dtype=numpy.dtype(dtype)).reshape(shape).copy()


def _word(name: str) -> Any:
    found = getattr(torch, name)
    if not isinstance(found, _WORDS):
        raise ValueError(f"{name} is no word of torch's")
    return found


_MAKERS: dict[str, Callable[[Any], Any]] = {
    "float": float.fromhex,
    "bytes": base64.b64decode,
    "complex": lambda parts: complex(*map(float.fromhex, parts)),
    "device": torch.device,
    "word": _word,
    "size": torch.Size,
    "state": lambda text: torch.tensor(list(base64.b64decode(text)), dtype=torch.uint8),
    "list": lambda items: [value_of(one) for one in items],
    "tuple": lambda items: tuple(value_of(one) for one in items),
    "dict": lambda items: {value_of(key): value_of(value) for key, value in items},
    "array": _made_array,
}
