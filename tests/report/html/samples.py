"""Memory maps made by hand, so that the pages can be read back without torch."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import strategies as st

from tensafe.memory.extent import Extent
from tensafe.memory.map import MemoryMap, NamedTensor, Storage

HOSTILE_NAMES = (
    "</script><img src=x onerror=window.broken=1>",
    "<!--<script>window.broken=1</script>",
    "</script x><img src=y onerror=window.broken=1>",
    "<!-- <script x",
    """state['a"b']&amp;<b>bold</b>""",
    "nul\x00 bell\x07 line\nend\u2028",
    "right\u202eto\u2066left \u05d0\u05d1\u05d2",
    "beyond 𝒙😀",
    "lone \ud800 surrogate",
    "layer." + "x" * 10_000 + ".weight",
    "]]>{{7*7}}${7*7}`",
    "javascript:alert(1)",
)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides, in elements, of a contiguous tensor."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def tensor(
    *names: str,
    shape: tuple[int, ...],
    offset: int = 0,
    strides: tuple[int, ...] | None = None,
    itemsize: int = 4,
    dtype: str = "float32",
    kind: str = "tensor",
    notes: tuple[str, ...] = (),
) -> NamedTensor:
    """A tensor at an offset in elements, contiguous unless strides (in elements) say otherwise."""
    steps = row_major(shape) if strides is None else strides
    extent = Extent(offset * itemsize, shape, tuple(step * itemsize for step in steps), itemsize)
    return NamedTensor(names, shape, steps, dtype, extent, kind, notes)


def storage(
    label: str, nbytes: int, *tensors: NamedTensor, device: str = "cpu", notes: tuple[str, ...] = ()
) -> Storage:
    return Storage(label, nbytes, device, tensors, notes)


MIB = 2**20


def shared() -> Storage:
    """4 MiB that four tensors share: all of it, some rows, some columns, and transposed."""
    return storage(
        "storage 1",
        4 * MIB,
        tensor("whole", shape=(1024, 1024)),
        tensor("whole[10:20]", "rows", shape=(10, 1024), offset=10 * 1024),
        tensor("columns", shape=(1024, 256), strides=(1024, 1), offset=512),
        tensor("transposed", shape=(1024, 1024), strides=(1, 1024), kind="array"),
        notes=("shared memory",),
    )


def interleaved() -> Storage:
    """2 MiB in eight rows; two tensors take turns in them, 512 KiB stay dead."""
    return storage(
        "storage 3",
        2 * MIB,
        tensor("q", shape=(8, 32_768), strides=(65_536, 1), kind="parameter"),
        tensor("k", shape=(8, 16_384), strides=(65_536, 1), offset=40_960, kind="parameter"),
    )


def trained() -> tuple[Storage, ...]:
    """A tied weight, its gradient, its optimizer state and two buffers."""
    shape = (300, 1000)
    weight = tensor("fc.weight", "head.weight", shape=shape, kind="parameter", notes=("requires grad",))
    state = tensor("optimizer.state[fc.weight].exp_avg", shape=shape, kind="optimizer state")
    batches = tensor("norm.num_batches_tracked", shape=(), itemsize=8, dtype="int64", kind="buffer")
    return (
        storage("storage 4", 1_200_000, weight),
        storage("storage 5", 1_200_000, tensor("fc.weight.grad", shape=shape, kind="gradient")),
        storage("storage 6", 1_200_000, state),
        storage("storage 7", 4_000, tensor("norm.running_mean", shape=(1000,), kind="buffer")),
        storage("storage 8", 8, batches),
    )


def mapped() -> Storage:
    """3 MiB kept alive by 1 KiB."""
    return storage(
        "storage 2", 3 * MIB, tensor("table[:2]", shape=(2, 128)), notes=("memory-mapped: data.bin",)
    )


def of_every_sort() -> MemoryMap:
    """Shared, dead, strided coarsely and finely, meta, empty, tied, and a storage without a tensor."""
    planned = tensor("planned.weight", shape=(5 * MIB // 4,))
    fine = tensor("every_other", shape=(100_000,), strides=(2,))
    found = (
        storage("storage 10", 5 * MIB, planned, device="meta", notes=("meta: no memory behind it",)),
        shared(),
        mapped(),
        interleaved(),
        *trained(),
        storage("storage 12", 800_000, fine, device="cuda:0"),
        storage("storage 11", 512),
        storage("storage 9", 0, tensor("empty", shape=(0, 3))),
    )
    return MemoryMap(
        "model, optimizer, batch",
        found,
        duplicates=(("fc.weight", "optimizer.state[fc.weight].exp_avg"), ("a", "b", "c")),
        not_seen=("batch['custom'] (a MyTensor): its __torch_dispatch__ hides the memory",),
    )


def many(count: int) -> MemoryMap:
    """A map of `count` tensors, every tenth a pair of views over one storage."""
    storages: list[Storage] = []
    made = 0
    while made < count:
        width = 16 + made * 37 % 4096
        name = f"model.layers.{made // 12}.block.{made % 12}.weight"
        first = tensor(name, shape=(width, 64), kind="parameter")
        storages.append(storage(f"storage {len(storages) + 1}", width * 256, first))
        made += 1
        if made % 10 == 0 and made < count:
            view = tensor(name + "[:8]", shape=(8, 64))
            storages[-1] = storage(storages[-1].label, width * 512, first, view)
            made += 1
    return MemoryMap("ten thousand", tuple(sorted(storages, key=lambda one: -one.nbytes)))


def hostile() -> MemoryMap:
    """Names, kinds, dtypes, labels and notes that try to leave their place."""
    evil = HOSTILE_NAMES[0]
    tensors = tuple(
        tensor(name, name + "'", shape=(4,), offset=4 * number, kind=evil, dtype=evil, notes=(evil,))
        for number, name in enumerate(HOSTILE_NAMES)
    )
    return MemoryMap(
        evil,
        (
            storage(evil, 4 * 16 * len(tensors), *tensors, device=evil, notes=(evil,)),
            storage(HOSTILE_NAMES[1], 10**30),
        ),
        duplicates=((evil, HOSTILE_NAMES[3]),),
        not_seen=HOSTILE_NAMES,
        facts={evil: HOSTILE_NAMES[2], "format": evil},
    )


names = st.text(max_size=40) | st.sampled_from(HOSTILE_NAMES)


@st.composite
def tensors(draw: st.DrawFn) -> NamedTensor:
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=3)))
    strides = tuple(draw(st.integers(0, 12)) for _ in shape)
    return tensor(
        *draw(st.lists(names, min_size=1, max_size=3)),
        shape=shape,
        strides=strides,
        offset=draw(st.integers(0, 20)),
        itemsize=draw(st.sampled_from([1, 2, 4, 8])),
        dtype=draw(names),
        kind=draw(st.sampled_from(["parameter", "gradient", "optimizer state"]) | names),
        notes=tuple(draw(st.lists(names, max_size=2))),
    )


@st.composite
def storages(draw: st.DrawFn) -> Storage:
    inside = draw(st.lists(tensors(), max_size=4))
    need = max((one.extent.stop for one in inside), default=0)
    return storage(
        draw(names),
        need + draw(st.integers(0, 100)),
        *inside,
        device=draw(names),
        notes=tuple(draw(st.lists(names, max_size=2))),
    )


@st.composite
def maps(draw: st.DrawFn) -> MemoryMap:
    return MemoryMap(
        draw(names),
        tuple(draw(st.lists(storages(), max_size=4))),
        duplicates=tuple(
            tuple(group) for group in draw(st.lists(st.lists(names, min_size=2, max_size=3), max_size=2))
        ),
        not_seen=tuple(draw(st.lists(names, max_size=2))),
        facts=draw(st.dictionaries(names, names, max_size=2)),
    )
