"""What all tests share: hypothesis is quick and the same each time."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("fixes.places")
settings.register_profile(
    "steady", deadline=None, derandomize=True, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")
