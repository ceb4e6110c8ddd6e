"""Tensors that answer for themselves: subclasses, modes, DTensor, sharded, masked and nested ones."""

PROGRAMS = {
    "torch function": """
        calls = []
        class Logged(Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                calls.append(getattr(function, "__name__", str(function)))
                return super().__torch_function__(function, types, args, kwargs or {})
        def run():
            calls.clear()
            x = batch().as_subclass(Logged)
            x.add_(1)
            x[0] = 2
            x += 1
            y = torch.relu_(x * 1)
            torch.add(x, 1, out=torch.empty(6, 4).as_subclass(Logged))
            w = nn.Parameter(torch.ones(4).as_subclass(Logged))
            loss = (x @ w).sum() + F.mse_loss(x, x) + F.relu(x * w, inplace=True).sum()
            loss.backward()
            x.detach(), x.data, x.numpy(), x.tolist(), x - x, torch.equal(x, x), x.clone().zero_()
            kept = w.detach()
            return list(calls), x, y, w.grad, loss, type(kept).__name__
        """,
    "torch dispatch": """
        from torch.utils._pytree import tree_map
        calls = []
        class Wrapped(Tensor):
            @staticmethod
            def __new__(cls, inner):
                return Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            def __init__(self, inner):
                self.inner = inner.detach()
            @classmethod
            def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
                if function is not torch.ops.aten.detach.default:  # one more under any hooks
                    calls.append(str(function))
                unwrap = lambda item: item.inner if isinstance(item, cls) else item
                out = function(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {}))
                if function._schema.name.endswith("_"):
                    return args[0]
                return tree_map(lambda item: cls(item) if isinstance(item, Tensor) else item, out)
        def run():
            calls.clear()
            x = Wrapped(batch())
            w = Wrapped(torch.ones(4)).requires_grad_()
            y = (x * w).sin()
            y.add_(1)
            z = y.sum()
            z.backward()
            x.detach(), x.data, x.clone()
            return list(calls), z.inner, w.grad.inner, x.inner
        """,
    "two tensors": """
        from torch.testing._internal.two_tensor import TwoTensor
        def run():
            x = TwoTensor(batch(), batch(2)).requires_grad_()
            y = x.exp()
            (y * y).sum().backward()
            layer = nn.Linear(4, 2)
            layer.weight = nn.Parameter(TwoTensor(torch.ones(2, 4), torch.zeros(2, 4)))
            layer(TwoTensor(batch(), batch())).sum().backward()
            optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
            optimizer.step()
            return x.grad.a, x.grad.b, layer.weight.a, layer.weight.b
        """,
    "modes": """
        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode
        class Functions(TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                calls.append(getattr(function, "__name__", str(function)))
                return function(*args, **(kwargs or {}))
        class Operations(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                calls.append(str(function))
                return function(*args, **(kwargs or {}))
        calls = []
        def run():
            calls.clear()
            net = make()
            import contextlib
            one, other = Functions(), Operations()
            for modes in ((one,), (other,), (other, one), (one, other)):
                with contextlib.ExitStack() as stack:
                    for mode in modes:
                        stack.enter_context(mode)
                    y = net(batch())
                    y.mul_(2)
                    y[0] = 0
                    y.sum().backward()
                    torch.optim.SGD(net.parameters(), lr=0.1).step()
                    y.detach(), y.data, y.tolist(), y.sum().item(), net.state_dict()
            with torch.device("meta"):
                shape = nn.Linear(3, 3)(torch.ones(2, 3)).add_(1).shape
            return list(calls), grads(net), shape, train(net)
        """,
    "DTensor": """
        import os, tempfile
        import torch.distributed as distributed
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module, distribute_tensor
        def run():
            with tempfile.TemporaryDirectory() as folder:
                distributed.init_process_group("gloo", f"file://{folder}/store", rank=0, world_size=1)
                try:
                    return with_mesh(init_device_mesh("cpu", (1,)))
                finally:
                    distributed.destroy_process_group()
        def with_mesh(mesh):
            x = distribute_tensor(batch(), mesh, [Shard(0)])
            x.add_(1)
            x += 1
            y = x.redistribute(mesh, [Replicate()])
            net = distribute_module(make(), mesh)
            optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
            for _ in range(3):
                optimizer.zero_grad()
                hidden = F.relu(net[3](F.relu(net[0](y))), inplace=True)
                loss = hidden.pow(2).mean()
                loss.backward()
                optimizer.step()
            state = net.state_dict()
            kept = {name: v.full_tensor() for name, v in state.items() if isinstance(v, DTensor)}
            w = distribute_tensor(torch.ones(4), mesh, [Shard(0)]).requires_grad_()
            (w * w).sum().backward()
            return y.to_local(), loss.full_tensor(), kept, w.grad.to_local(), x.detach().to_local()
        """,
    "sharded on one rank": """
        import tempfile
        import torch.distributed as distributed
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from torch.nn.parallel import DistributedDataParallel
        def run():
            with tempfile.TemporaryDirectory() as folder:
                distributed.init_process_group("gloo", f"file://{folder}/store", rank=0, world_size=1)
                try:
                    plain = make()
                    wrapped = train(plain, forward=DistributedDataParallel(plain))
                    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
                    for p in net.parameters():
                        nn.init.constant_(p, 0.1)
                    fully_shard(net, mesh=init_device_mesh("cpu", (1,)))
                    losses = []
                    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
                    for step in range(3):
                        optimizer.zero_grad()
                        loss = net(batch(step)).pow(2).mean()
                        loss.backward()
                        optimizer.step()
                        losses.append(loss.item())
                    return wrapped, losses, [p.full_tensor().detach() for p in net.parameters()]
                finally:
                    distributed.destroy_process_group()
        """,
    "masked, nested, pickled": """
        import copy, io, pickle, warnings
        class Tagged(Tensor):
            def __new__(cls, data, tag="none"):
                made = data.as_subclass(cls)
                made.tag = tag
                return made
        def run():
            warnings.simplefilter("ignore")
            from torch.masked import masked_tensor
            m = masked_tensor(torch.arange(4.0), torch.tensor([True, False, True, True]), requires_grad=True)
            m.exp().sum().backward()
            rows = [torch.ones(2, 3), torch.ones(4, 3)]
            nested = torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)
            (nested * nested).sum().backward()
            t = Tagged(batch(), "mine")
            t.add_(1)
            twin = copy.copy(t)
            buffer = io.BytesIO()
            torch.save({"t": t.as_subclass(Tensor), "net": make().state_dict()}, buffer)
            buffer.seek(0)
            net = copy.deepcopy(make())
            return m.grad.get_data(), nested.grad.values(), twin.tag, twin, torch.load(buffer), \\
                pickle.loads(pickle.dumps(net.state_dict())), train(net)
        """,
}
