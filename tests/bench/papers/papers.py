"""Rows of ./scripts/bench papers: each figure of the papers beside ours, by tests/papers; then what it costs, and what is held to a cluster
that nobody tuned, live."""
import glob, json, os, subprocess, sys, tempfile, types

import resharding

FIELDS = ("paper", "item", "expected", "got", "diff_pct", "ok")


def program(path):
    """The rows of one program, tab separated. It ends with 1 where one is off."""
    p = subprocess.run([path], stdout=subprocess.PIPE, text=True, timeout=600)
    if p.returncode not in (0, 1):
        sys.exit(f"bench: {path} ended with {p.returncode}")
    rows = [dict(zip(FIELDS, line.split("\t"))) for line in p.stdout.splitlines()]
    return [{**r, **{f: float(r[f]) for f in FIELDS[2:5]}, "ok": r["ok"] == "yes"} for r in rows]


def show(r):
    print(f"{r['paper']:<12} {r['item']:<78} {r['expected']:>12.6g} {r['got']:>12.6g} {r['diff_pct']:>9.3g} %  {'yes' if r['ok'] else 'NO'}", flush=True)


def pipelines_in_lab(opt):
    """1F1B against eager 1F1B on 4 and 8 hosts: ten minutes, and root."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fidelity"))
    import fidelity
    for r in fidelity.bench(types.SimpleNamespace(only="pipeline of *", rounds=opt.rounds or 2, before=None)):
        of, judged = r["job"], r["judged"] == "yes"
        if r["real_ms"] is None:
            sys.exit(f"bench papers: {of}: {r['judged']}")
        yield {"paper": "001 AlpaComm", "item": f"lab, ms: {of}, {r['real_hosts']}{'' if judged else ' (' + r['judged'] + ')'}", "expected": r["real_ms"],
               "got": r["predicted_ms"], "diff_pct": r["diff_pct"], "ok": abs(r["diff_pct"]) <= r["tolerance_pct"]}


def nic_twice(build):
    """A stepper's record on 16 hosts, replayed with twice the NIC, beside a live run there."""
    nbox, jobs = os.path.join(build, "nbox"), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "apps", "stepper", "jobs")
    with tempfile.TemporaryDirectory() as folder:
        def live(job, rate):
            out = os.path.join(folder, job + rate)
            subprocess.run([nbox, "run", "--quiet", "--nodes", "16", "--gpus-per-node", "1", "--model", "ring", "--inter-bandwidth", rate, "--out", out, "--",
                            os.path.join(build, "tests", "apps", "stepper"), os.path.join(jobs, job + ".job"), "--iterations", "8", "--warmup", "1"],
                           stdout=subprocess.DEVNULL, check=True)
            with open(os.path.join(out, "summary.json"), encoding="utf-8") as f:
                return out, json.load(f)["steps"]["ms"]["p50"]
        for job in "ddp", "fsdp", "uneven":
            record, truth = live(job, "400Mbps")[0], live(job, "800Mbps")[1]
            said = json.loads(subprocess.run([nbox, "replay", record, "--nic", "800Mbps", "--json", "-"], stdout=subprocess.PIPE, check=True).stdout)["iteration_ms"]
            off = 100 * (said / truth - 1)
            yield {"paper": "003 dPRO", "item": f"BD10 vs emulator, live, ms: {job}, 400 to 800 Mbit/s", "expected": truth, "got": said, "diff_pct": off, "ok": abs(off) <= 5}


def bench(opt, build):
    print(f"{'paper':<12} {'item':<78} {'expected':>12} {'got':>12} {'diff':>11}  ok")
    rows = []
    for path in sorted(glob.glob(os.path.join(build, "tests", "papers", "papers-*"))):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            rows += program(path)
    rows += resharding.rows(build)
    if opt.full:
        rows += pipelines_in_lab(opt)
        rows += nic_twice(build)
    rows.sort(key=lambda r: r["paper"])
    for r in rows:
        show(r)
    print(f"{len(rows)} rows, {sum(not r['ok'] for r in rows)} off")
    return rows
