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
from dataclasses import dataclass
from fnmatch import fnmatch

from laboratory import TOP, Failed, Idle, Laboratory, Skipped, end, finish, last_words
from rows import LABS, ROWS

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(TOP, "build")
NBOX = os.path.join(BUILD, "nbox")
SEED = 1
WARMUP = 2
IDLE_ENOUGH = 0.5
CABLE_PCT = 0.2
MIB = 1 << 20


@dataclass
class Run:
    """What one run of a job said."""
    iteration_ms: float
    exposed_ms: float = None
    idle: float = None  # share of the processors' time while it iterated
    summary: dict = None  # nbox's


# ---- the programs

class Stepper:
    def __init__(self, row):
        self.row = row
        self.env = {"NCCL_ALGO": "Tree" if row.tree else "Ring", "NCCL_DEBUG": "WARN"}

    def command(self, out, flags=(), job=None):
        return [os.path.join(BUILD, "tests", "apps", "stepper"), os.path.join(HERE, f"{job or self.row.program}.job"),
                "--iterations", str(self.row.iterations), "--warmup", str(WARMUP), "--seed", str(SEED), "--json", os.path.join(out, "0.json"),
                *flags]

    def real(self, lab, out):
        which, env = ["--hosts", str(self.row.hosts)], dict(self.env)
        command = self.command(out, self.row.real)
        if self.row.gpus > 1:  # a GPU, a cable
            command = ["sh", "-c", 'export NCCL_SOCKET_IFNAME=eth$LOCAL_RANK; exec "$@"', "sh", *command]
        if not self.row.beside:
            return lab.run(which, command, env)
        other = lab.start(which, self.command(os.path.join(out, "other"), job=self.row.beside) + ["--iterations", str(self.row.iterations * 2)], env)
        try:
            lab.run(which, command, env)
        finally:
            end(other)

    def emulated(self, out):
        return self.command(out)

    def times(self, out):
        with open(os.path.join(out, "0.json")) as f:
            said = json.load(f)
        return said["iteration_ms"], said["exposed_ms"], said["iterations"]


class MinGPT:
    """tests/torch/programs/mingpt.py by torchrun; its kernels take as long as NBOX_HOST_KERNEL_TIME says, and a host
    has one device: else PyTorch's barrier guesses another one than the model's."""

    def __init__(self, row):
        self.row = row
        p = subprocess.run([os.path.join(TOP, "scripts", "torch-env"), "--build", BUILD], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
        if p.returncode:
            raise Skipped(last_words(p.stderr))
        self.python = os.path.join(p.stdout.strip(), "bin", "python")
        self.env = {"NBOX_HOST_KERNEL_TIME": "200us", "OMP_NUM_THREADS": "1", "NBOX_HOST_DEVICES": "1"}

    def torchrun(self, result, flags):
        program = os.path.join(TOP, "tests", "torch", "programs", "mingpt.py")
        return [self.python, "-m", "torch.distributed.run", "--nproc-per-node", "1", *flags, program, "--parallel", self.row.program, "--quiet",
                "--layers", "3", "--warmup", "1", "--steps", str(self.row.iterations), "--seed", str(SEED), "--json", result]

    def real(self, lab, out):
        flags = ["--nnodes", str(self.row.hosts), "--node-rank", "$NODE_RANK", "--master-addr", "$MASTER_ADDR", "--master-port", "$MASTER_PORT"]
        words = " ".join(f'"{word}"' for word in self.torchrun(os.path.join(out, "$NODE_RANK.json"), flags))
        lab.run(["--hosts", str(self.row.hosts), "--per-host"], ["env", "-u", "NCCL_COMM_ID", "sh", "-c", f"exec {words}"], self.env, 300)

    def emulated(self, out):
        return self.torchrun(os.path.join(out, "0.json"), [])

    def times(self, out):
        with open(os.path.join(out, "0.json")) as f:
            said = json.load(f)
        return said["iteration_ms"]["p50"], None, said["times_ms"]


def program_of(row):
    return MinGPT(row) if row.lab == "torch" else Stepper(row)


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


def network_flags(network, row):
    flags = ["--model", "tree" if row.tree else "ring"] + (["--algo", "allreduce=tree"] if row.tree else [])
    for hop in ("inter", "intra"):
        if f"{hop}_latency_us" in network:
            flags += [f"--{hop}-latency", f"{network[f'{hop}_latency_us']:.3f}us",
                      f"--{hop}-bandwidth", f"{network[f'{hop}_bandwidth_mbytes_per_s']:.4f}MB/s"]
    return flags


# ---- runs

def real_run(lab, row):
    with tempfile.TemporaryDirectory() as out:
        os.mkdir(os.path.join(out, "other"))
        program, idle = program_of(row), Idle()
        try:
            program.real(lab, out)
        finally:
            idle.stop()
        median, exposed, times = program.times(out)
        over = time.monotonic() - (time.time() - os.path.getmtime(os.path.join(out, "0.json")))  # written after the last iteration
        return Run(median, exposed, idle.share(over - sum(times) / 1e3, over))


def emulated_run(lab, row, network, real_hosts):
    with tempfile.TemporaryDirectory() as out:
        program = program_of(row)
        summary = os.path.join(out, "summary.json")
        flags = ["env", *(["-u", "NCCL_COMM_ID"] if row.lab == "torch" else []), NBOX, "run", "--quiet", "--out", os.path.join(out, "run"), "--json", summary, "--seed", str(SEED), "--nodes", str(row.hosts),
                 "--gpus-per-node", str(row.gpus), *network_flags(network, row), *(f for w in row.what_if for f in ("--what-if", w))]
        command = program.emulated(out)
        if real_hosts == 1:
            lab.run(["--only", "0", "--per-host"], [*flags, "--", *command], program.env)
        else:
            lab.run(["--only", "0,1", "--per-host"], two_hosts(flags, command, row.hosts, out), program.env)
        median, exposed, _ = program.times(out)
        with open(summary) as f:
            return Run(median, exposed, summary=json.load(f))


def two_hosts(flags, command, world, out):
    """Host 0 runs nbox and rank 0; host 1 starts rank 1 beside libnbox.so as soon as nboxd listens."""
    token = secrets.token_hex(12)
    first = [*flags, "--real", "0-1", "--procs", "1", "--addr", "tcp:10.91.0.1:7400", "--token", token, "--", *command]
    preload = subprocess.run([NBOX, "preload"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    second = ["env", f"LD_PRELOAD={preload}", "NBOX_ADDR=tcp:10.91.0.1:7400", f"NBOX_TOKEN={token}", "RANK=1", "LOCAL_RANK=0",
              f"WORLD_SIZE={world}", *command]
    listens = os.path.join(out, "run", "nboxd.addr")
    script = f"""if [ "$NODE_RANK" = 0 ]; then exec {shlex.join(first)}; fi
        i=0; until [ -e {listens} ]; do i=$((i + 1)); [ $i -lt 200 ] || exit 1; sleep 0.05; done
        exec {shlex.join(second)}"""
    return ["sh", "-c", script]


# ---- rows

def rounds_of(lab, row, network, n_rounds):
    """Real and emulated runs take turns, in another order each round. {real hosts (0: all): [Run]}"""
    kinds = [0, 1] + ([2] if row.two and row.hosts >= 4 else [])
    runs = {k: [] for k in kinds}
    for i in range(n_rounds):
        for k in kinds if i % 2 == 0 else kinds[::-1]:
            run = lambda k=k: real_run(lab, row) if k == 0 else emulated_run(lab, row, network, k)
            try:
                runs[k].append(run())
            except Failed as e:  # said, and tried once more
                print(f"bench fidelity: {row.name}, real hosts {k or 'all'}, round {i}: {e}", file=sys.stderr)
                runs[k].append(run())
    return runs


def median_of(runs, what):
    values = [getattr(r, what) for r in runs if getattr(r, what) is not None]
    return statistics.median(values) if values else None


def judgement(row, idle, cables_pct):
    if row.later:
        return "later"
    if cables_pct is None or cables_pct > CABLE_PCT:
        return "machine: cables"
    if idle is None or idle < IDLE_ENOUGH:
        return f"machine: {0 if idle is None else idle * 100:.0f} % idle"
    return "yes"


def rows_of(row, runs, facts):
    """A row of the table for each number of real hosts."""
    real = median_of(runs[0], "iteration_ms")
    medians = [r.iteration_ms for r in runs[0]]
    idle = median_of(runs[0], "idle")
    for k in sorted(k for k in runs if k > 0):
        predicted = median_of(runs[k], "iteration_ms")
        yield {**head(row, facts), "real_hosts": k, "judged": judgement(row, idle, facts["cables_pct"]), "real_ms": real,
               "predicted_ms": predicted, "diff_pct": (predicted / real - 1) * 100,
               "noise_pct": (max(medians) - min(medians)) / real * 100,
               "exposed_real_ms": median_of(runs[0], "exposed_ms"), "exposed_ms": median_of(runs[k], "exposed_ms"),
               "cpu_idle_pct": None if idle is None else idle * 100, "real_rounds_ms": medians,
               "predicted_rounds_ms": [r.iteration_ms for r in runs[k]], "summaries": [r.summary for r in runs[k]]}


def head(row, facts):
    what_if = " ".join(row.what_if) or "-"
    return {"job": row.name, "hosts": row.hosts, "gpus_per_host": row.gpus, "what_if": f"{what_if} ({row.note})" if row.note else what_if,
            "program": row.program, "real_flags": row.real, "seed": SEED, **facts}


def without_figures(row, facts, why):
    return {**head(row, facts), "real_hosts": None, "judged": why, "real_ms": None, "predicted_ms": None, "diff_pct": None, "noise_pct": None,
            "exposed_real_ms": None, "exposed_ms": None}


COLUMNS = (("job", 26, None), ("hosts", 5, 0), ("real_hosts", 10, 0), ("real_ms", 9, 2), ("predicted_ms", 12, 2), ("diff_pct", 8, 1),
           ("noise_pct", 9, 1), ("exposed_real_ms", 15, 2), ("exposed_ms", 10, 2), ("judged", 18, None), ("what_if", 0, None))


def show(values):
    cells = []
    for name, width, digits in COLUMNS:
        v = values[name]
        text = "-" if v is None else v if digits is None or isinstance(v, str) else f"{v:.{digits}f}"
        cells.append(f"{text:<{width}}" if digits is None else f"{text:>{width}}")
    print(" ".join(cells).rstrip(), flush=True)


def in_lab(name, rows, n_rounds, ret):
    facts = {"lab": " ".join(LABS[name]), "cables_pct": None}

    def add(values):
        ret.append(values)
        show(values)
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
                    for values in rows_of(row, rounds_of(lab, row, network, n_rounds), facts):
                        add(values)
                except (Failed, Skipped) as e:
                    add(without_figures(row, facts, f"{'skipped' if isinstance(e, Skipped) else 'failed'}: {e}"))
    except (Failed, Skipped) as e:
        for row in rows:
            add(without_figures(row, facts, f"{'skipped' if isinstance(e, Skipped) else 'failed'}: {e}"))


def bench(opt):
    wanted = [r for r in ROWS if not opt.only or opt.only in r.name or fnmatch(r.name, opt.only)]
    if not wanted:
        sys.exit(f"bench fidelity: no job is called '{opt.only}'; there are: {', '.join(r.name for r in ROWS)}")
    version = subprocess.run([NBOX, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    print(f"each job on the hosts of a lab, and predicted by nbox with 1 or 2 of them real; medians of {opt.rounds or 3} rounds, {version}")
    show({name: name for name, _, _ in COLUMNS})
    ret = []
    for name in LABS:
        rows = [r for r in wanted if r.lab == name]
        if rows:
            in_lab(name, rows, opt.rounds or 3, ret)
    for values in ret:
        values["version"] = version
    judged = sorted(abs(v["diff_pct"]) for v in ret if v["judged"] == "yes")
    if judged:
        print(f"{len(judged)} of {len(ret)} rows are judged: predicted is off by {statistics.median(judged):.1f} % (median), at most "
              f"{judged[-1]:.1f} %; within 5 %: {sum(d <= 5 for d in judged)}")
    return ret
