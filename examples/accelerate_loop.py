"""An own loop with accelerate: watched, and the best weights put back at its end.

accelerate launch --cpu examples/accelerate_loop.py
"""

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

import tensafe


def train(accelerator):
    torch.manual_seed(0)
    x = torch.randn(64, 8)
    y = x.sum(1, keepdim=True).sin()
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.4)
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    best = tensafe.BestWeights(accelerator.unwrap_model(model), patience=5)
    for epoch in range(20):
        for inputs, targets in loader:
            optimizer.zero_grad()
            accelerator.backward(torch.nn.functional.mse_loss(model(inputs), targets))
            optimizer.step()
        with torch.no_grad():
            inputs, targets = x.to(accelerator.device), y.to(accelerator.device)
            best.update(torch.nn.functional.mse_loss(model(inputs), targets))
        if best.should_stop:
            break
    best.restore()
    return best


def main():
    accelerator = Accelerator(cpu=True)
    with tensafe.watching() as seen:
        best = train(accelerator)
    accelerator.print(best)
    accelerator.print(seen)


if __name__ == "__main__":
    main()
