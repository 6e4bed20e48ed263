"""DDP, FSDP1, FSDP2, ZeRO-1, tensor parallelism, a pipeline, loss scaling, experts, checkpoints: start-up checks, steps, numbers where mirror is exact."""
from harness import all_said, emulate, main

ALL = ["ddp", "ddp_join", "fsdp1", "fsdp2", "zero1", "tensor_parallel", "pipeline", "amp", "moe", "checkpoint", "destroy"]


def world_8():
    """4 nodes of 2"""
    all_said(emulate(4, 2, "parallel.py"), ALL, range(2))


def world_512():
    """256 nodes of 2"""
    all_said(emulate(256, 2, "parallel.py"), ALL, range(2))


def world_4096():
    """2,048 nodes of 2, the way most jobs train"""
    all_said(emulate(2048, 2, "parallel.py", ["ddp", "fsdp2"]), ["ddp", "fsdp2", "destroy"], range(2))


def other_stages():
    """A pipeline with declared shapes; the real node is its second stage, and its last"""
    for node in (1, 3):
        all_said(emulate(4, 2, "parallel.py", ["pipeline"], nbox=["--as-node", str(node)]), ["pipeline", "destroy"], range(2 * node, 2 * node + 2))


main(world_8, world_512, world_4096, other_stages)
