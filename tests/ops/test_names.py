"""Any spelling of an operation finds its row; a wrong one is answered with the nearest."""

from __future__ import annotations

import inspect

import pytest
import torch
import torch.nn.functional as F

from ops.conftest import needs_the_same_torch
from tensafe.ops.names import UnknownOperationError, rows_named
from tensafe.ops.stored import stored

FOUND = {
    "reshape": "reshape",
    "Tensor.reshape": "reshape",
    "torch.Tensor.reshape": "reshape",
    "torch.reshape": "reshape",
    "y.reshape(-1)": "reshape",
    "F.relu": "relu",
    "torch.nn.functional.relu": "relu",
    "nn.functional.relu": "relu",
    "aten::add_.Tensor": "add_",
    "torch.ops.aten.add_.Tensor": "add_",
    "aten.add.Tensor": "add",
    "x[mask]": "x[mask]",
    "images[labels > 3]": "x[mask]",
    "batch[idx]": "x[key]",
    "x[i]": "x[key]",
    "x[:, 2:5]": "x[1:3]",
    "x[[1, 2]]": "x[[0, 2]]",
    "x[mask] = 0": "x[mask] = v",
    "x[idx] += 1": "x[key] += v",
    "x[2:4] = y": "x[i] = v",
    "x[mask][0] = 1": "x[mask][0] = v",
    "x[0][1] = 2": "x[0][1] = v",
    "+=": "add_",
    "+": "add",
    "@": "matmul",
    "~": "bitwise_not",
    "x @ y": "matmul",
    "__getitem__": "x[key]",
    "__setitem__": "x[key] = v",
    "__iadd__": "add_",
    "__radd__": "add",
    "Tensor.__matmul__": "matmul",
    ".T": "numpy_T",
    "x.T": "numpy_T",
    ".data": "x.data",
    "data": "x.data",
    "float": "x.float()",
    "numpy": "x.numpy()",
    "from_numpy": "torch.from_numpy(a)",
    "torch.tensor": "torch.tensor(data)",
    "as_tensor": "torch.as_tensor(data)",
    "deepcopy": "copy.deepcopy(x)",
    "unfold": "unfold",
    "F.unfold": "im2col",
    "cross_entropy": "cross_entropy_loss",
    "torch.linalg.norm": "linalg_norm",
    "F.normalize": "F.normalize",
    "normalize": "F.normalize",
    "torch.special.expit": "special_expit",
    "F.relu(x, inplace=True)": "relu_",
    "_unsafe_view": "_unsafe_view",
    "-x": "neg",
    "+x": "positive",
    "x+y": "add",
    "loss * 2": "mul",
    "x ** 2": "pow",
    "2 ** x": "pow",
    "2 * x": "mul",
    "1 - x": "rsub",
    "1 / x": "2 / x",
    "x // 2": "floor_divide",
    "x % 2": "remainder",
    "x > 0": "gt",
    "x *= 2": "mul_",
    "x **= 2": "pow_",
    "x @= w": "x @= y",
    "@=": "x @= y",
    "out=": "out=",
    "x = x.clone()": "clone",
    "linalg.svd": "linalg_svd",
    "linalg.cholesky": "linalg_cholesky",
    "torch.linalg.svd": "linalg_svd",
    "torch.svd": "svd",
    "fft.fft": "fft_fft",
    "torch.autograd.grad": "torch.autograd.grad(y, x)",
    "torch.func.grad": "torch.func.grad(f)(x)",
    ".grad": "x.grad",
    "math.sqrt": "float(x)",
    "math.sqrt(x)": "float(x)",
    "torch.where(cond)": "torch.where(condition)",
    "torch.where(a, b, c)": "where",
    "np.array": "np.array(x)",
    "numpy.array(x)": "np.array(x)",
    "np.asarray": "x.numpy()",
    "nn.ReLU": "relu",
    "torch.nn.ReLU()": "relu",
    "nn.ReLU(inplace=True)": "relu_",
    "nn.Linear(3, 4)(x)": "linear",
    "Linear": "linear",
    "nn.init.zeros_": "torch.nn.init.zeros_(x)",
    "torch.nn.init.xavier_uniform_": "torch.nn.init.zeros_(x)",
    "clip_grad_norm_": "torch.nn.utils.clip_grad_norm_(parameters)",
    "net.zero_grad()": "optimizer.zero_grad()",
    "self.net.load_state_dict(sd)": "model.load_state_dict(state)",
    "len(x)": "x.shape",
    "zero_grad": "optimizer.zero_grad()",
    "optimizer.zero_grad()": "optimizer.zero_grad()",
    "model.load_state_dict(state)": "model.load_state_dict(state)",
}


@pytest.mark.parametrize(("name", "row"), FOUND.items())
def test_a_spelling_finds_its_row(name: str, row: str) -> None:
    assert rows_named(name, stored())[0] == row


def test_one_name_of_two_operations_finds_both() -> None:
    assert rows_named("unfold", stored()) == ["unfold", "im2col"]


@pytest.mark.parametrize(
    ("name", "near"),
    [("rehsape", "reshape"), ("torch.contigous", "contiguous"), ("Tensor.detatch", "detach")],
)
def test_a_misspelled_name_is_answered_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UnknownOperationError, match=f"did you mean .*{near}"):
        rows_named(name, stored())


@pytest.mark.parametrize("name", ["", "   ", "qqqqqq", "((", "\N{SNOWMAN}", "a" * 5000, "x][", "two\nlines"])
def test_what_is_no_name_is_told_in_one_line(name: str) -> None:
    with pytest.raises(UnknownOperationError) as caught:
        rows_named(name, stored())
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["x[", "x[]", "x[[[[", "x[0]]"])
def test_broken_indexing_is_taken_for_some_indexing(name: str) -> None:
    assert all(row.startswith("x[") for row in rows_named(name, stored()))


@pytest.mark.parametrize("name", ['params["w"]', 'x["a"]', "x[1.5]", "x[{0}]", "x[1:2.5]", "x[0, 'a']"])
def test_a_key_that_indexes_no_tensor_is_told_so(name: str) -> None:
    with pytest.raises(UnknownOperationError, match="no operation on a tensor") as caught:
        rows_named(name, stored())
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "name", ["np.sqrt", "math.nonsense", "torch.autograd.nonsense", "torch.nn.utils.grad"]
)
def test_a_function_of_a_module_is_no_method_by_the_same_last_name(name: str) -> None:
    with pytest.raises(UnknownOperationError):
        rows_named(name, stored())


# Public functions of torch that are not about tensors' memory: settings, types, tracing, control flow.
NO_OPERATION = [
    "are_deterministic_algorithms_enabled",
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "classproperty",
    "clear_autocast_cache",
    "compile",
    "compiled_with_cxx11_abi",
    "fork",
    "manual_seed",
    "seed",
    "initial_seed",
    "import_ir_module",
    "import_ir_module_from_buffer",
    "init_num_threads",
    "is_storage",
    "is_tensor",
    "merge_type_from_type_comment",
    "parse_ir",
    "parse_schema",
    "parse_type_comment",
    "prepare_multiprocessing_environment",
    "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12",
    "promote_types",
    "can_cast",
    "thread_safe_generator",
    "typename",
    "unify_type_list",
    "use_deterministic_algorithms",
    "vmap",
    "wait",
    "while_loop",
    "cond",
    "eig",
    "lstsq",
    "matrix_rank",
    "solve",
    "symeig",
    "grouped_mm",
    "scaled_grouped_mm",
    "scaled_mm",
    "assert_int_or_pair",
    "boolean_dispatch",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "quantized_gru",
    "quantized_lstm",
    "lobpcg",
    "dsmm",
    "hsmm",
    "saddmm",
    "spmm",
    "is_vulkan_available",
]
NO_METHOD = [
    "as_subclass",
    "eig",
    "lstsq",
    "solve",
    "symeig",
    "ipu",
    "mtia",
    "new",
    "ndimension",
    "nelement",
    "const_data_ptr",
    "dim_order",
    "is_shared",
    "index",
    "map2_",
    "module_load",
    "reinforce",
    "storage_type",
    "to_sparse_coo",
    "byte",
]
PREFIXES = ("get_", "set_", "is_", "sym_")


@needs_the_same_torch
def test_every_public_function_of_torch_has_a_row() -> None:
    missing = []
    for home, label in ((torch, "torch"), (F, "F"), (torch.linalg, "torch.linalg"), (torch.fft, "torch.fft")):
        for name in dir(home):
            given = getattr(home, name)
            ours = getattr(given, "__module__", "") not in (
                "typing",
                "torch.overrides",
                "torch._jit_internal",
            )
            if name.startswith(("_", *PREFIXES)) or name in NO_OPERATION or not callable(given) or not ours:
                continue
            if not inspect.isclass(given) and not _known(f"{label}.{name}"):
                missing.append(f"{label}.{name}")
    assert not missing


@needs_the_same_torch
def test_every_public_method_of_a_tensor_has_a_row() -> None:
    names = [name for name in dir(torch.Tensor) if not name.startswith("_") and name not in NO_METHOD]
    missing = [name for name in names if callable(getattr(torch.Tensor, name)) and not _known(f"x.{name}")]
    assert not missing


def _known(name: str) -> bool:
    try:
        return bool(rows_named(name, stored()))
    except UnknownOperationError:
        return False
