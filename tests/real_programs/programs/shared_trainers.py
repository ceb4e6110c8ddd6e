"""Trainers that share one model in turn, actors that fill shared buffers, and batches through a queue."""

import torch
import torch.multiprocessing as mp
from torch import nn
from torch.nn import functional as F

STEPS, ACTORS = 4, 2


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.policy = nn.Linear(8, 2)
        self.value = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = F.relu(self.body(x), inplace=True)
        return self.policy(x), self.value(x)


def train(model: Net, seed: int) -> None:
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    for _ in range(3):
        x = torch.randn(8, 4, generator=generator)
        optimizer.zero_grad()
        logits, _ = model(x)
        F.cross_entropy(logits, (x.sum(1) > 0).long()).backward()
        optimizer.step()


def act(number: int, model: Net, buffers: dict[str, torch.Tensor], full: mp.SimpleQueue) -> None:
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(number)
    state = torch.zeros(4)
    for step in range(STEPS):
        with torch.no_grad():
            logits, _ = model(state[None])
        action = int(torch.bernoulli(logits.softmax(-1)[0, 1], generator=generator))
        buffers["state"][number][step, ...] = state
        buffers["action"][number, step] = action
        state = state.roll(1)
        state[0] = action
        buffers["reward"][number][step] = state.sum()
    full.put(number)


def learn(model: Net, buffers: dict[str, torch.Tensor]) -> float:
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
    logits, value = model(buffers["state"].flatten(0, 1))
    returns = buffers["reward"].flip(1).cumsum(1).flip(1).flatten()
    advantage = returns - value.squeeze(-1)
    chosen = F.log_softmax(logits, dim=-1).gather(1, buffers["action"].flatten()[:, None]).squeeze(1)
    loss = -(chosen * advantage.detach()).mean() + advantage.square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def produce(batches: mp.Queue, done: mp.Event) -> None:
    for number in range(3):
        batches.put(torch.full((2, 2), float(number)).add_(1))
    done.wait()


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for method in ("fork", "spawn"):
        context = mp.get_context(method)
        model = Net().share_memory()
        for seed in range(2):
            trainer = context.Process(target=train, args=(model, seed))
            trainer.start()
            trainer.join()
        print(method, f"{sum(value.sum().item() for value in model.parameters()):.7f}")
    context = mp.get_context("fork")
    buffers = {
        "state": torch.zeros(ACTORS, STEPS, 4).share_memory_(),
        "action": torch.zeros(ACTORS, STEPS, dtype=torch.long).share_memory_(),
        "reward": torch.zeros(ACTORS, STEPS).share_memory_(),
    }
    full = context.SimpleQueue()
    actors = [context.Process(target=act, args=(number, model, buffers, full)) for number in range(ACTORS)]
    for actor in actors:
        actor.start()
    print(sorted(full.get() for _ in actors))
    for actor in actors:
        actor.join()
    print(f"{learn(model, buffers):.7f}", {name: value.sum().item() for name, value in buffers.items()})
    batches, done = context.Queue(), context.Event()
    producer = context.Process(target=produce, args=(batches, done))
    producer.start()
    print([batches.get().sum().item() for _ in range(3)])
    done.set()
    producer.join()
    print(producer.exitcode)


if __name__ == "__main__":
    main()
