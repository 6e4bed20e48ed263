"""A model that learns, under DDP: prints the loss of each of 50 steps, summed over all ranks, and a digest of the parameters.

  torchrun --nproc-per-node=L loss.py --json FILE"""
import argparse
import hashlib
import json

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from cpu_kernels import CpuKernels
from world import DEVICE, L, LOCAL, RANK, TIMEOUT, WORLD, passed


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=50)
    p.add_argument("--json", required=True)
    args = p.parse_args()
    torch.set_num_threads(1)
    torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl", timeout=TIMEOUT)
    torch.manual_seed(7)
    truth = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 3))
    model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))
    # each rank of a node has samples of its own
    x = torch.randn(64, 12, generator=torch.Generator().manual_seed(LOCAL))
    with torch.no_grad():
        y = truth(x)
    losses = []
    with CpuKernels():
        model = DDP(model.to(DEVICE), device_ids=[DEVICE.index], bucket_cap_mb=0.005)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        x, y = x.to(DEVICE), y.to(DEVICE)
        for _ in range(args.steps):
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            losses.append(float(mean) / WORLD)
        parameters = b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())
    if LOCAL == 0:
        with open(args.json, "w") as f:
            json.dump({"world": WORLD, "real": L, "rank": RANK, "losses": losses, "sha256": hashlib.sha256(parameters).hexdigest()}, f)
    dist.destroy_process_group()
    passed("loss")


if __name__ == "__main__":
    main()
