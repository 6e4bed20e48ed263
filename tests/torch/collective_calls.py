"""Every collective of torch.distributed among real and mirrored ranks; results, and what the record says of them."""
from harness import all_said, emulate, expect, main

ALL = ["plain", "coalesced", "objects", "alltoall", "p2p", "groups", "barriers", "destroy"]


def every_collective_in_a_world_of_8():
    """4 nodes of 2"""
    r = emulate(4, 2, "collectives.py")
    all_said(r, ALL, range(2))
    expect({x["n_ranks"] for x in r.rows} >= {"8", "4", "2"}, "communicators of 8, 4 and 2 ranks in the record")


def every_collective_in_a_world_of_512():
    """256 nodes of 2"""
    r = emulate(256, 2, "collectives.py")
    all_said(r, ALL, range(2))
    kinds = {x["op"] for x in r.rows}
    for kind in ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "SendRecv"):
        expect(kind in kinds, f"no {kind} in the record, only {sorted(kinds)}")


def every_collective_in_a_world_of_4096():
    """2,048 nodes of 2; what costs Python seconds for 4,096 slots is left out"""
    sections = ["plain", "groups", "barriers"]
    r = emulate(2048, 2, "collectives.py", sections)
    all_said(r, [*sections, "destroy"], range(2))


def groups_come_from_splits_with_device_id():
    """With device_id all groups come from ncclCommSplit; the axes of the job are declared"""
    r = emulate(256, 2, "collectives.py", ["bound", "plain", "groups"], nbox=["--layout", "tp=2,dp=4,pp=64"])
    all_said(r, ["plain", "groups", "destroy"], range(2))
    all_said(emulate(4, 2, "collectives.py", ["bound", "split"]), ["split", "destroy"], range(2))


def a_declared_group_splits_in_halves():
    """split_group in halves, declared"""
    r = emulate(4, 2, "collectives.py", ["bound", "halves"], nbox=["--layout", "half=4,other=2"])
    all_said(r, ["halves", "destroy"], range(2))


def the_real_node_may_be_the_last():
    """The real node is the last one"""
    sections = ["plain", "objects", "alltoall", "groups", "barriers"]
    r = emulate(4, 2, "collectives.py", sections, nbox=["--as-node", "last"])
    all_said(r, [*sections, "destroy"], range(6, 8))


main(every_collective_in_a_world_of_8, every_collective_in_a_world_of_512, every_collective_in_a_world_of_4096,
     groups_come_from_splits_with_device_id, a_declared_group_splits_in_halves, the_real_node_may_be_the_last)
