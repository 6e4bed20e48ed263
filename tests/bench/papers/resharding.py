"""AC8 of AlpaComm, live: case 3 of Table 2 by plain sends and receives of processes, under the what-if xmesh; when its last receiver has its tile."""
import csv, json, os, subprocess, tempfile

TENSOR, SRC, DST, NIC = "64x64x2048", "RS0R@2x4", "S0RR@2x4", "10Gbps"


def took(nbox, run):
    """Milliseconds from when the last of a receiver and of the real ranks that send to it has come until it is over; the longest."""
    text = subprocess.run([nbox, "report", "--csv", run], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = [r for r in csv.DictReader(text.splitlines()) if r["op"] == "SendRecv"]
    start = {(r["seq"], r["world_rank"]): int(r["virtual_arrive_ns"]) + float(r["queued_ns"]) for r in rows}
    longest = 0
    for r in rows:
        who = [(r["seq"], c[1:].split(":")[0]) for c in r["calls"].split() if c[0] == "r"] + [(r["seq"], r["world_rank"])]
        if len(who) > 1:
            longest = max(longest, int(r["virtual_end_ns"]) - max(start[w] for w in who if w in start))
    return longest / 1e6


def rows(build):
    nbox, job = os.path.join(build, "nbox"), [os.path.join(build, "tests/apps/resharder"), TENSOR, "f32", SRC, DST]
    what = ["--what-if", f"xmesh:strategy=broadcast,nic={NIC},tensor={TENSOR},src={SRC},dst={DST}"]
    quiet = {"stdout": subprocess.DEVNULL, "check": True, "timeout": 100}
    with tempfile.TemporaryDirectory() as d:
        def run(name, real, *words):
            subprocess.run([nbox, "run", "--quiet", "--nodes", "4", "--gpus-per-node", "4", "--real", real, "--model", "none", *words, "--out", f"{d}/{name}", "--", *job], **quiet)
            return took(nbox, f"{d}/{name}")

        def retimed(name):
            subprocess.run([nbox, "retime", f"{d}/{name}", *what, "--out", f"{d}/{name}-retimed"], **quiet)
            return took(nbox, f"{d}/{name}-retimed")

        subprocess.run([nbox, "reshard", "plan", "--tensor", TENSOR, "--src", SRC, "--dst", DST, "--nic", NIC, "--json", f"{d}/plan"], **quiet)
        with open(f"{d}/plan") as f:
            plan = json.load(f)["end_ns"] / 1e6
        run("plain", "8-15"), run("all-plain", "0-15")
        for item, got in (("8 real, 8 virtual ranks", run("half", "8-15", *what)), ("16 real ranks", run("all", "0-15", *what)),
                          ("8 real, 8 virtual ranks, re-timed from a plain run", retimed("plain")), ("16 real ranks, re-timed", retimed("all-plain"))):
            off = 100 * (got - plan) / plan
            yield {"paper": "001 AlpaComm", "item": f"AC8, ms: case 3 under xmesh, {item}", "expected": plan, "got": got, "diff_pct": off, "ok": abs(off) <= 1e-4}
