"""What is compared: labs, and the rows of the table that run in each. A row is one job; with two real hosts it is run once more."""
from dataclasses import dataclass, field

# name: options of `lab up`; the first three hosts have the nominal cables, on which the network is calibrated
LABS = {
    "four": ["--hosts", "4", "--link", "400Mbps"],
    "two cables": ["--hosts", "4", "--gpus", "2", "--cables", "2", "--link", "400Mbps"],
    "slow cable": ["--hosts", "4", "--link", "400Mbps", "--slow-link", "3=200Mbps"],
    "latency": ["--hosts", "4", "--link", "400Mbps", "--delay", "1ms"],
    "many": ["--hosts", "32", "--link", "200Mbps"],
    "leaves": ["--hosts", "8", "--link", "200Mbps", "--leaf", "4", "--uplink", "200Mbps"],
    "torch": ["--hosts", "8", "--link", "300Mbps"],
}


@dataclass
class Row:
    lab: str
    name: str
    program: str  # a job file of this folder without .job, or ddp, fsdp2 of mingpt.py in lab "torch"
    hosts: int = 4
    gpus: int = 1
    tree: bool = False
    real: list = field(default_factory=list)  # flags of the stepper on the real hosts
    what_if: list = field(default_factory=list)  # what nbox is asked instead
    two: bool = True  # also with two real hosts
    note: str = ""  # where nbox has no such what-if: what the real run had
    later: bool = False  # what it needs is no part of nbox yet: printed, not judged
    beside: str = ""  # a job that runs at the same time on the same hosts
    iterations: int = 10


def slow(lab, name, program, ranks, factor, **more):
    """Ranks that compute slower from end to end."""
    return Row(lab, name, program, real=["--slow", f"{','.join(map(str, ranks))}={factor}"],
               what_if=[f"slow:rank={'+'.join(map(str, ranks))},compute={factor}"], **more)


def slow_layer(name, program, layer, factor, share):
    """One layer of rank 3 computes slower. nbox has no such what-if, so it is asked for the same extra time spread over the whole iteration:
    `share` is the layer's part of the iteration's computation."""
    return Row("four", name, program, real=["--slow", f"3={factor}@{layer}"],
               what_if=[f"slow:rank=3,compute={1 + (factor - 1) * share:.4g}"],
               note=f"real: 3={factor} in layer {layer} only")


def jittered(name, program, percent):
    return Row("four", name, program, real=["--jitter", f"{percent}%"], what_if=[f"jitter:on=compute,mean=0%,stddev={percent}%"])


ROWS = [
    # DDP: 4 MiB of gradients, about as long in the network as in the backward pass
    *(Row("four", f"ddp {'tree' if tree else 'ring'} {bucket}", f"ddp-{bucket}", tree=tree)
      for tree in (False, True) for bucket in ("512K", "2M", "4M")),
    Row("four", "ddp 2 hosts", "ddp-2M", hosts=2, two=False),
    Row("four", "fsdp", "fsdp"),
    Row("four", "hsdp", "hsdp"),
    Row("four", "pipeline", "pipeline"),
    Row("four", "pipeline x dp", "pipeline-dp"),
    Row("four", "moe", "moe"),
    Row("four", "large layer first", "large-first"),
    Row("four", "large layer last", "large-last"),
    Row("four", "accumulation", "accumulation"),
    Row("four", "compute-bound", "compute-bound"),
    *(slow("four", f"straggler {f}", "compute-bound", [3], f) for f in (1.1, 1.3, 1.5, 2)),
    *(slow("four", f"straggler {f}, comm-bound", "ddp-512K", [3], f) for f in (1.1, 1.3, 1.5, 2)),
    slow("four", "two stragglers", "compute-bound", [2, 3], 1.5),
    slow_layer("straggler, first layer", "compute-bound", 0, 2, 1 / 8),
    slow_layer("straggler, last layer", "compute-bound", 7, 2, 1 / 8),
    slow("four", "straggler 1.5, fsdp", "fsdp", [3], 1.5),
    jittered("jitter 10%", "compute-bound", 10),
    jittered("jitter 30%, comm-bound", "ddp-512K", 30),
    Row("four", "two jobs, one cable", "ddp-512K", beside="ddp-512K", later=True, two=False),
    Row("two cables", "tp x dp", "tp-dp", gpus=2, two=False),
    Row("slow cable", "slow cable", "ddp-512K", what_if=["slow:rank=3,link=2"]),
    Row("latency", "latency 1 ms", "ddp-512K"),
    Row("many", "ddp 8 hosts", "cluster", hosts=8),
    Row("many", "fsdp 8 hosts", "cluster-fsdp", hosts=8),
    Row("many", "ddp 16 hosts", "cluster", hosts=16),
    Row("many", "hsdp 16 hosts", "cluster-hsdp", hosts=16),
    slow("many", "straggler 1.5, 16 hosts", "cluster", [9], 1.5, hosts=16),
    Row("many", "ddp 32 hosts", "cluster-32", hosts=32),
    Row("leaves", "oversubscription", "moe", hosts=8, later=True, two=False),
    *(Row("torch", f"torch {style} {hosts} hosts", style, hosts=hosts, two=False, iterations=5) for style in ("ddp", "fsdp2") for hosts in (4, 8)),
]
