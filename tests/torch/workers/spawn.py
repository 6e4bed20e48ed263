"""A program that starts its own ranks by mp.spawn and is told by its arguments how many nodes there are, as before torchrun.

  spawn.py NODES GPUS NODE FORM [HOST:PORT]

FORM: "env" the variables are set in each rank; "tcp" rank and size are given to init_process_group, with a tcp:// address.
HOST:PORT: where the ranks meet, set by the program itself."""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def worker(local, nodes, gpus, node, form, address):
    begun, rank, world = time.monotonic(), node * gpus + local, nodes * gpus
    args = dict(backend="nccl", timeout=datetime.timedelta(seconds=120))
    if address:
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = address.split(":")
    if form == "env":
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(local))
    else:
        args.update(rank=rank, world_size=world)
    if form == "tcp":
        args["init_method"] = f"tcp://{address}"
    torch.cuda.set_device(local)
    dist.init_process_group(**args)
    x = torch.tensor([1.0]).to(local)
    dist.all_reduce(x)
    if x.item() != world:
        raise AssertionError(f"rank {rank}: all_reduce gave {x.item()}, not {world}")
    groups = [dist.new_group(range(k, world, gpus)) for k in range(gpus)]
    dist.all_reduce(x, group=groups[local])
    if x.item() != world * nodes:
        raise AssertionError(f"rank {rank}: all_reduce of its group gave {x.item()}, not {world * nodes}")
    dist.barrier()
    dist.destroy_process_group()
    print(f"ok {rank} {form} ({time.monotonic() - begun:.1f} s)", flush=True)


if __name__ == "__main__":
    nodes, gpus, node = map(int, sys.argv[1:4])
    mp.spawn(worker, (nodes, gpus, node, sys.argv[4], sys.argv[5] if len(sys.argv) > 5 else ""), gpus)
