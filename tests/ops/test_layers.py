"""Every layer of torch.nn is run: the function named for it is among those that its call runs."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from tensafe.ops import words
from tensafe.ops.layers import FUNCTIONS
from tensafe.ops.names import rows_named
from tensafe.ops.stored import stored

# Containers, bases, and layers that run several functions or take other arguments than tensors.
WITHOUT_A_FUNCTION = words(
    """
    Module Container Sequential ModuleList ModuleDict ParameterList ParameterDict Identity RNNBase
    RNNCellBase Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer
    TransformerDecoderLayer AdaptiveLogSoftmaxWithLoss CrossMapLRN2d LinearCrossEntropyLoss DataParallel
    """
)
LAYERS = [name for name in sorted(dir(nn)) if inspect.isclass(getattr(nn, name))]


class Recording(TorchFunctionMode):
    """The names of the functions that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(func.__name__.lstrip("_"))
        return func(*args, **(kwargs or {}))


def test_every_layer_has_its_function() -> None:
    wanted = {name for name in LAYERS if issubclass(getattr(nn, name), nn.Module)} - WITHOUT_A_FUNCTION
    assert not wanted - set(FUNCTIONS)


@pytest.mark.parametrize("layer", FUNCTIONS)
def test_every_function_has_a_row(layer: str) -> None:
    assert rows_named(f"nn.{layer}", stored())[0] == rows_named(FUNCTIONS[layer], stored())[0]


IMAGE = torch.rand(2, 4, 6, 6)
PAIR = (torch.rand(3, 4), torch.rand(3, 4))
ACTIVATIONS = """
    ReLU ReLU6 ELU SELU CELU LeakyReLU RReLU GELU SiLU Mish Softplus Softsign Softshrink Hardshrink
    Tanhshrink Sigmoid Tanh Hardtanh Hardswish Hardsigmoid LogSigmoid GLU PReLU Dropout
"""
LOSSES = """
    MSELoss L1Loss SmoothL1Loss HuberLoss BCELoss BCEWithLogitsLoss KLDivLoss PoissonNLLLoss
    CosineSimilarity PairwiseDistance
"""
RUN: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    **dict.fromkeys(ACTIVATIONS.split(), ((), PAIR[:1])),
    **dict.fromkeys(LOSSES.split(), ((), PAIR)),
    **dict.fromkeys(("Softmax", "Softmin", "LogSoftmax"), ((1,), PAIR[:1])),
    **dict.fromkeys(("Dropout2d", "FeatureAlphaDropout", "AlphaDropout", "Flatten"), ((), (IMAGE,))),
    **dict.fromkeys(("AvgPool2d", "MaxPool2d", "AdaptiveAvgPool2d", "PixelShuffle"), ((2,), (IMAGE,))),
    **dict.fromkeys(("BatchNorm2d", "InstanceNorm2d", "LocalResponseNorm"), ((4,), (IMAGE,))),
    **dict.fromkeys(("ZeroPad2d", "ReflectionPad2d", "ReplicationPad2d"), ((1,), (IMAGE,))),
    "Linear": ((4, 2), (torch.rand(3, 4),)),
    "Bilinear": ((4, 4, 2), PAIR),
    "Conv1d": ((4, 2, 3), (torch.rand(2, 4, 6),)),
    "Conv2d": ((4, 2, 3), (IMAGE,)),
    "ConvTranspose2d": ((4, 2, 3), (IMAGE,)),
    "LayerNorm": ((6,), (IMAGE,)),
    "RMSNorm": ((6,), (IMAGE,)),
    "GroupNorm": ((2, 4), (IMAGE,)),
    "LPPool2d": ((2, 2), (IMAGE,)),
    "Upsample": ((12,), (IMAGE,)),
    "UpsamplingBilinear2d": ((12,), (IMAGE,)),
    "ConstantPad2d": ((1, 0.0), (IMAGE,)),
    "Unfold": ((2,), (IMAGE,)),
    "Fold": (((4, 4), (2, 2)), (torch.rand(1, 4, 9),)),
    "Embedding": ((5, 2), (torch.tensor([[0, 1]]),)),
    "EmbeddingBag": ((5, 2), (torch.tensor([[0, 1]]),)),
    "MultiheadAttention": ((4, 2), (torch.rand(3, 1, 4),) * 3),
    "Unflatten": ((1, (2, 2)), (torch.rand(3, 4),)),
    "CrossEntropyLoss": ((), (torch.rand(2, 3), torch.tensor([0, 1]))),
    "NLLLoss": ((), (torch.rand(2, 3), torch.tensor([0, 1]))),
    "RNN": ((3, 3), (torch.rand(5, 2, 3),)),
    "LSTM": ((3, 3), (torch.rand(5, 2, 3),)),
    "GRU": ((3, 3), (torch.rand(5, 2, 3),)),
    "LSTMCell": ((3, 3), (torch.rand(2, 3),)),
    "GRUCell": ((3, 3), (torch.rand(2, 3),)),
}


@pytest.mark.parametrize("layer", RUN)
def test_a_layer_runs_its_function(layer: str) -> None:
    made, given = RUN[layer]
    with warnings.catch_warnings(), Recording() as recording:
        warnings.simplefilter("ignore")
        getattr(nn, layer)(*made)(*given)
    called = {name.replace("_", "") for name in recording.names}
    assert FUNCTIONS[layer].rpartition(".")[2].replace("_", "") in called
