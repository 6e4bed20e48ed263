"""The way into data parallelism: a toy model under DDP, a checkpoint that one rank saves and all ranks load, training from it."""
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

import job as jobs


class Toy(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(10, 10)
        self.second = nn.Linear(10, 5)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def ddp(job):
    return DDP(Toy().to(job.device), device_ids=[job.device.index] if job.cuda else None)


def main():
    args = jobs.parser(__doc__, batch=20).parse_args()
    job = jobs.Job(args)
    model = ddp(job)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loss_of = nn.MSELoss()

    def step():
        optimizer.zero_grad()
        out = model(torch.randn(args.batch, 10, device=job.device))
        loss = loss_of(out, torch.randn(args.batch, 5, device=job.device))
        loss.backward()
        optimizer.step()
        return loss.detach()

    jobs.train(step, args, job)

    # all ranks of a machine read what its first rank wrote: no shared file system is asked for
    path = os.path.join(tempfile.gettempdir(), f"toy-{os.environ['MASTER_PORT']}-{os.getppid()}.pt")
    if job.local_rank == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()
    again = ddp(job)
    again.load_state_dict(torch.load(path, map_location=job.device, weights_only=True))
    for a, b in zip(model.parameters(), again.parameters()):
        if a.cpu().detach().numpy().tobytes() != b.cpu().detach().numpy().tobytes():
            raise SystemExit("the checkpoint was not loaded")
    dist.barrier()
    if job.local_rank == 0:
        os.unlink(path)
    job.say("checkpoint loaded")
    job.leave()


if __name__ == "__main__":
    main()
