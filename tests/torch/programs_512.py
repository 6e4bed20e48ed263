"""Training scripts that know nothing of nbox, as ranks 0 and 1 of 512. Kernels do nothing here: what counts is that they run, and what they send."""
import inspect
import json
import os
import re
import subprocess
import sys

import torch

from harness import NBOX, emulate, expect, main

KNEE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "func", "nbox", "knee.py")

TINY_GPT = ["--layers", 2, "--width", 32, "--heads", 2, "--length", 16, "--batch", 2, "--steps", 3, "--warmup", 2]
MODEL = ["--model", "ring:bw=100Gbps,alpha=5us"]


def run(program, args, nbox=MODEL):
    r = emulate(256, 2, program, args, nbox=nbox)
    expect(r.summary["world_size"] == 512, r.text)
    expect("[rank 0/512]" in r.text, r.text)
    return r


def bytes_of(r, kind):
    return sum(int(x["bytes"]) for x in r.ops(kind, rank=0, n_ranks=512))


def the_ddp_tutorial_runs():
    """A toy model, a checkpoint"""
    r = run("ddp_tutorial.py", ["--steps", 3])
    expect("checkpoint loaded" in r.text, r.text)
    # (10 x 10 + 10 + 10 x 5 + 5) floats a step, in one bucket
    expect(len(r.ops("AllReduce", rank=0, bytes=660)) >= 6, "an all-reduce of the gradients for each of 6 steps")


def mingpt_runs_under_ddp():
    """A transformer under DDP, DataLoader and DistributedSampler"""
    r = run("mingpt.py", TINY_GPT)
    expect(re.search(r"evaluation: loss", r.text), r.text)
    expect(r.summary["modelled_ms"] is not None, "no iterations were found")


def knee_is_right(out):
    p = subprocess.run([sys.executable, "-IS", KNEE, NBOX, out], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
    expect(p.returncode == 0, p.stdout)
    print("      " + p.stdout.strip())


def why_finds_the_knee_of_a_delay_under_ddp():
    """Three buckets behind the backward pass of kernels of 200 us; by the record, so at any speed of this machine"""
    emulate(64, 1, "mingpt.py", ["--steps", 6, "--warmup", 1, "--quiet"], nbox=MODEL, env={"NBOX_HOST_KERNEL_TIME": "200us"}, look=knee_is_right)


def optimize(out, *words):
    p = subprocess.run([NBOX, "optimize", out, "--json", "-", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
    expect(p.returncode == 0, p.stdout)
    return json.loads(p.stdout)


def a_plan_of_buckets_is_what_ddp_does():
    """From a record with a gradient in each bucket; by bucket_cap_mb_list, with the plan's bytes, and faster"""
    plans = []

    def run(buckets):
        return emulate(64, 1, "mingpt.py", ["--steps", 5, "--warmup", 2, "--quiet", "--layers", 2, "--buckets", buckets],
                       nbox=["--model", "ring:bw=10Gbps,alpha=100us"], env={"NBOX_HOST_KERNEL_TIME": "100us"}, look=lambda out: plans.append(optimize(out)))
    run("1e-6")
    small = plans[0]
    expect(small["after_ms"] < 0.8 * small["before_ms"], small["plans"])
    if "bucket_cap_mb_list" not in inspect.signature(torch.nn.parallel.DistributedDataParallel).parameters:
        return
    r = run(",".join(str(b["bytes"] / 2**20) for b in small["buckets"]))
    for b in small["buckets"]:
        expect(r.ops("AllReduce", rank=0, bytes=b["bytes"]), f"no all-reduce of {b['bytes']} bytes")
    expect(plans[1]["before_ms"] < 0.9 * small["before_ms"], plans[1]["plans"])


def mingpt_runs_under_fsdp():
    """The same under FSDP 1 and 2: all-gathers and reduce-scatters"""
    for version in ("fsdp1", "fsdp2"):
        r = run("mingpt.py", [*TINY_GPT, "--parallel", version])
        for kind in ("AllGather", "ReduceScatter"):
            expect(bytes_of(r, kind) > 0, f"{version}: no {kind}")


def dlrm_runs():
    """Embedding tables on all ranks: an all-to-all forward and one backward"""
    r = run("dlrm.py", ["--rows", 100, "--batch", 2, "--steps", 3, "--hidden", 16, "--width", 8])
    # one ncclAlltoAll, or 512 sends and receives in a group, as the versions of torch and NCCL have it
    calls = len(r.ops("AllToAll", rank=0)) + len(r.ops("SendRecv", rank=0))
    expect(calls == 2 * 6, f"two all-to-alls for each of 6 steps, not {calls} in all")


def resnet_runs():
    """Convolutions, batch normalization's buffers"""
    run("resnet.py", ["--layers", 1, 1, 1, 1, "--base", 8, "--pixels", 32, "--batch", 2, "--steps", 2])


def bert_runs_as_a_cuda_graph():
    """The iteration as a CUDA graph: each replay is seen and counted"""
    r = run("bert.py", ["--layers", 1, "--width", 32, "--heads", 2, "--length", 16, "--batch", 2, "--vocabulary", 100, "--steps", 5, "--graph"])
    expect(r.ops("AllReduce"), r.text)
    expect(any(int(x["flags"]) & 2 for x in r.rows), "no op of the record is marked as replayed")


main(the_ddp_tutorial_runs, mingpt_runs_under_ddp, why_finds_the_knee_of_a_delay_under_ddp, a_plan_of_buckets_is_what_ddp_does, mingpt_runs_under_fsdp, dlrm_runs, resnet_runs,
     bert_runs_as_a_cuda_graph)
