"""Which branches run in evaluation only, where no backward follows."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

_TRAINING = re.compile(
    r"(training|is_grad_enabled\(\)|\.requires_grad|=='train(ing)?'|:train|\.train|is_train)$"
)
_EVALUATION = re.compile(
    r"(training==(False|None)"
    r"|is_inference_mode_enabled\(\)|is_inference\(\)|is_scripting\(\)|is_in_onnx_export\(\)"
    r"|=='(eval\w*|val\w*|test\w*|infer\w*|predict\w*)'|[:._](inference|eval|evaluate|export|deploy)(_mode)?)$"
)
QUESTIONS = frozenset(
    {"is_grad_enabled", "is_inference_mode_enabled", "is_inference", "is_scripting", "is_in_onnx_export"}
)
_TARGET = re.compile(r"^(y|ys|gt\w*|(\w*_)?(labels?|targets?|y_true|ground_truth))$", re.IGNORECASE)
_LOSS = re.compile(r"loss|entropy|criterion", re.IGNORECASE)


def is_evaluation(key: str, taken: int) -> bool:
    """Whether this answer to a condition means that nothing is trained."""
    return bool(_EVALUATION.search(key)) if taken else bool(_TRAINING.search(key))


def is_without_target(
    is_argument: Callable[[str], bool], test: ast.expr, body: list[ast.stmt], answer: bool
) -> bool:
    """Whether the arm that this answer to `if y is not None` takes has no target to train towards."""
    given = True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, given = test.operand, not given
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Is | ast.IsNot):
        if not isinstance(test.comparators[0], ast.Constant) or test.comparators[0].value is not None:
            return False
        given = given == isinstance(test.ops[0], ast.IsNot)
        test = test.left
    if given == answer or not isinstance(test, ast.Name) or not is_argument(test.id):
        return False
    if _TARGET.search(test.id):
        return True
    returned = [node.value for one in body for node in ast.walk(one) if isinstance(node, ast.Return)]
    return given and any(value and _LOSS.search(ast.unparse(value)) for value in returned)


def operands(test: ast.expr, answer: bool) -> list[tuple[ast.expr, bool]]:
    """What else is known when a condition has this answer: each part of an `and` that is true, and so on."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return operands(test.operand, not answer)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) == answer:
        return [part for one in test.values for part in operands(one, answer)]
    return [(test, answer)]
