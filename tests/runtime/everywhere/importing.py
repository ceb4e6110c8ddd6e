"""Code that comes from odd places: zip files, `exec`, `runpy`, packages of torch, modules loaded again."""

PROGRAMS = {
    "run by path and by text": """
        import os, runpy, tempfile, textwrap
        CODE = textwrap.dedent('''
            import torch
            w = torch.ones(3, requires_grad=True)
            y = w.exp()
            y = y * 2
            y.add_(1)
            y.sum().backward()
            buffer = torch.zeros(3)
            buffer[1:].add_(1)
            result = w.grad.clone()
        ''')
        def run():
            out = []
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "script.py")
                with open(path, "w") as file:
                    file.write(CODE)
                out.append(runpy.run_path(path)["result"])
            for name in ("", "<string>", "<generated>", "<stdin>", "no such file.py", "<ipython-input-1>"):
                space = {}
                exec(compile(CODE, name, "exec"), space)
                out.append(space["result"])
            space = {"__builtins__": __builtins__}
            exec(CODE, space)
            return out, eval("torch.ones(3).add_(2)", {"torch": torch})
        """,
    "zip imports and reloads": """
        import importlib, os, sys, tempfile, textwrap, zipfile
        CODE = textwrap.dedent('''
            import torch
            from torch import nn
            class Layer(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.w = nn.Parameter(torch.ones(4))
                def forward(self, x):
                    y = x * self.w
                    y.mul_(FACTOR)
                    return y.sum()
            FACTOR = 2
        ''')
        def run():
            out = []
            with tempfile.TemporaryDirectory() as folder:
                archive = os.path.join(folder, "lib.zip")
                with zipfile.ZipFile(archive, "w") as file:
                    file.writestr("zipped_layer.py", CODE)
                with open(os.path.join(folder, "plain_layer.py"), "w") as file:
                    file.write(CODE)
                sys.path[:0] = [archive, folder]
                try:
                    for name in ("zipped_layer", "plain_layer"):
                        module = importlib.import_module(name)
                        for _ in range(2):
                            layer = module.Layer()
                            layer(batch()).backward()
                            out.append(layer.w.grad)
                            module = importlib.reload(module)
                finally:
                    del sys.path[:2]
                    for name in ("zipped_layer", "plain_layer"):
                        sys.modules.pop(name, None)
            return out
        """,
    "torch.package": """
        import io, sys, textwrap
        CODE = textwrap.dedent('''
            import torch
            def step(w):
                y = w.exp()
                y = y + 1
                y.add_(1)
                y.sum().backward()
                return w.grad
        ''')
        def run():
            from torch.package import PackageExporter, PackageImporter
            buffer = io.BytesIO()
            with PackageExporter(buffer) as exporter:
                exporter.extern(["torch.**", "torch"])
                exporter.save_source_string("packed", CODE)
                exporter.save_pickle("model", "model.pkl", make().state_dict())
            buffer.seek(0)
            importer = PackageImporter(buffer)
            step = importer.import_module("packed").step
            return step(torch.ones(3, requires_grad=True)), importer.load_pickle("model", "model.pkl")
        """,
    "functions made by hand": """
        import types
        def template(x):
            y = x.clone()
            y.mul_(2)
            y[y > 1] = 0
            return y
        def run():
            code = template.__code__
            moved = code.replace(co_filename="elsewhere.py", co_firstlineno=10_000)
            moved = types.FunctionType(moved, globals())
            bare = types.FunctionType(code.replace(co_linetable=b""), globals())
            space = {"torch": torch}
            exec("f = lambda x: x.clone().add_(1)", space)
            class Meta(type):
                def __call__(cls, x):
                    return super().__call__(x).value.add_(1)
            class Odd(metaclass=Meta):
                def __init__(self, x):
                    self.value = x.clone()
            outs = [f(batch()) for f in (moved, bare, space["f"], Odd)]
            return outs, list(map(torch.Tensor.neg_, [batch()]))
        """,
    "torch loaded piece by piece": """
        import importlib
        def run():
            importlib.reload(importlib.import_module("torch.nn.utils.clip_grad"))
            from torch import add, relu_
            from torch.nn.functional import relu
            method = Tensor.add_
            bound = torch.ones(3).mul_
            x = batch()
            method(x, 1), relu_(x), relu(x, inplace=True)
            getattr(x, "sub_")(1)
            return x, bound(3), add(x, 1), Tensor.__dict__.get("grad") is None, hasattr(torch, "no_such_name")
        """,
}
