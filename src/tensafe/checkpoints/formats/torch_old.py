"""What `torch.save` wrote before the zip format: pickles one after the other, then the storages."""

from __future__ import annotations

from dataclasses import dataclass, field

from tensafe.checkpoints.checkpoint import Checkpoint
from tensafe.checkpoints.content import Content, Section, Source
from tensafe.checkpoints.error import CheckpointError
from tensafe.checkpoints.pickled.inline import bytes_of
from tensafe.checkpoints.pickled.path import Path
from tensafe.checkpoints.pickled.pickles import Pickle, read_pickle
from tensafe.checkpoints.pickled.values import List, Made, Stored
from tensafe.checkpoints.record import Record
from tensafe.checkpoints.shelf import Shelf, StorageId, calls_of, storage_id

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
OLD = "old format of torch.save"
NUMEL_NBYTES = 8
DEEPEST = 3


@dataclass
class OldLayout:
    """Where everything of an old file lies, in bytes of its content."""

    content: Content
    pickles: list[Pickle] = field(default_factory=list)  # magic, version, machine, object, keys
    keys: list[str] = field(default_factory=list)
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)  # first byte of the data, number of bytes
    ids: dict[str, StorageId] = field(default_factory=dict)

    @property
    def body(self) -> Pickle:
        return self.pickles[3]


def layout_of(content: Content, first: Pickle | None = None) -> OldLayout:
    """Read the five pickles and the sizes of the storages; raises `CheckpointError`."""
    layout = OldLayout(content, [first or read_pickle(content)])
    if layout.pickles[0].result != MAGIC:
        raise CheckpointError(f"{content.what}: byte 0: the magic number of torch.save was expected")
    for _ in range(4):
        layout.pickles.append(read_pickle(content, layout.pickles[-1].stop))
        if len(layout.pickles) == 2 and layout.pickles[1].result != PROTOCOL:
            raise CheckpointError(f"{content.what}: version {PROTOCOL} of the old format was expected")
    keys = layout.pickles[4].result
    if (
        not isinstance(keys, List)
        or keys.left_out
        or not all(isinstance(key, (str, int)) for key in keys.items)
    ):
        raise CheckpointError(f"{content.what}: a list of storage keys was expected behind the object")
    layout.keys = [str(key) for key in keys.items]
    for stored in layout.body.machine.stored:
        found = storage_id(stored.identity)
        if found is not None:
            layout.ids.setdefault(found.key, found)
    _measure(layout)
    return layout


def _measure(layout: OldLayout) -> None:
    """Each storage: its number of elements in 8 bytes, then its data."""
    place = layout.pickles[4].stop
    for key in layout.keys:
        meant = layout.ids.get(key)
        if meant is None or key in layout.spans:
            raise CheckpointError(
                f"{layout.content.what}: storage {key} is listed, but not used once by the object"
            )
        numel = int.from_bytes(layout.content.read_at(place, NUMEL_NBYTES), "little")
        nbytes = numel * meant.itemsize
        if numel != meant.numel:
            raise CheckpointError(
                f"{layout.content.what}: byte {place:,}: storage {key} has {numel:,} elements, "
                f"the pickle says {meant.numel:,}"
            )
        place += NUMEL_NBYTES
        if nbytes > layout.content.nbytes - place:
            raise CheckpointError(
                f"{layout.content.what}: byte {place:,}: {nbytes:,} bytes of storage {key} were expected, "
                f"{layout.content.nbytes - place:,} are left: truncated or damaged"
            )
        layout.spans[key] = (place, nbytes)
        place += nbytes


def read_old(source: Source, first: Pickle, root: Path) -> Checkpoint:
    """A file of the old format; raises `CheckpointError`."""
    layout = layout_of(source, first)
    shelf = Shelf()
    shelf.pickles += [pickle for pickle in layout.pickles if pickle is not layout.body]
    shelf.place(layout.body, "pickle", root, lambda meant: _record(shelf, layout, meant, ""))
    for key in layout.keys:
        _record(shelf, layout, layout.ids[key], "")
    facts = {"pickle protocol": str(layout.body.machine.protocol)}
    return Checkpoint(source.path, OLD, shelf, facts, [source], old=layout)


def _record(shelf: Shelf, layout: OldLayout, meant: StorageId, label: str) -> Record | str:
    own = f"{label}storage {meant.key}"
    if own in shelf.records:
        return shelf.records[own]
    span = layout.spans.get(meant.key)
    if span is None:
        return f"its storage {meant.key} is missing"
    what = f"{layout.content.what}: storage {meant.key}"
    content = Section(layout.content, *span, what)
    return Record(own, span[1], content, meant.device, meant.dtype, meant.itemsize)


def read_nested(shelf: Shelf, made: Made, pickle: Pickle, name: str, depth: int) -> Record | str:
    """The storage that `_load_from_bytes` would load, with the names that this would import."""
    try:
        content = bytes_of(calls_of(made), pickle) if depth < DEEPEST else None
        if content is None:
            raise CheckpointError("a pickle within the pickle that cannot be looked into")
        layout = layout_of(content)
    except CheckpointError as error:
        shelf.distrust(pickle, "loads a pickle that could not be read")
        return str(error)
    shelf.pickles += [inner for inner in layout.pickles if inner is not layout.body]
    label = f"{name}, byte {made.place:,}: "
    if not isinstance(layout.body.result, Stored):
        root = Path(None, "(loaded within)")
        shelf.place(layout.body, label, root, lambda meant: _record(shelf, layout, meant, label), depth + 1)
        return "it is loaded by a call whose bytes hold no storage"
    shelf.pickles.append(layout.body)
    meant = storage_id(layout.body.result.identity)
    return (
        "its storage has an id of an unknown form" if meant is None else _record(shelf, layout, meant, label)
    )
