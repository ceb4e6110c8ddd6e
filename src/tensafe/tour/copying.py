"""Stops on copies: deepcopy, pickle, shared memory, read-only views."""

from __future__ import annotations

from tensafe.tour.stop import Stop

STOPS = (
    Stop(
        name="deepcopy-is-slow",
        title="deepcopy of tensors is slow: clone().detach() instead",
        says="Avoid copy.deepcopy for large tensors; x.clone().detach() is faster.",
        holds=False,
        code="""
import copy
import torch
import tensafe
x = torch.ones(4, requires_grad=True)
y = x * 2
copy.deepcopy(y)  #> RuntimeError: Only Tensors created explicitly by the user (graph leaves) support...
first = y.clone().detach()
second = y.detach().clone()
torch.equal(first, second)  #> True
""",
        happens="The cost of deepcopy lies in each object and each fresh page, not in each element: for one "
        "large tensor it is a clone, for thousands of small ones it is Python. `detach().clone()` "
        "gives the same copy without recording a clone that is thrown away.",
        call="""
one, part = tensafe.deepcopy([first, first[:2]])
bool(tensafe.overlap(one, part))  #> True
tensafe.deepcopy({"pred": y}, graph="cut")["pred"].requires_grad  #> False
""",
        drawn=("x", "y", "first", "second"),
        rules=("deepcopy-slow-or-fails", "deepcopy-nonleaf"),
    ),
    Stop(
        name="read-only",
        title="A read-only view",
        says="Hand out a NumPy view whose writeable flag is off.",
        holds=True,
        code="""
import numpy as np
import torch
import tensafe
a = np.arange(4.0)
view = a.view()
view.flags.writeable = False
view[0] = 7.0  #> ValueError: assignment destination is read-only
x = torch.from_numpy(view)
x[0] = 7.0
a.tolist()  #> [7.0, 1.0, 2.0, 3.0]
""",
        happens="The flag is NumPy's alone: torch writes through it after a warning, and tensors have none.",
        call="""
shown = tensafe.readonly(torch.arange(4.0))
shown[1:3].zero_()  #> ReadOnlyError: ...
frozen = tensafe.freeze(torch.arange(4.0))
frozen.view(2, 2).add_(1)  #> RuntimeError: ...
""",
        drawn=("a", "view", "x"),
    ),
    Stop(
        name="copy-a-model",
        title="Copying a model by its class and state_dict()",
        says="Make a new one and load the weights: new = type(model)(), "
        "new.load_state_dict(model.state_dict()).",
        holds=False,
        code="""
import torch
import tensafe
class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = torch.nn.Linear(width, 1)
net = Net(3)
type(net)()  #> TypeError: Net.__init__() missing 1 required positional argument: 'width'
weight = net.layer.weight
""",
        happens="It works for constructors without arguments, and leaves behind what is no parameter or "
        "buffer.",
        call="""
twin = tensafe.deepcopy(net)
torch.equal(twin.layer.weight, weight)  #> True
bool(tensafe.overlap(twin.layer.weight, weight))  #> False
""",
    ),
    Stop(
        name="copy-of-a-part",
        title="Copying, saving and pickling a part of a tensor",
        says="deepcopy gives an independent copy of a slice.",
        holds=True,
        code="""
import copy
import io
import torch
import tensafe
table = torch.zeros(1000)
part = table[:10]
deep = copy.deepcopy(part)
deep.untyped_storage().nbytes()  #> 4000
file = io.BytesIO()
torch.save(part, file)
file.tell() > 4000  #> True
""",
        happens="Independent, and as large as the whole: deepcopy, save and pickle take the storage, of "
        "which this slice is one percent.",
        call="""
tensafe.compact(part).untyped_storage().nbytes()  #> 40
len(tensafe.dumps(part)) < 500  #> True
""",
        drawn=("part", "deep"),
        rules=("serialization-bloat",),
    ),
    Stop(
        name="share-across-processes",
        title="share_memory_() across processes",
        says="Call share_memory_() and hand the tensor to other processes without a copy.",
        holds=True,
        code="""
import torch
import tensafe
table = torch.zeros(1000)
part = table[:10]
_ = part.share_memory_()
table.is_shared()  #> True
""",
        happens="A storage is shared or not, never a part of it: all 4,000 bytes went to shared memory, and "
        "a receiver can reach them all.",
        call="""
with tensafe.share({"part": part}) as handle:
    seen = handle.attach(readonly=True)
    handle.tree["part"][3] = 7.0
seen["part"][3].item()  #> 7.0
""",
        drawn=("table", "part"),
        rules=("shared-memory",),
    ),
    Stop(
        name="pickle-protocol-5",
        title="Pickle protocol 5 for large data",
        says="Protocol 5 sends large buffers out of band, without a copy.",
        holds=False,
        code="""
import pickle
import torch
import tensafe
x = torch.zeros(1 << 18)
buffers = []
data = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
len(buffers)  #> 0
len(data) > x.nbytes  #> True
""",
        happens="torch reduces a storage to one byte string and offers no buffer: everything is copied, "
        "twice.",
        call="""
buffers = []
data = tensafe.dumps(x, buffers=buffers)
sum(buffer.raw().nbytes for buffer in buffers)  #> 1048576
len(data) < 1000  #> True
torch.equal(tensafe.loads(data, buffers=buffers), x)  #> True
""",
    ),
    Stop(
        name="own-deepcopy-method",
        title="A __deepcopy__ method for heavy members",
        says="Write __deepcopy__ to build a new object and share or clone what is heavy.",
        holds=False,
        code="""
import copy
import torch
import tensafe
class Heavy:
    def __init__(self, weights, tag="new"):
        self.weights, self.tag = weights, tag
    def __deepcopy__(self, memo):
        return Heavy(self.weights.clone())
heavy = Heavy(torch.ones(3))
heavy.tag = "trained"
copy.deepcopy(heavy).tag  #> 'new'
copied, weights = copy.deepcopy([heavy, heavy.weights])
copied.weights is weights  #> False
""",
        happens="A method that calls the constructor forgets what was changed after it, and one that clones "
        "a member, past the memo, makes two tensors of one that others hold, too.",
        call="""
class Plain:
    pass
plain = Plain()
plain.weights, plain.tag = torch.ones(3), "trained"
tensafe.deepcopy(plain).tag  #> 'trained'
copied, weights = tensafe.deepcopy([plain, plain.weights])
copied.weights is weights  #> True
tensafe.deepcopy(heavy).tag  #> 'new'
""",
    ),
)
