"""Stops on views and copies: who shares memory with whom."""

from __future__ import annotations

from tensafe.tour.stop import Stop

STOPS = (
    Stop(
        name="slice-shares-memory",
        title="A slice shares memory; clone() protects",
        says="A slice is a view: a write to it changes the original, unless it was cloned.",
        holds=True,
        code="""
import torch
import tensafe
x = torch.arange(6.0)
y = x[1:4]
y[0] = 9.0
x  #> tensor([0., 9., 2., 3., 4., 5.])
c = x[1:4].clone()
c[0] = 0.0
x[1]  #> tensor(9.)
""",
        happens="The slice looks into the storage of x, the clone has one of its own.",
        call="""
bool(tensafe.overlap(x, y))  #> True
bool(tensafe.overlap(x, c))  #> False
print(tensafe.explain(y))  #> y:  float32 [3] on cpu, torch.Tensor, a view of `x`...
""",
        drawn=("x", "y", "c"),
        rules=("write-through-alias",),
    ),
    Stop(
        name="index-copies",
        title="A boolean mask and a list of integers copy",
        says="Advanced indexing gives a copy, so that the original is safe from writes to it.",
        holds=True,
        code="""
import torch
import tensafe
x = torch.arange(5.0)
picked = x[x > 2]
x[x > 2].zero_()  #> tensor([0., 0.])
x  #> tensor([0., 1., 2., 3., 4.])
x[[0, 1]].fill_(7.0)  #> tensor([7., 7.])
x  #> tensor([0., 1., 2., 3., 4.])
x[x > 2] = 0.0
x  #> tensor([0., 1., 2., 0., 0.])
""",
        happens="An in-place call on such an index writes into a copy that nobody keeps; an assignment "
        "arrives.",
        call="""
bool(tensafe.overlap(x, picked))  #> False
""",
        drawn=("x", "picked"),
        rules=("lost-write",),
    ),
    Stop(
        name="array-for-a-plot",
        title="detach().cpu().clone().numpy() for plots",
        says="Clone before numpy(), or the plotted array changes with the tensor.",
        holds=True,
        code="""
import torch
import tensafe
x = torch.ones(3)
shared = x.detach().cpu().numpy()
own = x.detach().cpu().clone().numpy()
x.zero_()  #> tensor([0., 0., 0.])
shared.tolist()  #> [0.0, 0.0, 0.0]
own.tolist()  #> [1.0, 1.0, 1.0]
""",
        happens="On the CPU, cpu() gives the tensor itself and numpy() a view. From a GPU, cpu() has copied "
        "already, and the clone is a second copy that nobody needs.",
        call="""
kept = tensafe.to_numpy(x, copy=True)
bool(tensafe.overlap(x, kept))  #> False
""",
        drawn=("x", "shared", "own"),
        rules=("numpy-shared-write", "needless-copy"),
    ),
    Stop(
        name="zero-a-slice",
        title="zero_() on a slice allocates nothing",
        says="In-place operations on a slice save memory.",
        holds=True,
        code="""
import torch
import tensafe
x = torch.ones(4)
address = x.data_ptr()
x[1:3].zero_()  #> tensor([0., 0.])
x  #> tensor([1., 0., 0., 1.])
x.data_ptr() == address  #> True
middle = x[1:3]
""",
        happens="The slice is a few bytes of Python; its elements are those of x.",
        call="""
print(tensafe.overlap(x, middle))  #> share memory (b inside a): ...
""",
        drawn=("x", "middle"),
    ),
    Stop(
        name="view-or-reshape",
        title="view() fails on a transposed tensor, reshape() copies",
        says="Use reshape() where view() raises.",
        holds=True,
        code="""
import torch
import tensafe
x = torch.arange(6.0).view(2, 3)
t = x.t()
t.view(6)  #> RuntimeError: view size is not compatible with input tensor's size and stride...
r = t.reshape(6)
r[0] = 9.0
x[0, 0]  #> tensor(0.)
""",
        happens="No stride walks through the transposed elements in order: reshape() copied, and a write to "
        "its result does not arrive in x. On a contiguous tensor the same line is a view.",
        call="""
print(tensafe.explain(t))  #> t:  float32 [3, 2] on cpu, torch.Tensor, a view...
""",
        drawn=("x", "t", "r"),
        rules=("noncontiguous-view", "hidden-copy"),
    ),
    Stop(
        name="one-channel",
        title="One channel alone: img[0].clone()",
        says="Clone a channel to keep it without the image.",
        holds=True,
        code="""
import torch
import tensafe
img = torch.rand(3, 64, 64)
view = img[0]
own = img[0].clone()
view.untyped_storage().nbytes()  #> 49152
own.untyped_storage().nbytes()  #> 16384
""",
        happens="A view of one channel keeps all three alive.",
        call="""
tensafe.compact(view).untyped_storage().nbytes()  #> 16384
""",
        drawn=("view", "own"),
        rules=("storage-pinned",),
    ),
    Stop(
        name="comparing-addresses",
        title="Comparing data_ptr() to see whether memory is shared",
        says="Two tensors share memory when their data_ptr() are equal.",
        holds=False,
        code="""
import torch
import tensafe
x = torch.arange(6)
a, b = x[:4], x[2:]
a.data_ptr() == b.data_ptr()  #> False
b[0] = 99
a  #> tensor([ 0,  1, 99,  3])
""",
        happens="data_ptr() is where a tensor begins. Two slices that begin elsewhere still meet.",
        call="""
bool(tensafe.overlap(a, b))  #> True
print(tensafe.overlap(a, b))  #> share memory...
""",
        drawn=("a", "b"),
    ),
)
