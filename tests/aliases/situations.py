"""Situations in which somebody wants to write a tensor in place, each made afresh from its parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass
class Made:
    """The tensor to write, and what is computed around it; `keep` holds what must stay alive."""

    x: Tensor
    loss: Callable[[], Tensor] | None = None
    keep: list[Any] = field(default_factory=list)
    grad_mode: bool = True
    inference: bool = False
    write: Callable[[Tensor], object] = lambda x: x.mul_(2)


Make = Callable[[Tensor], Made]
"""From a leaf of four float64 elements that requires grad."""

SITUATIONS: dict[str, tuple[Make, str]] = {}
"""By name: how to make it, and the code of the reason against writing ("" where writing is fine)."""


def situation(code: str = "") -> Callable[[Make], Make]:
    def note(make: Make) -> Make:
        SITUATIONS[make.__name__.replace("_", " ")] = (make, code)
        return make

    return note


class Doubled(torch.autograd.Function):
    """Saves its input, and keeps another tensor on `ctx`."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, factor: Tensor) -> Tensor:
        ctx.save_for_backward(value)
        ctx.factor = factor
        return value * value * factor

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (value,) = ctx.saved_tensors
        return 2 * value * ctx.factor * gradient, None


class Flat(torch.autograd.Function):
    """Returns a view of its input."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        return value.view(-1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient.view(-1)


def plain() -> Tensor:
    return torch.arange(1.0, 5.0, dtype=torch.float64)


@situation()
def a_plain_tensor(p: Tensor) -> Made:
    return Made(plain())


@situation()
def a_slice_of_a_plain_tensor(p: Tensor) -> Made:
    return Made(plain()[1:3])


@situation()
def every_second_element(p: Tensor) -> Made:
    return Made(plain()[::2])


@situation()
def a_transpose(p: Tensor) -> Made:
    return Made(plain().view(2, 2).t())


@situation()
def one_view_of_several_without_a_graph(p: Tensor) -> Made:
    return Made(plain().unbind()[0])


@situation()
def a_size_one_dimension_expanded_to_one(p: Tensor) -> Made:
    return Made(plain()[:1].expand(1, 1))


@situation("expanded")
def an_expanded_row(p: Tensor) -> Made:
    return Made(plain().expand(3, 4))


@situation("overlaps itself")
def overlapping_windows(p: Tensor) -> Made:
    return Made(plain().unfold(0, 3, 1))


@situation()
def windows_that_touch(p: Tensor) -> Made:
    return Made(plain().unfold(0, 2, 2))


@situation("overlaps itself")
def a_diagonal_band_by_strides(p: Tensor) -> Made:
    return Made(plain().as_strided((2, 2), (1, 1)))


@situation("leaf")
def a_leaf(p: Tensor) -> Made:
    return Made(p, lambda: (p * 3).sum())


@situation()
def a_leaf_with_grad_mode_off(p: Tensor) -> Made:
    return Made(p, grad_mode=False)


@situation("view of leaf")
def a_view_of_a_leaf(p: Tensor) -> Made:
    return Made(p[1:])


@situation()
def a_view_of_a_leaf_with_grad_mode_off(p: Tensor) -> Made:
    return Made(p[1:], grad_mode=False)


@situation("view: no_grad_mode")
def a_view_made_with_grad_mode_off(p: Tensor) -> Made:
    with torch.no_grad():
        return Made(p[1:])


@situation()
def a_view_made_and_written_with_grad_mode_off(p: Tensor) -> Made:
    with torch.no_grad():
        return Made(p[1:], grad_mode=False)


@situation()
def a_detached_leaf(p: Tensor) -> Made:
    return Made(p.detach(), keep=[p])


@situation("saved for backward")
def a_detached_leaf_that_is_saved(p: Tensor) -> Made:
    loss = (p * p).sum()
    return Made(p.detach(), lambda: loss)


@situation("saved for backward")
def a_leaf_that_is_saved_with_grad_mode_off(p: Tensor) -> Made:
    loss = (p * p).sum()
    return Made(p, lambda: loss, grad_mode=False)


@situation()
def a_result_that_nothing_saves(p: Tensor) -> Made:
    y = p * 3
    return Made(y, lambda: y.sum())


@situation()
def a_view_of_a_result_that_nothing_saves(p: Tensor) -> Made:
    y = p * 3
    return Made(y[1:], lambda: (y * 2).sum())


@situation("saved for backward")
def a_result_that_its_own_node_saves(p: Tensor) -> Made:
    y = p.exp()
    return Made(y, lambda: y.sum())


@situation("saved for backward")
def a_result_that_the_next_node_saves(p: Tensor) -> Made:
    y = p * 3
    loss = (y * y).sum()
    return Made(y, lambda: loss)


@situation("saved for backward")
def a_view_of_a_saved_result(p: Tensor) -> Made:
    y = p * 3
    loss = (y * y).sum()
    return Made(y[2:], lambda: loss)


@situation("saved for backward")
def the_half_that_is_not_saved(p: Tensor) -> Made:
    y = p * 3
    loss = (y[:2] * y[:2]).sum()
    return Made(y[2:], lambda: loss)


@situation("saved for backward")
def a_detached_result_that_is_saved(p: Tensor) -> Made:
    y = p.exp()
    loss = y.sum()
    return Made(y.detach(), lambda: loss, keep=[y])


@situation("saved for backward")
def an_input_that_a_node_saves(p: Tensor) -> Made:
    x = plain()
    loss = (p * x).sum()
    return Made(x, lambda: loss)


@situation("saved for backward")
def a_view_of_an_input_that_a_node_saves(p: Tensor) -> Made:
    x = plain()
    loss = (p * x).sum()
    return Made(x.view(2, 2)[0], lambda: loss)


@situation("saved, uncounted")
def the_data_of_an_input_written_before(p: Tensor) -> Made:
    x = plain()
    x.add_(1)  # its version is 1, that of x.data begins at 0
    loss = (p * x).sum()
    return Made(x.data, lambda: loss, keep=[x])


@situation()
def the_other_half_through_data(p: Tensor) -> Made:
    x = plain()
    x.add_(1)
    loss = (p[:2] * x[:2]).sum()
    return Made(x.data[2:], lambda: loss, keep=[x])


@situation("saved for backward")
def an_index_that_a_node_saves(p: Tensor) -> Made:
    index = torch.tensor([0, 2])
    loss = (p[index] * 3).sum()
    return Made(index, lambda: loss, write=lambda x: x.fill_(1))


@situation("saved for backward")
def a_mask_that_a_node_saves(p: Tensor) -> Made:
    mask = torch.tensor([True, False, True, False])
    loss = torch.where(mask, p, p * 2).sum()
    return Made(mask, lambda: loss, write=lambda x: x.logical_not_())


@situation("saved for backward")
def a_weight_between_forward_and_backward(p: Tensor) -> Made:
    weight = torch.nn.Parameter(torch.eye(4, dtype=torch.float64))
    loss = torch.nn.functional.linear(p, weight).sum()
    return Made(weight, lambda: loss, grad_mode=False)


@situation()
def a_result_whose_graph_was_freed(p: Tensor) -> Made:
    y = p.exp()
    y.sum().backward()
    p.grad = None
    return Made(y.detach(), keep=[p])


@situation("saved for backward")
def a_tensor_that_a_custom_function_saves(p: Tensor) -> Made:
    y = p * 1
    loss = Doubled.apply(y, plain()).sum()
    return Made(y, lambda: loss)


@situation("saved, uncounted")
def a_tensor_that_a_custom_function_keeps_on_ctx(p: Tensor) -> Made:
    factor = plain()
    loss = Doubled.apply(p, factor).sum()
    return Made(factor, lambda: loss)


@situation("saved, uncounted")
def a_tensor_saved_through_hooks_that_keep_an_alias(p: Tensor) -> Made:
    x = plain()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: ("kept", t.detach()), lambda pair: pair[1]):
        loss = (p * x).sum()
    return Made(x, lambda: loss)


@situation()
def a_tensor_saved_through_hooks_that_copy(p: Tensor) -> Made:
    x = plain()
    with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda t: t):
        loss = (p * x).sum()
    return Made(x, lambda: loss)


@situation("view: multi_output_node")
def one_of_several_views(p: Tensor) -> Made:
    y = p * 3
    return Made(y.unbind()[0], lambda: y.sum())


@situation("view: multi_output_node")
def one_of_several_chunks(p: Tensor) -> Made:
    y = p * 3
    return Made(y.chunk(2)[1], lambda: y.sum())


@situation("view: in_custom_function")
def a_view_from_a_custom_function(p: Tensor) -> Made:
    y = p * 3
    return Made(Flat.apply(y), lambda: y.sum())


@situation("stale view")
def one_of_several_views_of_a_base_written_since(p: Tensor) -> Made:
    y = p * 3
    first = y.unbind()[0]
    y.mul_(2)
    return Made(first, lambda: y.sum())


@situation("unrecorded")
def a_detached_result(p: Tensor) -> Made:
    y = p * 3
    return Made(y.detach(), lambda: y.sum(), keep=[y])


@situation("unrecorded")
def a_result_with_grad_mode_off(p: Tensor) -> Made:
    y = p * 3
    return Made(y, lambda: y.sum(), grad_mode=False)


@situation()
def the_half_of_a_detached_result_that_nobody_uses(p: Tensor) -> Made:
    y = (p * 3)[:2].clone()
    whole = torch.cat([y.detach(), y.detach()])
    return Made(whole[2:], lambda: y.sum())


@situation("inference tensor")
def an_inference_tensor(p: Tensor) -> Made:
    with torch.inference_mode():
        return Made(plain())


@situation()
def an_inference_tensor_in_inference_mode(p: Tensor) -> Made:
    with torch.inference_mode():
        return Made(plain(), inference=True)


@situation()
def a_leaf_in_inference_mode(p: Tensor) -> Made:
    return Made(p, inference=True)


@situation()
def a_detached_leaf_beside_a_view_of_it(p: Tensor) -> Made:
    return Made(p.detach(), keep=[p[1:]])
