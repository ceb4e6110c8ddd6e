"""`deepcopy` beside `copy.deepcopy` on generated objects: the same shape, the same identities, the same
aliases.
"""

from __future__ import annotations

import copy

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tensafe
from copies.objects import Tree, trees
from copies.twins import assert_apart, assert_twins, sharing


@given(trees())
@settings(max_examples=300)
def test_as_the_standard_library_copies(tree: Tree) -> None:
    stock, ours = copy.deepcopy(tree.root), tensafe.deepcopy(tree.root)
    assert_twins(stock, ours)
    assert_apart(tree.root, ours)


@given(trees())
@settings(max_examples=150)
def test_a_write_through_one_alias_is_seen_by_the_same_others(tree: Tree) -> None:
    ours = tensafe.deepcopy(tree.root)
    assert sharing(ours) == sharing(tree.root)


@given(trees(), st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_memos_are_shared_with_the_standard_library(tree: Tree, random: object) -> None:
    """Half of an object by us, half by `copy.deepcopy`, with one memo: aliases across both are kept."""
    parts = list(tree.parts)
    both = sharing(parts)
    memo: dict[int, object] = {}
    copies = [
        (tensafe.deepcopy if index % 2 else copy.deepcopy)(part, memo) for index, part in enumerate(parts)
    ]
    assert sharing(copies) == both


def test_the_oracle_can_fail() -> None:
    base = torch.zeros(4)
    assert sharing([base[:2], base[1:]]) != sharing([base[:2].clone(), base[1:].clone()])
