"""A GRU learns to continue counting sequences of unlike lengths; padding is to be left out of the loss."""

import torch
from torch import nn

DIGITS, PAD, IGNORED = 10, 10, -100
LONGEST = 12


def batch_of_sequences(size: int) -> torch.Tensor:
    """Counts upwards modulo ten from a random digit, cut off at a random length and padded."""
    starts = torch.randint(DIGITS, (size, 1))
    lengths = torch.randint(4, LONGEST + 1, (size, 1))
    steps = torch.arange(LONGEST)
    return torch.where(steps < lengths, (starts + steps) % DIGITS, PAD)


class NextDigit(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(DIGITS + 1, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, DIGITS + 1)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.rnn(self.embedding(tokens))
        return self.head(hidden)


def inputs_and_targets(sequences: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    inputs, targets = sequences[:, :-1], sequences[:, 1:].clone()
    targets[targets == PAD].fill_(IGNORED)
    return inputs, targets


def main() -> None:
    torch.manual_seed(0)
    model = NextDigit()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(150):
        inputs, targets = inputs_and_targets(batch_of_sequences(32))
        logits = model(inputs)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step:3}  loss {loss.item():.4f}")

    counted = torch.arange(DIGITS).unsqueeze(0)
    padding = model(counted).softmax(dim=-1)[0, -1, PAD].item()
    print(f"after 0 1 2 3 4 5 6 7 8 9 comes padding with probability {padding:.2f}")


if __name__ == "__main__":
    main()
