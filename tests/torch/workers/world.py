"""What the workers of this folder share: their place, checks with a name, and what a virtual rank is expected to contribute.

With data policy `mirror` a virtual rank contributes what its template does: the real rank with the same local rank on the one real node.
In a plain run, without virtual ranks, every rank is its own template."""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

RANK = int(os.environ["RANK"])
WORLD = int(os.environ["WORLD_SIZE"])
LOCAL = int(os.environ["LOCAL_RANK"])
L = int(os.environ["LOCAL_WORLD_SIZE"])
FIRST = RANK - LOCAL  # the first real rank
DEVICE = torch.device("cuda", LOCAL % torch.cuda.device_count())  # several processes may share a GPU
# sums in another order than the CPU's, where a GPU computes
RTOL, ATOL = (1e-4, 1e-5) if os.environ.get("CPU_KERNELS") == "0" else (1e-5, 1e-6)
TIMEOUT = datetime.timedelta(seconds=180)  # ranks that start at different times
begun = time.monotonic()


def is_real(rank):
    return FIRST <= rank < FIRST + L


def template(rank):
    """Whose values rank contributes, in a communicator that holds whole nodes."""
    return FIRST + rank % L


def passed(name):
    """After the checks called name: all real ranks say it on stdout, for the case to count."""
    print(f"ok {RANK} {name} ({time.monotonic() - begun:.1f} s)", flush=True)


def equal(got, want, what):
    got = got.cpu() if isinstance(got, torch.Tensor) else got
    if isinstance(want, torch.Tensor):
        if got.shape != want.shape or not torch.allclose(got.double(), want.double(), rtol=RTOL, atol=ATOL):
            raise AssertionError(f"rank {RANK}: {what}: got {got.flatten()[:16]} {tuple(got.shape)}, not {want.flatten()[:16]} {tuple(want.shape)}")
    elif got != want:
        raise AssertionError(f"rank {RANK}: {what}: got {got!r}, not {want!r}")


def wants():
    """The sections named on the command line; none: all."""
    names = [n for n in sys.argv[1:] if n != "bound"]
    return lambda name: not names or name in names
