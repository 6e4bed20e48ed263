"""Forms of init_process_group. The first argument names the first one, which takes the launcher's store; the others follow in this
process, each with a store of its own (a second init with the same agent's store would meet the first one's keys, as in any cluster).

  torchrun --nproc-per-node=L init.py FORM..."""
import os
import sys

import torch
import torch.distributed as dist

from cpu_kernels import CpuKernels
from world import DEVICE, RANK, TIMEOUT, WORLD, equal, passed


def store(n):
    client = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), WORLD, False, TIMEOUT)
    return dist.PrefixStore(f"again-{n}", client)


FORMS = {
    "env": dict(backend="nccl", init_method="env://"),
    "default": dict(),                                    # neither backend nor method
    "eager": dict(backend="nccl", device_id=DEVICE),      # the communicator is made at once
    "both": dict(backend="cpu:gloo,cuda:nccl", device_id=DEVICE),
    "mesh": None,                                         # init_device_mesh does it, with the launcher's store: only as the first
    "tcp": dict(backend="nccl", init_method="tcp://", rank=RANK, world_size=WORLD),
}


def main():
    torch.cuda.set_device(DEVICE)
    for n, form in enumerate(sys.argv[1:]):
        args = dict(FORMS[form] or {})
        if args.get("init_method") == "tcp://":
            args["init_method"] = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        if n:
            args.pop("init_method", None)
            args.update(store=store(n), rank=RANK, world_size=WORLD)
        if n and form == "mesh":
            raise SystemExit("init.py: 'mesh' takes the launcher's store, so it comes first")
        if form == "mesh":
            dist.init_device_mesh("cuda", (WORLD,))
        else:
            dist.init_process_group(timeout=TIMEOUT, **args)
        equal(dist.get_world_size(), WORLD, "world size")
        equal(dist.get_rank(), RANK, "rank")
        x = torch.tensor([1.0]).to(DEVICE)
        dist.all_reduce(x)
        dist.barrier()
        equal(x, torch.tensor([float(WORLD)]), f"all_reduce after init_process_group ({form})")
        if form == "both":
            names = {str(d): type(dist.group.WORLD._get_backend(torch.device(d))).__name__ for d in ("cpu", "cuda")}
            names["cuda"] = names["cuda"].rstrip("2")  # torch 2.15's
            equal(names, {"cpu": "ProcessGroupGloo", "cuda": "ProcessGroupNCCL"}, "backends")
        dist.destroy_process_group()
        equal(dist.is_initialized(), False, "after destroy_process_group")
        passed(form)


if __name__ == "__main__":
    main()
