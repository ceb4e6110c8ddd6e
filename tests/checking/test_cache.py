"""The cache: the same answers, and new ones whenever anything that they depend on has changed."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from checking.projects import FIXED, LOST
from tensafe import check
from tensafe.checking import cache as caching
from tensafe.checking import stamp as stamping
from tensafe.checking.outcome import Outcome
from tensafe.findings import Record
from tensafe.rules._loader import select
from test_import_direction import MAY_IMPORT

HELPER = "def squash(x):\n    x *= 0.5\n    return x\n"
TRAIN = (
    "import torch\nfrom layers import squash\nw = torch.ones(3, requires_grad=True)\n"
    "y = torch.sigmoid(w)\nsquash(y)\ny.sum().backward()\n"
)


class Counted:
    """Checks with a cache, and counts the files that the engine looked at."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self, *paths: Path, names: tuple[str, ...] = (), cached: bool = True) -> Record:
        return check.check_paths(paths, select(names), 1, None, check.Asked(cached=cached))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(stamping, "_MARGIN_SECONDS", -1e9)  # the engine of this checkout may be younger
    stamping.engine_digest.cache_clear()
    return tmp_path / "cache" / "tensafe" / "check"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, store: Path) -> Counted:
    counted = Counted()
    whole = check.check_file

    def counting(*arguments: object) -> Outcome:
        counted.looks += 1
        return whole(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(check, "check_file", counting)
    return counted


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "inner").mkdir(parents=True)
    (folder / "a.py").write_text(LOST)
    (folder / "inner" / "b.py").write_text("x = (\n")
    (folder / "layers.py").write_text(HELPER)
    (folder / "train.py").write_text(TRAIN)
    return folder


def test_the_same_answer_without_looking(counted: Counted, project: Path) -> None:
    first = counted(project)
    assert (counted.looks, len(first.findings), len(first.not_checked)) == (4, 2, 1)
    again = counted(project)
    assert counted.looks == 4
    assert (again.findings, again.not_checked) == (first.findings, first.not_checked)
    assert {**again.summary, "seconds": 0} == {**first.summary, "seconds": 0}


@pytest.mark.parametrize(
    ("name", "text", "looks"),
    [
        ("a.py", FIXED, 1),
        ("layers.py", HELPER.replace("*=", "+="), 2),
        ("inner/b.py", "x = 1\n", 1),
        ("inner/new.py", LOST, 1),
    ],
)
def test_what_changed_is_looked_at_again(
    counted: Counted, project: Path, name: str, text: str, looks: int
) -> None:
    counted(project)
    counted.looks = 0
    (project / name).write_text(text)
    after = counted(project)
    assert counted.looks == looks
    assert after.findings == counted(project, cached=False).findings


def test_a_helper_that_appears_is_noticed(counted: Counted, project: Path) -> None:
    (project / "layers.py").unlink()
    assert len(counted(project).findings) == 1
    (project / "layers.py").write_text(HELPER)
    assert len(counted(project).findings) == 2
    (project / "layers.py").unlink()
    assert len(counted(project).findings) == 1


def test_rules_are_a_part_of_the_key(counted: Counted, project: Path) -> None:
    assert len(counted(project).findings) == 2
    assert len(counted(project, names=("TS2",)).findings) == 1
    assert counted.looks == 8


def test_the_engine_is_a_part_of_the_key(
    counted: Counted, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted(project)
    monkeypatch.setattr(check, "stamp", lambda codes: "another engine")
    counted(project)
    assert counted.looks == 8
    monkeypatch.setattr(check, "stamp", lambda codes: "")  # it is being edited
    counted(project)
    counted(project)
    assert counted.looks == 16


def test_an_engine_that_was_just_edited_has_no_stamp(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stamping.stamp(["TS106"])
    monkeypatch.setattr(stamping, "_MARGIN_SECONDS", 1e9)
    stamping.engine_digest.cache_clear()
    assert stamping.stamp(["TS106"]) == ""


def shelves(store: Path) -> list[Path]:
    return sorted(store.iterdir())


SPOILERS: dict[str, Callable[[dict[str, object]], object]] = {
    "cut": lambda data: json.dumps(data)[:-20],
    "empty": lambda data: "",
    "binary": lambda data: "\0\1",
    "list": lambda data: "[]",
    "files": lambda data: json.dumps({**data, "files": 3}),
    "entry": lambda data: json.dumps({**data, "files": {"a.py": [], "train.py": None}}),
    "fields": lambda data: json.dumps({**data, "files": {"a.py": {"digest": "x"}}}),
    "stamp": lambda data: json.dumps({**data, "stamp": "other"}),
    "deep": lambda data: "[" * 100_000,
}


@pytest.mark.parametrize("spoil", SPOILERS.values(), ids=SPOILERS)
def test_a_spoiled_cache_is_as_if_it_were_not_there(
    counted: Counted, project: Path, store: Path, spoil: Callable[[dict[str, object]], object]
) -> None:
    first = counted(project)
    for shelf in shelves(store):
        shelf.write_text(str(spoil(json.loads(shelf.read_text()))))
    assert counted(project).findings == first.findings
    counted.looks = 0
    assert counted(project).findings == first.findings
    assert counted.looks == 0


@pytest.mark.parametrize("fields", [{"findings": [{"code": 1}]}, {"lines": float("inf")}, {"uses": 3}])
def test_spoiled_fields_of_one_entry(
    counted: Counted, project: Path, store: Path, fields: dict[str, object]
) -> None:
    first = counted(project)
    for shelf in shelves(store):
        data = json.loads(shelf.read_text())
        for entry in data["files"].values():
            entry.update(fields)
        shelf.write_text(json.dumps(data))
    assert counted(project).findings == first.findings


def test_no_cache_reads_and_writes_nothing(counted: Counted, project: Path, store: Path) -> None:
    counted(project, cached=False)
    assert not store.exists()


def test_a_place_that_cannot_be_written_is_no_error(counted: Counted, project: Path, store: Path) -> None:
    store.parent.mkdir(parents=True)
    store.write_text("a file where the folder should be")
    assert len(counted(project).findings) == 2


def test_writers_at_the_same_time_leave_whole_shelves(project: Path, store: Path) -> None:
    record = check.check_file(project / "a.py", ["TS106"])

    def write(number: int) -> None:
        cache = caching.Cache(store, "stamp")
        for other in range(20):
            cache.keep(project / "a.py", record)  # the others are no files, and not written
            cache.keep(project / f"n{number}_{other}.py", record)
            cache.close()

    def read() -> int:
        """Reads as long as there is something to read, and meets no half of a shelf."""
        times = 0
        while not done.is_set():
            for shelf in shelves(store) if store.exists() else []:
                if shelf.suffix == ".json":
                    json.loads(shelf.read_text())
                    times += 1
        return times

    done = threading.Event()
    with ThreadPoolExecutor(9) as pool:
        reads = pool.submit(read)
        list(pool.map(write, range(8)))
        done.set()
        assert reads.result()
    assert [path.suffix for path in shelves(store)] == [".json"]
    found = caching.Cache(store, "stamp").find(project / "a.py")
    assert found is not None
    assert found.findings == record.findings


def test_it_stays_small(project: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = check.check_file(project / "a.py", ["TS106"])
    sizes = []
    for number in range(6):
        folder = project / f"f{number}"
        folder.mkdir()
        (folder / "a.py").write_text(LOST)
        cache = caching.Cache(store, "stamp")
        cache.keep(folder / "a.py", outcome)
        cache.close()
        for age, shelf in enumerate(sorted(shelves(store), key=os.path.getmtime)):
            os.utime(shelf, (1_000_000 + age, 1_000_000 + age))
        sizes.append(sum(shelf.stat().st_size for shelf in shelves(store)))
        monkeypatch.setattr(caching, "MOST_BYTES", sizes[0] * 3 + 100)
    assert len(shelves(store)) == 3
    assert caching.Cache(store, "stamp").find(project / "f5" / "a.py") is not None
    assert caching.Cache(store, "stamp").find(project / "f0" / "a.py") is None


def test_the_platform_says_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert caching.cache_folder() == tmp_path / "tensafe" / "check"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(caching.sys, "platform", "linux")
    assert caching.cache_folder() == tmp_path / ".cache" / "tensafe" / "check"
    monkeypatch.setattr(caching.sys, "platform", "darwin")
    assert caching.cache_folder() == tmp_path / "Library" / "Caches" / "tensafe" / "check"


def test_every_room_that_a_check_reads_is_in_the_stamp() -> None:
    rooms, waiting = set(), {"check"}
    while waiting:
        rooms |= waiting
        waiting = {other for room in waiting for other in MAY_IMPORT[room]} - rooms
    assert set(stamping.ROOMS) == rooms - {"check", "errors"}
