"""What people hold of a training state: `tensafe.snapshot` and `rollback`, and a difference that renders."""

from __future__ import annotations

from typing import Any

from tensafe.copies.snapshots import differences
from tensafe.copies.snapshots import snapshot as state


class Diff(differences.Diff):
    """What changed since a snapshot; false when nothing did. Prints as a table, renders in notebooks.

    Attributes:
        tensors: each with `.path`, `.changed`, `.numel` and `.max_abs`.
        values: each with `.path`, `.before` and `.after`.
        born: paths that are new.
        gone: paths that are no more.
        compared: how many tensors and values were compared.
    """

    def _repr_html_(self) -> str:
        from tensafe.report.html.difference_fragment import ValueRow, difference_fragment

        short = differences.short
        values = [ValueRow(one.path, short(one.before), short(one.after)) for one in self.values]
        return difference_fragment(self, values)


class Snapshot(state.Snapshot):
    """The state of some objects at one moment; made by `tensafe.snapshot` or `Snapshot.load`.

    As a context manager, it puts the state back when the block raises, and lets the error go on.

    Attributes:
        names: what the objects were called, in the order in which they were given.
    """

    def diff(self, *objs: Any) -> Diff:
        """What is different now from what it was at the snapshot; false if nothing; it prints, and renders.

        Args:
            objs: compare with these instead, in the order of the snapshot.
        """
        found = super().diff(*objs)
        return Diff(found.tensors, found.values, found.born, found.gone, found.compared)


def snapshot(*objs: Any, lazy: bool | None = None, grads: bool = True, host: bool = False) -> Snapshot:
    """Take the state of modules, optimizers, schedulers, scalers, generators, and trees of tensors.

    Args:
        objs: modules (parameters, all buffers, plain attributes, `training`, `requires_grad`), optimizers
            (state and hyperparameters; their parameters belong to the module), learning-rate schedulers,
            `GradScaler`, `torch.Generator`, `random.Random`, NumPy generators, `tensafe.rng` for the global
            ones, dictionaries, lists, tuples and dataclasses of tensors, arrays and plain values, and any
            object that has `state_dict` and `load_state_dict`, or attributes like these.
        lazy: True takes copy-on-write clones: no bytes until somebody writes. False copies everything. None
            takes them of frozen Parameters on the CPU alone, and copies the rest.
        grads: take `.grad`, too: a restore puts values and Nones back. False leaves gradients alone.
        host: keep the copies of CUDA tensors in pinned host memory.

    A lazy copy does not see who writes through a raw pointer that was taken before (`data_ptr()`, a C++
    extension). Memory handed out as an array, shared, or mapped is known, and copied at once.

    Raises:
        TensafeError: an object without values (on the meta device, uninitialised), or without a state.
    """
    return Snapshot(objs, state.names_of(objs), lazy=lazy, grads=grads, host=host)


def rollback(*objs: Any, lazy: bool | None = None, grads: bool = True, host: bool = False) -> Snapshot:
    """`with tensafe.rollback(model, optimizer):` puts all back if the block raises, and lets the error go on.

    Takes what `tensafe.snapshot` takes, when it is called; `as snap` gives the snapshot.
    """
    return Snapshot(objs, state.names_of(objs), lazy=lazy, grads=grads, host=host)
