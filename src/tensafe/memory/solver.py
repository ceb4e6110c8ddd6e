"""Bounded linear equations in whole numbers: the one question behind every overlap of strided memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd


class OutOfStepsError(Exception):
    """The search was given up before it had an answer."""


Term = tuple[int, int]
"""A positive coefficient, and the largest value that its unknown may take; the smallest is 0."""


def solve(terms: Sequence[Term], target: int, steps: int) -> list[int] | None:
    """Values with `sum(coefficient * value) == target`, None when there are none.

    A depth-first search over descending coefficients. What the smaller ones can add up to bounds each value
    from both sides, and their common divisor says which remainders are possible: dense and nested strides
    need a step or two each. Raises `OutOfStepsError` after `steps` tried values.
    """
    merged: dict[int, int] = {}
    for coefficient, most in terms:
        if most:
            merged[coefficient] = merged.get(coefficient, 0) + most
    found = solve_few(merged, target) if len(merged) < 3 else _search(merged, target, steps)
    return None if found is None else _split(terms, found)


def _split(terms: Sequence[Term], values: dict[int, int]) -> list[int]:
    """The value of each unknown, where unknowns of one coefficient were searched as their sum."""
    split = []
    for coefficient, most in terms:
        value = min(most, values.get(coefficient, 0))
        if value:
            values[coefficient] -= value
        split.append(value)
    return split


def solve_few(merged: dict[int, int], target: int) -> dict[int, int] | None:
    """Up to two unknowns: the first candidate for one leaves a rest that the other gives."""
    if len(merged) == 2:
        large, small = max(merged), min(merged)
        candidates = _candidates(large, merged[large], target, small * merged[small], small)
        if not candidates:
            return None
        first = candidates[0]
        return {large: first, small: (target - large * first) // small}
    for coefficient, most in merged.items():
        value, rest = divmod(target, coefficient)
        return {coefficient: value} if not rest and 0 <= value <= most else None
    return None if target else {}


def _search(merged: dict[int, int], target: int, steps: int) -> dict[int, int] | None:
    coefficients = sorted(merged, reverse=True)
    mosts = [merged[coefficient] for coefficient in coefficients]
    count = len(coefficients)
    reach = [0] * (count + 1)  # what all terms from here on can add up to
    divisor = [0] * (count + 1)
    for place in range(count - 1, -1, -1):
        reach[place] = reach[place + 1] + coefficients[place] * mosts[place]
        divisor[place] = gcd(divisor[place + 1], coefficients[place])
    if not 0 <= target <= reach[0] or target % divisor[0]:
        return None
    values = [0] * count
    left = steps
    remaining = [target] + [0] * count
    choices: list[range] = [range(0)] * count
    place = 0
    choices[0] = _candidates(coefficients[0], mosts[0], target, reach[1], divisor[1])
    tried = [0] * count
    while place >= 0:
        if tried[place] >= len(choices[place]):
            place -= 1
            continue
        left -= 1
        if left < 0:
            raise OutOfStepsError
        values[place] = choices[place][tried[place]]
        tried[place] += 1
        rest = remaining[place] - coefficients[place] * values[place]
        if place + 1 == count:
            return dict(zip(coefficients, values, strict=True))
        place += 1
        remaining[place], tried[place] = rest, 0
        choices[place] = _candidates(
            coefficients[place], mosts[place], rest, reach[place + 1], divisor[place + 1]
        )
    return None


def _candidates(coefficient: int, most: int, target: int, reach: int, divisor: int) -> range:
    """Values after which the rest lies within reach and is a multiple of the divisor of what follows."""
    low = max(0, -((reach - target) // coefficient))
    high = min(most, target // coefficient)
    if low > high:
        return range(0)
    if divisor == 0:  # the last term: it must give the target itself
        value, left_over = divmod(target, coefficient)
        return range(value, value + 1) if not left_over and low <= value <= high else range(0)
    common = gcd(coefficient, divisor)
    if target % common:
        return range(0)
    step = divisor // common
    if step > 1:
        first = (target // common) * pow(coefficient // common, -1, step) % step
        low += (first - low) % step
    return range(low, high + 1, step)
