"""What the tests of the running engine share."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture
def w() -> torch.Tensor:
    """A leaf to differentiate by."""
    return torch.linspace(0.2, 1.5, 12, dtype=torch.float64).reshape(3, 4).requires_grad_()
