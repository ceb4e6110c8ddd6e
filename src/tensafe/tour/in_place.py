"""Stops on in-place operations and the backward that comes after them."""

from __future__ import annotations

from tensafe.tour.stop import Stop

STOPS = (
    Stop(
        name="what-writes-in-place",
        title="In-place operations, zero_grad() and step(): which of them write the same object",
        says="Methods that end in _ and optimizer steps change the tensor itself.",
        holds=True,
        code="""
import torch
import tensafe
p, q = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
(p * p + q * q).sum().backward()
address = p.data_ptr()
sgd = torch.optim.SGD([p], lr=0.25)
sgd.step()
torch.optim.SGD([q], lr=0.25, fused=True).step()
p, q  #> (Parameter containing:...
p.data_ptr() == address  #> True
p._version, q._version  #> (1, 0)
grad = p.grad
sgd.zero_grad()
p.grad is None, grad  #> (True, tensor([2., 2.]))
""",
        happens="The fused step wrote past the version counter by which autograd notices writes: a backward "
        "that still needs q would use the new values and say nothing. zero_grad() writes nothing: it lets go "
        "of the gradient, and fills it with zeros only where it is told set_to_none=False.",
        call="""
seen = []
with tensafe.watch(p, callback=seen.append):
    with torch.no_grad():
        p.view(-1)[0] = 5.0
seen[0].op  #> 'Tensor.__setitem__'
""",
        drawn=("p", "q"),
        rules=("silent-gradient-corruption",),
    ),
    Stop(
        name="leaf-in-place",
        title="In-place on a leaf raises; detach() first is said to be safe",
        says="Use x.detach() before you write in place.",
        holds=False,
        code="""
import torch
import tensafe
w = torch.ones(2, requires_grad=True)
w.add_(1)  #> RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.
d = w.detach()
d.add_(1)  #> tensor([2., 2.])
w  #> tensor([2., 2.], requires_grad=True)
""",
        happens="detach() gives another tensor over the same memory: the write passes, and the original "
        "changes.",
        call="""
bool(tensafe.overlap(w, d))  #> True
own = tensafe.copy(w, graph="cut")
own.add_(1)  #> tensor([3., 3.])
w  #> tensor([2., 2.], requires_grad=True)
""",
        drawn=("w", "d"),
        rules=("leaf-inplace", "write-through-alias"),
    ),
    Stop(
        name="augmentation",
        title="Differentiable augmentation with clone()",
        says="Clone before you write in place, and gradients still flow.",
        holds=True,
        code="""
import torch
import tensafe
x = torch.zeros(3, requires_grad=True)
h = x.exp()
a = h.clone()
a[0] = 0.0
a.sum().backward()
x.grad  #> tensor([0., 1., 1.])
k = x.exp()
k[0] = 0.0
k.sum().backward()  #> RuntimeError: one of the variables needed for gradient computation has been modified...
""",
        happens="exp() keeps its output for the backward. The clone is in the graph and may be written; the "
        "output itself may not.",
        call="""
y = x.exp()
b = tensafe.copy(y, graph="keep")
b[0] = 0.0
b.sum().backward()
x.grad  #> tensor([0., 2., 2.])
""",
        drawn=("x", "h", "a"),
        rules=("saved-tensor-modified",),
    ),
    Stop(
        name="modified-by-an-inplace-operation",
        title="one of the variables needed for gradient computation has been modified",
        says="Find the in-place operation and replace it, or clone.",
        holds=True,
        code="""
import torch
import tensafe
x = torch.ones(2, requires_grad=True)
y = x.exp()
y.add_(1)  #> tensor([3.7183, 3.7183], grad_fn=<AddBackward0>)
y.sum().backward()  #> RuntimeError: one of the variables needed for gradient computation has been modified...
""",
        happens="The error names neither the line that wrote nor, without anomaly mode, the one that saved. "
        "`tensafe run` names both.",
        call="""
with tensafe.safe_inplace():
    y = x.exp()
    y.add_(1)
    y.sum().backward()
x.grad  #> tensor([2.7183, 2.7183])
""",
        drawn=("x", "y"),
        rules=("saved-tensor-modified",),
    ),
)
