"""A table and the bytes behind it into tensors, arrays and storages."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch

from tensafe.copies.pickling.container import (
    ARRAY,
    CONJUGATED,
    CPU,
    NEGATED,
    PARAMETER,
    REQUIRES_GRAD,
    STORAGE,
    Block,
    Table,
    Value,
    alignment_of,
)
from tensafe.copies.pickling.copying import Copies
from tensafe.copies.pickling.errors import UnpicklingError
from tensafe.copies.pickling.inputs import Input
from tensafe.copies.pickling.looking import Looking, array_over, mark

MOST_AT_ONCE = 1 << 16
"""Tensors of fewer bytes that lie one after the other are copied out by one call."""
_make_subclass: Any = torch.Tensor._make_subclass
_split_copy: Any = torch.split_with_sizes_copy


class Builder:
    """Makes the values of one table."""

    def __init__(self, table: Table, inputs: list[Input], writable: bool) -> None:
        self._table = table
        self._inputs = inputs
        self._writable = writable
        self._made: list[Any] = [None] * len(table.values)
        self._copies = Copies()

    def build(self) -> list[Any]:
        """Every value, in the order of their numbers."""
        first, others = self._numbers()
        done = self._build_simple(first, others)
        done |= self._build_arrays(first, others)
        for number, (owner, block) in enumerate(zip(first, self._table.blocks, strict=True)):
            if owner >= 0 and number not in done:
                self._build_block(Block(*block), [owner, *others.get(number, ())])
        self._copies.finish()
        return self._made

    def _numbers(self) -> tuple[list[int], dict[int, list[int]]]:
        """The first value of each block (-1: none), and the others of those that have several."""
        first = [-1] * len(self._table.blocks)
        others: dict[int, list[int]] = {}
        for number, value in enumerate(self._table.values):
            block = value[1]
            if first[block] < 0:
                first[block] = number
            else:
                others.setdefault(block, []).append(number)
        return first, others

    def _build_simple(self, first: list[int], others: dict[int, list[int]]) -> set[int]:
        """The one tensor of a block, in row-major order, of which there are thousands; the blocks done."""
        done: set[int] = set()
        for numbers in self._runs(first, others):
            buffer = self._table.blocks[numbers[0]][0]
            if not (self._writable and self._inputs[buffer].readonly):
                self._look_at(numbers, first)
            elif self._table.blocks[numbers[0]][2] < MOST_AT_ONCE:
                self._copy_out(numbers, first)
            else:
                continue
            done.update(numbers)
        return done

    def _build_arrays(self, first: list[int], others: dict[int, list[int]]) -> set[int]:
        """The same for arrays."""
        done: set[int] = set()
        values = self._table.values
        for number, (buffer, offset, nbytes, device) in enumerate(self._table.blocks):
            value = values[first[number]] if first[number] >= 0 else None
            if value is None or value[0] != ARRAY or value[5] is not None or number in others or not nbytes:
                continue
            source = self._inputs[buffer]
            if (source.address + offset) % alignment_of(value[2].itemsize) or device != CPU:
                continue
            self._made[first[number]] = array_over(source, offset, value, self._writable)
            done.add(number)
        return done

    def _copy_out(self, numbers: list[int], first: list[int]) -> None:
        """Give small tensors memory of their own, all by one call."""
        blocks, values, made = self._table.blocks, self._table.values, self._made
        buffer, offset, _, _ = blocks[numbers[0]]
        dtype = values[first[numbers[0]]][2]
        sizes = [blocks[number][2] // dtype.itemsize for number in numbers]
        view = self._inputs[buffer].writable_view
        flat = torch.frombuffer(view, dtype=dtype, count=sum(sizes), offset=offset)
        for number, part in zip(numbers, _split_copy(flat, sizes), strict=True):
            value = values[first[number]]
            shape = value[4]
            made[first[number]] = _dressed(part if len(shape) == 1 else part.resize_(shape), value)

    def _look_at(self, numbers: list[int], first: list[int]) -> None:
        """Make tensors look into the buffer as it is."""
        blocks, values, made = self._table.blocks, self._table.values, self._made
        view = self._inputs[blocks[numbers[0]][0]].writable_view
        frombuffer, freeze = torch.frombuffer, None if self._writable else mark
        for number in numbers:
            _, offset, nbytes, _ = blocks[number]
            value = values[first[number]]
            dtype, shape = value[2], value[4]
            tensor = frombuffer(view, dtype=dtype, count=nbytes // dtype.itemsize, offset=offset)
            if len(shape) != 1:
                tensor.resize_(shape)
            if freeze is not None:
                freeze(tensor)
            made[first[number]] = _dressed(tensor, value)

    def _runs(self, first: list[int], others: dict[int, list[int]]) -> list[list[int]]:
        """Blocks of one tensor each: those that follow each other in a buffer, of one dtype, together."""
        runs: list[list[int]] = []
        values, inputs = self._table.values, self._inputs
        next_buffer, next_offset, next_dtype = -1, -1, None
        for number, (buffer, offset, nbytes, device) in enumerate(self._table.blocks):
            owner = first[number]
            if owner < 0 or not nbytes or number in others or device != CPU:
                continue
            kind, _, dtype, _, _, strides, _ = values[owner]
            if kind > PARAMETER or strides is not None or (inputs[buffer].address + offset) % dtype.itemsize:
                continue
            if (
                offset == next_offset
                and dtype is next_dtype
                and buffer == next_buffer
                and nbytes < MOST_AT_ONCE
            ):
                runs[-1].append(number)
            else:
                runs.append([number])
            next_buffer, next_dtype = buffer, dtype
            next_offset = offset + nbytes if nbytes < MOST_AT_ONCE else -1
        return runs

    def _build_block(self, block: Block, numbers: list[int]) -> None:
        values = [Value(*self._table.values[number]) for number in numbers]
        copies = self._copies if self._needs_copy(block, values) else None
        looking = Looking(block, self._inputs[block.buffer], copies, self._writable)
        alone = len(values) == 1 and values[0].strides is None
        for number, value in zip(numbers, values, strict=True):
            if value.kind == ARRAY:
                self._made[number] = looking.array(value)
            else:
                self._made[number] = _dressed(looking.alone(value) if alone else looking.tensor(value), value)

    def _needs_copy(self, block: Block, values: list[Value]) -> bool:
        """Whether the block's bytes get memory of their own."""
        source = self._inputs[block.buffer]
        if block.device != CPU or (source.readonly and self._writable):
            return True
        start = source.address + block.offset
        return any(start % alignment_of(value.dtype.itemsize) for value in values)


def _dressed(tensor: torch.Tensor, value: Any) -> Any:
    """The tensor as what was pickled: a parameter, a storage, a lazily conjugated one."""
    kind, flags = value[0], value[6]
    if kind == PARAMETER:
        return _make_subclass(torch.nn.Parameter, tensor, bool(flags & REQUIRES_GRAD))
    if kind == STORAGE:
        return tensor.untyped_storage()
    if flags:
        if flags & CONJUGATED:
            torch._C._set_conj(tensor, True)
        if flags & NEGATED:
            torch._C._set_neg(tensor, True)
        if flags & REQUIRES_GRAD:
            tensor.requires_grad = True
    return tensor


def check(table: Table, inputs: list[Input]) -> None:
    """Raise `UnpicklingError` when a block does not lie in the bytes that are there."""
    sizes = [one.nbytes for one in inputs]
    for buffer, offset, nbytes, _ in chain(table.blocks, table.foreign):
        if not 0 <= buffer < len(sizes):
            raise UnpicklingError("the table names a buffer that is not there: the bytes are damaged")
        if offset + nbytes > sizes[buffer]:
            raise UnpicklingError(
                f"truncated: buffer {buffer} has {sizes[buffer]} bytes, {offset + nbytes} are needed"
            )
