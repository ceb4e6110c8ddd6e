"""Functions of ours that `torch.compile` does not trace: it breaks the graph around them, and runs them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def leave_uncompiled(*functions: Callable[..., Any]) -> None:
    """Mark functions, and what they call, without importing `torch._dynamo` (a second or more)."""
    import torch

    evaluation: Any = torch._C._dynamo.eval_frame
    for function in functions:
        function._torchdynamo_disable = True  # type: ignore[attr-defined]  # where it would be inlined
        if hasattr(evaluation, "set_code_exec_strategy"):
            skip = evaluation._FrameAction.SKIP
            evaluation.set_code_exec_strategy(function.__code__, evaluation._FrameExecStrategy(skip, skip))
        elif hasattr(evaluation, "skip_code"):
            evaluation.skip_code(function.__code__)


def pause_compiling() -> Any:
    """Stop tracing what is called from here on, as older PyTorch skips one function only; for `go_on`."""
    dynamo = sys.modules.get("torch._dynamo")
    evaluation: Any = None if dynamo is None else sys.modules["torch"]._C._dynamo.eval_frame
    if evaluation is None or hasattr(evaluation, "set_code_exec_strategy"):
        return None
    return (evaluation, evaluation.set_eval_frame(None))


def go_on(paused: Any) -> None:
    """Trace again what was traced before."""
    if paused is not None:
        evaluation, before = paused
        evaluation.set_eval_frame(before)


def compiler_knows() -> bool:
    """Whether Dynamo has made its tables of torch's functions, by identity, which it does once."""
    rules = sys.modules.get("torch._dynamo.trace_rules")
    tables = (getattr(rules, name, None) for name in ("get_torch_obj_rule_map", "get_tensor_method"))
    return any(table is not None and table.cache_info().currsize for table in tables)


def make_compiler_look_again() -> None:
    """Drop these tables: what was in them when they were made is no longer what torch has."""
    sys.modules["torch._dynamo.trace_rules"].clear_lru_cache()
