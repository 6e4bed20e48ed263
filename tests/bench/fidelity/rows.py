"""What is compared: labs, and the rows of the table that run in each. A row is one job; with two real hosts it is run once more."""
from dataclasses import dataclass, field

# name: options of `lab up`; the first three hosts have the nominal cables, on which the network is calibrated
LABS = {
    "four": ["--hosts", "4", "--link", "400Mbps"],
    "five": ["--hosts", "5", "--link", "400Mbps"],  # the last one takes background traffic
    "two cables": ["--hosts", "4", "--gpus", "2", "--cables", "2", "--link", "400Mbps"],
    "slow cable": ["--hosts", "4", "--link", "400Mbps", "--slow-link", "3=200Mbps"],
    "latency": ["--hosts", "4", "--link", "400Mbps", "--delay", "1ms"],
    "eight": ["--hosts", "8", "--link", "400Mbps"],
    "many": ["--hosts", "32", "--link", "200Mbps"],
    "sixteen": ["--hosts", "16", "--link", "100Mbps"],  # slow enough that two processors have time left
    "leaves": ["--hosts", "8", "--link", "200Mbps", "--leaf", "4", "--uplink", "200Mbps"],
    "wide uplinks": ["--hosts", "8", "--link", "200Mbps", "--leaf", "4", "--uplink", "400Mbps"],
    "one cable": ["--hosts", "4", "--gpus", "2", "--link", "400Mbps"],
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
    real_hosts: tuple = (1, 2)  # under nbox; two only where the job has four or more
    stages: tuple = ()  # a host of each stage: these are real, where so many are; else the first
    note: str = ""  # what only the real run had, or only nbox's
    later: bool = False  # what it needs is no part of nbox: printed, not judged
    beside: str = ""  # a job that runs at the same time on the same hosts
    background_mbytes_per_s: float = 0  # goes from the last host of the job to the one behind it, meanwhile
    iterations: int = 10
    base: str = ""  # the row that is the same without the what-if: what it adds is the difference
    late: dict = field(default_factory=dict)  # what is late under nbox: late.c's variables
    cables: dict = field(default_factory=dict)  # links of the fabric that are otherwise, as a share of the others
    leaf: int = 0  # hosts at a leaf; 0: one switch
    oversubscription: float = 1
    nics: int = 0  # of a host, where its GPUs share them
    shares: bool = False  # ops that are under way at once share cables
    recorded: tuple = ()  # runs under nbox that the row is re-timed from, too: hosts of the world, and the node that is real
    pipe: tuple = ()  # `nbox pipe --from` is asked, too: the job that it has a record of, and the schedule that it is asked for
    chunk_mib: int = 1  # of host NCCL's buffer; a tree's steps are half of it

    @property
    def tolerance_pct(self):
        return 2 if self.what_if or self.shares or self.pipe else 1

    @property
    def is_by_stage(self):
        """Each host has a record of its own."""
        return [hosts for hosts, _ in self.recorded] == [self.hosts] * self.hosts

    def real_ranks(self, n):
        return self.stages if len(self.stages) == n else tuple(range(n))


def slow(lab, name, program, ranks, factor, **more):
    """Ranks that compute slower from end to end."""
    return Row(lab, name, program, real=["--slow", f"{','.join(map(str, ranks))}={factor}"],
               what_if=[f"slow:rank={'+'.join(map(str, ranks))},compute={factor}"], **more)


def background(name, program, mbytes_per_s, **more):
    """Somebody else sends over the cable of host 3, by one connection."""
    return Row("five", name, program, background_mbytes_per_s=mbytes_per_s,
               what_if=[f"load:link=node3.nic0.out,bandwidth={mbytes_per_s}MB/s,connections=1"], **more)


def slow_layer(name, program, layer, factor, share):
    """One layer of rank 3 computes slower. nbox has no such what-if, so it is asked for the same extra time spread over the whole iteration:
    `share` is the layer's part of the iteration's computation."""
    return Row("four", name, program, real=["--slow", f"3={factor}@{layer}"],
               what_if=[f"slow:rank=3,compute={1 + (factor - 1) * share:.4g}"],
               note=f"real: 3={factor} in layer {layer} only", base=program)


def jittered(name, program, percent, base):
    """The stepper and nbox draw different numbers: many iterations, so that their medians meet."""
    return Row("four", name, program, real=["--jitter", f"{percent}%"], what_if=[f"jitter:on=compute,mean=0%,stddev={percent}%"],
               base=base, iterations=40)


FROM_TWO = ((2, 0),)
STAGE_BY_STAGE = tuple((4, stage) for stage in range(4))

ROWS = [
    # DDP: 4 MiB of gradients, about as long in the network as in the backward pass
    *(Row("four", f"ddp {'tree' if tree else 'ring'} {bucket}", f"ddp-{bucket}", tree=tree)
      for tree in (False, True) for bucket in ("512K", "2M", "4M")),
    # a step of 4 MiB finds an idle cable, and 32 KiB for nothing, seldom enough
    Row("four", "ddp tree, long chunks", "long", tree=True, chunk_mib=8, iterations=5),
    Row("four", "ddp 2 hosts", "ddp-2M", hosts=2, real_hosts=(1,)),
    Row("four", "fsdp", "fsdp"),
    Row("four", "hsdp", "hsdp"),
    Row("four", "pipeline", "pipeline", real_hosts=(1, 2, 4), recorded=STAGE_BY_STAGE),
    Row("four", "pipeline, unequal stages", "pipeline-unequal", real_hosts=(1, 4), recorded=STAGE_BY_STAGE),
    # what is predicted for eager is also asked of a record of 1F1B
    *(Row(lab, f"pipeline of {n}, {s}", f"pipe-{n}-{s}", hosts=n, real_hosts=(n,), recorded=recorded, pipe=(f"pipe-{n}-1f1b", s), iterations=4,
          base=f"pipeline of {n}, 1f1b" if s == "eager" else "")
      for lab, n, recorded in (("four", 4, STAGE_BY_STAGE), ("eight", 8, ())) for s in ("1f1b", "eager")),
    Row("four", "pipeline x dp", "pipeline-dp", stages=(0, 2)),
    Row("four", "moe", "moe"),
    Row("four", "large layer first", "large-first"),
    Row("four", "large layer last", "large-last"),
    Row("four", "accumulation", "accumulation"),
    Row("four", "compute-bound", "compute-bound"),
    *(slow("four", f"straggler {f}", "compute-bound", [3], f, base="compute-bound") for f in (1.1, 1.3, 1.5, 2)),
    *(slow("four", f"straggler {f}, comm-bound", "ddp-512K", [3], f, base="ddp ring 512K") for f in (1.1, 1.3, 1.5, 2)),
    Row("four", "long ops", "long", iterations=5),
    slow("four", "straggler 1.5, long ops", "long", [3], 1.5, base="long ops", iterations=5),
    slow("four", "straggler 1.5, rank 0", "compute-bound", [0], 1.5, base="compute-bound"),  # a real rank
    slow("four", "straggler 1.5, rank 1", "compute-bound", [1], 1.5, base="compute-bound"),  # real where two hosts are
    slow("four", "two stragglers", "compute-bound", [2, 3], 1.5, base="compute-bound"),
    slow_layer("straggler, first layer", "compute-bound", 0, 2, 1 / 8),
    slow_layer("straggler, last layer", "compute-bound", 7, 2, 1 / 8),
    slow("four", "straggler 1.5, fsdp", "fsdp", [3], 1.5, base="fsdp"),
    jittered("jitter 10%", "compute-bound", 10, "compute-bound"),
    jittered("jitter 30%", "compute-bound", 30, "compute-bound"),
    jittered("jitter 30%, comm-bound", "ddp-512K", 30, "ddp ring 512K"),
    *(Row("four", f"gates 1 ms late{', comm-bound' if bound else ''}", bound or "compute-bound", base="ddp ring 512K" if bound else "compute-bound",
          late={"NBOX_TEST_LATE_GATE": "1000000"}, note="nbox: gates open 1 ms late") for bound in ("", "ddp-512K")),
    Row("four", "two jobs, one cable", "ddp-512K", beside="ddp-512K", later=True, real_hosts=(1,)),
    Row("four", "a group of 8", "group-of-8", iterations=5, shares=True),
    Row("four", "tensor beside data", "tensor-beside-data", shares=True),
    Row("four", "all-reduce beside all-gather", "hsdp-long", shares=True),
    background("background, a quarter", "in-step", 12, iterations=5),
    background("background, a fair share", "in-step", 40, iterations=5),
    Row("one cable", "two GPUs, one cable", "two-groups", gpus=2, nics=1, real_hosts=(1,), shares=True),
    Row("two cables", "ddp, two GPUs a host", "ddp-512K", gpus=2, real_hosts=(1,)),
    Row("two cables", "ddp, two GPUs a host, long ops", "long", gpus=2, real_hosts=(1,), iterations=5),
    Row("two cables", "tp x dp", "tp-dp", gpus=2, real_hosts=(1,)),
    # tp's ops in host 0 are local alone, and shorter than that
    Row("two cables", "local ops 2 ms longer", "tp-dp", gpus=2, real_hosts=(1,), base="tp x dp", late={"NBOX_TEST_LATE_OP": "2000000"},
        note="nbox: host NCCL's ops are 2 ms longer"),
    # tp's ops in host 3 have no real rank: who waits for whom there, nbox has to infer
    slow("two cables", "tp x dp, slow host", "tp-dp", [6, 7], 1.5, gpus=2, real_hosts=(1,), base="tp x dp"),
    slow("two cables", "tp x dp, slow GPU", "tp-dp", [7], 1.5, gpus=2, real_hosts=(1,), base="tp x dp"),
    Row("two cables", "tp x dp, long ops", "tp-dp-long", gpus=2, real_hosts=(1,), iterations=5),
    slow("two cables", "tp x dp, slow GPU, long ops", "tp-dp-long", [7], 1.5, gpus=2, real_hosts=(1,), base="tp x dp, long ops", iterations=5),
    Row("slow cable", "slow cable", "ddp-512K", what_if=["slow:rank=3,link=2"], base="ddp ring 512K"),
    Row("slow cable", "slow cable in the fabric", "ddp-512K", cables={"node3.nic0": 0.5}),
    Row("slow cable", "slow cable in the fabric, long ops", "long", cables={"node3.nic0": 0.5}, iterations=5),
    Row("latency", "latency 1 ms", "ddp-512K"),
    Row("many", "ddp 8 hosts", "cluster", hosts=8, recorded=FROM_TWO),
    Row("many", "ddp tree 8 hosts", "cluster", hosts=8, tree=True),  # deep enough that children share ports on two levels
    Row("many", "ddp tree 8 hosts, long chunks", "long", hosts=8, tree=True, chunk_mib=8, iterations=3),
    Row("many", "fsdp 8 hosts", "cluster-fsdp", hosts=8, recorded=FROM_TWO),
    Row("sixteen", "ddp 16 hosts", "cluster-16", hosts=16, recorded=FROM_TWO, iterations=5),
    Row("many", "hsdp 16 hosts", "cluster-hsdp", hosts=16),
    slow("sixteen", "straggler 1.5, 16 hosts", "cluster-16", [9], 1.5, hosts=16, base="ddp 16 hosts", recorded=FROM_TWO, iterations=5),
    Row("many", "ddp 32 hosts", "cluster-32", hosts=32),
    Row("leaves", "ring across leaves", "cluster", hosts=8, leaf=4, oversubscription=4, real_hosts=(1,)),
    Row("leaves", "oversubscription", "moe", hosts=8, leaf=4, oversubscription=4, real_hosts=(1,)),
    *(Row(lab, f"groups across leaves {over}:1", "leaves", hosts=8, leaf=4, oversubscription=over, real_hosts=(1,), shares=True)
      for lab, over in (("leaves", 4), ("wide uplinks", 2))),
    *(Row("torch", f"torch {style} {hosts} hosts", style, hosts=hosts, real_hosts=(1,), iterations=5) for style in ("ddp", "fsdp2") for hosts in (4, 8)),
]
