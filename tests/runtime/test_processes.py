"""What child processes do wrong comes home; whoever starts, raises, dies or execs notices nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.children import both, python, same

STARTED = {
    "fork": """
        child = os.fork()
        if not child:
            lose()
            sys.exit(3)
        print(os.waitpid(child, 0)[1])
        """,
    "os._exit": """
        child = os.fork()
        if not child:
            lose()
            os._exit(3)
        print(os.waitpid(child, 0)[1])
        """,
    **{
        f"{method} process": f"""
        import multiprocessing
        if __name__ == "__main__":
            child = multiprocessing.get_context("{method}").Process(target=lose, name="helper")
            child.start()
            child.join()
            print(child.exitcode)
        """
        for method in ("fork", "spawn", "forkserver")
    },
    "process that nobody joins": """
        import multiprocessing
        def late():
            time.sleep(1)
            lose()
        multiprocessing.get_context("fork").Process(target=late, name="helper").start()
        print("the interpreter waits for it", flush=True)
        """,
}


@pytest.mark.parametrize("how", STARTED)
def test_the_finding_of_a_child_comes_home(how: str, tmp_path: Path) -> None:
    runs = both(STARTED[how], tmp_path)
    assert same(runs)
    (finding,) = runs.loud
    assert (finding.code, finding.count, finding.rank) == ("TS106", 1, None)
    assert finding.processes == ("helper" if "process" in how else "forked process 1",)
    assert runs.unknown == []
    assert runs.record.summary["processes"] == 2


LOADERS = """
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        lose()
        return torch.tensor(float(i))

if __name__ == "__main__":
    lose()
    for method, stay in (("fork", False), ("fork", True), ("spawn", False)):
        loader = torch.utils.data.DataLoader(
            Data(), 1, num_workers=2, multiprocessing_context=method, persistent_workers=stay
        )
        for epoch in range(1 + stay):
            print(sum(batch.sum().item() for batch in loader))
"""


def test_the_workers_of_loaders_are_told_together(tmp_path: Path) -> None:
    """Four items of a forked loader, eight of one with workers that stay, four of a spawned one, our own."""
    runs = both(LOADERS, tmp_path)
    assert same(runs)
    (finding,) = runs.loud
    assert finding.count == 4 + 8 + 4 + 1
    assert finding.processes == ("main process", "DataLoader worker 0", "DataLoader worker 1")
    assert runs.unknown == []


POOLS = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

def work(i):
    return (torch.full((3,), float(i)).add_(1) * 2).sum().item()

def grandchild():
    child = multiprocessing.get_context("fork").Process(target=lose, name="grandchild")
    child.start()
    child.join()

if __name__ == "__main__":
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        print(list(pool.map(work, range(4))))
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.map(work, range(4)))
    child = multiprocessing.get_context("fork").Process(target=grandchild)
    child.start()
    child.join()
    print(child.exitcode)
"""


def test_pools_work_and_a_child_of_a_child_comes_home(tmp_path: Path) -> None:
    runs = both(POOLS, tmp_path)
    assert same(runs)
    (finding,) = runs.loud
    assert finding.processes == ("grandchild",)
    (unknown,) = runs.unknown or [""]
    assert "failed" not in unknown
    assert "ForkPoolWorker" in unknown  # `with Pool()` kills its workers


DYING = """
import multiprocessing, signal

def killed():
    lose()
    os.kill(os.getpid(), signal.SIGKILL)

def raising():
    lose()
    raise ValueError("in the worker")

def replaced():
    os.execv("/bin/echo", ["echo", "another program"])

if __name__ == "__main__":
    for target in (killed, raising, replaced):
        child = multiprocessing.get_context("fork").Process(target=target, name=target.__name__)
        child.start()
        child.join()
        print(child.exitcode, flush=True)
"""


def test_a_worker_that_dies_leaves_what_it_had_found(tmp_path: Path) -> None:
    runs = both(DYING, tmp_path)
    assert same(runs)
    (finding,) = runs.loud
    assert finding.processes == ("killed", "raising")
    assert runs.unknown == [
        "the end of killed, replaced: killed, replaced by another program, or still running: "
        "only what was found before is told"
    ]
    assert "in the worker" in runs.watched.stderr
    assert "tensafe" not in runs.watched.stderr.partition("ValueError")[0]


BEFORE_AND_AFTER = """
w = torch.ones(3, requires_grad=True)
y = w.tanh()
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
before = list(model.parameters())
model(torch.ones(2)).sum().backward()
optimizer.step()
for old, new in zip(before, model.parameters()):
    print((old - new).norm().item(), flush=True)  # told at the end of the first process
lose()
child = os.fork()
if not child:
    y.data.mul_(2)  # the child alone
    y.sum().backward()
    print(w.grad, flush=True)
    os._exit(0)
os.waitpid(child, 0)
y.sum().backward()
print(w.grad)
"""


def test_a_child_tells_what_it_did_and_not_what_its_parent_did(tmp_path: Path) -> None:
    runs = both(BEFORE_AND_AFTER, tmp_path)
    assert same(runs)
    told = {(finding.code, finding.processes, finding.count) for finding in runs.loud}
    assert told == {("TS106", (), 1), ("TS102", (), 1), ("TS202", ("forked process 1",), 1)}


UNDER_HOOKS = """
class Counting(torch.utils._python_dispatch.TorchDispatchMode):
    calls = 0
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        Counting.calls += 1
        return function(*args, **(kwargs or {}))

w = torch.ones(3, requires_grad=True)
for manager in (torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t), Counting()):
    with manager:
        child = os.fork()
        y = w.exp().sum()
    y.backward()
    (w * w).sum().backward()
    if child:
        os.waitpid(child, 0)
    print(w.grad, Counting.calls, flush=True)
    if not child:
        os._exit(0)
"""


def test_a_fork_under_hooks_and_modes_of_the_program(tmp_path: Path) -> None:
    runs = both(UNDER_HOOKS, tmp_path)
    assert same(runs)
    assert not runs.loud
    assert not any("failed" in line for line in runs.unknown)


HEALED = """
import multiprocessing
def work():
    w = torch.ones(3, requires_grad=True)
    y = w.tanh()
    y.data.mul_(2)
    y.sum().backward()
    print(w.grad, flush=True)

if __name__ == "__main__":
    work()
    for method in ("fork", "spawn"):
        child = multiprocessing.get_context(method).Process(target=work)
        child.start()
        child.join()
"""


def test_a_child_is_watched_as_its_parent_is(tmp_path: Path) -> None:
    """Healed, by the same rules, its copies counted."""
    runs = both(HEALED, tmp_path, ["--heal", "--copies", "--select", "TS2"])
    first, *others = runs.watched.stdout.splitlines()
    assert others == [first, first]
    assert first != runs.plain.stdout.splitlines()[0]
    assert [(finding.code, finding.count) for finding in runs.loud] == [("TS202", 3)]
    assert runs.record.copies is not None


def test_a_python_that_the_program_launches_is_not_followed_and_that_is_said(tmp_path: Path) -> None:
    code = """
    import subprocess
    print(subprocess.run([sys.executable, "-c", "import torch; print(5)"], capture_output=True).stdout)
    print(subprocess.run(["echo", "a"], capture_output=True).stdout)
    try:
        subprocess.run(["/no/such/program"])
    except FileNotFoundError:
        import traceback
        traceback.print_exc(file=sys.stdout)
    """
    runs = both(code, tmp_path)
    assert same(runs)
    (unknown,) = runs.unknown
    assert unknown.startswith("Python programs started by subprocess: ")


def test_a_program_that_watches_itself_leaves_its_forks_alone(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import os, tensafe, torch\nwith tensafe.watching() as seen:\n    child = os.fork()\n"
        "    torch.ones(3)[torch.ones(3) > 0].zero_()\n    if not child:\n        os._exit(0)\n"
        "    os.waitpid(child, 0)\nprint(len(seen.findings), seen.not_checked[0].what)\n"
    )
    assert python(["program.py"], tmp_path).stdout == "1 forked processes\n"
