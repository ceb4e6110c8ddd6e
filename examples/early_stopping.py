"""A small regressor trains until its validation loss stops falling; then the best weights are put back."""

import torch
from torch import nn

PATIENCE = 60


def noisy_sine(points: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.rand(points, 1) * 6 - 3
    return x, torch.sin(2 * x) + 0.4 * torch.randn_like(x)


def evaluate(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(x), y).item()


def train_one_epoch(
    model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor
) -> None:
    model.train()
    for rows in torch.randperm(len(x)).split(8):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
        optimizer.step()


def main() -> None:
    torch.manual_seed(0)
    x_train, y_train = noisy_sine(48)
    x_valid, y_valid = noisy_sine(256)
    model = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    best_loss, best_weights, best_epoch = float("inf"), None, 0
    for epoch in range(500):
        train_one_epoch(model, optimizer, x_train, y_train)
        loss = evaluate(model, x_valid, y_valid)
        if loss < best_loss:
            best_loss, best_epoch = loss, epoch
            best_weights = model.state_dict()
        if epoch - best_epoch >= PATIENCE:
            break

    model.load_state_dict(best_weights)
    print(f"stopped after epoch {epoch}, the best was epoch {best_epoch}")
    print(f"best validation loss     {best_loss:.4f}")
    print(f"restored validation loss {evaluate(model, x_valid, y_valid):.4f}")


if __name__ == "__main__":
    main()
