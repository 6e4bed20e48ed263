"""Groups as jobs make them, from a mesh of dp x pp x tp, from new_group and between neighbours; each has a size that names it."""
import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from world import DEVICE, LOCAL, RANK, WORLD, passed, wants

wanted = wants()
torch.cuda.set_device(LOCAL)
dist.init_process_group("nccl", **({"device_id": DEVICE} if wanted("eager") else {}))
TP, PP = 2, 4
mesh = init_device_mesh("cuda", (WORLD // (TP * PP), PP, TP), mesh_dim_names=("dp", "pp", "tp"))
t = torch.ones(4).cuda()
for name in ("dp", "pp", "tp"):
    dist.all_reduce(t, group=mesh.get_group(name))
passed("mesh")

# tp and dp together: two levels; every rank makes all groups, in one order
ranks = torch.arange(WORLD).reshape(WORLD // (TP * PP), PP, TP)
for stage in range(PP):
    members = ranks[:, stage].flatten().tolist()
    group = dist.new_group(members)
    if RANK in members:
        dist.all_reduce(t, group=group)
# first and last stage: no regular division of the world has such pairs
for first in ranks[:, 0].flatten().tolist():
    members = [first, first + TP * (PP - 1)]
    group = dist.new_group(members)
    if RANK in members:
        dist.all_reduce(t, group=group)
passed("groups")

# neighbours along the pipeline, each pair with a communicator of its own
stages = dist.get_process_group_ranks(mesh.get_group("pp"))
at = stages.index(RANK)
if at + 1 < PP:
    dist.send(t, stages[at + 1], group=mesh.get_group("pp"))
if at > 0:
    dist.recv(t, stages[at - 1], group=mesh.get_group("pp"))
torch.cuda.synchronize()
passed("pairs")
dist.destroy_process_group()
