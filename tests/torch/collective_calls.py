"""Every collective of torch.distributed among real and mirrored ranks; results, and what the record says of them."""
from harness import all_said, emulate, expect, main

ALL = ["plain", "coalesced", "objects", "alltoall", "p2p", "groups", "barriers", "destroy"]


def world_8():
    """4 nodes of 2"""
    r = emulate(4, 2, "collectives.py")
    all_said(r, ALL, range(2))
    expect({x["n_ranks"] for x in r.rows} >= {"8", "4", "2"}, "communicators of 8, 4 and 2 ranks in the record")


def world_512():
    """256 nodes of 2"""
    r = emulate(256, 2, "collectives.py")
    all_said(r, ALL, range(2))
    kinds = {x["op"] for x in r.rows}
    for kind in ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "SendRecv"):
        expect(kind in kinds, f"no {kind} in the record, only {sorted(kinds)}")


def world_4096():
    """2,048 nodes of 2; what costs Python seconds for 4,096 slots is left out"""
    sections = ["plain", "groups", "barriers"]
    r = emulate(2048, 2, "collectives.py", sections)
    all_said(r, [*sections, "destroy"], range(2))


def bound_512():
    """With device_id all groups come from ncclCommSplit; the axes of the job are declared"""
    r = emulate(256, 2, "collectives.py", ["bound", "plain", "groups"], nbox=["--layout", "tp=2,dp=4,pp=64"])
    all_said(r, ["plain", "groups", "destroy"], range(2))
    all_said(emulate(4, 2, "collectives.py", ["bound", "split"]), ["split", "destroy"], range(2))


def halves_8():
    """split_group in halves, declared"""
    r = emulate(4, 2, "collectives.py", ["bound", "halves"], nbox=["--layout", "half=4,other=2"])
    all_said(r, ["halves", "destroy"], range(2))


def last_node():
    """The real node is the last one"""
    sections = ["plain", "objects", "alltoall", "groups", "barriers"]
    r = emulate(4, 2, "collectives.py", sections, nbox=["--as-node", "last"])
    all_said(r, [*sections, "destroy"], range(6, 8))


main(world_8, world_512, world_4096, bound_512, halves_8, last_node)
