"""The operations that the static engine follows: the stored table, and by hand what it cannot say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tensafe.ops.derived import not_writers, op_of, writers
from tensafe.ops.op import Dtype, Gives, LayerOp, Op, Saves
from tensafe.ops.stored import stored
from tensafe.ops.words import words

# What the static engine follows by name; gives, saves and differentiable are the stored table's.
_FOLLOWED = """
    add sub rsub neg sum mean cumsum cat concat concatenate stack hstack vstack dstack flip roll
    tril triu trace sign floor ceil round trunc frac deg2rad rad2deg repeat
    repeat_interleave tile pixel_shuffle pixel_unshuffle where masked_fill
    index_select scatter_add embedding masked_scatter rot90 diff
    log log2 log10 log1p sin cos asin acos atan sinh cosh asinh acosh atanh abs square erf erfc
    erfinv lgamma digamma logit sinc nan_to_num angle elu selu celu leaky_relu gelu silu mish
    softplus relu6 hardtanh hardswish hardsigmoid logsigmoid softshrink hardshrink glu softsign
    normalize gather avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool2d local_response_norm var
    instance_norm nansum nanmean masked_select take_along_dim
    mse_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits
    maximum minimum fmax fmin atan2 fmod logaddexp grid_sample prelu bilinear conv1d conv2d
    conv3d conv_transpose1d conv_transpose2d conv_transpose3d cdist
    exp exp2 expm1 sigmoid tanh sqrt rsqrt reciprocal relu tan softmax softmin log_softmax
    inverse gumbel_softmax scaled_dot_product_attention
    prod norm amax amin std logsumexp logcumsumexp cumprod pinverse median vector_norm det
    mul multiply matmul mm bmm mv dot div divide true_divide l1_loss sort topk clone
    view view_as detach transpose t permute squeeze unsqueeze expand expand_as narrow select chunk
    split tensor_split unbind diagonal movedim moveaxis swapaxes swapdims unfold as_strided
    unflatten broadcast_to real imag positive alias adjoint view_as_real view_as_complex hsplit
    vsplit atleast_1d atleast_2d atleast_3d
    reshape flatten ravel contiguous to float double half bfloat16 cpu cuda type_as reshape_as
"""
_BOOL = """
    eq ne lt le gt ge logical_and logical_or logical_not logical_xor isnan isinf isfinite isclose
    bool equal allclose isin signbit
"""
_INTEGER = """
    one_hot argmax argmin argsort nonzero argwhere randperm randint multinomial searchsorted bucketize
    bincount long int count_nonzero floor_divide randint_like histc int8 short tril_indices
    triu_indices
"""
_FRESH_CONSTANTS = """
    zeros ones rand randn empty full eye arange linspace logspace zeros_like ones_like rand_like
    randn_like empty_like full_like new_zeros new_ones new_empty new_full new_tensor bernoulli
    poisson normal empty_strided
"""

# What the table cannot say in the engine's few words, or says of other cases than people mean.
_BY_HAND: tuple[tuple[str, Op, str], ...] = (
    (
        "no operation of its own: a cast to a type that is named",
        Op("", gives=Gives.EITHER),
        "type squeeze_dims",
    ),
    (
        "a copy while training, which is when a graph is recorded; what is kept is the mask",
        Op(""),
        "dropout alpha_dropout dropout1d dropout2d dropout3d feature_dropout",
    ),
    (
        "products that run others: each keeps the factors whose fellows need a gradient, as mul does",
        Op("", saves=Saves.FACTORS),
        "inner outer einsum linear cross addmm addcmul baddbmm addbmm tensordot kron",
    ),
    (
        "the weights or bounds that are kept too are mostly constants: the input is what people write to",
        Op("", saves=Saves.INPUT),
        "layer_norm rms_norm group_norm batch_norm clamp clip clamp_min clamp_max nll_loss conv",
    ),
    (
        "keeps the indices too, which nobody holds unless asked for",
        Op("", saves=Saves.INPUT),
        "max_pool1d max_pool2d max_pool3d adaptive_max_pool2d",
    ),
    ("keeps the input only in a mode that is not the default", Op(""), "interpolate lerp cross_entropy"),
    ("keep what the static engine tells by the missing dimension", Op(""), "max min"),
    ("by its second argument: see Saves.POWER", Op("", saves=Saves.POWER), "pow"),
    ("log_target decides; the target is kept in either case", Op("", saves=Saves.SECOND), "kl_div"),
)

# Written through the receiver; `map_` calls a Python function, and is no operation of the table.
WRITERS = writers(stored()) | words("map_")

# End in an underscore and write no element; the last few belong to Python, or to modules and optimizers.
NOT_WRITERS = not_writers(stored()) | words("rename_ share_memory_ retain_grad_ zero_grad_ apply_ unfold_")

# Methods of tensors that neither arrays, containers nor strings have: proof that the receiver is a tensor.
TENSOR_METHODS = words(
    """
    unsqueeze permute detach backward requires_grad_ norm softmax log_softmax sigmoid tanh relu exp
    log sqrt rsqrt abs pow matmul mm bmm masked_fill scatter gather topk index_select masked_select
    chunk contiguous expand expand_as cuda cpu new_zeros new_ones new_tensor new_full new_empty
    logsumexp unbind unfold view_as type_as clamp_min clamp_max cumprod amax amin narrow bernoulli
    erf expm1 log1p sin cos zero_ fill_ copy_ normal_ uniform_ retain_grad is_contiguous
    element_size data_ptr untyped_storage float half bfloat16 double long numel
    """
)


def _rows() -> Iterator[Op]:
    table = stored()
    yield from (op_of(name, table) for name in words(_FOLLOWED))
    for _, op, names in _BY_HAND:
        yield from (replace(op, name=name) for name in words(names))
    # element types are not in the schemas
    yield from (Op(name, dtype=Dtype.BOOL, differentiable=False) for name in words(_BOOL))
    yield from (Op(name, dtype=Dtype.INTEGER, differentiable=False) for name in words(_INTEGER))
    yield from (Op(name, differentiable=False) for name in words(_FRESH_CONSTANTS))


OPS: dict[str, Op] = {op.name: op for op in _rows()}

_LAYERS_BY_OP = """
    relu ReLU
    relu6 ReLU6
    elu ELU
    selu SELU
    celu CELU
    leaky_relu LeakyReLU
    gelu GELU
    silu SiLU
    mish Mish
    softplus Softplus
    softsign Softsign
    sigmoid Sigmoid
    tanh Tanh
    softmax Softmax
    log_softmax LogSoftmax
    hardtanh Hardtanh
    hardswish Hardswish
    hardsigmoid Hardsigmoid
    logsigmoid LogSigmoid
    glu GLU
    dropout Dropout
    dropout2d Dropout2d
    dropout3d Dropout3d
    dropout1d Dropout1d
    alpha_dropout AlphaDropout
    linear Linear LazyLinear
    conv Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d
    batch_norm BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm LazyBatchNorm1d LazyBatchNorm2d
    layer_norm LayerNorm
    rms_norm RMSNorm
    group_norm GroupNorm
    instance_norm InstanceNorm1d InstanceNorm2d InstanceNorm3d
    prelu PReLU
    avg_pool2d AvgPool1d AvgPool2d AvgPool3d
    adaptive_avg_pool2d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d
    max_pool2d MaxPool1d MaxPool2d MaxPool3d
    interpolate Upsample UpsamplingNearest2d UpsamplingBilinear2d
    pixel_shuffle PixelShuffle
    embedding Embedding EmbeddingBag
    flatten Flatten
    unflatten Unflatten
    mse_loss MSELoss
    l1_loss L1Loss
    smooth_l1_loss SmoothL1Loss
    huber_loss HuberLoss
    cross_entropy CrossEntropyLoss
    nll_loss NLLLoss
    binary_cross_entropy BCELoss
    binary_cross_entropy_with_logits BCEWithLogitsLoss
    kl_div KLDivLoss
"""
_OWNERS = words("linear conv batch_norm layer_norm rms_norm group_norm prelu embedding")
# Keep their input out of place, and in place, where that is gone, their output.
OUTPUT_KEPT_IN_PLACE = words("elu selu celu leaky_relu")
TAKES_INPLACE = words(
    """
    relu relu6 elu selu celu leaky_relu silu mish hardtanh hardswish hardsigmoid dropout dropout1d
    dropout2d dropout3d alpha_dropout feature_dropout threshold rrelu
    """
)


def _layers() -> Iterator[LayerOp]:
    for row in _LAYERS_BY_OP.strip().splitlines():
        op, *names = row.split()
        for name in names:
            yield LayerOp(name, OPS[op], owns_parameters=op in _OWNERS, takes_inplace=op in TAKES_INPLACE)


LAYERS: dict[str, LayerOp] = {layer.name: layer for layer in _layers()}


def out_of_place(name: str) -> Op | None:
    """The operation behind an in-place name: `mul_` is `mul`; None when the name writes nothing."""
    if not name.endswith("_") or name.startswith("_") or name in NOT_WRITERS:
        return None
    op = OPS.get(name[:-1])
    return op or (Op(name[:-1]) if name in WRITERS else None)
