"""What the names mean that a pickle imports: harmless, somebody's code, or dangerous."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tensafe.checkpoints.pickled.known_globals import (
    DANGEROUS_MODULES,
    DANGEROUS_NAMES,
    HARMLESS,
    HARMLESS_MODULES,
    REACHED,
    WEIGHTS_ONLY,
)

Verdict = Literal["safe", "code", "dangerous"]


@dataclass(frozen=True, slots=True)
class FoundGlobal:
    """A name that loading would import, how often, and what that means."""

    name: str
    count: int
    verdict: Verdict
    meaning: str  # "runs a command", "imports code of package `timm`", …
    weights_only: bool  # whether `torch.load(weights_only=True)` knows it


def judge(module: str, name: str, count: int) -> FoundGlobal:
    """What importing this name means; a dotted name reaches through attributes, so every part counts."""
    full = f"{module}.{name}"
    danger = _danger(module, name)
    if danger:
        return FoundGlobal(full, count, "dangerous", danger, False)
    if full in WEIGHTS_ONLY:
        return FoundGlobal(full, count, "safe", "rebuilds tensors and containers", True)
    if full in HARMLESS or module in HARMLESS_MODULES or _is_storage(module, name):
        return FoundGlobal(full, count, "safe", "rebuilds values", False)
    package = module.split(".")[0]
    meaning = (
        "a class of the TorchScript archive itself"
        if package == "__torch__"
        else f"imports code of package {package}"
    )
    return FoundGlobal(full, count, "safe" if package == "__torch__" else "code", meaning, False)


def _danger(module: str, name: str) -> str | None:
    full = f"{module}.{name}"
    if full in DANGEROUS_NAMES:
        return DANGEROUS_NAMES[full]
    if full in HARMLESS or full in WEIGHTS_ONLY:
        return None
    parts = full.split(".")
    for length in range(len(parts) - 1, 0, -1):
        reason = DANGEROUS_MODULES.get(".".join(parts[:length]))
        if reason is not None:
            return reason
    reached = name.split(".")
    for part in reached:
        if part in REACHED:
            return f"reaches the module {part} through another one"
    if any(part.startswith("__") and part.endswith("__") for part in reached):
        return "reaches into Python's own attributes"
    return None


def _is_storage(module: str, name: str) -> bool:
    """torch.load answers any name with "Storage" in it itself, without an import."""
    return module in ("torch", "torch.storage", "torch.cuda") and name.endswith("Storage")
