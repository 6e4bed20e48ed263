"""DDP, FSDP1, FSDP2, ZeRO-1, tensor parallelism, a pipeline, loss scaling, experts, checkpoints: start-up checks, steps, numbers where mirror is exact."""
import os
import shutil
import tempfile

from harness import all_said, emulate, main

ALL = ["ddp", "ddp_join", "fsdp1", "fsdp2", "zero1", "tensor_parallel", "pipeline", "amp", "moe", "checkpoint", "destroy"]


def every_way_to_train_in_a_world_of_8():
    """4 nodes of 2"""
    all_said(emulate(4, 2, "parallel.py"), ALL, range(2))


def every_way_to_train_in_a_world_of_512():
    """256 nodes of 2"""
    all_said(emulate(256, 2, "parallel.py"), ALL, range(2))


def most_ways_to_train_in_a_world_of_4096():
    """2,048 nodes of 2, the way most jobs train"""
    all_said(emulate(2048, 2, "parallel.py", ["ddp", "fsdp2"]), ["ddp", "fsdp2", "destroy"], range(2))


def the_real_node_may_be_a_later_stage():
    """A pipeline with declared shapes; the real node is its second stage, and its last, beside the record of the second"""
    layout = ["--layout", "tp=2,pp=4"]
    with tempfile.TemporaryDirectory(prefix="nbox-torch-") as d:
        second = emulate(4, 2, "parallel.py", ["pipeline"], nbox=[*layout, "--as-node", "1"],
                         look=lambda out: shutil.copy(os.path.join(out, "record.nbox"), d))
        all_said(second, ["pipeline", "destroy"], range(2, 4))
        last = emulate(4, 2, "parallel.py", ["pipeline"], nbox=[*layout, "--as-node", "3", "--with", d])
        all_said(last, ["pipeline", "destroy"], range(6, 8))
        assert [c["real"] for c in last.summary["classes"]] == [0, 2, 0, 2], last.summary["classes"]


main(every_way_to_train_in_a_world_of_8, every_way_to_train_in_a_world_of_512, most_ways_to_train_in_a_world_of_4096,
     the_real_node_may_be_a_later_stage)
