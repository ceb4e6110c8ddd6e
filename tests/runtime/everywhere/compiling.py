"""`torch.compile`, TorchScript, FX, `torch.export`: the same graphs, the same numbers."""

PROGRAMS = {
    "compiled training, aot_eager": """
        from torch._dynamo.testing import CompileCounterWithBackend
        def run():
            torch._dynamo.reset()
            counter = CompileCounterWithBackend("aot_eager")
            net = make()
            out = train(net, forward=torch.compile(net, backend=counter, fullgraph=True))
            return out, counter.frame_count, counter.op_count
        """,
    "compiled functions with writes": """
        from torch._dynamo.testing import CompileCounterWithBackend
        class Own(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x
            @staticmethod
            def backward(ctx, gradient):
                return 2 * ctx.saved_tensors[0] * gradient
        def f(x, buffer):
            y = x.sin()
            y.mul_(2)
            y[0] = 1
            y += x.detach()
            buffer.copy_(y.detach())
            z = Own.apply(y.clone())
            z = F.relu(z, inplace=True)
            out = torch.empty_like(z)
            torch.add(z.detach(), 1, out=out)
            return z.sum(), out
        def run():
            out = []
            for dynamic in (False, None):
                torch._dynamo.reset()
                counter = CompileCounterWithBackend("aot_eager")
                compiled = torch.compile(f, backend=counter, fullgraph=True, dynamic=dynamic)
                for rows in (6, 4):
                    x, buffer = batch()[:rows].clone().requires_grad_(), torch.zeros(rows, 4)
                    loss, other = compiled(x, buffer)
                    loss.backward()
                    out.append((loss, other, x.grad, buffer))
                out.append((counter.frame_count, counter.op_count))
            return out
        """,
    "graph breaks": """
        from torch._dynamo.testing import CompileCounterWithBackend
        def run():
            torch._dynamo.reset()
            counter = CompileCounterWithBackend("eager")
            net = make()
            @torch.compile(backend=counter)
            def f(x):
                y = net(x)
                if y.sum().item() > 0:
                    y = y * 2
                print("broken")
                y.detach().add_(1)
                return y.tolist(), y.sum()
            values, loss = f(batch())
            loss.backward()
            return values, loss, grads(net), counter.frame_count, counter.op_count
        """,
    "hooks, transforms and checkpoints inside": """
        from torch._dynamo.testing import CompileCounterWithBackend
        from torch.autograd.graph import saved_tensors_hooks
        from torch.func import grad, vmap
        from torch.utils.checkpoint import checkpoint
        def run():
            torch._dynamo.reset()
            counter = CompileCounterWithBackend("aot_eager")
            net = make()
            def f(x):
                y = checkpoint(net, x, use_reentrant=False)
                return y.sum() + vmap(grad(lambda row: row.sin().sum()))(x).sum()
            loss = torch.compile(f, backend=counter, fullgraph=True)(batch())
            loss.backward()
            other = torch.compile(net, backend=counter)
            with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
                other(batch()).sum().backward()
            return loss, grads(net), counter.frame_count, counter.op_count
        """,
    "a compiled optimizer step": """
        from torch._dynamo.testing import CompileCounterWithBackend
        def run():
            torch._dynamo.reset()
            counter = CompileCounterWithBackend("eager")
            net = make()
            optimizer = torch.optim.Adam(net.parameters(), lr=0.01, foreach=True)
            step = torch.compile(optimizer.step, backend=counter)
            for seed in range(3):
                optimizer.zero_grad()
                net(batch(seed)).pow(2).mean().backward()
                step()
            return [p.detach() for p in net.parameters()], counter.frame_count
        """,
    "inductor": """
        from torch._dynamo.utils import counters
        def run():
            torch._dynamo.reset()
            counters.clear()
            net = make()
            out = train(net, forward=torch.compile(net, fullgraph=True))
            return out, dict(counters["stats"])
        """,
    "TorchScript": """
        import io
        class Scripted(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
            def forward(self, x: Tensor) -> Tensor:
                y = self.layer(x)
                y.add_(1)
                y[0] = 0.0
                y = F.relu(y, inplace=True)
                z = torch.tensor([1.0, 2.0]).sum() + y.detach().mean()
                return F.dropout(y, 0.5, self.training) + z
        @torch.jit.script
        def waits(x: Tensor):
            future = torch.jit.fork(torch.neg, x)
            return torch.jit.wait(future) + x
        def run():
            torch.manual_seed(0)
            scripted = torch.jit.script(Scripted())
            out = train(scripted)
            traced = torch.jit.trace(make().eval(), batch())
            buffer = io.BytesIO()
            torch.jit.save(scripted, buffer)
            buffer.seek(0)
            loaded = torch.jit.load(buffer).eval()
            frozen = torch.jit.freeze(torch.jit.script(make().eval()))
            outs = [f(batch()) for f in (traced, loaded, frozen, waits)]
            return out, scripted.code, traced.code, outs
        """,
    "FX": """
        import torch.fx
        from torch.fx.experimental.proxy_tensor import make_fx
        class Traced(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = make()
            def forward(self, x):
                y = self.net(x).relu_()
                y += 1
                y = torch.sigmoid_(y) - y.detach()
                return torch.allclose(y, y), y.sum(), torch.equal(y, y), F.mse_loss(y, y)
        def run():
            traced = torch.fx.symbolic_trace(Traced())
            gradient = lambda x: torch.autograd.grad((x * 2).add_(1).exp().sum(), x)[0]
            fx = make_fx(gradient, tracing_mode="fake")
            return traced.code, traced(batch()), fx(batch().requires_grad_()).code
        """,
    "export": """
        class Exported(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = make()
                self.register_buffer("count", torch.zeros(()))
            def forward(self, x):
                self.count.add_(1)
                y = self.net(x)
                y[0] = 0
                return y.detach() + x.sum()
        def run():
            exported = torch.export.export(Exported(), (batch(),))
            shapes = {"x": {0: torch.export.Dim("rows", min=2, max=100)}}
            dynamic = torch.export.export(Exported().eval(), (batch(),), dynamic_shapes=shapes)
            module = exported.module()
            names = sorted(exported.run_decompositions().graph_signature.buffers_to_mutate.values())
            outs = module(batch()), dynamic.module()(batch()[:3])
            return exported.graph_module.code, outs, module.count, names
        """,
    "fake tensors and counting modes": """
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.utils.flop_counter import FlopCounterMode
        def run():
            with FakeTensorMode():
                net = nn.Linear(4, 2)
                y = net(torch.empty(3, 4))
                y.sum().backward()
                shape = net.weight.grad.shape, y.add_(1).shape
            net = make()
            with FlopCounterMode(display=False) as flops:
                net(batch()).sum().backward()
            return shape, flops.get_total_flops(), grads(net)
        """,
}
