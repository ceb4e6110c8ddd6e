"""More situations: views from inference mode, layouts, storages of special kinds, statistics, gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from aliases.situations import Made, plain, situation


@situation("view: inference_mode")
def a_view_of_a_result_made_in_inference_mode(p: Tensor) -> Made:
    y = p * 3
    with torch.inference_mode():
        return Made(y[1:], lambda: y.sum())


@situation()
def a_view_made_in_inference_mode_of_a_plain_tensor(p: Tensor) -> Made:
    x = plain()
    with torch.inference_mode():
        return Made(x[1:])


@situation("frozen")
def a_frozen_storage(p: Tensor) -> Made:
    x = plain()
    torch._C._set_throw_on_mutable_data_ptr(x)
    return Made(x)


@situation("frozen")
def a_view_of_a_frozen_storage(p: Tensor) -> Made:
    x = plain()
    torch._C._set_throw_on_mutable_data_ptr(x)
    return Made(x[1:].detach())


@situation()
def a_lazy_clone(p: Tensor) -> Made:
    x = plain()
    return Made(torch._lazy_clone(x), keep=[x])


@situation()
def the_source_of_a_lazy_clone_that_a_node_saves(p: Tensor) -> Made:
    x = plain()
    copy = torch._lazy_clone(x)
    loss = (p * copy).sum()
    return Made(x, lambda: loss, keep=[copy])


@situation()
def shared_memory(p: Tensor) -> Made:
    return Made(plain().share_memory_())


@situation()
def an_array_behind_it(p: Tensor) -> Made:
    array = plain().numpy()
    return Made(torch.from_numpy(array), keep=[array])


@situation()
def a_meta_tensor(p: Tensor) -> Made:
    return Made(torch.empty(4, device="meta"))


@situation("leaf")
def a_meta_leaf(p: Tensor) -> Made:
    return Made(torch.empty(4, device="meta", requires_grad=True))


@situation()
def a_gradient(p: Tensor) -> Made:
    (p * 3).sum().backward()
    assert p.grad is not None
    gradient = p.grad
    return Made(gradient, keep=[p])


@situation("saved for backward")
def running_statistics_between_forward_and_backward(p: Tensor) -> Made:
    norm = torch.nn.BatchNorm1d(2, dtype=torch.float64)
    loss = norm(p.view(2, 2)).pow(2).sum()
    assert norm.running_mean is not None
    return Made(norm.running_mean, lambda: loss, keep=[norm])


@situation()
def running_statistics_after_backward(p: Tensor) -> Made:
    norm = torch.nn.BatchNorm1d(2, dtype=torch.float64)
    norm(p.view(2, 2)).pow(2).sum().backward()
    p.grad = None
    assert norm.running_mean is not None
    return Made(norm.running_mean, keep=[norm])


@situation()
def a_sparse_tensor(p: Tensor) -> Made:
    return Made(plain().view(2, 2).to_sparse())


@situation("leaf")
def a_sparse_leaf(p: Tensor) -> Made:
    return Made(plain().view(2, 2).to_sparse().requires_grad_())


@situation("saved for backward")
def the_values_of_a_saved_sparse_tensor(p: Tensor) -> Made:
    sparse = plain().view(2, 2).to_sparse().coalesce()
    loss = torch.sparse.mm(sparse, p.view(2, 2)).sum()
    return Made(sparse, lambda: loss)


@situation("saved for backward")
def the_real_view_of_a_saved_complex_tensor(p: Tensor) -> Made:
    x = torch.ones(4, dtype=torch.complex128) * 2j
    loss = (p * x).abs().sum()
    return Made(torch.view_as_real(x), lambda: loss, keep=[x])


@situation()
def a_conjugated_view(p: Tensor) -> Made:
    return Made(torch.view_as_complex(plain().view(2, 2)).conj())


@situation("leaf")
def a_parameter(p: Tensor) -> Made:
    return Made(torch.nn.Parameter(plain()))


@situation()
def a_buffer(p: Tensor) -> Made:
    norm = torch.nn.BatchNorm1d(4)
    assert norm.running_var is not None
    return Made(norm.running_var, keep=[norm])


@situation("saved for backward")
def a_graph_kept_for_a_second_backward(p: Tensor) -> Made:
    y = p.exp()
    y.sum().backward(retain_graph=True)
    p.grad = None
    return Made(y, lambda: y.sum())


@situation("saved for backward")
def a_tensor_saved_deep_in_a_graph(p: Tensor) -> Made:
    x = plain()
    loss = p * x
    for _ in range(50):
        loss = torch.tanh(loss + 0.01)
    total = loss.sum()
    return Made(x, lambda: total)


@situation("views refused")
def the_base_of_several_views(p: Tensor) -> Made:
    y = p * 3
    first, _ = y.chunk(2)
    return Made(y, lambda: first.sum() + y.sum(), keep=[first])


@situation("views refused")
def another_view_of_the_base_of_several_views(p: Tensor) -> Made:
    y = p * 3
    parts = y.unbind()
    return Made(y[:1], lambda: parts[3].sum() + y.sum(), keep=[parts])


@situation("views refused")
def a_leaf_with_grad_mode_off_beside_its_chunks(p: Tensor) -> Made:
    first, second = p.chunk(2)
    return Made(p, lambda: (first + second).sum(), grad_mode=False)


@situation("views refused")
def a_result_beside_a_view_made_with_grad_mode_off(p: Tensor) -> Made:
    y = p * 3
    with torch.no_grad():
        view = y[1:]
    return Made(y, lambda: y.sum() + view.sum())


@situation()
def the_data_of_the_base_of_several_views_written_before(p: Tensor) -> Made:
    y = (p * 3).add_(1)
    first, _ = y.detach().chunk(2)
    return Made(y, lambda: y.sum() + 0 * first.sum(), keep=[first])


@situation()
def the_base_of_several_views_without_a_graph(p: Tensor) -> Made:
    x = plain()
    first, _ = x.chunk(2)
    return Made(x, lambda: (p * 2).sum() + 0 * first.sum(), keep=[first])


@situation()
def an_expanded_row_without_memory(p: Tensor) -> Made:
    return Made(torch.empty(4, device="meta").expand(3, 4))
