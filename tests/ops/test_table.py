"""Every row of the table is run: which storages autograd keeps, and what the result shares."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tensafe.ops import (
    LAYERS,
    OPS,
    OUTPUT_KEPT_IN_PLACE,
    TAKES_INPLACE,
    WRITERS,
    Gives,
    LayerOp,
    Op,
    Saves,
    out_of_place,
    words,
)

Make = Callable[[], tuple[Any, ...]]


def leaf(*shape: int) -> torch.Tensor:
    """A leaf of the graph, its values inside the domain of every function, its matrices invertible."""
    values = torch.rand(*shape) * 0.5 + 0.25
    if len(shape) == 2 and shape[0] == shape[1]:
        values = values + torch.eye(shape[0]) * 0.2
    return values.requires_grad_()


def square() -> torch.Tensor:
    return leaf(3, 3)


IMAGE = (1, 4, 6, 6)
INDEX = torch.tensor([[0, 1, 2]])
MASK = torch.tensor([[True, False, True]])

# Arguments for the operations that one square matrix does not suit.
ARGUMENTS: dict[str, Make] = {
    "where": lambda: (MASK, square(), square()),
    "lerp": lambda: (square(), square(), 0.5),
    "linear": lambda: (square(), square()),
    "pow": lambda: (square(), 2),
    "einsum": lambda: ("ij,jk->ik", square(), square()),
    "mv": lambda: (square(), leaf(3)),
    "dot": lambda: (leaf(3), leaf(3)),
    "inner": lambda: (leaf(3), leaf(3)),
    "outer": lambda: (leaf(3), leaf(3)),
    "kron": lambda: (square(), square()),
    "bmm": lambda: (leaf(2, 3, 3), leaf(2, 3, 3)),
    "baddbmm": lambda: (leaf(2, 3, 3), leaf(2, 3, 3), leaf(2, 3, 3)),
    "addbmm": lambda: (square(), leaf(2, 3, 3), leaf(2, 3, 3)),
    "addmm": lambda: (square(), square(), square()),
    "addcmul": lambda: (square(), square(), square()),
    "index_select": lambda: (square(), 0, INDEX[0]),
    "masked_select": lambda: (square(), MASK),
    "masked_fill": lambda: (square(), MASK, 0.0),
    "take_along_dim": lambda: (square(), INDEX, 0),
    "gather": lambda: (square(), 0, INDEX),
    "scatter_add": lambda: (square(), 0, INDEX, leaf(1, 3)),
    "masked_scatter": lambda: (square(), MASK, square()),
    "embedding": lambda: (INDEX, square()),
    "cross_entropy": lambda: (square(), INDEX[0]),
    "topk": lambda: (square(), 2),
    "dropout1d": lambda: (leaf(1, 4, 6),),
    "repeat": lambda: (square(), 2, 1),
    "repeat_interleave": lambda: (square(), 2),
    "tile": lambda: (square(), (2,)),
    "roll": lambda: (square(), 1),
    "flip": lambda: (square(), [0]),
    "interpolate": lambda: (leaf(*IMAGE), 12),
    "pixel_shuffle": lambda: (leaf(*IMAGE), 2),
    "pixel_unshuffle": lambda: (leaf(*IMAGE), 2),
    "kl_div": lambda: (square(), torch.rand(3, 3)),
    "nll_loss": lambda: (square(), INDEX[0]),
    "layer_norm": lambda: (square(), (3,)),
    "rms_norm": lambda: (square(), (3,)),
    "group_norm": lambda: (leaf(*IMAGE), 2),
    "batch_norm": lambda: (square(), None, None, None, None, True),
    "instance_norm": lambda: (leaf(*IMAGE),),
    "local_response_norm": lambda: (leaf(*IMAGE), 2),
    "glu": lambda: (leaf(2, 4),),
    "normalize": lambda: (square(),),
    "prelu": lambda: (square(), leaf(1)),
    "grid_sample": lambda: (leaf(1, 1, 2, 2), leaf(1, 2, 2, 2)),
    "bilinear": lambda: (square(), square(), leaf(2, 3, 3)),
    "scaled_dot_product_attention": lambda: (leaf(1, 1, 3, 3), leaf(1, 1, 3, 3), leaf(1, 1, 3, 3)),
    "conv1d": lambda: (leaf(1, 1, 4), leaf(1, 1, 3)),
    "conv2d": lambda: (leaf(1, 1, 4, 4), leaf(1, 1, 3, 3)),
    "conv3d": lambda: (leaf(1, 1, 4, 4, 4), leaf(1, 1, 3, 3, 3)),
    "conv_transpose1d": lambda: (leaf(1, 1, 4), leaf(1, 1, 3)),
    "conv_transpose2d": lambda: (leaf(1, 1, 4, 4), leaf(1, 1, 3, 3)),
    "conv_transpose3d": lambda: (leaf(1, 1, 4, 4, 4), leaf(1, 1, 3, 3, 3)),
    "avg_pool1d": lambda: (leaf(1, 2, 6), 2),
    "max_pool1d": lambda: (leaf(1, 2, 6), 2),
    "avg_pool3d": lambda: (leaf(1, 1, 4, 4, 4), 2),
    "max_pool3d": lambda: (leaf(1, 1, 4, 4, 4), 2),
    **{
        name: lambda: (leaf(*IMAGE), 2)
        for name in ("avg_pool2d", "max_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d")
    },
    **{name: lambda: (leaf(*IMAGE),) for name in ("dropout2d", "dropout3d")},
    **{name: lambda: ([square(), square()],) for name in ("cat", "concat", "concatenate", "stack")},
    **{name: lambda: ([square(), square()],) for name in ("hstack", "vstack", "dstack")},
    **{
        name: lambda: (square(), 0)
        for name in ("softmax", "softmin", "log_softmax", "logsumexp", "logcumsumexp", "cumprod", "cumsum")
    },
    **{name: lambda: (square(), 0) for name in ("amax", "amin")},
    **{name: lambda: (square(), 0.3) for name in ("clamp", "clip", "clamp_min")},
    "clamp_max": lambda: (square(), 0.6),
}
PAIRS = words(
    """
    add sub rsub mul multiply matmul mm cross tensordot div divide true_divide maximum minimum fmax fmin atan2
    fmod logaddexp mse_loss smooth_l1_loss huber_loss binary_cross_entropy cdist l1_loss
    binary_cross_entropy_with_logits
    """
)
# Not run: one needs integers, the others are in-place names or layers' rows without a function.
NOT_RUN = {"one_hot", "conv", "feature_dropout"}


def function_of(name: str) -> Callable[..., Any]:
    for home in (F, torch, torch.Tensor, torch.linalg, torch.special):
        if hasattr(home, name):
            return getattr(home, name)  # type: ignore[no-any-return]
    raise AssertionError(f"torch has no {name}")


def arguments_of(name: str) -> tuple[Any, ...]:
    if name in ARGUMENTS:
        return ARGUMENTS[name]()
    return (square(), square()) if name in PAIRS else (square(),)


def address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def kept_by(name: str) -> tuple[set[str], Any, list[torch.Tensor]]:
    """Which of the inputs ("0", "1", ...) and the output ("out") autograd keeps."""
    arguments = arguments_of(name)
    flat = [one for value in arguments for one in (value if isinstance(value, list) else [value])]
    inputs = [one for one in flat if isinstance(one, torch.Tensor) and one.is_floating_point()]
    saved: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved.append(tensor)
        return tensor

    with warnings.catch_warnings(), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        warnings.simplefilter("ignore")
        result = function_of(name)(*arguments)
    output = result[0] if isinstance(result, tuple | list) else result
    names = {address(one): str(place) for place, one in enumerate(inputs)}
    names.setdefault(address(output), "out")
    return {names[address(one)] for one in saved if address(one) in names}, output, inputs


def stated(op: Op, count: int) -> set[str]:
    """What the table says is kept, for inputs that all require a gradient."""
    every = {str(place) for place in range(count)}
    return {
        Saves.NOTHING: set(),
        Saves.INPUT: {"0"},
        Saves.INPUTS: every,
        Saves.OUTPUT: {"out"},
        Saves.BOTH: {"0", "out"},
        Saves.FACTORS: every,
        Saves.DIVISOR: every,
        Saves.POWER: {"0"},
        Saves.SECOND: {"1"},
    }[op.saves]


# `max` and `min` of everything keep both, which the static engine knows by the missing dimension.
KEEPS_MORE = {"max", "min", "cdist", "scaled_dot_product_attention"}
SAVING = sorted(
    op.name for op in OPS.values() if op.gives is Gives.FRESH and op.differentiable and op.name not in NOT_RUN
)


@pytest.mark.parametrize("name", SAVING)
def test_what_is_kept(name: str) -> None:
    torch.manual_seed(0)
    kept, _, inputs = kept_by(name)
    says = stated(OPS[name], len(inputs))
    missing = says - kept
    if name in ("addmm", "baddbmm", "addbmm", "addcmul"):
        missing -= {"0"}  # the summand: a superset is stated for the factors
    assert name in KEEPS_MORE or not kept - says, f"torch keeps {sorted(kept)}, the table says {sorted(says)}"
    assert not missing, f"the table says that {sorted(missing)} are kept, torch keeps {sorted(kept)}"


@pytest.mark.parametrize("name", SAVING)
def test_a_fresh_result_shares_nothing(name: str) -> None:
    torch.manual_seed(0)
    _, output, inputs = kept_by(name)
    if name in ("alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_dropout"):
        pytest.skip("these copy while training only, which is when a graph is recorded")
    assert address(output) not in {address(one) for one in inputs}


VIEWS: dict[str, tuple[Any, ...]] = {
    "view": (9,),
    "view_as": (torch.empty(9),),
    "transpose": (0, 1),
    "permute": (1, 0),
    "unsqueeze": (0,),
    "expand": (3, 3),
    "expand_as": (torch.empty(3, 3),),
    "narrow": (0, 0, 2),
    "select": (0, 0),
    "chunk": (3,),
    "split": (1,),
    "tensor_split": (3,),
    "movedim": (0, 1),
    "moveaxis": (0, 1),
    "swapaxes": (0, 1),
    "swapdims": (0, 1),
    "unfold": (0, 2, 1),
    "as_strided": ((2, 2), (1, 1)),
    "unflatten": (0, (3, 1)),
    "broadcast_to": ((3, 3),),
    "hsplit": (3,),
    "vsplit": (3,),
}
COMPLEX = {"real", "imag", "view_as_real", "view_as_complex", "alias"}


@pytest.mark.parametrize("name", sorted(op.name for op in OPS.values() if op.gives is Gives.VIEW))
def test_a_view_shares(name: str) -> None:
    if name in COMPLEX:
        pytest.skip("complex, or not reachable from Python")
    source = torch.rand(3, 3)
    home = source if hasattr(source, name) else None
    call = getattr(home, name) if home is not None else lambda *rest: getattr(torch, name)(source, *rest)
    result = call(*VIEWS.get(name, ()))
    first = result[0] if isinstance(result, tuple | list) else result
    assert address(first) == address(source)


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_a_writer_moves_the_version(name: str) -> None:
    if not hasattr(torch.Tensor, name):
        pytest.skip("a function of torch only")
    assert out_of_place(name) is not None


@pytest.mark.parametrize("layer", LAYERS.values(), ids=lambda layer: layer.name)
def test_a_layer_exists(layer: LayerOp) -> None:
    made = getattr(torch.nn, layer.name)
    parameters = made.__init__.__code__.co_varnames
    assert not layer.takes_inplace or "inplace" in parameters or layer.name.endswith("Dropout")


@pytest.mark.parametrize("name", sorted(TAKES_INPLACE - {"threshold"}))
def test_an_in_place_activation_keeps_what_the_table_says(name: str) -> None:
    """In place, the output is kept where the row says so, and an overwritten input is cloned first."""
    if name not in OPS or "dropout" in name:
        pytest.skip("covered by the rows themselves")
    source = square() * 1
    saved: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda one: saved.append(address(one)) or one, lambda one: one
    ):
        result = getattr(F, name)(source, inplace=True)
    assert address(result) == address(source)
    stated_to_keep = OPS[name].saves in (Saves.OUTPUT, Saves.BOTH) or name in OUTPUT_KEPT_IN_PLACE
    assert (address(source) in saved) == stated_to_keep
