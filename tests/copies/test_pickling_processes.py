"""Messages between processes by `tensafe.dumps`."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy
import pytest
import torch

from tensafe.copies.pickling.processes import install, installed, uninstall


def _work(tree: dict[str, Any]) -> dict[str, Any]:
    tree["x"][0] = 9.0
    tree["array"][0] = 8
    table = torch.arange(10_000.0)
    return {
        "seen": (tree["view"][0].item(), tree["over"][0].item()),
        "held": tree["row"].untyped_storage().nbytes(),
        "result": table[:2],
        "again": table[1:3],
    }


def _tree() -> dict[str, Any]:
    x, array = torch.arange(4.0), numpy.arange(3)
    row = torch.zeros(100_000)[:2]
    return {"x": x, "view": x[:2], "array": array, "over": torch.from_numpy(array), "row": row}


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_executors_keep_aliases_and_send_what_is_viewed(method: str) -> None:
    tree = _tree()
    context = multiprocessing.get_context(method)
    with installed(), ProcessPoolExecutor(1, mp_context=context, initializer=install) as pool:
        answer = pool.submit(_work, tree).result()
        assert list(pool.map(len, ["a", "bc"])) == [1, 2]
    assert answer["seen"] == (9, 8)
    assert answer["held"] == 8
    assert answer["result"].untyped_storage().nbytes() == 12
    answer["result"][1] = -1.0
    assert answer["again"][0] == -1
    assert tree["x"].tolist() == [0, 1, 2, 3]
    assert not tree["x"].is_shared()


def test_queues_and_pipes() -> None:
    context = multiprocessing.get_context("fork")
    tree = _tree()
    receiver, sender = context.Pipe(duplex=False)
    queue: Any = context.SimpleQueue()
    with installed():
        before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        for _ in range(50):
            queue.put([tree["x"], tree["view"]])
            kept = queue.get()
        sender.send(tree)
        got = receiver.recv()
        queue.put({"lock": 1, "text": "no tensor at all"})
        assert queue.get() == {"lock": 1, "text": "no tensor at all"}
        if before:
            assert len(os.listdir("/proc/self/fd")) == before
    kept[0][1] = 5.0
    assert kept[1].tolist() == [0, 5]
    assert got["view"].tolist() == [0, 1]
    for end in (receiver, sender, queue):
        end.close()


def test_shared_tensors_stay_shared() -> None:
    queue: Any = multiprocessing.get_context("fork").SimpleQueue()
    shared = torch.zeros(3).share_memory_()
    with installed():
        queue.put([shared, torch.zeros(2)])
        got = queue.get()
    got[0][1] = 4.0
    assert shared.tolist() == [0, 4, 0]
    queue.close()


def test_it_is_undone_as_often_as_it_was_asked() -> None:
    plain = ForkingPickler.__dict__["dumps"]
    with installed():
        with installed():
            pass
        assert ForkingPickler.__dict__["dumps"] is not plain
    assert ForkingPickler.__dict__["dumps"] is plain
    uninstall()
    assert ForkingPickler.__dict__["dumps"] is plain
