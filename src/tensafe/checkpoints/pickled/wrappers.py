"""Calls that put something around a tensor: parameters, subclasses, sparse and nested tensors, shards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tensafe.checkpoints.pickled.values import Dict, Global, Made, Tuple, Value

SPARSE = {
    "sparse_coo": ("indices", "values"),
    "sparse_csr": ("crow_indices", "col_indices", "values"),
    "sparse_csc": ("ccol_indices", "row_indices", "values"),
    "sparse_bsr": ("crow_indices", "col_indices", "values"),
    "sparse_bsc": ("ccol_indices", "row_indices", "values"),
}


@dataclass(frozen=True, slots=True)
class Layer:
    """What lies inside of a call: values with the step of their name, "" for the very same name."""

    inside: tuple[tuple[str, Value], ...]
    kind: str = ""
    notes: tuple[str, ...] = ()
    state: Value = None  # attributes beside it


def unwrapped(made: Made) -> Layer | None:
    """What this call is around, None when it is no such call."""
    peel = PEELS.get(made.name)
    return peel(made) if peel and made.positional else None


def _parameter(made: Made) -> Layer:
    arguments = made.positional
    notes = ("requires grad",) if len(arguments) > 1 and arguments[1] is True else ()
    state = arguments[3] if len(arguments) > 3 else None
    return Layer((("", arguments[0]),), "parameter", notes, _or_states(state, made))


def _subclass(made: Made) -> Layer | None:
    """`_rebuild_from_type_v2(function, type, arguments, state)`."""
    if len(made.positional) < 3:
        return None
    function, kind, arguments = made.positional[:3]
    state = made.positional[3] if len(made.positional) > 3 else None
    name = kind.name if isinstance(kind, Global) else ""
    notes = (name,) if name not in ("", "Tensor", "Parameter") else ()
    inner = Made(function, arguments, made.place)
    if inner.name.endswith("._rebuild_wrapper_subclass"):
        return _shard(state, notes)
    return Layer((("", inner),), "parameter" if name == "Parameter" else "", notes, state)


def _shard(state: Value, notes: tuple[str, ...]) -> Layer:
    """A wrapper has no memory of its own: its tensors are among its attributes."""
    attributes = state.items[0] if isinstance(state, Tuple) and state.items else state
    local = attributes.get("_local_tensor") if isinstance(attributes, Dict) else None
    if local is None:
        return Layer((("", state),), "", notes)
    return Layer((("", local),), "", (*notes, "local shard"), state)


def _sparse(made: Made) -> Layer | None:
    layout, data = (*made.positional, None)[:2]
    name = _layout(layout)
    parts = SPARSE.get(name)
    if parts is None or not isinstance(data, Tuple) or len(data.items) < len(parts):
        return None
    return Layer(tuple(zip(parts, data.items, strict=False)), "", (name.replace("_", " "),))


def _layout(value: Value) -> str:
    if isinstance(value, Global):
        return value.name
    if isinstance(value, Made) and value.positional and isinstance(value.positional[0], str):
        return value.positional[0].removeprefix("torch.")
    return ""


def _sparse_csr(made: Made) -> Layer | None:
    inner = (Global("torch", "sparse_csr"), *made.positional)
    return _sparse(Made(None, Tuple([inner[0], inner[-1]], [0, 0]), made.place))


def _nested(made: Made) -> Layer:
    parts = ("buffer", "sizes", "strides", "offsets")
    return Layer(tuple(zip(parts, made.positional, strict=False)), "", ("nested",))


def _for_device(made: Made) -> Layer:
    device = made.positional[2] if len(made.positional) > 2 else None
    note = (f"for device {device}",) if isinstance(device, str) else ()
    return Layer((("", made.positional[0]),), "", note)


def _or_states(state: Value, made: Made) -> Value:
    return state if state is not None else (made.states[-1] if made.states else None)


PEELS: dict[str, Callable[[Made], Layer | None]] = {
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch.nn.parameter.Parameter": _parameter,
    "torch.nn.parameter.Buffer": _parameter,
    "torch._tensor._rebuild_from_type_v2": _subclass,
    "torch._tensor._rebuild_from_type": _subclass,
    "torch.tensor._rebuild_from_type": _subclass,
    "torch.tensor._rebuild_from_type_v2": _subclass,
    "torch._utils._rebuild_sparse_tensor": _sparse,
    "torch._utils._rebuild_sparse_csr_tensor": _sparse_csr,
    "torch._utils._rebuild_nested_tensor": _nested,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": _for_device,
    "torch._utils._rebuild_device_tensor_from_numpy": _for_device,
    "torch._utils._rebuild_xla_tensor": _for_device,
}
