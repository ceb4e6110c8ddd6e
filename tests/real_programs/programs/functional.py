"""`torch.func`: per-sample gradients by vmap, a Hessian, and an inner loop through `functional_call`."""

import torch
from torch import nn
from torch.func import functional_call, grad, hessian, vmap


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def loss(weights: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (functional_call(model, weights, (x,)) - y).square().mean()

    x, y = torch.randn(8, 3), torch.randn(8, 1)
    each = vmap(grad(loss), in_dims=(None, 0, 0))(weights, x, y)
    print({name: f"{gradient.norm().item():.9f}" for name, gradient in each.items()})
    print(hessian(lambda v: v.pow(3).sum())(torch.arange(3.0)))

    live = dict(model.named_parameters())
    inner = torch.autograd.grad(loss(live, x, y), list(live.values()), create_graph=True)
    stepped = {name: p - 0.1 * g for (name, p), g in zip(live.items(), inner, strict=True)}
    loss(stepped, x, y).backward()
    print({name: f"{p.grad.norm().item():.9f}" for name, p in live.items()})


if __name__ == "__main__":
    main()
