"""What people hold after `explain(x)` and `memory_map(x)`: plain data that prints and saves itself."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

from tensafe.aliases import model
from tensafe.aliases.explain import explain_object
from tensafe.aliases.frames import caller
from tensafe.aliases.live_map import map_objects
from tensafe.aliases.quiet import Quiet
from tensafe.memory import map as maps
from tensafe.report.bar import blocks_for
from tensafe.report.explanation import explanation_text
from tensafe.report.memory_text import memory_text
from tensafe.report.terminal import width_of
from tensafe.uncompiled import leave_uncompiled

MOST_COLUMNS = 120


class Explanation(model.Explanation):
    """Where a tensor's bytes lie, who shares them, and whether they may be written in place.

    Prints as text, renders in notebooks; made by `tensafe.explain`.

    Attributes:
        names: under which it was found, the shortest first; `name` is the first, or "".
        kind: "tensor", "parameter", "buffer", "gradient", "optimizer state" or "array".
        type_name: its class: "torch.Tensor", "numpy.ndarray", a subclass's own name.
        shape: its size in each dimension, in elements.
        strides: in elements, as `Tensor.stride()` says; None where it is not strided.
        dtype: without "torch.": "float32".
        itemsize: bytes of one element.
        device: "cpu", "cuda:0", "meta".
        layout: "strided", "sparse_coo", and so on, as torch calls it.
        source: "torch" or "numpy".
        regions: the pieces of memory that it is: one of a strided tensor, several of a sparse one.
        aliases: other live tensors and arrays over the same storages that have a name, the nearest first.
        unnamed_aliases: those without one.
        base: what it is a view of, or "".
        requires_grad: as torch says; False of arrays.
        is_leaf: as torch says.
        grad_fn: the node that made it, "MulBackward0", or "".
        version: how many writes autograd has counted; None of arrays and inference tensors, which count none.
        is_inference: whether it was made under `torch.inference_mode`.
        saved_by: nodes of live graphs that keep bytes of its storage for their backward.
        reasons: why it may not be written in place; empty where `may_write`.
        cautions: what a write in place does besides, though it is allowed.
        written: where it was last written, where the running engine has seen it; else None.
        made: where it was made; `tensafe.explain` does not say it yet.
        notes: what is special about it: conjugated, quantised.
        not_seen: where the search for others stopped.
    """

    def __repr__(self) -> str:
        with Quiet():
            return explanation_text(self, _columns(), blocks_for(_encoding()))

    __str__ = __repr__

    def _repr_html_(self) -> str:
        from tensafe.report.html import explanation_fragment

        return explanation_fragment(self)

    def to_json(self) -> str:
        """The explanation as a JSON text, sizes in bytes, with the answers `may_write`, `is_contiguous`."""
        import json

        answers = {"may_write": self.may_write, "is_contiguous": self.is_contiguous}
        return json.dumps({**dataclasses.asdict(self), **answers}, ensure_ascii=False)

    def save_html(self, path: str | Path) -> None:
        """Write one self-contained page; raises `TensafeError` where the file cannot be written."""
        from tensafe.report.html import explanation_page
        from tensafe.report.write import write_whole

        write_whole(Path(path), explanation_page(self).encode())


class MemoryMap(maps.MemoryMap):
    """Storages with the tensors that lie in them; every total counts a byte once.

    Prints as text, renders in notebooks; made by `tensafe.memory_map`. Bytes on the meta device count in no
    total.

    Attributes:
        title: what was looked at: "model, optimizer".
        storages: the largest first, with the tensors that lie in each.
        duplicates: names of tensors of equal content in different memory, with `hash=True`.
        not_seen: what could not be looked into, and why.
        facts: of a file: its format and the like; empty for live objects.
    """

    def __repr__(self) -> str:
        with Quiet():
            return memory_text(self, _columns(), blocks_for(_encoding()))

    __str__ = __repr__

    def _repr_html_(self) -> str:
        from tensafe.report.html import memory_fragment

        return memory_fragment(self)

    def to_json(self) -> str:
        """The map as a JSON text, sizes in bytes."""
        from tensafe.report.memory_json import to_json

        return to_json(self)

    def save_html(self, path: str | Path) -> None:
        """Write one self-contained page; raises `TensafeError` where the file cannot be written."""
        from tensafe.report.html import memory_page
        from tensafe.report.write import write_whole

        write_whole(Path(path), memory_page(self).encode())


def explain(x: object) -> Explanation:
    """Explain a tensor or array: its storage, who shares it, layout, graph, may it be written in place.

    Changes nothing: reads no element, bumps no version, leaves copy-on-write tensors as they are. Names are
    those of the caller's variables. Raises `TensafeError` for anything but a tensor or array.
    """
    with Quiet():
        frame = caller()
        try:
            found = explain_object(x, frame)
        finally:
            del frame
    if found.layout == "strided":
        found = dataclasses.replace(found, written=_last_write(x))
    return Explanation(**_fields(found))


def memory_map(*objects: object, hash: bool = False) -> MemoryMap:
    """The map of all tensors and arrays that these objects hold: modules, optimizers, containers, anything.

    Changes nothing and reads no element, but for `hash=True`, which names tensors of equal content in
    different memory. Objects that hold no tensor give an empty map; what cannot be looked into is in
    `not_seen`.
    """
    with Quiet():
        frame = caller()
        try:
            found = map_objects(objects, frame, hash)
        finally:
            del frame
    return MemoryMap(**_fields(found))


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _last_write(value: Any) -> model.LinePlace | None:
    """From the runtime engine's ledger, where that engine runs in this process."""
    ledgers = sys.modules.get("tensafe.runtime.storages.ledger")
    torch = sys.modules.get("torch")
    if ledgers is None or torch is None or not isinstance(value, torch.Tensor):
        return None
    try:
        with torch._C.DisableTorchFunction():
            ledger = torch.Tensor.untyped_storage(value).__dict__.get(ledgers._KEY)
    except (RuntimeError, NotImplementedError):
        return None
    write = ledger.write if ledger is not None else None
    if write is None:
        return None
    moment = ledgers.write_moment(write, write.order, counted=True)
    site = moment.site
    return model.LinePlace(write.op, site.path, site.line) if site is not None else None


def _columns() -> int:
    return min(MOST_COLUMNS, width_of(sys.stdout)) if sys.stdout is not None else 100


def _encoding() -> str | None:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


leave_uncompiled(explain, memory_map, Explanation.__repr__, MemoryMap.__repr__)
