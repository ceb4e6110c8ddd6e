"""A memory map as JSON, version 1, and back.

```json
{"version": 1, "tool": "tensafe", "tool_version": "0.1.0", "kind": "memory map", "title": "model, optimizer",
 "facts": {"format": "zip"},
 "totals": {"storages": 1, "tensors": 2, "logical_nbytes": 48, "stored_nbytes": 4000, "used_nbytes": 40,
            "dead_nbytes": 3960, "shared_nbytes": 8, "exact": true},
 "storages": [
  {"label": "storage 1", "nbytes": 4000, "device": "cpu", "notes": [],
   "used_nbytes": 40, "dead_nbytes": 3960, "shared_nbytes": 8, "exact": true,
   "tensors": [
    {"names": ["x", "batch['x']"], "shape": [2, 5], "strides": [5, 1], "dtype": "float32", "kind": "tensor",
     "offset_bytes": 0, "nbytes": 40, "notes": [],
     "extent": {"offset_bytes": 0, "shape": [2, 5], "strides_bytes": [20, 4], "itemsize_bytes": 4}}]}],
 "ties": [["x", "batch['x']"]], "duplicates": [["a", "b"]], "not_seen": ["..."]}
```

`strides` are in elements, as `Tensor.stride()` says; an `extent` is in bytes from the start of the storage,
and its shape differs from the tensor's where one element is stored as several. Every name of a tensor is in
`names`, the shortest first. `exact` is false where strides were too fine to count: then `used_nbytes` and
`shared_nbytes` are upper bounds, `dead_nbytes` a lower one. Reading back, what follows from the extents
(`totals`, `ties`, `nbytes` of tensors, `used_nbytes`, …) is worked out again, and unknown keys are passed
over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tensafe import __version__
from tensafe.errors import RecordError
from tensafe.memory.extent import Extent
from tensafe.memory.map import MemoryMap, NamedTensor, Storage

FORMAT_VERSION = 1
KIND = "memory map"

T = TypeVar("T")


def to_json(memory: MemoryMap) -> str:
    """The text described above, in ASCII; the same for equal maps."""
    return json.dumps(_plain(memory), indent=1) + "\n"


def from_json(text: str) -> MemoryMap:
    """Read a map back, equal to the one that was written; raises `RecordError` when the text holds none."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not a tensafe memory map: invalid JSON ({error})") from None
    if not isinstance(data, dict) or data.get("tool") != "tensafe" or data.get("kind") != KIND:
        raise RecordError(f'not a tensafe memory map: no `"tool": "tensafe"` and `"kind": "{KIND}"` in it')
    if data.get("version") != FORMAT_VERSION:
        version = json.dumps(data.get("version"))[:20]
        raise RecordError(
            f"memory map version {version} is not {FORMAT_VERSION}: its own tensafe can read it"
        )
    return _memory(data)


def _plain(memory: MemoryMap) -> dict[str, Any]:
    return {
        "version": FORMAT_VERSION,
        "tool": "tensafe",
        "tool_version": __version__,
        "kind": KIND,
        "title": memory.title,
        "facts": dict(memory.facts),
        "totals": {
            "storages": len(memory.storages),
            "tensors": memory.tensor_count,
            "logical_nbytes": memory.logical_nbytes,
            "stored_nbytes": memory.stored_nbytes,
            "used_nbytes": memory.stored_nbytes - memory.dead_nbytes,
            "dead_nbytes": memory.dead_nbytes,
            "shared_nbytes": memory.shared_nbytes,
            "exact": all(storage.covered.exact for storage in memory.storages),
        },
        "storages": [_plain_storage(storage) for storage in memory.storages],
        "ties": [list(tensor.names) for tensor in memory.ties],
        "duplicates": [list(group) for group in memory.duplicates],
        "not_seen": list(memory.not_seen),
    }


def _plain_storage(storage: Storage) -> dict[str, Any]:
    return {
        "label": storage.label,
        "nbytes": storage.nbytes,
        "device": storage.device,
        "notes": list(storage.notes),
        "used_nbytes": storage.used_nbytes,
        "dead_nbytes": storage.dead_nbytes,
        "shared_nbytes": storage.shared_nbytes,
        "exact": storage.covered.exact,
        "tensors": [_plain_tensor(tensor) for tensor in storage.tensors],
    }


def _plain_tensor(tensor: NamedTensor) -> dict[str, Any]:
    extent = tensor.extent
    return {
        "names": list(tensor.names),
        "shape": list(tensor.shape),
        "strides": list(tensor.strides),
        "dtype": tensor.dtype,
        "kind": tensor.kind,
        "offset_bytes": extent.offset,
        "nbytes": tensor.nbytes,
        "notes": list(tensor.notes),
        "extent": {
            "offset_bytes": extent.offset,
            "shape": list(extent.shape),
            "strides_bytes": list(extent.strides),
            "itemsize_bytes": extent.itemsize,
        },
    }


def _memory(data: Any) -> MemoryMap:
    facts = _field(data, "facts", "", _mapping)
    return MemoryMap(
        _field(data, "title", "", _text),
        _field(data, "storages", "", _list_of(_storage)),
        _field(data, "duplicates", "", _list_of(_list_of(_text))),
        _field(data, "not_seen", "", _list_of(_text)),
        {name: _text(fact, f"facts[{_brief(name)}]") for name, fact in facts.items()},
    )


def _storage(data: Any, at: str) -> Storage:
    return Storage(
        _field(data, "label", at, _text),
        _field(data, "nbytes", at, _size),
        _field(data, "device", at, _text),
        _field(data, "tensors", at, _list_of(_tensor)),
        _field(data, "notes", at, _list_of(_text)),
    )


def _tensor(data: Any, at: str) -> NamedTensor:
    names = _field(data, "names", at, _list_of(_text))
    if not names:
        raise _wrong(f"{at}.names", "at least one name", "[]")
    return NamedTensor(
        names,
        _field(data, "shape", at, _list_of(_size)),
        _field(data, "strides", at, _list_of(_integer)),
        _field(data, "dtype", at, _text),
        _field(data, "extent", at, _extent),
        _field(data, "kind", at, _text),
        _field(data, "notes", at, _list_of(_text)),
    )


def _extent(data: Any, at: str) -> Extent:
    shape = _field(data, "shape", at, _list_of(_size))
    strides = _field(data, "strides_bytes", at, _list_of(_integer))
    if len(shape) != len(strides):
        raise _wrong(f"{at}.strides_bytes", f"{len(shape)} strides, one for each size", f"{len(strides)}")
    itemsize = _field(data, "itemsize_bytes", at, _size)
    return Extent(_field(data, "offset_bytes", at, _integer), shape, strides, itemsize)


def _field(data: Any, key: str, at: str, read: Callable[[Any, str], T]) -> T:
    """One value of an object, `at` being where the object stands."""
    inside = f"{at}.{key}" if at else key
    if not isinstance(data, dict):
        raise _wrong(at, "an object", data)
    if key not in data:
        raise RecordError(f"not a whole tensafe memory map: `{inside}` is missing")
    return read(data[key], inside)


def _list_of(read: Callable[[Any, str], T]) -> Callable[[Any, str], tuple[T, ...]]:
    def read_all(data: Any, at: str) -> tuple[T, ...]:
        if not isinstance(data, list):
            raise _wrong(at, "a list", data)
        return tuple(read(item, f"{at}[{number}]") for number, item in enumerate(data))

    return read_all


def _text(data: Any, at: str) -> str:
    if not isinstance(data, str):
        raise _wrong(at, "a text", data)
    return data


def _integer(data: Any, at: str) -> int:
    if not isinstance(data, int) or isinstance(data, bool):
        raise _wrong(at, "an integer", data)
    return data


def _size(data: Any, at: str) -> int:
    if _integer(data, at) < 0:
        raise _wrong(at, "an integer that is not negative", data)
    return int(data)


def _mapping(data: Any, at: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise _wrong(at, "an object", data)
    return data


def _wrong(at: str, expected: str, found: Any) -> RecordError:
    return RecordError(f"not a tensafe memory map: `{at}` is {_brief(found)} where {expected} belongs")


def _brief(found: Any) -> str:
    shown = json.dumps(found)
    return shown if len(shown) <= 40 else shown[:39] + "…"
