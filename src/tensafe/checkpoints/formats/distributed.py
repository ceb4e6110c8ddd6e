"""Folders of `torch.distributed.checkpoint`: one pickle says where in which file every piece lies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tensafe.checkpoints.checkpoint import Checkpoint
from tensafe.checkpoints.content import Section, Source
from tensafe.checkpoints.error import CheckpointError
from tensafe.checkpoints.formats.torch_zip import fill, prefix_of
from tensafe.checkpoints.formats.zip_directory import ZipDirectory
from tensafe.checkpoints.pickled.path import Path as Name
from tensafe.checkpoints.pickled.pickles import read_pickle
from tensafe.checkpoints.pickled.placed import Misfit, numbers
from tensafe.checkpoints.pickled.values import Dict, Made, Value
from tensafe.checkpoints.shelf import Shelf

METADATA = ".metadata"
FORMAT = "distributed checkpoint"
ZIP_START = b"PK"


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a tensor, or a pickled object, in one of the files."""

    name: str
    place: tuple[int, ...] | None  # of a piece within the whole tensor
    file: str
    offset: int
    length: int


def read_distributed(folder: Path) -> Checkpoint:
    """The pieces that `.metadata` lists, read in their files; raises `CheckpointError`."""
    metadata = Source(folder / METADATA)
    shelf = Shelf()
    sources = {METADATA: metadata}
    try:
        pickle = read_pickle(metadata)
        shelf.pickles.append(pickle)
        pieces = list(_pieces(pickle.result, shelf))
        if not pieces:
            raise CheckpointError(f"{metadata.path}: the metadata of a distributed checkpoint was expected")
        pickle.forget()
        _read_pieces(pieces, folder, shelf, sources)
    finally:
        for source in sources.values():
            source.close()
    facts = {"files": str(len(sources) - 1), "pieces": str(len(pieces))}
    return Checkpoint(folder, FORMAT, shelf, facts, list(sources.values()))


def _pieces(result: Value, shelf: Shelf) -> Iterator[Piece]:
    stored = _attributes(result).get("storage_data")
    for key, value in stored.pairs() if isinstance(stored, Dict) else ():
        index, info = _attributes(key), _attributes(value)
        name, file = index.get("fqn"), info.get("relative_path")
        offset, length = info.get("offset"), info.get("length")
        if not (isinstance(name, str) and isinstance(file, str)):
            shelf.complain("an entry of the metadata has no name or no file")
        elif type(offset) is not int or type(length) is not int or offset < 0 or length < 0:
            shelf.complain(f"{name}: its place in {file} is no pair of natural numbers")
        else:
            yield Piece(name, _place(index.get("offset")), file, offset, length)


def _attributes(value: Value) -> Dict:
    """The attributes that a pickled object is given."""
    state = value.states[-1] if isinstance(value, Made) and value.states else None
    return state if isinstance(state, Dict) else Dict([])


def _place(offset: Value) -> tuple[int, ...] | None:
    try:
        return None if offset is None else numbers(offset, "offset")
    except Misfit:
        return None


def _read_pieces(pieces: list[Piece], folder: Path, shelf: Shelf, sources: dict[str, Source]) -> None:
    missing: dict[str, int] = {}
    several = {piece.name for piece in pieces if piece.place and any(piece.place)}
    for piece in pieces:
        if os.path.basename(piece.file) != piece.file:
            shelf.complain(
                f"{piece.name}: its file {piece.file[:100]} is outside of the folder, not looked at"
            )
            continue
        source = _open(piece.file, folder, sources)
        if source is None:
            missing[piece.file] = missing.get(piece.file, 0) + 1
            continue
        try:
            _read_piece(piece, source, shelf, piece.name in several)
        except CheckpointError as error:
            shelf.complain(f"{piece.name}: {error}")
    for file, number in missing.items():
        shelf.complain(f"{file}: the file is missing, with {number:,} pieces")


def _open(file: str, folder: Path, sources: dict[str, Source]) -> Source | None:
    if file not in sources:
        path = folder / file
        if not path.exists():
            return None
        sources[file] = Source(path)
    return sources[file]


def _read_piece(piece: Piece, source: Source, shelf: Shelf, is_part: bool) -> None:
    content = Section(source, piece.offset, piece.length, f"{source.path}: {piece.name}")
    if content.nbytes < len(ZIP_START) or content.read_at(0, len(ZIP_START)) != ZIP_START:
        raise CheckpointError("its bytes are no file of torch.save")
    directory = ZipDirectory(content)
    name = f"{piece.name} at {piece.place}" if is_part else piece.name
    before = len(shelf.pickles)
    fill(shelf, directory, prefix_of(directory) or "", Name(None, name), f"{piece.file}: {name}: ")
    for pickle in shelf.pickles[before:]:
        pickle.forget()
