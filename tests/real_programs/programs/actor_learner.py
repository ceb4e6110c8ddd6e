"""Actors in threads fill a replay buffer while a learner samples it; turns are taken, so that it repeats."""

import queue
import threading

import torch
from torch import nn

ACTORS, ROUNDS, CAPACITY = 3, 8, 64


class Replay:
    """A ring of transitions, written in place under a lock."""

    def __init__(self) -> None:
        self.states, self.rewards = torch.zeros(CAPACITY, 4), torch.zeros(CAPACITY)
        self.size = 0
        self.lock = threading.Lock()

    def put(self, state: torch.Tensor, reward: torch.Tensor) -> None:
        with self.lock:
            at = self.size % CAPACITY
            self.states[at].copy_(state)
            self.rewards[at] = reward
            self.size += 1

    def sample(self, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        with self.lock:
            rows = torch.randint(min(self.size, CAPACITY), (16,), generator=generator)
            return self.states[rows], self.rewards[rows]


def act(number: int, policy: nn.Module, turns: queue.Queue, done: queue.Queue, replay: Replay) -> None:
    generator = torch.Generator().manual_seed(number)
    while turns.get():
        for _ in range(4):
            state = torch.rand(4, generator=generator)
            with torch.no_grad():
                action = policy(state).add_(torch.rand(2, generator=generator)).argmax()
            replay.put(state, state[action] - state.mean())
        done.put(number)


def learn(policy: nn.Module, target: nn.Module, optimizer: torch.optim.Optimizer, batch: tuple) -> float:
    states, rewards = batch
    with torch.no_grad():
        wanted = rewards + 0.9 * target(states).max(1).values
    loss = (policy(states).max(1).values - wanted).pow(2).mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), policy.parameters(), strict=True):
            slow.lerp_(fast, 0.1)
    return loss.item()


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    policy, target = (nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2)) for _ in range(2))
    target.load_state_dict(policy.state_dict())
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    replay, done, generator = Replay(), queue.Queue(), torch.Generator().manual_seed(9)
    turns = [queue.Queue() for _ in range(ACTORS)]
    arguments = [(number, policy, turns[number], done, replay) for number in range(ACTORS)]
    threads = [threading.Thread(target=act, args=one) for one in arguments]
    for thread in threads:
        thread.start()
    for turn in range(ROUNDS):
        for mine in turns:
            mine.put(True)
            done.get()
        losses = [learn(policy, target, optimizer, replay.sample(generator)) for _ in range(3)]
        print(f"turn {turn} size {replay.size} " + " ".join(f"{loss:.9f}" for loss in losses))
    for mine in turns:
        mine.put(False)
    for thread in threads:
        thread.join()
    print(f"{sum(p.double().sum() for p in policy.parameters()).item():.9f}")


if __name__ == "__main__":
    main()
