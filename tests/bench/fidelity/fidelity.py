"""./scripts/bench fidelity: each job on the hosts of a lab, and under nbox with one and with two of them real. tests/bench/README.md says
what the columns mean."""
import json
import os
import secrets
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from fnmatch import fnmatch

import iterations
import table
from laboratory import TOP, Failed, Idle, Laboratory, Skipped, end, last_words
from rows import LABS, ROWS

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(TOP, "build")
NBOX = os.path.join(BUILD, "nbox")
LATE = os.path.join(BUILD, "tests", "bench", "late.so")
MIB = 1 << 20
RETIMED, BESIDE, PIPE = "re-timed", "beside", "pipe"  # instead of a number of real hosts


@dataclass
class Run:
    """What one run of a job said."""
    iteration_ms: float
    exposed_ms: float = None
    injected_ms: float = None  # by nbox
    wall_ms: float = None  # under nbox: by the job's own clock
    idle: float = None  # share of the processors' time while it iterated
    summary: dict = None  # nbox's


# ---- the programs

class Stepper:
    warmup = 2

    def __init__(self, row, seed):
        self.row, self.seed = row, seed
        self.env = {"NCCL_ALGO": "Tree" if row.tree else "Ring", "NCCL_DEBUG": "WARN", "NCCL_BUFFSIZE": str(4 * MIB * row.chunk_mib)}

    def command(self, out, flags=(), job=None):
        return [os.path.join(BUILD, "tests", "apps", "stepper"), os.path.join(HERE, f"{job or self.row.program}.job"),
                "--iterations", str(self.row.iterations), "--warmup", str(self.warmup), "--seed", str(self.seed), "--json", os.path.join(out, "0.json"),
                *flags]

    def real(self, lab, out):
        which, env = ["--hosts", str(self.row.hosts)], dict(self.env)
        command = self.command(out, self.row.real)
        if self.row.gpus > 1 and not self.row.nics:  # a GPU, a cable
            command = ["sh", "-c", 'export NCCL_SOCKET_IFNAME=eth$LOCAL_RANK; exec "$@"', "sh", *command]
        if self.row.beside:
            other = lab.start(which, self.command(os.path.join(out, "other"), job=self.row.beside) + ["--iterations", str(self.row.iterations * 2)], env)
        elif self.row.background_mbytes_per_s:
            other = lab.start(["--only", f"{self.row.hosts},{self.row.hosts - 1}", "--per-host"],
                              [sys.executable, os.path.join(HERE, "background.py"), str(self.row.background_mbytes_per_s * 1e6)])
        else:
            return lab.run(which, command, env)
        try:
            lab.run(which, command, env)
        finally:
            end(other)

    def emulated(self, out):
        return self.command(out)

    def times(self, out):
        with open(os.path.join(out, "0.json")) as f:
            said = json.load(f)
        return said["iteration_ms"], said["exposed_ms"], said["iterations"], said["ops"]


class MinGPT:
    """tests/torch/programs/mingpt.py by torchrun; its kernels take as long as NBOX_HOST_KERNEL_TIME says, and a host
    has one device: else PyTorch's barrier guesses another one than the model's."""
    warmup = 1

    def __init__(self, row, seed):
        self.row, self.seed = row, seed
        p = subprocess.run([os.path.join(TOP, "scripts", "torch-env"), "--build", BUILD], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
        if p.returncode:
            raise Skipped(last_words(p.stderr))
        self.python = os.path.join(p.stdout.strip(), "bin", "python")
        self.env = {"NBOX_HOST_KERNEL_TIME": "200us", "OMP_NUM_THREADS": "1", "NBOX_HOST_DEVICES": "1"}

    def torchrun(self, result, flags):
        program = os.path.join(TOP, "tests", "torch", "programs", "mingpt.py")
        return [self.python, "-m", "torch.distributed.run", "--nproc-per-node", "1", *flags, program, "--parallel", self.row.program, "--quiet",
                "--layers", "3", "--warmup", str(self.warmup), "--steps", str(self.row.iterations), "--seed", str(self.seed), "--json", result]

    def real(self, lab, out):
        flags = ["--nnodes", str(self.row.hosts), "--node-rank", "$NODE_RANK", "--master-addr", "$MASTER_ADDR", "--master-port", "$MASTER_PORT"]
        words = " ".join(f'"{word}"' for word in self.torchrun(os.path.join(out, "$NODE_RANK.json"), flags))
        lab.run(["--hosts", str(self.row.hosts), "--per-host"], ["env", "-u", "NCCL_COMM_ID", "sh", "-c", f"exec {words}"], self.env, 300)

    def emulated(self, out):
        return self.torchrun(os.path.join(out, "0.json"), [])

    def times(self, out):
        with open(os.path.join(out, "0.json")) as f:
            said = json.load(f)
        return said["iteration_ms"]["p50"], None, said["times_ms"], None


def program_of(row, seed):
    return MinGPT(row, seed) if row.lab == "torch" else Stepper(row, seed)


# ---- the network, given to nbox

def perf_us(lab, hosts, op, sizes, n, gpus=0):
    """{bytes: median us of a call} of nbox-perf over host NCCL, between the first hosts, or between the GPUs of the first."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as f:
        command = [os.path.join(BUILD, "nbox-perf"), "--op", op, "-b", str(sizes[0]), "-e", str(sizes[-1]), "-f", str(max(2, sizes[-1] // sizes[0])),
                   "-n", str(n), "-w", "2", "--no-check", "--no-table", "--json", f.name]
        one_a_host = [] if gpus else ["--per-host"]
        ranks = [] if gpus else ["sh", "-c", 'RANK=$NODE_RANK WORLD_SIZE=$NNODES LOCAL_RANK=0 exec "$@"', "sh"]
        lab.run(["--hosts", str(hosts), *one_a_host], ranks + command)
        return {row["bytes"]: row["median_us"] for row in json.load(f)["rows"]}


def calibrate(lab, gpus):
    """The network as a user measures it. Bandwidth: two hosts send each other 8 MiB. Latency: what an all-reduce of 1 MiB on three hosts
    takes more than its bytes, a small difference of large times: so medians of three. Inside a host: latency is 8 bytes' time, bandwidth
    that of 8 MiB more."""
    thrice = lambda hosts, op, size, n: statistics.median(perf_us(lab, hosts, op, (size, size), n)[size] for _ in range(3))
    bw = 8 * MIB / thrice(2, "sendrecv", 8 * MIB, 10)  # bytes a us
    us = thrice(3, "allreduce", MIB, 20)
    network = {"inter_bandwidth_mbytes_per_s": bw, "inter_latency_us": max(0.0, us / 4 - MIB / 3 / bw), "allreduce_1mib_us": us}
    if gpus > 1:
        t = perf_us(lab, 1, "sendrecv", (8, 8 * MIB), 100, gpus)
        network.update(intra_latency_us=t[8], intra_bandwidth_mbytes_per_s=8 * MIB / (t[8 * MIB] - t[8]))
    return network


def network_flags(network, row, out):
    """The lab as a fabric, and host NCCL's schedule: rings and trees of one channel. Without leaves the hops say the fabric."""
    flags = ["--model", f"pinned:algo={'tree' if row.tree else 'ring'},chunk={row.chunk_mib}M"]
    bw = network["inter_bandwidth_mbytes_per_s"]
    flags += [f for name, share in row.cables.items() for f in ("--cable", f"{name}={bw * share:.4f}MB/s")]
    if row.leaf or row.nics:
        path = os.path.join(out, "fabric.yaml")
        kind = f"kind: leaf-spine, nodes_per_leaf: {row.leaf}, oversubscription: {row.oversubscription:g}" if row.leaf else "kind: switch"
        with open(path, "w") as f:
            f.write(FABRIC % (row.gpus, row.nics or 1, bw, row.hosts, network["inter_latency_us"], kind))
        return flags + ["--fabric", path]
    for hop in ("inter", "intra"):
        if f"{hop}_latency_us" in network:
            flags += [f"--{hop}-latency", f"{network[f'{hop}_latency_us']:.3f}us",
                      f"--{hop}-bandwidth", f"{network[f'{hop}_bandwidth_mbytes_per_s']:.4f}MB/s"]
    return flags


# what was measured, so without a share that is lost
FABRIC = """name: lab
classes:
  - {name: host, gpu: host, sm: 80, gpus: %d, intra: pcie, gpu_bandwidth: 10GB/s, nics: %d, nic: socket, nic_bandwidth: %.4fMB/s, nic_efficiency: 1}
nodes:
  - {class: host, nodes: %d}
network: {latency: %.3fus, %s}
"""


# ---- runs

def real_run(lab, row, seed):
    with tempfile.TemporaryDirectory() as out:
        os.mkdir(os.path.join(out, "other"))
        program, idle = program_of(row, seed), Idle()
        try:
            program.real(lab, out)
        finally:
            idle.stop()
        median, exposed, times, _ = program.times(out)
        over = time.monotonic() - (time.time() - os.path.getmtime(os.path.join(out, "0.json")))  # written after the last iteration
        return Run(median, exposed, idle=idle.share(over - sum(times) / 1e3, over))


def late_environment(row):
    """late.c's variables, where the row is late."""
    if not row.late:
        return {}
    names = subprocess.run(["nm", os.path.join(BUILD, "libnbox.so")], stdout=subprocess.PIPE, text=True, check=True).stdout
    where = [line.split()[0] for line in names.splitlines() if line.endswith(" t on_wait")]
    if len(where) != 1:
        raise Failed("libnbox.so has no function on_wait, in which a gate waits: see shim/gate/device-host.c and tests/bench/late.c")
    return {**row.late, "NBOX_TEST_LATE_WAIT": where[0], "LD_PRELOAD": LATE}


def recorded_run(lab, row, seed, network, how):
    """The row from records, of fewer hosts, or of one host after the other: re-timed, or the first host live beside those of the others."""
    with tempfile.TemporaryDirectory() as out:
        program = program_of(row, seed)

        def one(i, *more):
            hosts, node = row.recorded[i]
            lab.run(["--only", "0", "--per-host"], [NBOX, "run", "--quiet", "--out", os.path.join(out, f"run{i}"), "--seed", str(seed), "--nodes", str(hosts),
                    "--gpus-per-node", str(row.gpus), "--as-node", str(node), *network_flags(network, row, out), *more, "--", *program.emulated(out)], program.env)

        for i in reversed(range(how == BESIDE, len(row.recorded))):
            one(i)
        with_others = [f for i in range(1, len(row.recorded)) for f in ("--with", os.path.join(out, f"run{i}"))]
        if how == BESIDE:
            one(0, *with_others)
        ops = program.times(out)[3]
        if how == RETIMED:
            subprocess.run([NBOX, "retime", os.path.join(out, "run0"), *with_others, "--out", os.path.join(out, "retimed"),
                            "--nodes", str(row.hosts), *(f for w in row.what_if for f in ("--what-if", w))],
                           stdout=subprocess.DEVNULL, check=True)
        result = os.path.join(out, "retimed" if how == RETIMED else "run0")
        with open(os.path.join(result, "summary.json")) as f:
            run = Run(None, summary=json.load(f))
        return replace(run, **iterations.medians_of(NBOX, result, ops, program.warmup))


def emulated_run(lab, row, seed, network, real_hosts):
    if real_hosts in (RETIMED, BESIDE):
        return recorded_run(lab, row, seed, network, real_hosts)
    is_pipe, row, real_hosts = real_hosts == PIPE, *((replace(row, program=row.pipe[0]), row.hosts) if real_hosts == PIPE else (row, real_hosts))
    with tempfile.TemporaryDirectory() as out:
        program = program_of(row, seed)
        summary = os.path.join(out, "summary.json")
        late = late_environment(row)
        flags = ["env", *(f"{k}={v}" for k, v in late.items()), *(["-u", "NCCL_COMM_ID"] if row.lab == "torch" else []), NBOX, "run",
                 "--quiet", "--out", os.path.join(out, "run"), "--json", summary, "--seed", str(seed), "--nodes", str(row.hosts),
                 "--gpus-per-node", str(row.gpus), *network_flags(network, row, out), *(f for w in row.what_if for f in ("--what-if", w))]
        command = program.emulated(out)
        if real_hosts == 1:
            lab.run(["--only", "0", "--per-host"], [*flags, "--", *command], program.env)
        else:
            ranks = ",".join(map(str, row.real_ranks(real_hosts)))
            lab.run(["--only", ranks, "--per-host"], several_hosts(flags, command, ranks, row.hosts, out, late), program.env)
        if is_pipe:
            return asked_of_pipe(os.path.join(out, "run"), row.pipe[1])
        median, exposed, _, ops = program.times(out)
        with open(summary) as f:
            run = Run(median, exposed, wall_ms=median, summary=json.load(f))
        return replace(run, **iterations.medians_of(NBOX, os.path.join(out, "run"), ops, program.warmup))


def asked_of_pipe(record, schedule):
    """What a schedule would take, by the passes and messages of a record, which may be one of another schedule."""
    said = json.loads(subprocess.run([NBOX, "pipe", "--from", record, "--schedule", schedule, "--json", "-"], stdout=subprocess.PIPE, text=True, check=True).stdout)
    return Run(said["rows"][0]["iteration_ns"] / 1e6, summary=said)


def several_hosts(flags, command, ranks, world, out, late):
    """Host 0 runs nbox and rank 0; the others start theirs beside libnbox.so as soon as nboxd listens."""
    token = secrets.token_hex(12)
    first = [*flags, "--real", ranks, "--procs", "1", "--addr", "tcp:10.91.0.1:7400", "--token", token, "--", *command]
    preload = subprocess.run([NBOX, "preload"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    preload = ":".join([preload, *filter(None, [late.get("LD_PRELOAD")])])
    second = ["env", *(f"{k}={v}" for k, v in late.items()), f"LD_PRELOAD={preload}", "NBOX_ADDR=tcp:10.91.0.1:7400", f"NBOX_TOKEN={token}", "LOCAL_RANK=0",
              f"WORLD_SIZE={world}", *command]
    listens = os.path.join(out, "run", "nboxd.addr")
    script = f"""if [ "$NODE_RANK" = 0 ]; then exec {shlex.join(first)}; fi
        i=0; until [ -e {listens} ]; do i=$((i + 1)); [ $i -lt 200 ] || exit 1; sleep 0.05; done
        export RANK="$LAB_HOST"; exec {shlex.join(second)}"""
    return ["sh", "-c", script]


# ---- rows

def rounds_of(lab, row, network, n_rounds):
    """Real and emulated runs take turns, in another order and with another seed each round. {real hosts (0: all): [Run]}"""
    kinds = [0] + [k for k in row.real_hosts if k == 1 or row.hosts >= 4] + [RETIMED] * bool(row.recorded) + [BESIDE] * row.is_by_stage + [PIPE] * bool(row.pipe)
    runs = {k: [] for k in kinds}
    for i in range(n_rounds):
        for k in kinds if i % 2 == 0 else kinds[::-1]:
            run = lambda k=k: real_run(lab, row, i + 1) if k == 0 else emulated_run(lab, row, i + 1, network, k)
            try:
                runs[k].append(run())
            except Failed as e:  # said, and tried once more
                print(f"bench fidelity: {row.name}, real hosts {k or 'all'}, round {i}: {e}", file=sys.stderr)
                runs[k].append(run())
    return runs


def in_lab(name, rows, n_rounds, tbl):
    facts = {"lab": " ".join(LABS[name]), "cables_pct": None}
    try:
        with Laboratory(name.replace(" ", "-"), LABS[name]) as lab:
            cables = lab.measure()
            # of all to all, where processors count, the JSON has the figures
            facts["cables_pct"] = max(abs(r["diff_pct"]) for r in cables["rows"] if r["what"] == "one stream")
            network = calibrate(lab, max(r.gpus for r in rows))
            facts.update(cables=cables, network=network)
            print(f"-- lab {facts['lab']}: cables within {facts['cables_pct']:.2f} % of nominal; given to nbox: "
                  f"{network['inter_bandwidth_mbytes_per_s']:.3f} MB/s, {network['inter_latency_us']:.1f} us", flush=True)
            for row in rows:
                try:
                    tbl.add(row, rounds_of(lab, row, network, n_rounds), facts)
                except (Failed, Skipped) as e:
                    tbl.add_nothing(row, facts, f"{'skipped' if isinstance(e, Skipped) else 'failed'}: {e}")
    except (Failed, Skipped) as e:
        for row in rows:
            tbl.add_nothing(row, facts, f"{'skipped' if isinstance(e, Skipped) else 'failed'}: {e}")


def bench(opt, rows=ROWS):
    wanted = [r.name for r in rows if not opt.only or opt.only in r.name or fnmatch(r.name, opt.only)]
    if not wanted:
        sys.exit(f"bench fidelity: no job is called '{opt.only}'; there are: {', '.join(r.name for r in rows)}")
    wanted += [r.base for r in rows if r.name in wanted]
    version = subprocess.run([NBOX, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    print(f"each job on the hosts of a lab, and predicted by nbox with 1 or 2 of them real; medians of {opt.rounds or 3} rounds, {version}")
    tbl = table.Table(version, opt.before)
    for name in LABS:
        there = [r for r in rows if r.lab == name and r.name in wanted]
        if there:
            in_lab(name, there, opt.rounds or 3, tbl)
    tbl.end()
    return tbl.rows


def retimed(opt):
    """The rows from records alone, each beside the real job."""
    return bench(opt, [replace(r, real_hosts=()) for r in ROWS if r.recorded and not r.pipe])
