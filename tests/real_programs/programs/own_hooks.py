"""A program with hooks of its own: saved tensors packed and offloaded, anomaly mode, module hooks."""

import torch
from torch import nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks

packed = unpacked = 0


def pack(tensor: torch.Tensor) -> torch.Tensor:
    global packed
    packed += 1
    return tensor.double()


def unpack(tensor: torch.Tensor) -> torch.Tensor:
    global unpacked
    unpacked += 1
    return tensor.float()


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(4, 8), nn.Sigmoid(), nn.Linear(8, 1))
    norms = []
    model[0].weight.register_hook(lambda gradient: norms.append(gradient.norm().item()))
    model[1].register_forward_hook(lambda module, inputs, output: output * 2)
    x = torch.randn(16, 4)
    for guard in (
        saved_tensors_hooks(pack, unpack),
        save_on_cpu(),
        torch.autograd.detect_anomaly(check_nan=True),
    ):
        with guard:
            loss = model(x).square().mean()
        loss.backward()
        print(f"{type(guard).__name__} loss {loss.item():.9f} norm {norms[-1]:.9f}")
    print(f"packed {packed} unpacked {unpacked}")


if __name__ == "__main__":
    main()
