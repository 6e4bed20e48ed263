"""All-reduces, one a step, until all are done or PyTorch ends the process: what a job is whose peer dies.

  torchrun --nproc-per-node=L steps.py N TIMEOUT     TIMEOUT: of the process group, in seconds"""
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("nccl", timeout=timedelta(seconds=float(sys.argv[2])))
torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
x = torch.zeros(1024, device="cuda")
for step in range(int(sys.argv[1])):
    dist.all_reduce(x)
    torch.cuda.synchronize()
print(f"rank {dist.get_rank()}: all steps are done", flush=True)
dist.destroy_process_group()
