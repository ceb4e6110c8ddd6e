"""What torch's schemas and formulas get wrong or cannot say, each with its reason; tests run them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tensafe.ops.row import IN_BETWEEN, Graph, Result


@dataclass(frozen=True, slots=True)
class Correction:
    """Facts to put in place of what the schema says, and why."""

    because: str
    facts: Mapping[str, Any] = field(default_factory=dict)  # of every group of overloads
    row: Mapping[str, Any] = field(default_factory=dict)
    overloads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of one alone


def _either(when: str, of: str = "self", because: str = "the schema says view, and it depends") -> Correction:
    saves_when = "unless it is the input itself" if "p is 0" in when else ""
    facts = {"saves_when": saves_when} if saves_when else {}
    return Correction(because, {"gives": Result.EITHER, "when": when, "of": tuple(of.split()), **facts})


def _view(*of: str, because: str, note: str = "") -> Correction:
    return Correction(because, {"gives": Result.VIEW, "of": of}, {"note": note} if note else {})


def _own_shape(note: str, because: str = "the schema says written, and no element is") -> Correction:
    return Correction(because, {"writes": ()}, {"note": note})


STRIDES = "a view when the strides allow the new shape, else a copy"
COPIES = "the schema says copy, and it depends"
NOT_TRAINING = "the input itself when training is False or p is 0, else a copy"
OFF = "the input itself when train is False or p is 0, else a copy"
SHAPE_ONLY = "changes x's own shape and strides, and writes no element; views of x keep theirs"
AUTOGRAD = "autograd's own code, for which there is no formula"
NO_WRITE = "the schema says written, and no element is"
GRADS = "the schema says that grads are written; they are only where grad_scale is given"
UNTRACKED = "the schema says copy; the result shares memory, and autograd does not know"
LISTS = "the schema says copy; every result looks into the tensor that it comes from"
ON_CPU = "has a formula, and yet a CPU runs the operation that gives indices too, and keeps those"

_EITHER = {
    "reshape": _either(STRIDES),
    "reshape_as": _either(STRIDES),
    "flatten": _either(
        "the tensor itself when it has one dimension; a view when the strides allow it, else a copy"
    ),
    "ravel": _either("a view when the tensor is contiguous, else a copy"),
    "contiguous": _either("the tensor itself when it is contiguous already, else a copy"),
    "to": _either(
        "the tensor itself when dtype, device and layout are right already and copy is False, else a copy"
    ),
    "type_as": _either(
        "the tensor itself when dtype and device are right already, else a copy", because=COPIES
    ),
    "cpu": _either("the tensor itself when it is there already, else a copy"),
    "cuda": _either("the tensor itself when it is there already, else a copy"),
    "pin_memory": _either("the tensor itself when it is pinned already, else a copy"),
    "coalesce": _either("the tensor itself when it is coalesced already, else a copy"),
    "to_dense": _either("the tensor itself when it is dense already, else a copy", because=COPIES),
    "sum_to_size": _either("the tensor itself when it has that size already, else a copy", because=COPIES),
    "resolve_conj": _either("the tensor itself when nothing is left to conjugate, else a copy"),
    "resolve_neg": _either("the tensor itself when nothing is left to negate, else a copy"),
    "_autocast_to_full_precision": _either("the tensor itself when nothing has to change, else a copy"),
    "_autocast_to_reduced_precision": _either("the tensor itself when nothing has to change, else a copy"),
    "_grad_sum_to_size": _either("the tensor itself when it has that size already, else a copy"),
    "chalf": _either("the tensor itself when it is torch.complex32 already, else a copy", because=COPIES),
    "conj_physical": _either("the tensor itself when it is real, else a copy", because=COPIES),
    "dropout": _either(OFF, "input", COPIES),
    "feature_dropout": _either(OFF, "input", COPIES),
    "alpha_dropout": _either(OFF, "input", COPIES),
    "feature_alpha_dropout": _either(OFF, "input", COPIES),
    "F.dropout1d": _either(NOT_TRAINING, "input", "seen by running it"),
    "F.dropout2d": _either(NOT_TRAINING, "input", "seen by running it"),
    "F.dropout3d": _either(NOT_TRAINING, "input", "seen by running it"),
    "F.local_response_norm": _either(
        "the input itself when it is empty, else a copy", "input", "seen by running it"
    ),
    "cartesian_prod": _either("a view of the tensor when there is only one, else a copy", "tensors", COPIES),
    "einsum": _either(
        "a view of the operand when there is only one and nothing is summed, else a copy", "tensors", COPIES
    ),
    "histogramdd": _either(
        "the counts are a copy; bin_edges are the very tensors given as bins", "bins", COPIES
    ),
}
_VIEWS = {
    "atleast_1d": _view("self", "tensors", because=LISTS),
    "atleast_2d": _view("self", "tensors", because=LISTS),
    "atleast_3d": _view("self", "tensors", because=LISTS),
    "broadcast_tensors": _view(
        "tensors",
        because=LISTS,
        note="several elements of a result are one place in memory: do not write into it",
    ),
    "meshgrid": _view(
        "tensors",
        because=LISTS,
        note="several elements of a result are one place in memory: do not write into it",
    ),
    "unsafe_chunk": _view(
        "self", because=UNTRACKED, note="autograd takes the parts for tensors of their own"
    ),
    "unsafe_split": _view(
        "self", because=UNTRACKED, note="autograd takes the parts for tensors of their own"
    ),
    "unsafe_split_with_sizes": _view("self", because=UNTRACKED),
    "_unsafe_view": _view("self", because=UNTRACKED),
    "lift": _view("self", because=UNTRACKED),
    "data": _view("self", because=UNTRACKED),
}
_SPARSE = (
    "a sparse tensor over the very memory of its indices and values when their types are right, else copies"
)
for _name in [
    "sparse_coo_tensor",
    "sparse_csr_tensor",
    "sparse_csc_tensor",
    "sparse_bsr_tensor",
    "sparse_bsc_tensor",
]:
    _parts = {"coo": "indices", "csr": "crow_indices col_indices", "csc": "ccol_indices row_indices"}
    _parts |= {"bsr": _parts["csr"], "bsc": _parts["csc"]}
    _EITHER[_name] = _either(_SPARSE, f"{_parts[_name[7:10]]} values", COPIES)
_SHAPES = {
    **{
        name: _own_shape(SHAPE_ONLY)
        for name in ["as_strided_", "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_"]
    },
    "detach_": Correction(
        f"{AUTOGRAD}; {NO_WRITE}",
        {"writes": (), "graph": Graph.CUT},
        {"note": "takes x itself out of its graph; refused for views; writes no element"},
    ),
    "resize_": _own_shape(
        "changes x's own shape; more elements come uninitialised; moves nothing that stays"
    ),
    "resize_as_": _own_shape(
        "changes x's own shape; more elements come uninitialised; moves nothing that stays"
    ),
    "resize_as_sparse_": _own_shape("changes x's own shape"),
    "sparse_resize_": _own_shape("changes x's own shape"),
    "set_": Correction(
        NO_WRITE,
        {"writes": (), "of": ("self", "source")},
        {"note": "x looks into the memory of source from now on, and nothing is copied"},
    ),
    "set_data": _own_shape("x looks into other memory from now on"),
    "requires_grad_": Correction(NO_WRITE, {"writes": (), "graph": Graph.KEPT}, {"note": "sets a flag"}),
    "rename_": _own_shape("sets the names of the dimensions"),
    "retain_grad": _own_shape("sets a flag"),
    "record_stream": _own_shape("tells the allocator which stream uses the memory"),
    "_coalesced_": _own_shape("sets a flag"),
}
_WRITES = {
    **{
        name: Correction(
            GRADS,
            {"writes_when": "grads only where grad_scale is given; autograd's check does not see it"},
            {"note": "what optimizers run with fused=True: the version counter does not move"},
        )
        for name in ("_fused_adam_", "_fused_adamw_", "_fused_sgd_", "_fused_adagrad_")
    },
    **{
        name: Correction(
            "no schema marks the running statistics; torch's own list of exceptions does",
            {"writes_when": "the running statistics, if given, while training"},
        )
        for name in [
            "batch_norm",
            "native_batch_norm",
            "cudnn_batch_norm",
            "miopen_batch_norm",
            "_batch_norm_impl_index",
            "_native_batch_norm_legit",
            "_batch_norm_with_update",
        ]
    },
    "instance_norm": Correction(
        "no schema marks the running statistics; torch's own list of exceptions does",
        {"writes_when": "the running statistics, if given, where use_input_stats is True"},
    ),
}
MODES = "the formula, or running, tells what is kept in some mode, and not in which"


def _kept_when(words: str, **facts: Any) -> Correction:
    return Correction(MODES, {"saves_when": words, **facts})


_MODES = {
    "pad": _kept_when("in the modes reflect and replicate; nothing in the modes constant and circular"),
    "F.interpolate": _kept_when("in the mode area; nothing in the others"),
    "F.upsample": _kept_when("in the mode area; nothing in the others"),
    **{
        name: _kept_when("while training with p above 0; nothing otherwise")
        for name in ("dropout_", "alpha_dropout_", "feature_dropout_", "feature_alpha_dropout_")
    },
    "embedding": Correction(
        "the schema speaks of the operation; F.embedding renormalises the weight first, where it is told to",
        {
            "writes": ("weight",),
            "writes_when": "with max_norm=: the rows that are looked up and longer are scaled in place",
        },
    ),
    "embedding_bag": Correction(
        "the schema speaks of the operation; F.embedding_bag renormalises the weight first, where told to",
        {
            "writes": ("weight",),
            "writes_when": "with max_norm=: the rows that are looked up and longer are scaled in place",
        },
    ),
    "where": Correction(
        "with the condition alone it is another operation, nonzero",
        overloads={
            "": {
                "arguments": ("condition",),
                "graph": Graph.CUT,
                "saves": (),
                "graph_when": "called with the condition alone, it gives the indices of what is not zero",
            }
        },
    ),
}
_GRAPH_AND_SAVES = {
    "detach": Correction(
        AUTOGRAD,
        {"graph": Graph.CUT},
        {"note": "shares memory: a write through the result changes x, and is counted"},
    ),
    **{
        name: Correction(
            "the schema knows no derivative, and the tensor keeps the graph that it had",
            {"graph": Graph.KEPT},
            {"note": "x keeps its old graph, though its values no longer come from it"},
        )
        for name in ("logical_and_", "logical_or_", "logical_xor_", "logical_not_")
    },
    "nonzero_static": Correction("whole numbers have no graph", {"graph": Graph.CUT}),
    "randint_like": Correction("whole numbers have no graph", {"graph": Graph.CUT}),
    "copy_": Correction(AUTOGRAD, {"graph": Graph.KEPT}),
    "max_pool2d": Correction(ON_CPU, {"saves": (("self", ("self", "result1", IN_BETWEEN)),)}),
    "matmul": Correction(
        "the formula speaks of the arguments; what broadcasts is copied first, and the copy is kept",
        {"saves": (("self", ("other", IN_BETWEEN)), ("other", ("self", IN_BETWEEN)))},
    ),
    "smooth_l1_loss": Correction(
        "the formula speaks of the operation; F.smooth_l1_loss runs l1_loss where beta is 0",
        {"saves": (("self", ("self", "target", IN_BETWEEN)), ("target", ("self", "target", IN_BETWEEN)))},
    ),
    "norm": Correction(
        "Python's torch.norm runs linalg.norm or an older one, with numbers of its own on the way",
        {"saves": (("self", ("self", "result", IN_BETWEEN)),)},
    ),
}
CORRECTIONS: dict[str, Correction] = {**_EITHER, **_VIEWS, **_SHAPES, **_WRITES, **_MODES, **_GRAPH_AND_SAVES}
