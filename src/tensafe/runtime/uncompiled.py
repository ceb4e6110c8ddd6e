"""Functions of ours that `torch.compile` shall not trace: it breaks the graph around them, and runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def leave_uncompiled(*functions: Callable[..., Any]) -> None:
    """Mark functions, and what they call, without importing `torch._dynamo` (a second or more)."""
    evaluation: Any = torch._C._dynamo.eval_frame
    for function in functions:
        function._torchdynamo_disable = True  # type: ignore[attr-defined]  # where it would be inlined
        if hasattr(evaluation, "set_code_exec_strategy"):
            skip = evaluation._FrameAction.SKIP
            evaluation.set_code_exec_strategy(
                function.__code__,
                evaluation._FrameExecStrategy(skip, skip),
            )
        elif hasattr(evaluation, "skip_code"):
            evaluation.skip_code(function.__code__)
