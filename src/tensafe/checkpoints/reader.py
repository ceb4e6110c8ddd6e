"""Which format a file has, by its first bytes, and what reads it."""

from __future__ import annotations

from pathlib import Path

from tensafe.checkpoints.checkpoint import Checkpoint
from tensafe.checkpoints.content import Source
from tensafe.checkpoints.error import CheckpointError
from tensafe.checkpoints.formats.arrays import MAGIC as NPY
from tensafe.checkpoints.formats.arrays import is_npz, read_npy, read_npz
from tensafe.checkpoints.formats.plain import read_plain
from tensafe.checkpoints.formats.safetensors import looks_like_safetensors, read_safetensors
from tensafe.checkpoints.formats.torch_zip import prefix_of, read_torch_zip
from tensafe.checkpoints.formats.zip_directory import ZipDirectory
from tensafe.checkpoints.pickled.path import Path as Name

ROOT = Name(None, "")
OTHERS = {
    b"\x1f\x8b": "compressed by gzip: unpack it first",
    b"BZh": "compressed by bzip2: unpack it first",
    b"\xfd7zXZ": "compressed by xz: unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: unpack it first",
    b"x\x9c": "compressed by zlib, as joblib does: load it and save it again uncompressed",
    b"\x89HDF": "HDF5, which tensafe does not read",
    b"GGUF": "GGUF, which tensafe does not read",
    b"version https://git-lfs": "a Git LFS pointer: the file itself was not fetched",
    b"<": "a page of HTML or XML, not the file itself",
}
PICKLE_SUFFIXES = {".pkl", ".pickle", ".p", ".pt", ".pth", ".bin", ".ckpt", ".metadata"}
PICKLE_START = 0x80
TAR_NBYTES = 512
TAR_CHECKSUM = slice(148, 156)


def read_file(path: Path) -> Checkpoint:
    """Read a file's directory and pickles, no data; raises `CheckpointError`."""
    source = Source(path)
    try:
        return _read(source)
    finally:
        source.close()


def _read(source: Source) -> Checkpoint:
    if not source.nbytes:
        raise CheckpointError(f"{source.path}: the file is empty")
    head = source.read_at(0, min(source.nbytes, 512))
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _read_zip(source)
    if _is_tar(head):
        raise CheckpointError(f"{source.path}: the tar format of torch 0.1: load it and save it again")
    if head.startswith(NPY):
        return read_npy(source, Name(None, "array"))
    if looks_like_safetensors(head, source.nbytes) and head[0] != PICKLE_START:
        return read_safetensors(source)
    for start, words in OTHERS.items():
        if head.startswith(start):
            raise CheckpointError(f"{source.path}: it is {words}")
    if head[0] == PICKLE_START or source.path.suffix in PICKLE_SUFFIXES:
        return read_plain(source, ROOT)
    if source.path.suffix == ".safetensors":
        return read_safetensors(source)
    raise CheckpointError(f"{source.path}: no format of checkpoints begins with {head[:8]!r}")


def _is_tar(head: bytes) -> bool:
    """Whether a tar header stands here, by its checksum, as `tarfile` and so `torch.load` would see it."""
    digits = head[TAR_CHECKSUM].strip(b" \0")
    if len(head) < TAR_NBYTES or not digits or digits.strip(b"01234567"):
        return False
    return int(digits, 8) == sum(head) - sum(head[TAR_CHECKSUM]) + 8 * 0x20


def _read_zip(source: Source) -> Checkpoint:
    directory = ZipDirectory(source)
    if prefix_of(directory) is not None:
        return read_torch_zip(source, directory, ROOT)
    if is_npz(directory):
        return read_npz(source, directory)
    raise CheckpointError(f"{source.path}: a zip file that has neither data.pkl nor arrays")
