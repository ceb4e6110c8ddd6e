"""A compiled model in training; the number of graphs shows whether anything broke one."""

import torch
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(inplace=True), nn.Linear(16, 1))
    counter = CompileCounterWithBackend("aot_eager")
    fast = torch.compile(model, backend=counter)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(5):
        x = torch.randn(16, 8)
        loss = (fast(x) - x[:, :1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.9f}")
    print(f"graphs {counter.frame_count}")


if __name__ == "__main__":
    main()
