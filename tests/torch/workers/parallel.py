"""PyTorch's ways to train in parallel: their start-up checks pass, their steps run, and numbers are right where mirror is exact.

  torchrun --nproc-per-node=L parallel.py [SECTION...]"""
import os
import shutil

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel as DDP

from cpu_kernels import CpuKernels
from world import DEVICE, FIRST, L, LOCAL, RANK, TIMEOUT, WORLD, equal, is_real, passed, template, wants

WIDTH = 16


def net(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, WIDTH))


def data(rank, step):
    g = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(4, WIDTH, generator=g)


def reference(steps, make_optimizer, ranks=None):
    """On the CPU, the whole world at once: the loss's gradient is the mean over the ranks. Virtual ranks repeat the real ones, each as often."""
    ranks = ranks or range(FIRST, FIRST + L)
    model = net(FIRST)
    optimizer = make_optimizer(model.parameters())
    for i in range(steps):
        optimizer.zero_grad()
        loss = sum(model(data(r, i)).square().mean() for r in ranks) / len(ranks)
        loss.backward()
        optimizer.step()
    return model


def same_parameters(model, other, what):
    for (name, a), b in zip(model.named_parameters(), other.parameters()):
        equal(a.detach(), b.detach(), f"{what}: {name}")


def steps(model, optimizer, n=3):
    for i in range(n):
        optimizer.zero_grad()
        loss = model(data(RANK, i).to(DEVICE)).square().mean()
        loss.backward()
        optimizer.step()
    return loss


def sgd(p):
    return torch.optim.SGD(p, lr=0.1)


def ddp():
    """Start-up: all ranks' parameter counts are compared, shapes broadcast, parameters and buffers broadcast; bucket indices after the first step."""
    model = DDP(net(RANK).to(DEVICE), device_ids=[DEVICE.index], bucket_cap_mb=0.001)  # several buckets
    same_parameters(model.module, net(FIRST), "DDP's start broadcasts rank 0's parameters")
    steps(model, sgd(model.parameters()))
    same_parameters(model.module, reference(3, sgd), "DDP after 3 steps")
    with model.no_sync():
        model(data(RANK, 9).to(DEVICE)).sum().backward()
    unused = DDP(nn.ModuleDict({"used": net(1), "not": net(2)}).to(DEVICE), device_ids=[DEVICE.index], find_unused_parameters=True)
    unused.module.forward = lambda x: unused.module["used"](x)
    for _ in range(2):
        unused(data(RANK, 0).to(DEVICE)).sum().backward()
    equal(unused.module["not"][0].weight.grad, None, "DDP with unused parameters")


def ddp_join():
    """Uneven inputs: every rank's Join counts who is left."""
    model = DDP(net(RANK).to(DEVICE), device_ids=[DEVICE.index])
    optimizer = sgd(model.parameters())
    with model.join():
        for i in range(2 + LOCAL):
            optimizer.zero_grad()
            model(data(RANK, i).to(DEVICE)).square().mean().backward()
            optimizer.step()


def fsdp1():
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    policy = ModuleWrapPolicy({nn.Linear})
    model = FSDP(net(FIRST), auto_wrap_policy=policy, device_id=DEVICE, use_orig_params=True, sync_module_states=True)
    steps(model, torch.optim.AdamW(model.parameters(), lr=1e-3), 2)
    model.clip_grad_norm_(1.0)
    # shards inside the node, replicas across: all that a rank holds is real, so the numbers are right
    if WORLD > L > 1:
        mesh = init_device_mesh("cuda", (WORLD // L, L), mesh_dim_names=("replicate", "shard"))
        model = FSDP(net(FIRST), auto_wrap_policy=policy, device_id=DEVICE, use_orig_params=True, device_mesh=mesh,
                     sharding_strategy=ShardingStrategy.HYBRID_SHARD)
        steps(model, sgd(model.parameters()))
        with FSDP.summon_full_params(model):
            same_parameters(model, reference(3, sgd), "HSDP (FSDP1) after 3 steps")


def fsdp2():
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor
    mesh = init_device_mesh("cuda", (WORLD,))
    model = net(FIRST).to(DEVICE)
    for m in (model[0], model[2], model):
        fully_shard(m, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    steps(model, optimizer, 2)
    assert all(isinstance(p, DTensor) for p in model.parameters())
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if WORLD > L > 1:
        mesh = init_device_mesh("cuda", (WORLD // L, L), mesh_dim_names=("replicate", "shard"))
        model = net(FIRST).to(DEVICE)
        for m in (model[0], model[2], model):
            fully_shard(m, mesh=mesh)
        steps(model, sgd(model.parameters()))
        other = reference(3, sgd)
        for (name, p), want in zip(model.named_parameters(), other.parameters()):
            rows = want.detach().chunk(L)[LOCAL] if LOCAL < len(want.detach().chunk(L)) else want.detach()[:0]
            equal(p.to_local().detach(), rows, f"HSDP (FSDP2) after 3 steps: {name}")


def zero1():
    from torch.distributed.optim import ZeroRedundancyOptimizer
    model = DDP(net(RANK).to(DEVICE), device_ids=[DEVICE.index])
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
    start = [p.detach().cpu().clone() for p in model.parameters()]
    steps(model, optimizer)
    # partitions of real owners are right; those of virtual owners stay as they were
    for p, was, want, owner in zip(model.parameters(), start, reference(3, sgd).parameters(), owners(optimizer, model)):
        if is_real(owner) and all(is_real(o) for o in owners(optimizer, model)):
            equal(p.detach(), want.detach(), f"ZeRO-1, partition of rank {owner}")
        elif not is_real(owner):
            equal(p.detach(), was, f"ZeRO-1, partition of virtual rank {owner}")
    assert torch.isfinite(torch.cat([p.detach().cpu().flatten() for p in model.parameters()])).all()


def owners(optimizer, model):
    where = {p: rank for rank, groups in enumerate(optimizer._partition_parameters()) for g in groups for p in g["params"]}
    return [where[p] for p in model.parameters()]


def tensor_parallel():
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    mesh = init_device_mesh("cuda", (WORLD // L, L), mesh_dim_names=("dp", "tp"))
    model = parallelize_module(net(FIRST).to(DEVICE), mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    whole = net(FIRST)
    x = data(FIRST, 0)
    equal(model(x.to(DEVICE)).detach(), whole(x).detach(), "tensor parallel inside the node: forward")
    model(x.to(DEVICE)).square().mean().backward()
    whole(x).square().mean().backward()
    rows = whole[0].weight.grad.chunk(L)[LOCAL]
    equal(model[0].weight.grad.to_local(), rows, "tensor parallel inside the node: gradient")
    # redistribution over the whole world: shapes, calls
    line = init_device_mesh("cuda", (WORLD,))
    t = distribute_tensor(torch.arange(4.0 * WORLD).view(WORLD, 4).to(DEVICE), line, [Shard(0)])
    equal(t.to_local(), torch.arange(4.0 * RANK, 4 * RANK + 4).view(1, 4), "DTensor: scatter from rank 0") if FIRST == 0 else None
    full = t.redistribute(line, [Replicate()])
    equal(tuple(full.to_local().shape), (WORLD, 4), "DTensor: all-gather")
    assert isinstance(full, DTensor)


def pipeline():
    """The real node is one stage: activations go out, gradients come in. With declared shapes it may be any; asked for by pickles, only the
    first. (torch 2.15 asks back, and for more shapes: not checked.)"""
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
    stages = min(4, WORLD // L)
    if stages < 2:
        return
    mesh = init_device_mesh("cuda", (WORLD // L // stages, stages, L), mesh_dim_names=("dp", "pp", "tp"))
    group = mesh["pp"].get_group()
    at = dist.get_rank(group)
    example = torch.randn(2, WIDTH).to(DEVICE)
    ways = [dict(input_args=(example,), output_args=(example,))]
    if FIRST == 0:
        ways.append({})
    for shapes in ways:
        part = nn.Linear(WIDTH, WIDTH).to(DEVICE)
        stage = PipelineStage(part, at, stages, DEVICE, group=group, **shapes)
        schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=lambda out, target: (out - target).square().mean())
        for _ in range(2):
            if at == 0:
                schedule.step(torch.randn(8, WIDTH).to(DEVICE))
            elif at == stages - 1:
                schedule.step(target=torch.randn(8, WIDTH).to(DEVICE))
            else:
                schedule.step()
        equal(tuple(part.weight.grad.shape), (WIDTH, WIDTH), f"pipeline: gradient of stage {at}")


def amp():
    """A step that is skipped when any rank overflows: found_inf is a value that steers control flow."""
    model = DDP(net(RANK).to(DEVICE), device_ids=[DEVICE.index])
    optimizer = sgd(model.parameters())
    scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
    for i in range(3):
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(data(RANK, i).to(DEVICE)).float().square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    assert torch.isfinite(norm.cpu()), "the gradients' norm is finite"
    equal(scaler.get_scale(), 8.0, "no step was skipped")


def moe():
    """An expert a rank, one layer: counts by all-to-all, tokens out by an uneven one, back by its reverse. Counts of virtual ranks are their
    templates', so the way out agrees in size; what comes back from real experts is right."""
    tokens = [1 + (LOCAL + 2 * r) % 3 for r in range(WORLD)]  # of ours, for each expert
    send = torch.tensor(tokens).to(DEVICE)
    take = torch.empty_like(send)
    dist.all_to_all_single(take, send)
    take = take.tolist()
    equal(take, [1 + (template(r) - FIRST + 2 * RANK) % 3 for r in range(WORLD)], "experts: counts")
    x = torch.full((sum(tokens), WIDTH), LOCAL + 1.0).to(DEVICE)
    inputs = torch.zeros(sum(take), WIDTH).to(DEVICE)
    dist.all_to_all_single(inputs, x, take, tokens)
    equal(inputs, torch.cat([torch.full((n, WIDTH), template(r) - FIRST + 1.0) for r, n in enumerate(take)]), "experts: tokens")
    y = torch.zeros_like(x)
    dist.all_to_all_single(y, inputs * (LOCAL + 10), tokens, take)
    for r, part in enumerate(y.split(tokens)):
        if is_real(r):
            equal(part, torch.full((tokens[r], WIDTH), (LOCAL + 1.0) * (r - FIRST + 10)), f"experts: what rank {r} made of our tokens")
        equal(bool(torch.isfinite(part.cpu()).all()), True, "experts: finite")


def checkpoint():
    """torch.distributed.checkpoint: whole on the lowest rank, if that is asked for; shards of virtual ranks are missed when it is saved."""
    import tempfile
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
    from torch.distributed.fsdp import fully_shard
    if FIRST != 0 or WORLD > L == 1:  # it gathers objects: see "what numbers mean"
        return
    folder = os.path.join(tempfile.gettempdir(), f"nbox-checkpoint-{os.environ['MASTER_PORT']}-{os.getppid()}")
    try:
        model = DDP(net(FIRST).to(DEVICE), device_ids=[DEVICE.index]).module
        dcp.save({"model": model.state_dict()}, checkpoint_id=folder, planner=DefaultSavePlanner(dedup_save_to_lowest_rank=True))
        other = net(FIRST + 1).to(DEVICE)
        dcp.load({"model": other.state_dict()}, checkpoint_id=folder)
        same_parameters(other, model, "DDP, saved and loaded")
        shards = fully_shard(net(FIRST).to(DEVICE), mesh=init_device_mesh("cuda", (WORLD,)))
        try:
            dcp.save({"model": shards.state_dict()}, checkpoint_id=folder + "/shards")
            said = ""
        except dcp.CheckpointException as e:
            said = str(e)
        equal("Failed to validate global plan" in said, WORLD > L, f"shards of virtual ranks are missed: '{said}'")
    finally:
        dist.barrier()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    wanted = wants()
    torch.cuda.set_device(DEVICE)
    torch.backends.cudnn.enabled = False
    dist.init_process_group("nccl", timeout=TIMEOUT, device_id=DEVICE)
    with CpuKernels():
        for section in (ddp, ddp_join, fsdp1, fsdp2, zero1, tensor_parallel, pipeline, amp, moe, checkpoint):
            if wanted(section.__name__):
                section()
                torch.cuda.synchronize()
                passed(section.__name__)
    dist.barrier()
    dist.destroy_process_group()
    passed("destroy")


if __name__ == "__main__":
    main()
