"""`tensafe inspect`: what lies in a checkpoint, without executing it."""

from __future__ import annotations

import dataclasses
import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tensafe.cli.options import Parser, refuse_terminal

if TYPE_CHECKING:
    from tensafe.checkpoints.checkpoint import Checkpoint
    from tensafe.memory.map import MemoryMap
    from tensafe.report import checkpoint_text

DESCRIPTION = """\
Show which tensors of a checkpoint share bytes, how many bytes are dead, and what loading it would run.
Reads .pt, .pth, .bin, .pkl, .safetensors, .npy, .npz, sharded and distributed checkpoints and folders of
them: their directories only, not the data. No pickle is executed. Neither torch nor NumPy is needed.
"""
EPILOG = """\
Exit status: 1 when loading would run dangerous code or more than half of the bytes are dead, 2 when it
cannot be read or written, else 0.
"""


def carry_out(argv: Sequence[str]) -> int:
    """Read the file or folder and tell what is in it."""
    chosen = _parser().parse_args(argv)
    from tensafe.checkpoints.folder import read
    from tensafe.report import write

    if chosen.format == "html":
        refuse_terminal(chosen.output, sys.stdout)
    path, output = Path(chosen.path), Path(chosen.output).absolute() if chosen.output else None
    if output:
        write.refuse_overwriting(output, [path], "the checkpoint to show")
        if chosen.compact:
            write.refuse_same(output, Path(chosen.compact), "the file of --compact")
        write.refuse_unwritable(output)
    checkpoint = read(path)
    if output:
        write.refuse_overwriting(output, _files(checkpoint), "a file of the checkpoint to show")
    if chosen.duplicates:
        _find_duplicates(checkpoint)
    remarks = [_compact(checkpoint, Path(chosen.compact))] if chosen.compact else []
    memory = checkpoint.memory()
    _tell(checkpoint, memory, chosen, output, remarks)
    return int(_has_findings(checkpoint, memory))


def _files(checkpoint: Checkpoint) -> list[Path]:
    """Every file that was read, the index of shards among them."""
    return [checkpoint.path, *(source.path for source in checkpoint.sources)]


def _parser() -> Parser:
    parser = Parser("inspect", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("path", metavar="FILE|DIR", help="a checkpoint, or a folder of them")
    parser.add_argument(
        "--compact", metavar="OUT", help="write an equivalent file without dead bytes, aliases kept"
    )
    parser.add_argument(
        "--duplicates", action="store_true", help="read the data too, and name tensors of equal content"
    )
    parser.add_argument("--globals", action="store_true", help="list harmless imports too")
    parser.add_argument("--all", action="store_true", help="list all of everything, not the largest only")
    parser.add_argument(
        "--format", choices=("text", "json", "html"), default="text", help="how to tell it (default: text)"
    )
    parser.add_argument("--output", metavar="FILE", help="write it to FILE instead of standard output")
    return parser


def _has_findings(checkpoint: Checkpoint, memory: MemoryMap) -> bool:
    dangerous = any(found.verdict == "dangerous" for found in checkpoint.globals)
    return dangerous or memory.dead_nbytes * 2 > memory.stored_nbytes


def _find_duplicates(checkpoint: Checkpoint) -> None:
    from tensafe.checkpoints.duplicates import find_duplicates
    from tensafe.report.terminal import progress

    with progress("hashing", sys.stderr) as tell:
        checkpoint.duplicates = find_duplicates(checkpoint, tell)


def _compact(checkpoint: Checkpoint, out: Path) -> str:
    from tensafe.checkpoints.rewriting.compact import compact
    from tensafe.report import write
    from tensafe.report.terminal import progress

    write.refuse_overwriting(out, _files(checkpoint), "the checkpoint itself")
    write.refuse_unwritable(out)
    with progress("rewriting", sys.stderr) as tell:
        return compact(checkpoint, out, tell)


def _tell(
    checkpoint: Checkpoint, memory: MemoryMap, chosen: Namespace, output: Path | None, remarks: list[str]
) -> None:
    from tensafe.report import checkpoint_text, terminal, write
    from tensafe.report.style import plain

    view = _view(checkpoint, chosen, remarks)
    if chosen.format == "text" and output is None:
        terminal.write_lines(checkpoint_text.render(memory, view), sys.stdout)
        return
    if chosen.format == "text":
        words = plain(checkpoint_text.render(memory, view))
    elif chosen.format == "json":
        words = _json(checkpoint, memory, remarks)
    else:
        words = _page(checkpoint, memory)
    if output is None:
        terminal.write_text(words, sys.stdout)
    else:
        write.write_whole(output, words.encode("utf-8", "backslashreplace"))


def _view(checkpoint: Checkpoint, chosen: Namespace, remarks: list[str]) -> checkpoint_text.CheckpointView:
    from tensafe.report.bar import blocks_for
    from tensafe.report.checkpoint_text import CheckpointView

    imports = _imports(checkpoint)
    return CheckpointView(
        imports=[item for item, verdict in imports if verdict != "safe"],
        harmless=[item for item, verdict in imports if verdict == "safe"],
        refusals=checkpoint.refusals,
        is_for_torch=checkpoint.is_for_torch,
        files=[_file(part) for part in checkpoint.parts],
        all=chosen.all,
        globals=chosen.globals,
        remarks=remarks,
        blocks=blocks_for("utf-8" if chosen.output else getattr(sys.stdout, "encoding", None)),
    )


def _imports(checkpoint: Checkpoint) -> list[tuple[checkpoint_text.Import, str]]:
    """Every name that loading would import, in a folder with the file, and its verdict."""
    places: dict[str, list[str]] = {}
    for part in checkpoint.parts:
        for found in part.globals:
            places.setdefault(found.name, []).append(part.path.name)
    told: list[tuple[checkpoint_text.Import, str]] = []
    for found in checkpoint.globals:
        files = places.get(found.name, [])
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        meaning = f"{found.meaning}, in {files[0]}{more}" if files else found.meaning
        told.append(((found.name, found.count, meaning, found.verdict == "dangerous"), found.verdict))
    return told


def _file(part: Checkpoint) -> tuple[str, str, int, int]:
    memory = part.memory()
    return part.path.name, part.format, memory.stored_nbytes, memory.dead_nbytes


def _json(checkpoint: Checkpoint, memory: MemoryMap, remarks: list[str]) -> str:
    """The memory map's JSON with a section about the file."""
    from tensafe.report.memory_json import to_json

    record = json.loads(to_json(memory))
    record["checkpoint"] = {
        "format": checkpoint.format,
        "files": [str(source.path) for source in checkpoint.sources],
        "bytes_read": checkpoint.bytes_read,
        "globals": [dataclasses.asdict(found) for found in checkpoint.globals],
        "weights_only_refusals": list(checkpoint.refusals) if checkpoint.is_for_torch else None,
        "remarks": remarks,
    }
    return json.dumps(record, indent=1) + "\n"


def _page(checkpoint: Checkpoint, memory: MemoryMap) -> str:
    from tensafe.report.html import checkpoint_page

    return checkpoint_page(memory, [item for item, _ in _imports(checkpoint)])
