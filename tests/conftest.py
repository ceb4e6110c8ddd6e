"""What all tests share: hypothesis is quick and the same each time, and the user's cache is left alone."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("fixes.places")
settings.register_profile(
    "steady", deadline=None, derandomize=True, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of its own for every `tensafe check` that a test starts."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture(autouse=True)
def every_look_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The running engine looks for live tensors in a share of the time. A look takes long in a worker of the
    suite, which holds millions of objects, and the share would soon be spent.
    """
    monkeypatch.setattr("tensafe.runtime.storages.live.ALLOWANCE", float("inf"))
