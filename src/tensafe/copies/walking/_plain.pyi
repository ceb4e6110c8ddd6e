from typing import Any

INTERFACE: int

def prepare(
    tensor: type,
    parameter: type,
    ordered: type,
    same: frozenset[Any],
    keys: frozenset[Any],
    requires_grad: object,
    grad: object,
    nbytes: object,
    untyped_storage: object,
    is_contiguous: object,
    storage_nbytes: object,
    large_nbytes: int,
    /,
) -> None: ...
def open(root: Any, /) -> tuple[Any, list[Any], list[Any]] | None: ...
def fill(tree: Any, copies: list[Any], /) -> None: ...
def own_storages(tensors: list[Any], /) -> list[Any] | None: ...
def all_give(objects: list[Any], conditions: tuple[Any, ...], /) -> bool: ...
