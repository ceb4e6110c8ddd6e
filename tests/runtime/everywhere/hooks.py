"""The program's own hooks, checkpoints, custom Functions, threads."""

PROGRAMS = {
    "saved-tensor hooks of all kinds": """
        from torch.autograd.graph import saved_tensors_hooks, save_on_cpu
        import pickle
        seen = []
        PAIRS = {
            "identity": (lambda t: t, lambda t: t),
            "counted": (lambda t: seen.append((t.numel(), t.requires_grad, t.is_leaf)) or t, lambda t: t),
            "smaller": (lambda t: t.to(torch.bfloat16), lambda t: t.float() if t.is_floating_point() else t),
            "bytes": (lambda t: pickle.dumps(t.detach()), lambda packed: pickle.loads(packed)),
            "moved": (lambda t: t.detach().clone().mul_(2), lambda t: t / 2),
            "freed": (lambda t: (t.detach().numpy().copy(), t.dtype), lambda p: torch.from_numpy(p[0])),
        }
        def run():
            seen.clear()
            out = []
            for name, pair in PAIRS.items():
                net = make()
                with saved_tensors_hooks(*pair):
                    out.append((name, train(net)))
            with save_on_cpu(pin_memory=False):
                out.append(train(make()))
            with saved_tensors_hooks(*PAIRS["counted"]), saved_tensors_hooks(*PAIRS["moved"]):
                out.append(train(make()))
            net = make()
            with saved_tensors_hooks(*PAIRS["identity"]):
                loss = net(batch()).sum()
            loss.backward()
            return out, list(seen), grads(net)
        """,
    "benign writes under hooks": """
        from torch.autograd.graph import saved_tensors_hooks
        def run():
            torch.manual_seed(0)
            net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.RReLU(), nn.Linear(8, 8, bias=False))
            buffer = torch.zeros(64)
            w = torch.ones(8, requires_grad=True)
            with saved_tensors_hooks(lambda t: t, lambda t: t):
                out = net(batch())
                losses = []
                for part in range(8):
                    row = buffer[part * 8 : part * 8 + 8]
                    row.fill_(part)
                    losses.append((w * row).sum())
                logits, targets = torch.randn(20, 2, 5).requires_grad_(), torch.tensor([[1, 2], [2, 1]])
                lengths = torch.tensor([20, 20]), torch.tensor([2, 2])
                ctc = F.ctc_loss(logits.log_softmax(2), targets, *lengths)
                (out.sum() + sum(losses) + ctc).backward()
                hidden = net[0](batch()).relu_()
                hidden.add_(0)
                (hidden * 1).sum().backward()
            return out, grads(net), w.grad
        """,
    "hooks may not be used": """
        from torch.autograd.graph import disable_saved_tensors_hooks, saved_tensors_hooks
        def run():
            net = make()
            out = []
            with disable_saved_tensors_hooks("not here"):
                out.append(train(net))
                try:
                    with saved_tensors_hooks(lambda t: t, lambda t: t):
                        net(batch()).sum().backward()
                except RuntimeError as error:
                    out.append(str(error))
            out.append(train(net))
            try:
                with saved_tensors_hooks(lambda t: 1 / 0, lambda t: t):
                    net(batch())
            except ZeroDivisionError as error:
                out.append(str(error))
            return out, train(net)
        """,
    "mutation allowed": """
        from torch.autograd.graph import allow_mutation_on_saved_tensors
        def run():
            w = torch.linspace(0.1, 1, 4, requires_grad=True)
            with allow_mutation_on_saved_tensors() as context:
                y = w.exp()
                z = (y * y).sum()
                y.mul_(2)
                z.backward()
            return w.grad, train(make())
        """,
    "checkpoints": """
        from torch.utils.checkpoint import checkpoint, checkpoint_sequential
        def run():
            out = []
            for options in ({"use_reentrant": True}, {"use_reentrant": False},
                            {"use_reentrant": False, "determinism_check": "none", "early_stop": True}):
                options.pop("early_stop", None)
                torch.manual_seed(0)
                net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Dropout(0.3), nn.Linear(8, 4))
                def forward(x):
                    x = checkpoint(net, x.requires_grad_(), **options)
                    y = checkpoint(lambda x: checkpoint(net, x, **options).tanh(), x, **options)
                    return y + checkpoint_sequential(net, 2, x, use_reentrant=options["use_reentrant"])
                out.append(train(net, forward=forward))
            return out
        """,
    "selective checkpoint": """
        from functools import partial
        from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
        def policy(context, op, *args, **kwargs):
            kept = op in (torch.ops.aten.addmm.default, torch.ops.aten.mm.default)
            return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE
        def run():
            net = nn.Sequential(make()[0], nn.Tanh(), nn.Linear(8, 2))
            contexts = partial(create_selective_checkpoint_contexts, policy)
            return train(net, forward=lambda x: checkpoint(net, x, use_reentrant=False, context_fn=contexts))
        """,
    "hooks on tensors, modules and nodes": """
        from torch.autograd.graph import register_multi_grad_hook
        def run():
            seen = []
            net = make()
            net[0].register_forward_pre_hook(lambda module, args: (args[0] * 2,))
            net[0].register_forward_hook(lambda module, args, out: out.clamp(-1, 1))
            net[3].register_full_backward_hook(lambda *args: seen.append(args[2][0].clone()))
            net[3].weight.register_hook(lambda gradient: gradient.clone().mul_(0.5))
            net[0].weight.register_post_accumulate_grad_hook(lambda p: [p.grad.clamp_(-1, 1)] and None)
            handle = register_multi_grad_hook(list(net.parameters()), lambda all: seen.append(len(all)))
            hidden = net[0](batch())
            hidden.retain_grad()
            loss = net[1:](hidden * 1).sum()
            loss.grad_fn.register_hook(lambda ingoing, outgoing: seen.append(len(ingoing)))
            node = (hidden * hidden).grad_fn
            raw = node._raw_saved_self
            loss.backward()
            handle.remove()
            return seen, grads(net), hidden.grad
        """,
    "raw saved tensors": """
        def run():
            w = torch.ones(3, requires_grad=True)
            y = w.exp()
            values = [y.grad_fn._saved_result, (w * w).grad_fn._saved_self]
            with torch.autograd.graph.disable_saved_tensors_hooks("own ones follow"):
                z = y * y
                z.grad_fn._raw_saved_self.register_hooks(lambda t: t.detach() * 2, lambda t: t / 2)
                z.sum().backward()
            return values, w.grad
        """,
    "custom functions": """
        from torch.autograd.function import once_differentiable
        class Many(torch.autograd.Function):
            @staticmethod
            def forward(x, w, scale):
                y = x @ w
                return y.relu_(), y.clone(), scale
            @staticmethod
            def setup_context(ctx, inputs, output):
                x, w, ctx.scale = inputs
                ctx.save_for_backward(x, w, output[0])
                ctx.mark_non_differentiable(output[1])
                ctx.set_materialize_grads(False)
            @staticmethod
            @once_differentiable
            def backward(ctx, gradient, *_):
                x, w, y = ctx.saved_tensors
                gradient = gradient * (y > 0)
                return gradient @ w.t(), x.t() @ gradient, None
        class Dirty(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2)
            @staticmethod
            def backward(ctx, gradient):
                return gradient * 2
        def run():
            w = torch.ones(4, 4, requires_grad=True)
            x = batch().requires_grad_()
            y, other, _ = Many.apply(x, w, 2)
            loss = Dirty.apply(y * 1).sum()
            loss.backward()
            return y, other, w.grad, x.grad
        """,
    "anomaly mode and errors": """
        import traceback
        def run():
            out = []
            with torch.autograd.detect_anomaly(check_nan=True):
                out.append(train(make()))
                x = torch.zeros(2, requires_grad=True)
                try:
                    (x.sqrt() * 0).sum().backward()
                except RuntimeError as error:
                    out.append(str(error).splitlines()[0])
            for wrong in (lambda: torch.ones(2) + torch.ones(3), lambda: torch.ones(2).add_(torch.ones(3)),
                          lambda: torch.ones(2).view(3), lambda: nn.Linear(2, 2)(torch.ones(3)),
                          lambda: torch.ones(2)[5], lambda: torch.add(1), lambda: torch.ones(2).add_("a")):
                try:
                    wrong()
                except Exception as error:
                    frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
                    out.append((type(error).__name__, str(error), frames))
            return out
        """,
    "threads": """
        import queue, threading
        from concurrent.futures import ThreadPoolExecutor
        from torch.autograd.graph import saved_tensors_hooks
        def run():
            torch.manual_seed(0)
            out, results = queue.Queue(), {}
            def actor(number):
                generator = torch.Generator().manual_seed(number)
                policy = nn.Linear(4, 2)
                with torch.no_grad():
                    for p in policy.parameters():
                        p.fill_(0.1 * number)
                    for step in range(5):
                        state = torch.rand(4, generator=generator)
                        out.put((number, step, state, policy(state).add_(step)))
                results[number] = train(policy)
            start = lambda number: threading.Thread(target=actor, args=(number,), daemon=number == 2)
            threads = [start(number) for number in range(3)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            items = sorted((out.get() for _ in range(15)), key=lambda item: item[:2])
            def hooked(number):
                w = torch.full((3,), float(number), requires_grad=True)
                with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
                    (w * w).sum().backward()
                return w.grad
            with ThreadPoolExecutor(3) as pool:
                gradients = list(pool.map(hooked, range(6)))
            w = torch.full((3,), 2.0, requires_grad=True)
            loss = w.exp().sum()
            backward = threading.Thread(target=loss.backward)
            backward.start(), backward.join()
            return items, results, gradients, w.grad
        """,
    "generators and coroutines": """
        import asyncio
        def run():
            net = make()
            def steps():
                with torch.autograd.graph.save_on_cpu():
                    loss = net(batch()).sum()
                    yield loss
                    loss.backward()
                    yield grads(net)
            async def serve():
                async def one(seed):
                    await asyncio.sleep(0)
                    with torch.no_grad():
                        return net(batch(seed)).add_(1)
                return await asyncio.gather(*(one(seed) for seed in range(3)))
            return list(steps())[1], asyncio.run(serve()), train(net)
        """,
}
