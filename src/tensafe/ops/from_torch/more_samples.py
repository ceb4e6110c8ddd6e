"""Calls that torch's own samples leave out: operations without samples, and the other side of either-or."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tensafe.ops.from_torch.call import Call, function_named

Arguments = tuple[Any, ...]


def _leaf(*shape: int) -> torch.Tensor:
    return (torch.rand(*shape) * 0.5 + 0.25).requires_grad_()


def _recurrent(gates: int) -> Arguments:
    """Input, hidden state and weights of a recurrent layer of size 3."""
    return (
        _leaf(5, 2, 3),
        _leaf(1, 2, 3),
        [_leaf(3 * gates, 3), _leaf(3 * gates, 3)],
        False,
        1,
        0.0,
        True,
        False,
        False,
    )


def _cell(gates: int) -> Arguments:
    return _leaf(2, 3), _leaf(2, 3), _leaf(3 * gates, 3), _leaf(3 * gates, 3)


def _lstm() -> Arguments:
    given = _recurrent(4)
    return (given[0], [given[1], _leaf(1, 2, 3)], *given[2:])


def _lstm_cell() -> Arguments:
    given = _cell(4)
    return (given[0], [given[1], _leaf(2, 3)], *given[2:])


IMAGE = (1, 4, 6, 6)
MORE: tuple[tuple[str, Callable[[], Arguments]], ...] = (
    ("x.to", lambda: (_leaf(2, 3), torch.float32)),
    ("x.contiguous", lambda: (_leaf(3, 2).t(),)),
    ("x.reshape", lambda: (_leaf(3, 2).t(), (6,))),
    ("torch.reshape", lambda: (_leaf(3, 2).t(), (6,))),
    ("x.reshape_as", lambda: (_leaf(3, 2).t(), torch.rand(6))),
    ("x.flatten", lambda: (_leaf(3, 2).t(),)),
    ("torch.ravel", lambda: (_leaf(3, 2).t(),)),
    ("x.type_as", lambda: (_leaf(3), torch.rand(2))),
    ("torch.type_as", lambda: (_leaf(3), torch.rand(2))),
    ("x.double", lambda: (_leaf(3),)),
    ("x.float", lambda: (_leaf(3),)),
    ("x.sum_to_size", lambda: (_leaf(2, 3), (1, 3))),
    ("x.resolve_conj", lambda: (torch.rand(3, dtype=torch.complex64).conj(),)),
    ("x.resolve_neg", lambda: (torch.rand(3, dtype=torch.complex64).conj().imag,)),
    ("x.adjoint", lambda: (_leaf(2, 3),)),
    ("torch.adjoint", lambda: (_leaf(2, 3),)),
    ("torch.argwhere", lambda: (_leaf(2, 3),)),
    ("torch.chain_matmul", lambda: (_leaf(2, 3), _leaf(3, 2), _leaf(2, 2))),
    ("torch.feature_dropout", lambda: (_leaf(2, 3, 4), 0.5, True)),
    ("torch.feature_dropout_", lambda: (_leaf(2, 3, 4) * 1, 0.5, True)),
    ("torch.dropout_", lambda: (_leaf(2, 3, 4) * 1, 0.5, True)),
    ("torch.dropout", lambda: (_leaf(2, 3, 4), 0.5, False)),
    ("torch.frobenius_norm", lambda: (_leaf(2, 3), [0, 1])),
    ("torch.nuclear_norm", lambda: (_leaf(2, 3),)),
    ("torch.norm_except_dim", lambda: (_leaf(2, 3),)),
    ("torch.isclose", lambda: (_leaf(2, 3), _leaf(2, 3))),
    ("torch.isfinite", lambda: (_leaf(2, 3),)),
    ("torch.isreal", lambda: (_leaf(2, 3),)),
    ("torch.linalg.matrix_rank", lambda: (_leaf(3, 3),)),
    ("torch.linalg.ldl_factor", lambda: (torch.eye(3) + _leaf(3, 3).detach(),)),
    ("torch.matrix_power", lambda: (_leaf(3, 3), 3)),
    ("torch.slogdet", lambda: (_leaf(3, 3) + torch.eye(3),)),
    ("torch.orgqr", lambda: (_leaf(3, 2), _leaf(2))),
    ("torch.gru", lambda: _recurrent(3)),
    ("torch.gru_cell", lambda: _cell(3)),
    ("torch.lstm", _lstm),
    ("torch.lstm_cell", _lstm_cell),
    ("torch.rnn_tanh", lambda: _recurrent(1)),
    ("torch.rnn_relu", lambda: _recurrent(1)),
    ("torch.rnn_tanh_cell", lambda: _cell(1)),
    ("torch.rnn_relu_cell", lambda: _cell(1)),
    ("x.fill_diagonal_", lambda: (_leaf(3, 3) * 1, 0.0)),
    ("x.float_power_", lambda: (torch.rand(3, dtype=torch.float64), 2.0)),
    ("torch.native_channel_shuffle", lambda: (_leaf(*IMAGE), 2)),
    ("torch.fake_quantize_per_tensor_affine", lambda: (_leaf(3), 0.1, 0, 0, 255)),
    ("torch.max_pool1d_with_indices", lambda: (_leaf(1, 2, 6), 2)),
    ("x.to_dense", lambda: (torch.rand(2, 3).to_sparse(),)),
    ("x.coalesce", lambda: (torch.rand(2, 3).to_sparse(),)),
    ("x.copy_", lambda: (_leaf(3) * 1, _leaf(3))),
    ("x.detach_", lambda: (_leaf(3) * 1,)),
    ("x.requires_grad_", lambda: (_leaf(3),)),
    ("x.set_", lambda: (torch.rand(3), torch.rand(2))),
    ("x.t_", lambda: (_leaf(2, 3) * 1,)),
    ("x.swapaxes_", lambda: (_leaf(2, 3) * 1, 0, 1)),
    ("x.swapdims_", lambda: (_leaf(2, 3) * 1, 0, 1)),
    ("x.__iadd__", lambda: (_leaf(3) * 1, _leaf(3))),
    ("x.__setitem__", lambda: (_leaf(3) * 1, 0, _leaf(1)[0])),
    ("torch.vander", lambda: (_leaf(3),)),
    ("torch.linalg.matmul", lambda: (_leaf(2, 3), _leaf(3, 2))),
    ("torch.cartesian_prod", lambda: (_leaf(3),)),
    ("torch.sparse_coo_tensor", lambda: (torch.tensor([[0, 1]]), _leaf(2))),
    ("torch.set_", lambda: (torch.rand(3),)),
    ("torch._foreach_add_", lambda: ([torch.rand(3), torch.rand(2)], 1.0)),
    ("torch._foreach_copy_", lambda: ([torch.rand(3)], [torch.rand(3)])),
    ("torch._foreach_mul", lambda: ([_leaf(3)], [_leaf(3)])),
    ("torch._fused_sgd_", lambda: ([torch.rand(3)], [torch.rand(3)], [])),
    ("F.lp_pool1d", lambda: (_leaf(1, 2, 6), 2, 2)),
    ("F.lp_pool2d", lambda: (_leaf(*IMAGE), 2, 2)),
    ("F.lp_pool3d", lambda: (_leaf(1, 1, 4, 4, 4), 2, 2)),
    ("F.gumbel_softmax", lambda: (_leaf(2, 3),)),
    ("F.dropout1d", lambda: (_leaf(1, 4, 6),)),
    ("F.upsample", lambda: (_leaf(*IMAGE), 12)),
    ("F.upsample", lambda: (_leaf(*IMAGE), 12, None, "area")),
    ("F.fold", lambda: (_leaf(1, 4, 9), (4, 4), (2, 2))),
    ("F.affine_grid", lambda: (_leaf(1, 2, 3), (1, 1, 2, 2))),
    ("torch.nn.utils.rnn.pad_sequence", lambda: ([_leaf(3, 2), _leaf(2, 2)],)),
    ("torch.nn.utils.parameters_to_vector", lambda: ([_leaf(3, 2), _leaf(2)],)),
    ("x.type_as", lambda: (_leaf(3), torch.rand(2, dtype=torch.float64))),
    ("x.coalesce", lambda: (torch.sparse_coo_tensor(torch.tensor([[0, 0]]), torch.rand(2)),)),
    ("torch.einsum", lambda: ("ii->i", _leaf(3, 3))),
    ("torch.feature_dropout", lambda: (_leaf(2, 3, 4), 0.5, False)),
    ("x.resolve_neg", lambda: (torch.rand(3),)),
    ("x.resolve_conj", lambda: (torch.rand(3),)),
    ("x.sum_to_size", lambda: (_leaf(2, 3), (2, 3))),
    ("x.to_dense", lambda: (_leaf(2, 3),)),
    ("x.conj_physical", lambda: (_leaf(2, 3),)),
    ("x.bfloat16", lambda: (torch.ones(3, dtype=torch.bfloat16),)),
    ("x.byte", lambda: (torch.ones(3, dtype=torch.uint8),)),
    ("x.cdouble", lambda: (torch.ones(3, dtype=torch.complex128),)),
    ("x.char", lambda: (torch.ones(3, dtype=torch.int8),)),
    ("x.double", lambda: (torch.ones(3, dtype=torch.float64),)),
    ("x.half", lambda: (torch.ones(3, dtype=torch.float16),)),
    ("x.int", lambda: (torch.ones(3, dtype=torch.int32),)),
    ("x.short", lambda: (torch.ones(3, dtype=torch.int16),)),
    ("x.cfloat", lambda: (torch.ones(3, dtype=torch.complex64),)),
    ("x.chalf", lambda: (torch.ones(3, dtype=torch.complex32),)),
    ("x.bool", lambda: (torch.ones(3, dtype=torch.bool),)),
    ("x.long", lambda: (torch.ones(3, dtype=torch.int64),)),
    ("F.binary_cross_entropy", lambda: (_leaf(3), torch.rand(3), torch.rand(3))),
    (
        "F.binary_cross_entropy_with_logits",
        lambda: (_leaf(3), torch.rand(3), torch.rand(3), None, None, "mean", torch.rand(3)),
    ),
    ("F.multi_margin_loss", lambda: (_leaf(2, 3), torch.tensor([0, 1]), 1, 1.0, torch.rand(3))),
    (
        "torch.sparse_coo_tensor",
        lambda: (torch.tensor([[0, 1]]).int(), torch.rand(2), {"dtype": torch.float64}),
    ),
    ("x.detach", lambda: (_leaf(2, 3),)),
    ("x.dim", lambda: (_leaf(2, 3),)),
    ("x.size", lambda: (_leaf(2, 3),)),
    ("x.stride", lambda: (_leaf(2, 3),)),
    ("x.numel", lambda: (_leaf(2, 3),)),
    ("x.get_device", lambda: (_leaf(2, 3),)),
    ("x.storage_offset", lambda: (_leaf(2, 3),)),
    ("x.is_complex", lambda: (_leaf(2, 3),)),
    ("x.is_conj", lambda: (_leaf(2, 3),)),
    ("x.is_contiguous", lambda: (_leaf(2, 3),)),
    ("x.is_floating_point", lambda: (_leaf(2, 3),)),
    ("x.is_inference", lambda: (_leaf(2, 3),)),
    ("x.is_neg", lambda: (_leaf(2, 3),)),
    ("x.is_signed", lambda: (_leaf(2, 3),)),
    ("x.is_distributed", lambda: (_leaf(2, 3),)),
    ("x.retain_grad", lambda: (_leaf(2, 3),)),
    ("x.relu_", lambda: (_leaf(2, 3) * 1,)),
    ("x.bernoulli_", lambda: (_leaf(2, 3) * 1,)),
    ("x.random_", lambda: (_leaf(2, 3) * 1,)),
    ("x.indices", lambda: (torch.eye(2).to_sparse(),)),
    ("x.values", lambda: (torch.eye(2).to_sparse(),)),
    ("x.dense_dim", lambda: (torch.eye(2).to_sparse(),)),
    ("x.sparse_dim", lambda: (torch.eye(2).to_sparse(),)),
    ("x.is_coalesced", lambda: (torch.eye(2).to_sparse(),)),
    ("x.crow_indices", lambda: (torch.eye(2).to_sparse_csr(),)),
    ("x.col_indices", lambda: (torch.eye(2).to_sparse_csr(),)),
    ("x.ccol_indices", lambda: (torch.eye(2).to_sparse_csc(),)),
    ("x.row_indices", lambda: (torch.eye(2).to_sparse_csc(),)),
    ("torch.bartlett_window", lambda: (3,)),
    ("torch.blackman_window", lambda: (3,)),
    ("torch.hamming_window", lambda: (3,)),
    ("torch.hann_window", lambda: (3,)),
    ("torch.kaiser_window", lambda: (3,)),
    ("torch.rand", lambda: (3,)),
    ("torch.randperm", lambda: (3,)),
    ("torch.fft.fftfreq", lambda: (3,)),
    ("torch.fft.rfftfreq", lambda: (3,)),
    ("torch.poisson", lambda: (torch.rand(3),)),
    ("torch.matmul", lambda: (_leaf(2, 1, 3, 4), _leaf(5, 4, 2))),
    ("F.smooth_l1_loss", lambda: (_leaf(3), _leaf(3), None, None, "mean", 0.0)),
    ("x.__getitem__", lambda: (_leaf(3, 2), torch.tensor([0, 2]))),
    ("F.dropout1d", lambda: (_leaf(1, 4, 6), 0.5, False)),
    ("F.hardtanh_", lambda: (_leaf(3) * 1,)),
    ("F.local_response_norm", lambda: (torch.rand(0, 2, 3), 2)),
    ("torch.native_dropout", lambda: (_leaf(3), 0.5, True)),
    ("F.max_pool2d_with_indices", lambda: (_leaf(*IMAGE), 2)),
    ("torch.embedding_renorm_", lambda: (torch.ones(3, 2), torch.tensor([0]), 0.1, 2.0)),
    ("torch.select_copy", lambda: (_leaf(2, 3), 0, 1)),
    ("torch.slice_copy", lambda: (_leaf(2, 3),)),
    ("torch.split_copy", lambda: (_leaf(2, 3), 1)),
    ("torch.detach_copy", lambda: (_leaf(2, 3),)),
    ("torch.view_as_real_copy", lambda: (torch.rand(3, dtype=torch.complex64),)),
    ("torch.view_as_complex_copy", lambda: (_leaf(3, 2),)),
    ("torch.unsafe_split_with_sizes", lambda: (_leaf(3, 2), [1, 2])),
    ("torch.is_nonzero", lambda: (torch.ones(1),)),
    ("torch.is_same_size", lambda: (_leaf(2), _leaf(2))),
    ("x.is_set_to", lambda: (_leaf(2), _leaf(2))),
    ("torch.result_type", lambda: (_leaf(2), _leaf(2))),
    ("torch.quantize_per_tensor", lambda: (_leaf(2), 0.1, 0, torch.qint8)),
    ("x.sparse_mask", lambda: (torch.rand(2, 2), torch.eye(2).to_sparse())),
    ("x.to_sparse_csr", lambda: (torch.eye(2),)),
    ("torch.sparse_csr_tensor", lambda: (torch.tensor([0, 1]), torch.tensor([0]), torch.rand(1))),
    (
        "torch.sparse_csr_tensor",
        lambda: (torch.tensor([0, 1]), torch.tensor([0]), torch.rand(1), {"dtype": torch.float64}),
    ),
)


def more_calls() -> Iterator[Call]:
    """Every call of the list that this torch has."""
    torch.manual_seed(0)
    for spelling, arguments in MORE:
        function = function_named(spelling)
        if function is not None and not inspect.isclass(function):
            given = arguments()
            named = given[-1] if isinstance(given[-1], dict) else {}
            yield Call(spelling, spelling, function, given[: len(given) - bool(named)], named, torch.float32)
