"""`torch.func`, forward AD, `autograd.functional`, inference mode, autocast."""

PROGRAMS = {
    "grad, vjp, jvp": """
        from torch.func import grad, grad_and_value, jvp, linearize, vjp
        def f(w):
            y = w.sin()
            y.mul_(2)
            y[0] = 3
            return (batch() @ y).pow(2).sum()
        def run():
            w = torch.linspace(0, 1, 4)
            out, pull = vjp(f, w)
            _, push = linearize(f, w)
            return grad(f)(w), grad_and_value(f)(w), \\
                jvp(f, (w,), (w,)), out, pull(torch.ones(())), push(w)
        """,
    "vmap with writes and randomness": """
        from torch.func import vmap
        def f(x):
            y = x.clone()
            y.add_(1)
            y[0] = 0
            y += x
            F.relu(y, inplace=True)
            return F.dropout(y, 0.5) + torch.rand(()), y.detach(), y.sum()
        def run():
            torch.manual_seed(0)
            return vmap(f, randomness="different")(batch()), vmap(f, randomness="same", in_dims=1)(batch())
        """,
    "jacobians and hessians": """
        from torch.func import hessian, jacfwd, jacrev
        from torch.autograd import functional
        def run():
            f = lambda x: (x.exp() * x.flip(0)).cumsum(0)
            x = torch.linspace(0.1, 1, 4)
            g = lambda x: f(x).sum()
            return jacrev(f)(x), jacfwd(f)(x), hessian(g)(x), functional.jacobian(f, x, vectorize=True), \\
                functional.hessian(g, x), functional.hvp(g, x, x), functional.jvp(f, x, x)
        """,
    "functional_call and ensembles": """
        from torch.func import functional_call, grad, stack_module_state, vmap
        import copy
        def run():
            nets = [nn.Linear(4, 2) for net in range(3)]
            for i, net in enumerate(nets):
                nn.init.constant_(net.weight, i + 1.0), nn.init.zeros_(net.bias)
            parameters, buffers = stack_module_state(nets)
            base = copy.deepcopy(nets[0]).to("meta")
            call = lambda p, b, x: functional_call(base, (p, b), (x,))
            outs = vmap(call, (0, 0, None))(parameters, buffers, batch())
            net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Linear(8, 2))
            own = {name: torch.full_like(p, 0.1).detach() for name, p in net.named_parameters()}
            loss = lambda own, x: functional_call(net, own, (x,)).pow(2).mean()
            gradient = grad(loss)(own, batch())
            for step in range(3):
                gradient = grad(loss)(own, batch(step))
                own = {name: p - 0.1 * gradient[name] for name, p in own.items()}
            per_sample = vmap(grad(lambda w, x: (x @ w).pow(2).sum()), (None, 0))(torch.ones(4), batch())
            return outs, own, per_sample, train(make())
        """,
    "functionalize": """
        from torch.func import functionalize, vmap
        from torch.fx.experimental.proxy_tensor import make_fx
        def f(x):
            y = x.clone()
            y[0].add_(1)
            y.t_()
            return y.reshape(-1)
        def run():
            return functionalize(f)(batch()), make_fx(functionalize(f))(batch()).code
        """,
    "forward AD": """
        import torch.autograd.forward_ad as forward_ad
        class Own(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_forward(x)
                ctx.save_for_backward(x)
                return x * x
            @staticmethod
            def backward(ctx, gradient):
                return 2 * ctx.saved_tensors[0] * gradient
            @staticmethod
            def jvp(ctx, tangent):
                return 2 * ctx.saved_tensors[0] * tangent
        def run():
            net = make()
            x, t = torch.linspace(0, 1, 4), torch.ones(4)
            with forward_ad.dual_level():
                dual = forward_ad.make_dual(x.clone(), t)
                y = dual.exp()
                y.mul_(dual)
                y[0] = 1
                first = forward_ad.unpack_dual(y)
                second = forward_ad.unpack_dual(Own.apply(dual))
                third = forward_ad.unpack_dual(net(forward_ad.make_dual(batch(), torch.ones(6, 4))))
                w = x.clone().requires_grad_()
                mixed = forward_ad.unpack_dual(forward_ad.make_dual(w, t).sin()).tangent
                mixed.sum().backward()
            return first, second, third, w.grad, forward_ad.unpack_dual(dual)
        """,
    "gradcheck": """
        def run():
            x = torch.linspace(0.1, 1, 4, dtype=torch.float64, requires_grad=True)
            f = lambda x: (x.sin() * x).cumsum(0).mul_(2)
            check = dict(check_forward_ad=True, check_batched_grad=True)
            return torch.autograd.gradcheck(f, x, **check), torch.autograd.gradgradcheck(f, x)
        """,
    "double backward": """
        def run():
            net = make()
            x = batch().requires_grad_()
            (gradient,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
            (gradient.norm(2, 1) - 1).pow(2).mean().backward()
            out = net(batch()).sum(0)
            rows = torch.autograd.grad(out, net[3].weight, torch.eye(2), is_grads_batched=True)
            return gradient, grads(net), x.grad, rows
        """,
    "inference mode": """
        def run():
            net = make().eval()
            with torch.inference_mode():
                x = batch()
                y = net(x)
                y.add_(1)
                y[0] = 2
                y += 1
                view = y[:, 0]
                view.zero_()
                normal = torch.ones(3)
                array = y.numpy()
                array *= 2
                kept = net.state_dict()
                net.load_state_dict(kept)
            z = y.clone()
            z.requires_grad_().sum().backward()
            @torch.inference_mode()
            def decorated(x):
                return net(x).detach().clone().relu_()
            return y, z.grad, view, normal, decorated(batch()), y.is_inference(), train(net.train())
        """,
    "autocast and GradScaler": """
        def run():
            net = make()
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
            scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
            out = []
            for step in range(5):
                optimizer.zero_grad(set_to_none=step % 2 == 0)
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    y = net(batch(step))
                    with torch.autocast("cpu", enabled=False):
                        loss = y.float().pow(2).mean() * (float("inf") if step == 2 else 1)
                scaler.scale(loss).backward()
                scaler.unscale_(optimizer)
                norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                out.append((y.detach(), norm, scaler.get_scale()))
            return out, scaler.state_dict(), [p.detach() for p in net.parameters()]
        """,
    "optimizers": """
        def run():
            out = []
            for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad):
                for options in ({"foreach": False}, {"foreach": True}, {"fused": True}):
                    net = make()
                    out.append(train(net, optimizer=kind(net.parameters(), lr=0.01, **options)))
            for kind in (torch.optim.RMSprop, torch.optim.NAdam, torch.optim.RAdam, torch.optim.Adamax):
                net = make()
                out.append(train(net, optimizer=kind(net.parameters(), lr=0.01)))
            net = make().eval()
            optimizer = torch.optim.LBFGS(net.parameters(), max_iter=3)
            def closure():
                optimizer.zero_grad()
                loss = net(batch()).pow(2).mean()
                loss.backward()
                return loss
            out.append(optimizer.step(closure).detach())
            average = torch.optim.swa_utils.AveragedModel(net)
            average.update_parameters(net)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(torch.optim.SGD(net.parameters(), 1.0), 3)
            return out, average.state_dict(), schedule.get_last_lr()
        """,
    "layers of every kind": """
        from torch.nn.utils import parametrizations, prune
        def run():
            torch.manual_seed(0)
            x = torch.randn(2, 5, 8, requires_grad=True)
            lstm, gru = nn.LSTM(8, 8, 2, batch_first=True, dropout=0.1), nn.GRU(8, 8, bidirectional=True)
            encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            attention = nn.MultiheadAttention(8, 2, batch_first=True)
            normal = parametrizations.weight_norm(nn.Linear(8, 8))
            spectral = parametrizations.spectral_norm(nn.Linear(8, 8))
            pruned = nn.Linear(8, 8)
            prune.l1_unstructured(pruned, "weight", 0.5)
            conv = nn.Sequential(nn.Conv1d(5, 5, 3), nn.InstanceNorm1d(5), nn.Hardswish(inplace=True))
            y = encoder(gru(lstm(x)[0])[0][..., :8])
            y = spectral(normal(pruned(attention(y, y, y)[0])))
            embedded = nn.Embedding(10, 8, padding_idx=0, max_norm=1.0)(torch.arange(10))
            bag = nn.EmbeddingBag(10, 8, sparse=True)
            loss = conv(y).pow(2).mean() + embedded.sum() + bag(torch.arange(4), torch.tensor([0, 2])).sum()
            loss.backward()
            return loss, x.grad, bag.weight.grad.to_dense(), grads(lstm), grads(encoder), grads(conv)
        """,
    "layouts and dtypes": """
        def run():
            w = torch.eye(3).to_sparse().requires_grad_()
            torch.sparse.mm(w, torch.ones(3, 3)).sum().backward()
            crows = torch.eye(3).to_sparse_csr()
            c = torch.ones(3, dtype=torch.complex64, requires_grad=True)
            (c.conj() * c).real.sum().backward()
            imaginary = torch.view_as_real(c.detach().clone())
            imaginary.mul_(2)
            q = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
            nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
            dynamic = torch.ao.quantization.quantize_dynamic(make(), {nn.Linear}, torch.qint8)
            half = torch.ones(3, dtype=torch.float16).add_(1)
            meta = torch.ones(3, device="meta").add_(1)
            meta[0] = 3
            return w.grad.to_dense(), crows.to_dense(), c.grad, imaginary, q.dequantize(), half, \\
                nested.sum(), dynamic.eval()(batch()), meta.shape
        """,
}
