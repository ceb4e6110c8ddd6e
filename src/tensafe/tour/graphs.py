"""Stops on the graph: what detach() and clone() do to it, and what is thrown away with it."""

from __future__ import annotations

from tensafe.tour.stop import Stop

STOPS = (
    Stop(
        name="detach-cuts-clone-keeps",
        title="detach() cuts the graph, clone() keeps it",
        says="After detach() the gradient is None, after clone() it arrives.",
        holds=False,
        code="""
import torch
import tensafe
x = torch.ones(2, requires_grad=True)
cut = (x * 2).detach()
cut.sum().backward()  #> RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn
kept = (x * 2).clone()
kept.sum().backward()
x.grad  #> tensor([2., 2.])
""",
        happens="Both words are right, and the first example raises instead of printing None: there is no "
        "graph left to walk back.",
        call="""
y = x * 2
tensafe.copy(y, graph="keep").requires_grad  #> True
tensafe.copy(y, graph="cut").requires_grad  #> False
""",
        drawn=("x", "cut", "kept"),
        rules=("graph-cut",),
    ),
    Stop(
        name="output-to-numpy",
        title="output.detach().cpu().numpy()",
        says="Detach before numpy().",
        holds=True,
        code="""
import torch
import tensafe
model = torch.nn.Linear(3, 2)
out = model(torch.ones(1, 3))
out.numpy()  #> RuntimeError: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy()...
array = out.detach().cpu().numpy()
array.shape  #> (1, 2)
""",
        happens="The array is a view of the output on the CPU: what writes one writes the other.",
        call="""
tensafe.to_numpy(out).shape  #> (1, 2)
bool(tensafe.overlap(out, tensafe.to_numpy(out, copy=True)))  #> False
""",
        drawn=("out", "array"),
        rules=("numpy-requires-grad",),
    ),
    Stop(
        name="gan-discriminator",
        title="A discriminator sees gen.detach()",
        says="Detach the generated batch in the discriminator's step.",
        holds=True,
        code="""
import torch
import tensafe
gen, dis = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
fake = gen(torch.ones(4, 2))
dis(fake.detach()).mean().backward()
gen.weight.grad is None  #> True
dis(fake).mean().backward()
gen.weight.grad is None  #> False
""",
        happens="Without it, each step of the discriminator also walks the generator and leaves gradients "
        "there, which the next step of the generator adds to its own.",
        call="""
bool(tensafe.overlap(fake, fake.detach()))  #> True
""",
        drawn=("fake",),
        rules=("missing-detach",),
    ),
    Stop(
        name="weight-history",
        title="A history of weights by clone().detach()",
        says="Keep weights with clone().detach().",
        holds=True,
        code="""
import torch
import tensafe
model = torch.nn.Linear(1, 1, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
live = model.state_dict()["weight"]
kept = model.weight.clone().detach()
model(torch.ones(1, 1)).sum().backward()
optimizer.step()
torch.equal(live, model.weight)  #> True
torch.equal(kept, model.weight)  #> False
""",
        happens='state_dict() alone is live: the "saved" weights moved with the step.',
        call="""
snap = tensafe.snapshot(model, optimizer)
before = model.weight.item()
optimizer.step()
model.weight.item() == before  #> False
snap.restore()
model.weight.item() == before  #> True
""",
        drawn=("live", "kept"),
        rules=("live-reference-snapshot",),
    ),
)
