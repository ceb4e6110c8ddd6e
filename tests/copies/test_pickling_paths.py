"""Ways that small data on one processor does not take: threads, other devices, older torch, odd addresses."""

from __future__ import annotations

import gc
from typing import Any

import numpy
import pytest
import torch

import tensafe
from tensafe.copies.pickling import copying, layout, raw


def test_large_memory_is_copied_by_several_threads_and_arrives_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    start = copying._start
    monkeypatch.setattr(copying, "_start", lambda helper: started.append(helper) or start(helper))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    x = torch.arange((48 << 20) // 8 + 1)
    tree = tensafe.loads(tensafe.dumps([x, x[5:], torch.ones(300_000)]))
    assert len(started) == 4
    assert torch.equal(tree[0], x)
    assert torch.equal(tree[1], x[5:])
    assert tree[2].sum() == 300_000
    tree[0][7] = -1
    assert tree[1][2] == -1


def test_no_thread_to_be_had_means_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying.threading.Thread, "start", _refuse)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    x = torch.arange((48 << 20) // 8)
    assert torch.equal(tensafe.loads(tensafe.dumps(x)), x)


def _refuse(thread: Any) -> None:
    raise RuntimeError("can't start new thread")


def test_memory_of_another_device_returns_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "CPU", "cpu:0")  # a device that is not the processor, by its name
    x = torch.arange(12.0).reshape(3, 4)
    for writable in (True, False):
        data = bytearray(tensafe.dumps({"x": x, "column": x[:, 1], "s": x.untyped_storage()}))
        tree = tensafe.loads(data, writable=writable)
        assert torch.equal(tree["x"], x)
        assert tree["column"].tolist() == [1, 5, 9]
        assert tree["s"].nbytes() == 48
    tree = tensafe.loads(data)
    tree["x"][1, 1] = 7.0
    assert tree["column"][1] == 7
    assert tensafe.loads(data)["x"][1, 1] == 5  # copied, though the buffer may be written


def test_older_torch_reads_what_may_not_be_written_by_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw, "_const_data_ptr", None)
    frozen, source = tensafe.freeze(torch.arange(6.0)), torch.arange(6.0)
    lazy = torch._lazy_clone(source)
    data = tensafe.dumps([frozen, frozen[::2], lazy, source, lazy[2:4]])
    tree = tensafe.loads(data)
    tree[0][2] = 9.0
    tree[2][3] = 8.0
    assert tree[1].tolist() == [0, 9, 4]
    assert tree[4].tolist() == [2, 8]
    assert tree[3].tolist() == [0, 1, 2, 3, 4, 5]
    assert torch._C._is_cow_tensor(lazy)


@pytest.mark.parametrize("writable", [True, False])
def test_bytes_at_an_odd_address_are_copied(writable: bool) -> None:
    data = tensafe.dumps({"x": torch.arange(5.0), "many": list(torch.arange(9).split(3)), "a": numpy.ones(2)})
    shifted = memoryview(bytearray(b"!" + data))[1:]
    tree = tensafe.loads(shifted, writable=writable)
    assert tree["x"].tolist() == [0, 1, 2, 3, 4]
    assert tree["x"].const_data_ptr() % 4 == 0 if hasattr(tree["x"], "const_data_ptr") else True
    assert [part.tolist() for part in tree["many"]] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert tree["a"].flags.aligned
    assert tree["a"].flags.writeable == writable


@pytest.mark.parametrize("writable", [True, False])
def test_memory_that_one_tensor_reaches_at_odd_places(writable: bool) -> None:
    memory = numpy.arange(33, dtype="u1")
    odd = numpy.frombuffer(memory.data, dtype="<i2", count=8, offset=1)
    values = [torch.from_numpy(memory), odd, torch.from_numpy(odd), torch.from_numpy(odd)[::3]]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        again = tensafe.loads(tensafe.dumps([values[n] for n in order]), writable=writable)
        ours = [again[order.index(n)] for n in range(4)]
        assert [leaf.tolist() for leaf in ours] == [leaf.tolist() for leaf in values]
        if writable:
            ours[0].zero_()
            assert [leaf.sum() for leaf in ours] == [0, 0, 0, 0]
        else:
            with pytest.raises(RuntimeError):
                ours[3].zero_()


def test_a_conjugated_view_and_its_base_share() -> None:
    x = torch.view_as_complex(torch.arange(6.0).reshape(3, 2))
    tree = tensafe.loads(tensafe.dumps([x, x.conj()[1:]]))
    tree[0][1] = 5 + 6j
    assert tree[1][0] == 5 - 6j


def test_nothing_is_kept_alive_by_what_was_pickled() -> None:
    gc.collect()
    x = torch.zeros(100_000)
    storage = x.untyped_storage()._weak_ref()
    tensafe.loads(tensafe.dumps([x, x[3:]]))
    del x
    assert torch.UntypedStorage._expired(storage)
