"""What Python alone spells: properties, conversions, what enters and leaves torch."""

from __future__ import annotations

from tensafe.ops.indexing import COPIES_SURE, INDEXING, form
from tensafe.ops.row import IN_BETWEEN, Graph, Result, Row
from tensafe.ops.training import TRAINING

_CUTS = Graph.CUT
_PROPERTIES = [
    form(
        "x.data",
        Result.VIEW,
        "y = x.data  # a view of x",
        "x.data.zero_()  # writes x",
        graph=_CUTS,
        note="has a version counter of its own: writes through it are invisible to autograd's check",
        see="x.detach(), whose writes are counted",
    ),
    form(
        "x.data = y",
        Result.NOTHING,
        spelled="x.data = y",
        note="x looks into y's memory from now on, and nothing is copied; views of x keep the old memory",
        graph=_CUTS,
        see="to copy the values: x.copy_(y) under torch.no_grad()",
    ),
    form(
        "x.grad",
        Result.VIEW,
        of="x.grad",
        graph=_CUTS,
        spelled="x.grad",
        note="the tensor itself, which backward adds to in place and zero_grad() drops; no copy",
        see="to keep it: x.grad.clone()",
    ),
    form(
        "x.grad = y",
        Result.NOTHING,
        spelled="x.grad = y",
        note="keeps y itself; backward then adds to it in place, and whoever holds y sees that",
    ),
    form(
        "x.shape",
        Result.VALUE,
        "n = x.shape  # a value",
        spelled="x.shape; len(x); x.dtype; x.device; x.ndim; x.element_size(); x.nbytes; "
        "x.is_leaf; x.requires_grad",
        graph=Graph.NONE,
        note="reads no element",
    ),
]
_LEAVING = [
    form(
        "x.numpy()",
        Result.VIEW,
        "a = x.detach().numpy()  # shares with x",
        graph=_CUTS,
        spelled="x.numpy(); numpy.asarray(x); np.asarray(x); x.__array__()",
        note="the array shares memory with the tensor, both ways; raises when x requires a gradient; "
        "force=True detaches, moves to the CPU and resolves conj and neg, and may copy; "
        "writes by NumPy are invisible to autograd's check",
        see="an array of its own: x.detach().cpu().numpy().copy()",
    ),
    form(
        "x.tolist()",
        Result.VALUE,
        "n = x.tolist()  # a value",
        graph=_CUTS,
        note="Python numbers; waits for the device",
    ),
    form(
        "float(x)",
        Result.VALUE,
        "n = float(x.sum())  # a value",
        graph=_CUTS,
        spelled="float(x); int(x); bool(x); complex(x); if x; math.sqrt(x); "
        "x.__float__(); x.__bool__(); x.__int__(); x.__index__()",
        note="a Python number; waits for the device; every function of math does the same",
    ),
    form(
        "np.array(x)",
        Result.COPY,
        "y = np.array(x)  # a copy",
        graph=_CUTS,
        spelled="np.array(x); numpy.array(x)",
        note="an array of its own; raises when x requires a gradient",
        see="without a copy: np.asarray(x), x.numpy()",
    ),
    form(
        "x.untyped_storage()",
        Result.VIEW,
        "y = x.untyped_storage()  # shares with x",
        graph=_CUTS,
        spelled="x.untyped_storage(); x.storage(); x.data_ptr()",
        note="the whole memory behind x, not its extent alone; "
        "writes through it are invisible to autograd's check",
    ),
    form(
        "x.__dlpack__()",
        Result.VIEW,
        graph=_CUTS,
        spelled="x.__dlpack__(); torch.to_dlpack",
        note="a capsule that shares memory; the reader may write",
    ),
]
_ENTERING = [
    form(
        "torch.tensor(data)",
        Result.COPY,
        "y = torch.tensor([1.0, 2.0])  # a copy",
        "y = torch.tensor(a)  # a copy",
        graph=_CUTS,
        spelled="torch.tensor; torch.tensor(data); x.new_tensor; x.new_tensor(data)",
        note="always copies, and cuts the graph of a tensor that it is given (with a warning)",
        see="without a copy: torch.as_tensor; in the graph: x.clone(), torch.stack for lists",
    ),
    form(
        "torch.as_tensor(data)",
        Result.EITHER,
        "y = torch.as_tensor(a)  # shares with a",
        "y = torch.as_tensor(a, dtype=torch.float64)  # a copy",
        "y = torch.as_tensor([1.0])  # a copy",
        of="data",
        when="shares with a tensor or an array whose dtype and device are right already, else a copy",
        graph_when="a tensor keeps its graph",
        spelled="torch.as_tensor; torch.asarray; torch.as_tensor(data)",
        see="to be sure of a copy: torch.tensor(data)",
    ),
    form(
        "torch.from_numpy(a)",
        Result.VIEW,
        "y = torch.from_numpy(a)  # shares with a",
        of="a",
        graph=Graph.NONE,
        spelled="torch.from_numpy; torch.from_numpy(a); torch.frombuffer; torch.from_dlpack",
        note="shares memory with the array or buffer, both ways; a read-only array gives a writable tensor",
        see="a tensor of its own: torch.tensor(a)",
    ),
    form(
        "torch.load(file)",
        Result.COPY,
        graph=Graph.NONE,
        spelled="torch.load",
        note="tensors that shared a storage when saved share one again; "
        "mmap=True maps the file instead of reading it",
    ),
    form(
        "torch.save(x, file)",
        Result.NOTHING,
        graph=Graph.NONE,
        spelled="torch.save; pickle.dumps; pickle.dump",
        note="writes the whole storage of every tensor, also when x is a small slice of it",
        see="the slice alone: torch.save(x.clone(), file)",
    ),
    form(
        "copy.deepcopy(x)",
        Result.COPY,
        "y = copy.deepcopy(x)  # a copy",
        graph=_CUTS,
        spelled="copy.deepcopy; copy.deepcopy(x); x.__deepcopy__",
        note="copies the whole storage, also when x is a small slice; a leaf gives a leaf; "
        "raises on a tensor with a graph",
        see="the slice alone: x.detach().clone()",
    ),
    form(
        "copy.copy(x)",
        Result.VIEW,
        "y = copy.copy(x)  # shares with x",
        graph=_CUTS,
        spelled="copy.copy; copy.copy(x)",
        note="a new tensor object over the same memory: no copy",
        see="x.clone()",
    ),
]
_CONVERTED = "the tensor itself when it is so already, else a copy"


def _conversion(name: str, dtype: str) -> Row:
    cut = dtype in ("bool", "uint8", "int8", "int16", "int32", "int64")
    view = f"y = x.to(torch.{dtype}).{name}()" if dtype != "float32" else f"y = x.{name}()"
    examples = [f"{view}  # x itself"] if dtype == "float32" else [f"y = x.{name}()  # a copy"]
    return form(
        f"x.{name}()",
        Result.EITHER,
        *examples,
        when=f"the tensor itself when it is torch.{dtype} already, else a copy",
        graph=Graph.CUT if cut else Graph.KEPT,
        spelled=f"x.{name}(); x.{name}",
        see=COPIES_SURE,
    )


_DTYPES = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "cfloat": "complex64",
    "cdouble": "complex128", "bool": "bool", "byte": "uint8", "char": "int8",
    "short": "int16", "int": "int32", "long": "int64",
}  # fmt: skip
_CONVERSIONS = [
    *(_conversion(name, dtype) for name, dtype in _DTYPES.items()),
    form(
        "x.cpu()",
        Result.EITHER,
        "y = x.cpu()  # x itself",
        when="the tensor itself when it is there already, else a copy",
        spelled="x.cpu(); x.cuda(); x.xpu(); x.cpu; x.cuda",
        see=COPIES_SURE,
    ),
    form(
        "x.type(dtype)",
        Result.EITHER,
        "y = x.type(torch.float32)  # x itself",
        "y = x.type(torch.float64)  # a copy",
        when=_CONVERTED,
        spelled="x.type(dtype); x.type",
        see=COPIES_SURE,
    ),
]
_OBJECTS = [
    form(
        "torch.where(condition)",
        Result.COPY,
        "y = torch.where(x > 3)[0]  # a copy",
        of="condition",
        graph=_CUTS,
        note="with the condition alone: a tuple of indices, one tensor a dimension, as x.nonzero() gives",
        see="with three arguments: tensafe ops torch.where",
    ),
    form(
        "x @= y",
        Result.COPY,
        "y = x; y @= torch.eye(4)  # a copy",
        spelled="x @= y; @=; x.__imatmul__",
        also="y",
        saves="x; y",
        note="tensors have no operator of this kind, so Python runs x = x @ y: nothing is written, and the "
        "name x is a new tensor from then on; who holds the old one does not see it",
        see="to write: x.copy_(x @ y)",
    ),
    form(
        "out=",
        Result.ITSELF,
        "y = torch.add(x, 1, out=x)  # writes x",
        of="out",
        writes="out",
        graph=Graph.NONE,
        spelled="out=; torch.add(x, 1, out=y)",
        note="raises when an argument or out requires a gradient; an out of another shape is resized, and "
        "when it has to grow, it moves: views of it keep the old memory; not every operation takes out=",
        see="which one does: the line `out=` of tensafe ops NAME",
    ),
    form(
        "2 / x",
        Result.COPY,
        "y = 2 / x  # a copy",
        saves=f"{IN_BETWEEN}; other",
        also="other",
        spelled="2 / x; x.__rtruediv__; x.__rdiv__",
        note="the reciprocal of x times the number; the reciprocal is what is kept",
    ),
    form(
        "x.share_memory_()",
        Result.ITSELF,
        "y = x.share_memory_()  # x itself",
        note="moves the whole storage to shared memory; every view of it goes along",
        spelled="x.share_memory_(); x.share_memory_",
    ),
    form(
        "x.apply_(f)",
        Result.ITSELF,
        "y = x.apply_(lambda one: one + 1)  # x itself",
        writes="x",
        spelled="x.apply_(f); x.apply_; x.map_; x.map2_",
        note="a Python call for each element; CPU only",
    ),
    form(
        "x.as_subclass(cls)",
        Result.VIEW,
        "y = x.as_subclass(torch.Tensor)  # a view of x",
        spelled="x.as_subclass(cls); x.as_subclass",
    ),
    form(
        "x.backward()",
        Result.NOTHING,
        graph=Graph.NONE,
        spelled="x.backward(); torch.autograd.backward",
        note="adds to the .grad of every leaf in place, where there is one already; frees what was saved; "
        "raises where a saved tensor was written since",
        see="without .grad: torch.autograd.grad",
    ),
    form(
        "x.register_hook(f)",
        Result.VALUE,
        graph=Graph.NONE,
        spelled="x.register_hook; x.register_post_accumulate_grad_hook",
        note="the hook is given the gradient itself: write into it only by returning another",
    ),
    form(
        "torch.nn.Parameter(x)",
        Result.VIEW,
        "y = torch.nn.Parameter(x)  # shares with x",
        spelled="torch.nn.Parameter; torch.nn.Parameter(x); nn.Parameter; torch.nn.Buffer",
        graph=_CUTS,
        note="shares memory with x: training the parameter writes x",
        see="torch.nn.Parameter(x.detach().clone())",
    ),
    form(
        "model.state_dict()",
        Result.VIEW,
        of="the parameters",
        graph=_CUTS,
        spelled="model.state_dict(); model.state_dict; optimizer.state_dict",
        note="the live tensors, detached: training goes on writing them",
        see="copy.deepcopy(model.state_dict())",
    ),
    form(
        "y = x",
        Result.ITSELF,
        "y = x  # x itself",
        graph=Graph.NONE,
        spelled="y = x",
        note="assignment copies nothing: both names are one tensor",
        see=COPIES_SURE,
    ),
]
FORMS: tuple[Row, ...] = (
    *INDEXING,
    *_PROPERTIES,
    *_LEAVING,
    *_ENTERING,
    *_CONVERSIONS,
    *_OBJECTS,
    *TRAINING,
)
