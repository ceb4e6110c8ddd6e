"""The zip files of `torch.save`, and TorchScript archives."""

from __future__ import annotations

from functools import partial

from tensafe.checkpoints.checkpoint import Checkpoint
from tensafe.checkpoints.content import Content, Source
from tensafe.checkpoints.error import CheckpointError
from tensafe.checkpoints.formats.zip_directory import ZipDirectory
from tensafe.checkpoints.pickled.path import Path
from tensafe.checkpoints.record import Record
from tensafe.checkpoints.shelf import Shelf, StorageId

LARGEST_INFLATED = 64 << 20
SMALL = ("version", "byteorder", ".format_version", ".storage_alignment")
SCRIPT = "TorchScript archive"
ARCHIVE = "zip file of torch.save"
UNUSED = "no tensor refers to it"


class _Later:
    """A record whose own header is read when its bytes are."""

    def __init__(self, directory: ZipDirectory, name: str) -> None:
        self._directory, self._name = directory, name
        self._content: Content | None = None
        self.nbytes = directory.records[name].nbytes
        self.what = f"{directory.content.what}: {name}"

    def read_at(self, offset: int, nbytes: int) -> bytes:
        if self._content is None:
            self._content = self._directory.open(self._name)
        return self._content.read_at(offset, nbytes)


def read_torch_zip(source: Source, directory: ZipDirectory, root: Path) -> Checkpoint:
    """The checkpoint in an archive that has a `data.pkl`; raises `CheckpointError`."""
    prefix = prefix_of(directory) or ""
    shelf = Shelf()
    check_names(directory)
    fill(shelf, directory, prefix, root)
    _note_other_pickles(shelf, directory, prefix)
    is_script = f"{prefix}constants.pkl" in directory.records
    return Checkpoint(
        source.path,
        SCRIPT if is_script else ARCHIVE,
        shelf,
        _facts(directory, prefix, shelf),
        [source],
        directory=directory,
        prefix=prefix,
        is_script=is_script,
    )


def fill(shelf: Shelf, directory: ZipDirectory, prefix: str, root: Path, label: str = "") -> None:
    """Put the tensors of an archive on the shelf, its records called by `label` and their own names."""
    _read(shelf, directory, prefix, "data.pkl", "data", root, label)
    if f"{prefix}constants.pkl" in directory.records:
        _read(shelf, directory, prefix, "constants.pkl", "constants", Path(None, "constants"), label)
    begin = f"{prefix}data/"
    for name, entry in directory.records.items():
        own = label + name.removeprefix(prefix)
        if name.startswith(begin) and own not in shelf.records and not name.endswith("/"):
            shelf.records[own] = Record(own, entry.nbytes, _Later(directory, name), notes=(UNUSED,))


def _read(
    shelf: Shelf, directory: ZipDirectory, prefix: str, name: str, folder: str, root: Path, label: str
) -> None:
    entry = directory.records[prefix + name]
    if not entry.is_stored and entry.nbytes > LARGEST_INFLATED:
        raise CheckpointError(
            f"{directory.content.what}: {name} inflates to {entry.nbytes:,} bytes; tensafe reads up to "
            f"{LARGEST_INFLATED:,}"
        )
    record_of = partial(_record, shelf, directory, prefix, folder, label)
    shelf.read(directory.open(entry.name), label + name, root, record_of)


def _record(
    shelf: Shelf, directory: ZipDirectory, prefix: str, folder: str, label: str, meant: StorageId
) -> Record | str:
    own = f"{label}{folder}/{meant.key}"
    if own in shelf.records:
        return shelf.records[own]
    entry = directory.records.get(f"{prefix}{folder}/{meant.key}")
    if entry is None:
        return f"the record {own} is missing"
    notes = () if entry.is_stored else (f"compressed to {entry.packed_nbytes:,} bytes",)
    if entry.nbytes != meant.nbytes:
        shelf.complain(f"{own}: it has {entry.nbytes:,} bytes, the pickle says {meant.nbytes:,}")
    content = _Later(directory, entry.name)
    return Record(own, entry.nbytes, content, meant.device, meant.dtype, meant.itemsize, notes)


def prefix_of(directory: ZipDirectory) -> str | None:
    """What torch takes for the archive's name: the folder of the first record; None without a `data.pkl`."""
    first = next(iter(directory.records), "")
    prefix = first[: first.find("/") + 1]
    return prefix if f"{prefix}data.pkl" in directory.records else None


def check_names(directory: ZipDirectory) -> None:
    """Raise `CheckpointError` where torch, which looks names up in any case, might read another record."""
    seen: dict[str, str] = {}
    for name in directory.records:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise CheckpointError(f"{directory.content.what}: {name} and {other} are one name to torch")


def _note_other_pickles(shelf: Shelf, directory: ZipDirectory, prefix: str) -> None:
    own = {f"{prefix}data.pkl", f"{prefix}constants.pkl"}
    for name in directory.records:
        if name.endswith((".pkl", ".pickle")) and name not in own:
            shelf.complain(f"{name}: a pickle that torch.load does not read, not looked at")


def _facts(directory: ZipDirectory, prefix: str, shelf: Shelf) -> dict[str, str]:
    facts = {"pickle protocol": str(shelf.pickles[0].machine.protocol)}
    for name in SMALL:
        entry = directory.records.get(prefix + name)
        if entry is not None and entry.is_stored and entry.nbytes <= 16:
            raw = directory.open(entry.name).read_at(0, entry.nbytes)
            facts[name.lstrip(".").replace("_", " ")] = raw.decode("ascii", "replace").strip()
    return facts
