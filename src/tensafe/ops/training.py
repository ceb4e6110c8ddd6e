"""What training code calls beside operations: initialisers, gradients, optimizers, modules."""

from __future__ import annotations

from tensafe.ops.indexing import form
from tensafe.ops.row import Graph, Result, Row

_INIT = (
    "zeros_ ones_ constant_ uniform_ normal_ trunc_normal_ eye_ dirac_ sparse_ orthogonal_ "
    "xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_"
)
TRAINING: tuple[Row, ...] = (
    form(
        "torch.nn.init.zeros_(x)",
        Result.ITSELF,
        "y = torch.nn.init.zeros_(x)  # writes x",
        writes="x",
        spelled="torch.nn.init." + _INIT.replace(" ", "; torch.nn.init."),
        note="runs under torch.no_grad(): x stays a leaf; the write is counted by autograd",
    ),
    form(
        "torch.nn.utils.clip_grad_norm_(parameters)",
        Result.COPY,
        of="parameters",
        writes="the .grad of each parameter",
        graph=Graph.CUT,
        spelled="torch.nn.utils.clip_grad_norm_; torch.nn.utils.clip_grad_value_; "
        "torch.nn.utils.clip_grads_with_norm_",
        note="multiplies or clamps every .grad in place; whoever holds a .grad sees it; "
        "the norm that comes back is a tensor of its own (clip_grad_value_ gives None)",
        see="to keep the gradients: p.grad.clone() first",
    ),
    form(
        "optimizer.zero_grad()",
        Result.NOTHING,
        of="parameters",
        graph=Graph.NONE,
        spelled="optimizer.zero_grad(); model.zero_grad(); optimizer.zero_grad",
        note="drops every .grad (sets it to None) and writes nothing: who holds a .grad keeps its values; "
        "set_to_none=False zeroes every .grad in place instead",
    ),
    form(
        "optimizer.step()",
        Result.NOTHING,
        of="parameters",
        writes="the parameters",
        graph=Graph.NONE,
        spelled="optimizer.step(); optimizer.step",
        note="writes every parameter that has a .grad in place, counted by autograd (fused=True is not); "
        "a graph from before raises in backward where it kept a parameter",
    ),
    form(
        "model.load_state_dict(state)",
        Result.NOTHING,
        of="state",
        writes="the parameters and buffers",
        graph=Graph.NONE,
        spelled="model.load_state_dict(state); model.load_state_dict",
        note="copies the values into the parameters in place and shares nothing with state; "
        "assign=True copies nothing instead: the parameters share memory with state's tensors",
    ),
    form(
        "torch.autograd.grad(y, x)",
        Result.COPY,
        "y = torch.autograd.grad((x.requires_grad_() * 2).sum(), x)[0]  # a copy",
        graph=Graph.CUT,
        graph_when="create_graph=True keeps it in the graph",
        spelled="torch.autograd.grad",
        note="adds to no .grad; frees what was saved, unless retain_graph=True",
        see="to add to .grad: y.backward()",
    ),
    form(
        "torch.func.grad(f)(x)",
        Result.COPY,
        "y = torch.func.grad(lambda one: (one * one).sum())(x)  # a copy",
        spelled="torch.func.grad; torch.func.grad_and_value; torch.func.jacrev; torch.func.hessian",
        note="gives a function; what that gives is a tensor of its own, and no .grad is touched",
    ),
)
