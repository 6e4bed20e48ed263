"""A gloo group of a world of which two ranks are real: nboxd plays the others in barriers, broadcasts, all-gathers and scatters.

    NBOX_BUILD=build python tests/torch/store_gloo.py
"""
import os
import subprocess
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from cases import expect, main


def worker():
    """One real rank: prints when it came to a barrier and when it left it, on one clock for all."""
    first, last = (int(r) for r in os.environ["REAL"].split(","))
    dist.init_process_group("gloo", timeout=timedelta(seconds=150))
    rank = dist.get_rank()
    for late in (first, last):
        if rank == late:
            time.sleep(0.5)
        print("came", time.monotonic(), flush=True)
        dist.barrier()
        print("left", time.monotonic(), flush=True)
    for root in (first, last):
        x = torch.full((1000,), float(rank))
        dist.broadcast(x, src=root)
        expect(bool((x == root).all()), "broadcast from %d: %r" % (root, x[:3]))
    # virtual rank v sends what real rank number v mod 2 does
    expected = [r if first <= r <= last else first + r % 2 for r in range(dist.get_world_size())]
    parts = [torch.zeros(3) for _ in expected]
    dist.all_gather(parts, torch.full((3,), float(rank)))
    expect([p.tolist() for p in parts] == [[r] * 3 for r in expected], parts)
    objects = [None] * len(expected)
    dist.all_gather_object(objects, {"rank": rank, "more": "x" * (100 + rank % 2)})
    expect([o["rank"] for o in objects] == expected, objects)
    x = torch.zeros(5)
    dist.scatter(x, [torch.full((5,), float(r)) for r in range(len(expected))] if rank == first else None, src=first)
    expect(bool((x == rank).all()), x)
    x = torch.zeros(1000)
    objects = ["from %d" % rank]
    dist.broadcast_object_list(objects, src=first)
    expect(objects == ["from %d" % first], objects)
    dist.barrier(group=dist.new_group(backend="gloo"))
    try:
        dist.all_reduce(x)
        expect(False, "all_reduce with virtual ranks")
    except RuntimeError as e:
        expect("onnection" in str(e), str(e))
    print("end", time.monotonic(), flush=True)
    os._exit(0)  # a group with a failed call is no test of how it is taken down


def group(node, lazy):
    build = os.environ["NBOX_BUILD"]
    env = {k: v for k, v in os.environ.items() if k != "NBOX_BUILD"}
    first = 2 * node
    nboxd = subprocess.Popen([os.path.join(build, "nboxd"), "--nodes", "8", "--gpus-per-node", "2", "--real",
                              "%d,%d" % (first, first + 1), "--model", "none", "--store", "127.0.0.1:0", "--addr", "tcp:127.0.0.1:0"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    workers = []
    try:
        words = nboxd.stdout.readline().split()
        expect(words[:2] == ["nboxd", "ready"], words)
        for local in range(2):
            workers.append(subprocess.Popen(
                [sys.executable, os.path.abspath(__file__), "worker"], stdout=subprocess.PIPE, text=True,
                env=dict(env, RANK=str(first + local), LOCAL_RANK=str(local), WORLD_SIZE="16", MASTER_ADDR="127.0.0.1",
                         MASTER_PORT=words[4].rsplit(":", 1)[1], TORCHELASTIC_USE_AGENT_STORE="True",
                         TORCHELASTIC_RESTART_COUNT="0", TORCH_GLOO_LAZY_INIT=lazy,
                         REAL="%d,%d" % (first, first + 1))))
        told = [[line.split() for line in w.communicate(timeout=200)[0].splitlines()] for w in workers]
        expect([w.returncode for w in workers] == [0, 0], "the workers ended with %r" % [w.returncode for w in workers])
        for barrier in range(2):
            came = [float(t[2 * barrier][1]) for t in told]
            left = [float(t[2 * barrier + 1][1]) for t in told]
            expect(min(left) >= max(came), "left at %r, came at %r" % (left, came))
    finally:
        for process in workers + [nboxd]:
            process.terminate()
        log = nboxd.communicate(timeout=60)[1]
    expect("calls all_reduce with rank" in log, log)


def gloo_works_on_the_first_node():
    group(0, "1")


def gloo_works_on_the_last_node():
    group(7, "1")


def gloo_connects_every_pair():
    """Without lazy connections, as before torch 2.8: every pair is connected when the group is made."""
    group(3, "0")


if __name__ == "__main__":
    if sys.argv[1:] == ["worker"]:
        worker()
    else:
        main(gloo_works_on_the_first_node, gloo_works_on_the_last_node, gloo_connects_every_pair)
