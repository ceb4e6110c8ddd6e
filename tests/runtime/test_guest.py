"""Programs that use PyTorch in every way that could meet our hooks: same output as under plain Python."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SETUP = """
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Dropout(0.1), nn.Linear(8, 1))
x = torch.randn(16, 4)

def train():
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        loss = net(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""

PROGRAMS = {
    "own hooks": "with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):\n    train()",
    "save on cpu": "with torch.autograd.graph.save_on_cpu():\n    train()",
    "anomaly mode": "with torch.autograd.set_detect_anomaly(True):\n    train()",
    "torch.func": """
        from torch.func import grad, vmap, hessian
        f = lambda w: (x @ w).pow(2).sum()
        print(grad(f)(torch.ones(4)), hessian(f)(torch.ones(4)))
        print(vmap(grad(lambda w, row: (row @ w).pow(2)), (None, 0))(torch.ones(4), x).sum())
        train()
        """,
    "checkpoint": """
        from torch.utils.checkpoint import checkpoint
        for reentrant in (True, False):
            checkpoint(net, x.clone().requires_grad_(), use_reentrant=reentrant).sum().backward()
            print(net[0].weight.grad.sum())
        """,
    "compile": """
        compiled = torch.compile(net, backend="aot_eager")
        for _ in range(2):
            loss = compiled(x).pow(2).mean()
            loss.backward()
            print(loss.item(), net[0].weight.grad.sum())

        @torch.compile(backend="aot_eager", fullgraph=True)
        def change(a):
            a = a * 2
            a.add_(1)
            b = F.relu(a, inplace=True)
            b[0] = 3
            return b.detach() + a

        print(change(x).sum())
        """,
    "threads": """
        import threading
        def work(i):
            layer = nn.Linear(4, 1)
            layer(x * i).tanh().sum().backward()
        threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        train()
        """,
    "loader, forked workers": """
        from torch.utils.data import DataLoader, TensorDataset
        for (batch,) in DataLoader(TensorDataset(x), batch_size=4, num_workers=2):
            print(batch.sum())
        train()
        """,
    "loader, spawned workers": """
        from torch.utils.data import DataLoader, TensorDataset
        if __name__ == "__main__":
            loader = DataLoader(TensorDataset(x), 4, num_workers=1, multiprocessing_context="spawn")
            for (batch,) in loader:
                print(batch.sum())
        """,
    "TorchScript and tracing": """
        from torch.fx import symbolic_trace
        from torch.fx.experimental.proxy_tensor import make_fx

        @torch.jit.script
        def scripted(a: torch.Tensor):
            b = torch.relu(a)
            b.add_(1)
            torch.relu_(b)
            b[0] = 0.0
            return F.relu(b, inplace=True) + torch.tensor([1.0, 2.0]).sum() + F.dropout(b, 0.0, True, True)

        print(scripted(x).sum(), torch.jit.trace(net.eval(), x).code)
        print(symbolic_trace(net).code)
        w = torch.ones(4, requires_grad=True)
        print(make_fx(lambda a: torch.autograd.grad((a @ w).exp().sum(), w)[0])(x).code)
        """,
    "modes and subclasses": """
        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode

        class Dispatched(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                print(function)
                return function(*args, **(kwargs or {}))

        class Called(TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                print(getattr(function, "__name__", function))
                return function(*args, **(kwargs or {}))

        class Tracked(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                print("tracked", getattr(function, "__name__", function))
                return super().__torch_function__(function, types, args, kwargs or {})

        for mode in (Dispatched, Called):
            with mode():
                net(x).sum().backward()
                y = x.clone().add_(1)
                y[0] = 1
                y.detach(), y.data, y.sum().item(), y - y, torch.equal(y, y)
        t = torch.ones(3).as_subclass(Tracked)
        t.add_(1)
        t[0] = 2
        t += 1
        t.detach(), t.data, t - t, t.numpy(), t.sum().item()
        (t * torch.ones(3, requires_grad=True)).sum().backward()
        """,
    "resized after they were saved": """
        layer, buffer = nn.Linear(2, 1), torch.empty(0)
        for n in (2, 5):
            torch.stack([torch.ones(2)] * n, out=buffer.resize_(0))
            layer(buffer).sum().backward()
        t = torch.ones(2)
        (t * layer.weight).sum().backward()
        t.resize_(6)
        t.add_(1)
        print(t[:2], buffer)
        grown = torch.ones(3)
        (grown * torch.ones(3, requires_grad=True)).sum().backward()
        torch.cat([torch.ones(3), torch.ones(2)], out=grown)
        print(grown.add_(1))
        storage = t.untyped_storage()
        (t[:2] * layer.weight).sum().backward()
        storage.resize_(0)
        storage.resize_(24)
        t.fill_(3)
        u = torch.ones(3)
        y = (u * torch.ones(3, requires_grad=True)).sum()
        u.resize_as_(torch.ones(5)).zero_()
        v = torch.ones(3)
        (v * torch.ones(3, requires_grad=True)).sum().backward()
        v.share_memory_().add_(1)
        print(t, u, v, v.is_shared())
        """,
    "pointers taken before": """
        import ctypes
        import numpy as np
        class Own(torch.Tensor):
            pass
        w = torch.ones(3, requires_grad=True)
        for view in (
            np.from_dlpack,
            lambda t: torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(t)),
            lambda t: (ctypes.c_float * 3).from_address(t.untyped_storage().data_ptr()),
            lambda t: t.as_subclass(Own).numpy(),
            lambda t: memoryview(t.numpy()),
        ):
            t = torch.zeros(3)
            a = view(t)
            y = (w * t).sum()
            t.add_(1)
            print(list(a))
        """,
    "executors": """
        from concurrent.futures import ThreadPoolExecutor
        pool = ThreadPoolExecutor(4)
        def work(i):
            return torch.ones(3, requires_grad=True).exp().sum().item() + i
        print(list(pool.map(work, range(8))))
        """,
    "compiled without graph breaks": """
        import copy
        @torch.compile(backend="aot_eager", fullgraph=True)
        def penalty(a):
            decay = sum(p.pow(2).sum() for p in net.parameters())
            return F.mse_loss(net(a), a[:, :1]) + decay + torch.tensor(1.0) + (a - a.detach()).sum()
        print(penalty(x))
        @torch.compile(backend="aot_eager", fullgraph=True)
        def cast(a):
            return net.float()(a.to(torch.float32)).sum()
        print(cast(x))
        """,
    "swapped tensors": """
        torch.__future__.set_swap_module_params_on_conversion(True)
        net(x).sum().item()
        state = net.state_dict()
        net.double()
        print(net[0].weight.dtype)
        net.load_state_dict({k: v.double() for k, v in state.items()})
        """,
    "pickled functions": """
        import copy, io, pickle
        net.act, net.tensor = torch.relu_, torch.tensor
        buffer = io.BytesIO()
        torch.save(net, buffer)
        buffer.seek(0)
        print(torch.load(buffer, weights_only=False).act(torch.tensor([-1.0, 2.0])))
        print(pickle.loads(pickle.dumps(torch.Tensor.add_))(torch.ones(2), 1))
        print(copy.deepcopy(torch.relu_)(x)[0])
        """,
    "overridden functions": """
        table = {}
        class Own(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                if function in table:
                    return table[function](*args)
                return super().__torch_function__(function, types, args, kwargs or {})
        for function in (torch.allclose, torch.equal, torch.dist, torch.relu_):
            table[function] = lambda *args, f=function: print("own", f.__name__)
            operands = [torch.ones(2).as_subclass(Own), torch.ones(2)]
            function(*operands[: 1 if function is torch.relu_ else 2])
        """,
    "tracebacks that the program prints": """
        import logging, sys, traceback
        logging.basicConfig(stream=sys.stdout)
        try:
            x.add_("no number")
        except TypeError as error:
            traceback.print_exc(file=sys.stdout)
            logging.exception("logged")
            print(len(traceback.extract_tb(error.__traceback__)))
        """,
    "own parameters method": """
        class Groups(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.ones(2))
            def parameters(self, which):
                print("asked")
                return super().parameters()
        groups = Groups()
        logged = torch.tensor([(groups.w * 2).sum()])
        net(x).sum().backward()
        """,
    "inference, forward AD, autocast, quantized, hooks": """
        import copy, pickle
        import torch.autograd.forward_ad as forward_ad
        with torch.inference_mode():
            i = torch.ones(3)
            i.add_(1)
            i[0] = 3
            print(i, i.detach(), i - i)
        with forward_ad.dual_level():
            print(forward_ad.unpack_dual(forward_ad.make_dual(torch.ones(2), torch.ones(2)).exp()))
        print(torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8).dequantize().add_(1))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            train()
        w = torch.ones(2, requires_grad=True)
        w.register_hook(print)
        (w * w).sum().backward()
        print(pickle.loads(pickle.dumps(net)).state_dict().keys(), copy.deepcopy(net)(x).shape)
        print(torch.rand(2), torch.ones(3, requires_grad=True).exp().grad_fn._saved_result)
        """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_output_and_exit_status_and_nothing_failed(name: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SETUP + textwrap.dedent(PROGRAMS[name]))
    plain = _python(["program.py"], tmp_path)
    record = tmp_path / "record.json"
    watched = _python(
        ["-m", "tensafe", "run", "--format", "json", "--output", str(record), "program.py"], tmp_path
    )
    assert plain.returncode == 0, plain.stderr
    assert watched.stdout == plain.stdout
    assert watched.returncode == plain.returncode
    data = json.loads(record.read_text())
    assert [item for item in data["not_checked"] if "failed" in item["why"]] == []
    assert [item for item in data["findings"] if item["severity"] != "notice"] == []


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("torch.func", "torch.func and vmap"),
        ("compile", "torch.compile regions"),
    ],
)
def test_what_is_not_watched_is_said(name: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SETUP + textwrap.dedent(PROGRAMS[name]))
    watched = _python(["-m", "tensafe", "run", "program.py"], tmp_path)
    assert f"not checked: {what}" in watched.stderr


def _python(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=300)
