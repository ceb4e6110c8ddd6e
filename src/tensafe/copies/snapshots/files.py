"""Snapshot files: safetensors, with the rest of the snapshot as JSON in its metadata."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch

from tensafe.copies.snapshots.copies import Copies
from tensafe.copies.snapshots.encoding import Encoder, decoded, value_of
from tensafe.copies.snapshots.nodes import Node, tensor_paths
from tensafe.copies.snapshots.pieces import Pieces, Seat
from tensafe.copies.snapshots.safetensors import Stored, read_tensors, write_tensors
from tensafe.errors import TensafeError

_VERSION = 1


def write(snap: Any, path: str | os.PathLike[str]) -> None:
    """Write a snapshot; nothing is written before all of it is known to fit."""
    paths = snap.paths()
    names, stored = _named(snap._copies, paths), {}
    for place, name in enumerate(names):
        if not _is_dense(snap._copies.saved[place]):
            kind = _kind_of(snap._copies.saved[place])
            raise TensafeError(f"{name} is a {kind} tensor, which safetensors cannot hold: save its parts")
        stored[name] = snap._copies.saved[place]
    gradients = {number: f"{paths[number]}.grad" for number in snap._grad_places}
    for number, place in snap._grad_places.items():
        if not _is_dense(snap._grads.of(place)):
            raise TensafeError(f"{gradients[number]} is no dense tensor: zero_grad() first, or grads=False")
        stored[gradients[number]] = snap._grads.of(place)
    encoder = Encoder()
    told = {
        "version": _VERSION,
        "names": snap.names,
        "roots": [
            encoder.node(node, name, False) for node, name in zip(snap._nodes, snap.names, strict=True)
        ],
        "pieces": names,
        "seats": [_told(snap._copies.pieces.seat(number)) for number in range(len(paths))],
        "requires_grad": snap._requires_grad,
        "devices": [str(device) for device in snap._devices],
        "grads": {str(number): name for number, name in gradients.items()} if snap._with_grads else None,
    }
    write_tensors(place_of(path), stored, {"tensafe.snapshot": json.dumps(told, ensure_ascii=False)})


def place_of(path: Any) -> Path:
    """The path of a file; raises `TensafeError` for what can be none."""
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise TensafeError(f"a path is a string or a Path, not {type(path).__name__}") from None
    if not name or "\0" in name:
        raise TensafeError(f"{name!r} is no path of a file")
    return Path(name)


def _is_dense(one: torch.Tensor) -> bool:
    return one.layout is torch.strided and not (one.is_quantized or one.is_nested)


def _kind_of(one: torch.Tensor) -> str:
    return "quantised" if one.is_quantized else str(one.layout).removeprefix("torch.")


def _named(copies: Copies, paths: list[str]) -> list[str]:
    """A name for each piece: the path of the first tensor in it."""
    names = [""] * len(copies.saved)
    for number, path in enumerate(paths):
        seat = copies.pieces.seat(number)
        names[seat.piece] = names[seat.piece] or path
    first = {name: place for place, name in reversed(list(enumerate(names)))}
    return [name if first[name] == place else f"{name} ({place})" for place, name in enumerate(names)]


def _told(seat: Seat) -> Any:
    if seat.dtype is None and not seat.strides:
        return seat.piece
    dtype = str(seat.dtype).removeprefix("torch.") if seat.dtype else None
    return [seat.piece, seat.offset, list(seat.shape), list(seat.strides), dtype]


def read(loaded: Any, path: str | os.PathLike[str]) -> None:
    """Fill a snapshot from a file."""
    stored = read_tensors(place_of(path))
    try:
        told = json.loads(stored.metadata["tensafe.snapshot"])
        if told["version"] != _VERSION:
            raise TensafeError(f"{path} is of version {told['version']}: use a newer tensafe")
        _fill(loaded, told, stored)
    except (
        KeyError,
        ValueError,
        TypeError,
        IndexError,
        AttributeError,
        RuntimeError,
        RecursionError,
    ) as error:
        raise TensafeError(
            f"{path} is no snapshot that tensafe saved ({type(error).__name__}): {error}"
        ) from None


def _fill(loaded: Any, told: dict[str, Any], stored: Stored) -> None:
    known: dict[int, Any] = {}
    nodes: list[Node] = [decoded(root, known) for root in told["roots"]]
    seats = [_seat(seat) for seat in told["seats"]]
    pieces = [stored.tensors[name] for name in told["pieces"]]
    loaded.names = [str(name) for name in told["names"]]
    loaded._objs = loaded._look = None
    loaded._options = (False, False)
    loaded._nodes = nodes
    loaded._copies = _copies(pieces, seats)
    loaded._requires_grad = [bool(flag) for flag in told["requires_grad"]]
    loaded._devices = [torch.device(name) for name in told["devices"]]
    gradients = told["grads"]
    loaded._with_grads = gradients is not None
    numbers = [int(number) for number in gradients or ()]
    loaded._grad_places = {number: place for place, number in enumerate(numbers)}
    found = [stored.tensors[name] for name in (gradients or {}).values()]
    loaded._grads = _copies(found, [Seat(place) for place in range(len(found))])
    for number in range(len(seats)):
        loaded._copies.of(number)
    if len(loaded._devices) != len(seats) or len(loaded._requires_grad) != len(seats):
        raise ValueError("its lists are of unequal length")
    if any(path == "" for path in tensor_paths(nodes, loaded.names, len(seats))):
        raise ValueError("it holds a tensor that stands nowhere")


def _copies(saved: list[torch.Tensor], seats: list[Seat]) -> Copies:
    copies = Copies([], False, False)
    copies.saved = saved
    shared = [number for number, seat in enumerate(seats) if seat.dtype is not None]
    plain = all(seat == Seat(number) for number, seat in enumerate(seats)) and len(seats) == len(saved)
    copies.pieces = Pieces(saved, None if plain else seats, frozenset(), shared)
    return copies


def _seat(told: Any) -> Seat:
    if isinstance(told, int):
        return Seat(told)
    piece, offset, shape, strides, name = told
    dtype = value_of({"word": name}) if name else None
    return Seat(int(piece), int(offset), tuple(map(int, shape)), tuple(map(int, strides)), dtype)
