"""`tensafe.share`: one arena for a tree, seen by all, gone when nobody holds it."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given, settings

import tensafe
from copies.generated import bytes_of, leaves_of, shape_of, trees
from tensafe.copies.sharing.arena import SharingError

pytestmark = pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="looks into /dev/shm")


def exists(name: str) -> bool:
    return os.path.exists(f"/dev/shm{name}")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@settings(max_examples=40)
@given(tree=trees())
def test_the_tree_in_the_arena_is_the_tree(tree: Any) -> None:
    with tensafe.share(tree) as handle:
        for found in (handle.tree, handle.attach(), pickle.loads(pickle.dumps(handle)).tree):
            assert shape_of(found) == shape_of(pickle.loads(pickle.dumps(tree, 5)))
            assert list(map(bytes_of, leaves_of(found))) == list(map(bytes_of, leaves_of(tree)))


def _write(handle: Any, answers: Any) -> None:
    tree = handle.attach()
    tree["x"][1] = 42.0
    tree["array"][0] = 7
    answers.put((tree["row"].tolist(), tree["tied"] is tree["x"]))


def _try_to_write(handle: Any, answers: Any) -> None:
    tree = handle.attach(readonly=True)
    refused = 0
    for write in (lambda: tree["x"].zero_(), lambda: tree["row"].data.zero_(), lambda: tree["array"].fill(0)):
        try:
            write()
        except (RuntimeError, ValueError):
            refused += 1
    answers.put((refused, tree["x"].sum().item()))


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_other_processes_see_writes_and_aliases(method: str) -> None:
    context = multiprocessing.get_context(method)
    x = torch.zeros(4)
    original = {"x": x, "row": x[1:3], "tied": x, "array": numpy.zeros(2)}
    with tensafe.share(original) as handle:
        answers = context.SimpleQueue()
        for target, expected in ((_write, ([42.0, 0.0], True)), (_try_to_write, (3, 42.0))):
            process = context.Process(target=target, args=(handle, answers))
            process.start()
            assert answers.get() == expected
            process.join()
            assert process.exitcode == 0
        assert handle.tree["row"].tolist() == [42, 0]
        assert handle.tree["array"].tolist() == [7, 0]
    assert x.tolist() == [0, 0, 0, 0]
    assert not exists(handle.name)


def test_the_handle_is_small_and_bytes_are_stored_once() -> None:
    large = torch.zeros(100_000)
    with tensafe.share({"a": large, "b": large[10:], "c": torch.zeros(10**6)[:5]}) as handle:
        assert len(pickle.dumps(handle)) < 300
        assert handle.nbytes < large.nbytes + 4_096


def test_hundreds_of_tensors_cost_one_descriptor_and_attaching_leaks_none() -> None:
    before = descriptors()
    with tensafe.share([torch.zeros(100) for _ in range(300)]) as handle:
        resource_tracker_pipe = 1
        assert descriptors() <= before + 1 + resource_tracker_pipe
        held = descriptors()
        for _ in range(100):
            handle.attach()
        assert descriptors() == held


def test_tensors_outlive_the_handle() -> None:
    handle = tensafe.share({"x": torch.arange(5.0), "a": numpy.arange(3)})
    x, array = handle.tree["x"], handle.attach()["a"]
    handle.close()
    handle.close()
    gc.collect()
    x.add_(1)
    array += 1
    assert x.tolist() == [1, 2, 3, 4, 5]
    assert array.tolist() == [1, 2, 3]
    assert not exists(handle.name)


def test_a_closed_handle_says_so() -> None:
    handle = tensafe.share([torch.zeros(1)])
    copied = pickle.loads(pickle.dumps(handle))
    handle.close()
    for use in (lambda: handle.tree, handle.attach, lambda: pickle.dumps(handle)):
        with pytest.raises(SharingError, match="closed"):
            use()
    with pytest.raises(SharingError, match="there no more"):
        copied.attach()


def test_unlinked_memory_goes_on_for_those_who_have_it() -> None:
    with tensafe.share([torch.zeros(2)]) as handle:
        other = pickle.loads(pickle.dumps(handle))
        tree = other.tree
        with pytest.raises(SharingError, match="only by the process"):
            other.unlink()
        assert exists(handle.name)
        handle.unlink()
        assert not exists(handle.name)
        handle.tree[0].fill_(3)
        assert tree[0].tolist() == [3, 3]


def test_a_dropped_handle_removes_its_memory() -> None:
    name = tensafe.share([torch.zeros(2)]).name
    gc.collect()
    assert not exists(name)


FORKS = """
import os, sys, torch, tensafe
handle = tensafe.share([torch.zeros(2)])
child = os.fork()
if not child:
    handle.close()
    sys.exit()
os.waitpid(child, 0)
print(handle.attach()[0].tolist(), handle.name)
"""


@pytest.mark.parametrize("closes", [True, False])
def test_a_forked_child_does_not_remove_what_it_does_not_own(closes: bool) -> None:
    program = FORKS if closes else FORKS.replace("handle.close()", "pass")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    values, _, name = done.stdout.strip().rpartition(" ")
    assert (values, done.stderr) == ("[0.0, 0.0]", "")
    assert not exists(name)


def test_a_failure_while_sharing_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tensafe.share([torch.zeros(1)]).close()  # starts the resource tracker
    monkeypatch.setattr("secrets.token_hex", lambda nbytes: f"test-{os.getpid()}")
    before = descriptors()
    with pytest.raises(tensafe.TensafeError, match="has a graph"):
        tensafe.share([torch.ones(2, requires_grad=True) * 2])
    with pytest.raises(SharingError, match="bytes of shared memory cannot be had"):
        _share_more_than_there_is()
    monkeypatch.setattr("tensafe.copies.sharing.handle.loads", _fail)
    with pytest.raises(MemoryError):
        tensafe.share([torch.zeros(2)])
    gc.collect()
    assert not exists(f"/tensafe-test-{os.getpid()}")
    assert descriptors() == before


def _share_more_than_there_is() -> None:
    from tensafe.copies.sharing import arena

    arena.create(1 << 60)


def _fail(*args: Any, **kwargs: Any) -> Any:
    raise MemoryError


HOLDS = """
import sys, time, torch, tensafe
handle = tensafe.share({"x": torch.zeros(1000)})
sys.stdout.write(handle.name + "\\n")
sys.stdout.flush()
time.sleep(60)
"""


def test_a_killed_owner_leaves_nothing_once_the_others_have_closed() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        from tensafe.copies.sharing.handle import Shared

        tree: Any = Shared(name, 0).tree
        assert exists(name)
        process.send_signal(signal.SIGKILL)
        process.wait()
        tree["x"].add_(1)
        assert tree["x"].sum() == 1_000
        del tree
        assert _is_gone(name)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _is_gone(name: str) -> bool:
    """The tracker of the killed process sees its pipe close, and removes the name."""
    for _ in range(200):
        if not exists(name):
            return True
        time.sleep(0.1)
    return False
