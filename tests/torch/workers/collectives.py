"""Every kind of collective that torch.distributed offers over NCCL, checked against what mirrored ranks contribute.

  torchrun --nproc-per-node=L collectives.py [bound] [SECTION...]       bound: init_process_group gets a device_id"""
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from cpu_kernels import CpuKernels
from world import DEVICE, FIRST, L, LOCAL, RANK, TIMEOUT, WORLD, equal, is_real, passed, template, wants


def value(rank, n=5):
    """What rank puts in: exact in fp32 also when summed over 4,096 ranks."""
    return torch.arange(n, dtype=torch.float32) + 10 * (rank % 64)


def mine(n=5):
    return value(RANK, n).to(DEVICE)


def total(ranks):
    return sum(value(template(r)) for r in ranks)


def sender(rank):
    """Of a gather, whose root sends itself nothing: another real rank stands in for the root's copies."""
    return FIRST + 1 if rank != FIRST and template(rank) == FIRST else template(rank)


def plain():
    x = mine()
    dist.all_reduce(x)
    equal(x, total(range(WORLD)), "all_reduce sum")
    x = mine()
    dist.all_reduce(x, dist.ReduceOp.MAX)
    equal(x, torch.stack([value(template(r)) for r in range(WORLD)]).max(0).values, "all_reduce max")
    x = mine()
    dist.all_reduce(x, dist.ReduceOp.AVG)
    equal(x, total(range(WORLD)) / WORLD, "all_reduce avg")
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    out = torch.empty(WORLD, 5, device=DEVICE)
    dist.all_gather_into_tensor(out, mine())
    equal(out, torch.stack([value(template(r)) for r in range(WORLD)]), "all_gather_into_tensor")
    parts = [torch.empty(5, device=DEVICE) for _ in range(WORLD)]
    dist.all_gather(parts, mine())
    equal(parts[-1], value(template(WORLD - 1)), "all_gather, the last slot")
    out = torch.empty(2, device=DEVICE)
    dist.reduce_scatter_tensor(out, (torch.arange(2 * WORLD, dtype=torch.float32) + RANK % 64).to(DEVICE))
    want = sum(torch.arange(2.0) + 2 * RANK + template(r) % 64 for r in range(WORLD))
    equal(out, want, "reduce_scatter_tensor")
    x = mine()
    dist.broadcast(x, FIRST + L - 1)
    equal(x, value(FIRST + L - 1), "broadcast from a real rank")
    virtual = next((r for r in range(WORLD) if not is_real(r)), None)
    if virtual is not None:
        x = mine()
        dist.broadcast(x, virtual)
        equal(x, value(template(virtual)), "broadcast from a virtual rank: its template's buffer")
    x = mine()
    dist.reduce(x, FIRST)
    if RANK == FIRST:
        equal(x, total(range(WORLD)), "reduce to a real rank")
    got = [torch.empty(5, device=DEVICE) for _ in range(WORLD)] if RANK == FIRST else None
    dist.gather(mine(), got, FIRST)
    if got:
        equal(torch.stack(got), torch.stack([value(sender(r)) for r in range(WORLD)]), "gather at a real rank")
    x = torch.empty(5, device=DEVICE)
    dist.scatter(x, [value(r).to(DEVICE) for r in range(WORLD)] if RANK == FIRST else None, FIRST)
    equal(x, value(RANK), "scatter from a real rank")
    flag = torch.tensor([RANK == FIRST], device=DEVICE)
    dist.all_reduce(flag)
    equal(flag, torch.tensor([True]), "all_reduce of bool")


def coalesced():
    x, y = mine(), mine(7)
    with dist._coalescing_manager(device=DEVICE, async_ops=True) as manager:
        dist.all_reduce(x)
        dist.all_reduce(y)
    manager.wait()
    equal(x, total(range(WORLD)), "coalesced all_reduce")
    equal(y[:5], total(range(WORLD)), "coalesced all_reduce, the second")
    sizes = [1 + r % 2 for r in range(WORLD)]
    parts = [torch.empty(s, device=DEVICE) for s in sizes]
    dist.all_gather(parts, value(RANK, sizes[RANK]).to(DEVICE))
    want = value(template(WORLD - 1), sizes[template(WORLD - 1)])
    equal(parts[-1][:1], want[:1], "all_gather of uneven parts")


def objects():
    got = [None] * WORLD
    dist.all_gather_object(got, {"rank": RANK, "text": "x" * (10 * (LOCAL + 1))})
    equal([g["rank"] for g in got], [template(r) for r in range(WORLD)], "all_gather_object")
    equal(len(got[-1]["text"]), 10 * (template(WORLD - 1) - FIRST + 1), "all_gather_object, objects of unequal size")
    things = [["list", RANK], {"of": 3}, "objects"] if RANK == FIRST else [None] * 3
    dist.broadcast_object_list(things, src=FIRST)
    equal(things, [["list", FIRST], {"of": 3}, "objects"], "broadcast_object_list")
    got = [None] * WORLD if RANK == FIRST else None
    dist.gather_object(("mine", RANK), got, dst=FIRST)
    if got:
        equal([g[1] for g in got], [sender(r) for r in range(WORLD)], "gather_object")
    got = [None]
    dist.scatter_object_list(got, [{"for": r} for r in range(WORLD)] if RANK == FIRST else None, src=FIRST)
    equal(got, [{"for": RANK}], "scatter_object_list")


def alltoall():
    x = torch.stack([value(RANK, 4) + 1000 * (r % L) for r in range(WORLD)]).to(DEVICE)
    out = torch.empty_like(x)
    dist.all_to_all_single(out, x)
    equal(out, torch.stack([value(template(r), 4) + 1000 * LOCAL for r in range(WORLD)]), "all_to_all_single")
    # uneven, some empty: symmetric in what it depends on, as the counts of mirrored ranks are
    def count(a, b):
        return (a % L + b % L) % 3
    send = [count(RANK, r) for r in range(WORLD)]
    take = [count(template(r), RANK) for r in range(WORLD)]
    x = torch.cat([torch.full((n,), float(LOCAL)) for n in send]).to(DEVICE)
    out = torch.full((sum(take),), -1.0).to(DEVICE)
    dist.all_to_all_single(out, x, take, send)
    equal(out, torch.cat([torch.full((n,), float(r % L)) for r, n in enumerate(take)]), "uneven all_to_all_single")
    parts = [torch.empty(4, device=DEVICE) for _ in range(WORLD)]
    dist.all_to_all(parts, [(value(RANK, 4) + r % L).to(DEVICE) for r in range(WORLD)])
    equal(parts[WORLD - 1], value(template(WORLD - 1), 4) + LOCAL, "all_to_all, the last slot")


def p2p():
    after, before = (RANK + 1) % WORLD, (RANK - 1) % WORLD
    out = torch.full((6,), -1.0).to(DEVICE)
    x = value(RANK, 6).to(DEVICE)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, after), dist.P2POp(dist.irecv, out, before)]):
        work.wait()
    torch.cuda.synchronize()
    equal(out.shape, torch.Size([6]), "batch_isend_irecv")
    if is_real(before):
        equal(out, value(before, 6), "batch_isend_irecv from a real rank")
    # calls without a batch: communicators of two, made at the first use
    if L > 1 and LOCAL < 2:
        other = FIRST + 1 - LOCAL
        out = torch.empty(6, device=DEVICE)
        if LOCAL == 0:
            dist.send(x, other)
            dist.recv(out, other)
        else:
            dist.recv(out, other)
            dist.send(x, other)
        equal(out, value(other, 6), "send and recv between real ranks")
        if LOCAL == 0:
            dist.send_object_list([{"from": RANK}], other)
        else:
            got = [None]
            dist.recv_object_list(got, other)
            equal(got, [{"from": other}], "send_object_list")
    if not is_real(after):  # a pipeline's first stage: to a virtual rank, and something back
        dist.send(x, after)
        dist.recv(out := torch.zeros(6, device=DEVICE), after)
        torch.cuda.synchronize()
        equal(out.shape, torch.Size([6]), "recv from a virtual rank")


def check_sum(group, ranks, what):
    x = mine()
    dist.all_reduce(x, group=group)
    real = [r for r in ranks if is_real(r)]
    # a communicator with one real member of each local rank, or of all of them
    want = sum(value(r if is_real(r) else real[i % len(real)]) for i, r in enumerate(ranks))
    equal(x, want, what)
    equal(dist.get_world_size(group), len(ranks), f"size of {what}")


def groups():
    two = sorted([FIRST, (FIRST + L) % WORLD] if WORLD > L else [0, 1])
    pair = dist.new_group(two, timeout=TIMEOUT)
    if RANK in two:
        check_sum(pair, two, "new_group of two, one of them virtual where there are any")
    evens = [r for r in range(WORLD) if r % 2 == RANK % 2]
    both = [dist.new_group([r for r in range(WORLD) if r % 2 == i], timeout=TIMEOUT) for i in range(2)]
    check_sum(both[RANK % 2], evens, "new_group of every second rank")
    node, _ = dist.new_subgroups(L)
    check_sum(node, range(RANK // L * L, RANK // L * L + L), "new_subgroups of a node")
    if "bound" not in sys.argv:  # from torch 2.11 on splits say too little to tell meshes of different sizes apart
        mesh = init_device_mesh("cuda", (WORLD // L, L), mesh_dim_names=("across", "inside"))
        check_sum(mesh["inside"].get_group(), range(RANK // L * L, RANK // L * L + L), "DeviceMesh, inside a node")
        check_sum(mesh["across"].get_group(), range(LOCAL, WORLD, L), "DeviceMesh, across nodes")
    if WORLD // L % 4 == 0:
        cube = init_device_mesh("cuda", (WORLD // L // 4, 4, L), mesh_dim_names=("pp", "dp", "tp"))
        base = RANK // (4 * L) * 4 * L + LOCAL
        check_sum(cube["dp"].get_group(), range(base, base + 4 * L, L), "DeviceMesh of three dimensions, the middle one")
        check_sum(cube["tp"].get_group(), range(RANK // L * L, RANK // L * L + L), "DeviceMesh of three dimensions, the last one")
        if "bound" not in sys.argv:
            flat = cube["dp", "tp"]._flatten("model")
            base = RANK // (4 * L) * 4 * L
            check_sum(flat.get_group(), range(base, base + 4 * L), "two dimensions of a DeviceMesh as one")
    dist.barrier(node)
    for g in (*both, pair):
        if g is not dist.GroupMember.NON_GROUP_MEMBER:
            dist.destroy_process_group(g)


def halves():
    """Needs a bound device. From torch 2.11 on only a declared layout tells nboxd how large such a group is."""
    both = [list(range(WORLD // 2)), list(range(WORLD // 2, WORLD))]
    check_sum(dist.split_group(split_ranks=both, timeout=TIMEOUT), both[RANK >= WORLD // 2], "split_group in halves")


def split():
    """Needs a bound device."""
    columns = [list(range(i, WORLD, L)) for i in range(L)]
    column = dist.split_group(split_ranks=columns, timeout=TIMEOUT)
    check_sum(column, columns[LOCAL], "split_group by local rank")
    eager = dist.new_group([r for r in range(WORLD) if r % L == 0], timeout=TIMEOUT)  # ncclCommSplit too; others call it without a color
    if LOCAL == 0:
        check_sum(eager, columns[0], "new_group out of a bound device's group")


def barriers():
    for _ in range(3):
        dist.barrier()
    dist.barrier(device_ids=[DEVICE.index])
    work = dist.barrier(async_op=True)
    work.wait()
    group = dist.distributed_c10d._get_default_group()
    store = dist.distributed_c10d._get_default_store()
    dist.distributed_c10d._store_based_barrier(RANK, store, "tests", WORLD, TIMEOUT)
    equal(dist.get_world_size(group), WORLD, "world size")


def main():
    bound = "bound" in sys.argv
    wanted = wants()
    torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl", timeout=TIMEOUT, device_id=DEVICE if bound else None)
    with CpuKernels():
        for section in (plain, coalesced, objects, alltoall, p2p, groups, split, halves, barriers):
            if wanted(section.__name__) and (bound or section not in (split, halves)):
                section()
                torch.cuda.synchronize()
                passed(section.__name__)
    dist.barrier()
    dist.destroy_process_group()
    passed("destroy")


if __name__ == "__main__":
    main()
