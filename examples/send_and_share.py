"""The same slice by pickle and by tensafe; a tree in shared memory; views that refuse writes."""

import pickle

import torch

import tensafe

table = torch.zeros(250_000)
batch = {"rows": table[:100], "first": table[:10]}
sizes = [len(data) / 1000 for data in (pickle.dumps(batch, 5), tensafe.dumps(batch))]
print("pickle: {:.0f} kB, tensafe: {:.0f} kB".format(*sizes))

loaded = tensafe.loads(tensafe.dumps(batch))
loaded["first"][0] = 1.0
print("still views of one memory:", loaded["rows"][0].item() == 1)

with tensafe.share(batch) as handle:
    seen = handle.attach(readonly=True)  # in another process: send it the handle
    handle.tree["rows"][3] = 7.0
    print("a write by the owner, seen by another:", seen["rows"][3].item())

view = tensafe.readonly(table)
try:
    view[5].add_(1)
except RuntimeError as error:
    print(error)
