"""CPython's own tests of the `copy` module, with `copy.deepcopy` replaced by ours."""

from __future__ import annotations

import copy
import unittest
from collections.abc import Iterator

import pytest

import tensafe

test_copy = pytest.importorskip(
    "test.test_copy", reason="this Python comes without the standard library's tests"
)


def cases(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from cases(one)
        else:
            yield one


CASES = {case.id(): case for case in cases(unittest.defaultTestLoader.loadTestsFromModule(test_copy))}


@pytest.mark.parametrize("name", CASES)
def test_of_cpython(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy, "deepcopy", tensafe.deepcopy)
    result = unittest.TestResult()
    CASES[name].run(result)
    assert result.testsRun == 1
    assert not result.errors + result.failures


def test_they_are_all_there() -> None:
    assert len([name for name in CASES if "deepcopy" in name]) > 20
