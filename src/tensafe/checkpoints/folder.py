"""Folders: shards with an index, distributed checkpoints, or simply several files."""

from __future__ import annotations

import contextlib
import gc
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from tensafe.checkpoints.checkpoint import Checkpoint
from tensafe.checkpoints.content import Source
from tensafe.checkpoints.error import CheckpointError
from tensafe.checkpoints.reader import read_file
from tensafe.checkpoints.record import Record
from tensafe.checkpoints.shelf import Shelf
from tensafe.memory.map import NamedTensor

INDEX_END = ".index.json"
LONGEST_INDEX = 32 << 20
MOST_FILES = 2000
SUFFIXES = {".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".npy", ".npz", ".pkl", ".pickle"}
METADATA = ".metadata"


def read(path: Path) -> Checkpoint:
    """Read a file, the shards of an index, or what a folder holds; raises `CheckpointError`."""
    with _collector_at_rest():
        return _read(path)


@contextlib.contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Symbols are many and live on: looking for garbage among them takes a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read(path: Path) -> Checkpoint:
    if path.name.endswith(INDEX_END):
        return _read_shards(path)
    if not path.is_dir():
        return read_file(path)
    names = _names_in(path)
    if METADATA in names:
        from tensafe.checkpoints.formats.distributed import read_distributed

        return read_distributed(path)
    indexed = [path / name for name in names if name.endswith(INDEX_END)]
    if len(indexed) == 1:
        return _with_others(_read_shards(indexed[0]), path, names)
    files = [name for name in names if Path(name).suffix in SUFFIXES]
    if not files:
        raise CheckpointError(f"{path}: no checkpoint is in this folder ({len(names)} other files)")
    return _joined(path, "folder", _read_each(path, files), [])


def _names_in(path: Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            names = [entry.name for _, entry in zip(range(MOST_FILES), entries, strict=False)]
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror or error}") from None
    return sorted(names)


def _read_each(folder: Path, names: Iterable[str]) -> list[Checkpoint]:
    return [_read_or_say(folder / name) for name in names]


def _read_or_say(path: Path) -> Checkpoint:
    try:
        return read_file(path)
    except CheckpointError as error:
        return Checkpoint(path, "not read", Shelf(problems=[str(error)]), unread=True)


def _read_shards(index: Path) -> Checkpoint:
    """The files that an index names, and those that are missing."""
    weights = _weight_map(index)
    by_file: dict[str, list[str]] = {}
    for name, file in weights.items():
        by_file.setdefault(file, []).append(name)
    problems, parts = [], []
    for file in sorted(by_file):
        if os.path.basename(file) != file:
            problems.append(f"{file[:100]}: a shard outside of the folder, not looked at")
        elif not (index.parent / file).exists():
            problems.append(f"{file}: the shard is missing, with {len(by_file[file]):,} tensors")
        else:
            parts.append(_read_or_say(index.parent / file))
    problems += _disagreements(by_file, parts)
    kind = "sharded safetensors" if index.name.startswith("model.safetensors") else "shards of an index"
    return _joined(index, kind, parts, problems, named_by_file=False)


def _disagreements(by_file: dict[str, list[str]], parts: list[Checkpoint]) -> list[str]:
    found = []
    for part in parts:
        if part.unread:
            continue
        records = part.shelf.records.values()
        held = {name for record in records for tensor in record.tensors for name in tensor.names}
        missing = [name for name in by_file[part.path.name] if name not in held]
        if missing:
            more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
            found.append(f"{part.path.name}: {missing[0][:100]}{more} of the index is not in it")
    return found


def _weight_map(index: Path) -> dict[str, str]:
    source = Source(index)
    try:
        if source.nbytes > LONGEST_INDEX:
            raise CheckpointError(f"{index}: an index of {source.nbytes:,} bytes")
        found = json.loads(source.read_at(0, source.nbytes))
        weights = found["weight_map"]
        if all(isinstance(item, str) for pair in weights.items() for item in pair):
            return dict(weights)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        pass
    finally:
        source.close()
    raise CheckpointError(f'{index}: an object with a "weight_map" of names and files was expected')


def _with_others(sharded: Checkpoint, folder: Path, names: list[str]) -> Checkpoint:
    """The shards of a folder together with its other checkpoints, such as the optimizer's."""
    known = {part.path.name for part in sharded.parts}
    others = [name for name in names if Path(name).suffix in SUFFIXES and name not in known]
    if not others:
        return sharded
    parts = [*sharded.parts, *_read_each(folder, others)]
    own = [words for words in sharded.shelf.problems if words not in _problems(sharded.parts)]
    return _joined(folder, f"folder with {sharded.format}", parts, own)


def _problems(parts: Iterable[Checkpoint]) -> set[str]:
    return {f"{part.path.name}: {words}" for part in parts for words in part.shelf.problems}


def _joined(
    path: Path, kind: str, parts: list[Checkpoint], problems: list[str], named_by_file: bool = True
) -> Checkpoint:
    """Several files as one: records called by their file, and tensors too where names may meet."""
    shelf = Shelf(problems=list(problems))
    for part in parts:
        rename: Callable[[str], str] = str
        if named_by_file and len(parts) > 1:
            rename = f"{part.path.name}: {{}}".format
        for record in part.shelf.records.values():
            label = f"{part.path.name}: {record.label}"
            shelf.records[label] = _renamed(record, label, rename)
        shelf.pickles += part.shelf.pickles
        shelf.problems += [f"{part.path.name}: {words}" for words in part.shelf.problems]
    sources = [source for part in parts for source in part.sources]
    return Checkpoint(path, kind, shelf, {"files": str(len(parts))}, sources, parts)


def _renamed(record: Record, label: str, rename: Callable[[str], str]) -> Record:
    tensors: list[NamedTensor] = [
        replace(tensor, names=tuple(rename(name) for name in tensor.names)) for tensor in record.tensors
    ]
    return replace(record, label=label, tensors=tensors)
