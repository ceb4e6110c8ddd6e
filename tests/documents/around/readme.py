"""What the README's blocks take for granted, for its tests alone."""

import torch

import tensafe

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
out = model(torch.ones(4, 4))
batch = {"x": torch.ones(3)}
tree = {"rows": torch.ones(3, 2)}
mapped = tensafe.dumps(tree)


def train(model):
    model(torch.ones(1, 4)).sum().backward()


def risky_step():
    train(model)


def work(handle):
    return handle.tree


class pool:
    """Work is done at once."""

    @staticmethod
    def submit(work, handle):
        return work(handle)
