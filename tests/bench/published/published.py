"""./scripts/bench published: measured collectives of real clusters against what `nbox perf` says of them. tests/bench/README.md says what
the columns mean."""
import concurrent.futures
import csv
import json
import os
import shlex
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
NBOX = os.path.join(TOP, "build", "nbox")
BANDS = (("<= 64 KB", lambda b: b <= 1 << 16), ("between", lambda b: 1 << 16 < b < 1 << 26), (">= 64 MB", lambda b: b >= 1 << 26))
NEEDED = ("id", "fabric", "op", "nodes", "ranks", "bytes", "published_us")
OTHER_NAMES = {"operation": "op", "published_time": "published_us", "published_time_us": "published_us", "time_us": "published_us"}


@dataclass(frozen=True)
class Setup:
    """One cluster, one operation, one size of the world."""
    id: str
    fabric: str
    op: str
    nodes: int
    ranks: int
    env: str
    trust: str

    def is_high(self):
        return self.trust.upper().split()[:1] == ["HIGH"]


@dataclass
class Point:
    bytes: int
    published_us: float
    note: str
    predicted_us: float = None

    def diff_pct(self):
        return (self.predicted_us / self.published_us - 1) * 100


def read(path):
    """-> {Setup: [Point, by bytes]}."""
    setups = defaultdict(list)
    with open(path, newline="") as f:
        for line in csv.DictReader(f):
            row = {OTHER_NAMES.get(k.strip().lower().replace(" ", "_"), k.strip().lower()): (v or "").strip() for k, v in line.items() if k}
            missing = [c for c in NEEDED if not row.get(c)]
            if missing:
                sys.exit(f"bench published: {path}: a row without {', '.join(missing)}: {line}")
            op = row["op"].lower().removesuffix("_perf").replace("_", "").replace("-", "")
            key = Setup(row["id"], row["fabric"], op, int(row["nodes"]), int(row["ranks"]), row.get("env", ""), row.get("trust") or "HIGH")
            setups[key].append(Point(int(row["bytes"]), float(row["published_us"]), row.get("note", "")))
    return {s: sorted(points, key=lambda p: p.bytes) for s, points in setups.items()}


def command(setup):
    """The options of a cluster: a preset's name and what the set-up has instead."""
    words = shlex.split(setup.fabric)
    if words and not words[0].startswith("-"):
        words.insert(0, "--preset")
    return words + ["--nodes", str(setup.nodes), "--gpus-per-node", str(setup.ranks // setup.nodes)]


def ask(setup, size):
    """-> (microseconds, None) or (None, the sentence that says why not)."""
    env = {**os.environ, **dict(w.split("=", 1) for w in setup.env.split())}
    p = subprocess.run([NBOX, "perf", setup.op, *command(setup), "-b", str(size), "-e", str(size), "--json", "-"], env=env,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    if p.returncode != 0:
        return None, p.stderr.strip().splitlines()[0] if p.stderr.strip() else f"nbox perf ended with {p.returncode}"
    return json.loads(p.stdout)["rows"][0]["modelled_us"], None


def predict(setups):
    """Fills predicted_us in. -> {Setup: why not}."""
    failed = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for setup, point, answer in [(s, p, pool.submit(ask, s, p.bytes)) for s, points in setups.items() for p in points]:
            point.predicted_us, why = answer.result()
            if why:
                failed[setup] = why
    return failed


def errors(points):
    """Per band the median of the absolute errors; None: no points."""
    judged = [p for p in points if not p.note and p.predicted_us is not None]
    of = [[abs(p.diff_pct()) for p in judged if holds(p.bytes)] for _, holds in BANDS]
    return [statistics.median(e) if e else None for e in of]


def show(setups, failed):
    print(f"{'set-up':<34}{'op':<14}{'nodes':>6}{'ranks':>6}  {'trust':<12}" + "".join(f"{name + ' %':>12}" for name, _ in BANDS))
    for s, points in setups.items():
        of = "".join(f"{'-' if e is None else format(e, '.1f'):>12}" for e in errors(points))
        print(f"{s.id:<34}{s.op:<14}{s.nodes:>6}{s.ranks:>6}  {s.trust:<12}" + (f"  {failed[s]}" if s in failed else of))


def judge(title, per_setup):
    """@per_setup: errors() of each set-up."""
    print(f"\n{title}: {len(per_setup)} set-ups")
    for (name, _), of in zip(BANDS, zip(*per_setup.values())):
        known = {s: e for s, e in zip(per_setup, of) if e is not None}
        if known:
            worst = max(known, key=known.get)
            print(f"  {name:<10}median {statistics.median(known.values()):6.1f} %   worst {known[worst]:6.1f} % "
                  f"({worst.id}, {worst.nodes} nodes, {worst.op})   of {len(known)}")


def rows(setups, fitted):
    return [{"id": s.id, "fabric": s.fabric, "op": s.op, "nodes": s.nodes, "ranks": s.ranks, "bytes": p.bytes, "trust": s.trust,
             "note": p.note, "published_us": p.published_us, "predicted_us": p.predicted_us, "diff_pct": p.diff_pct(), "fitted": fitted}
            for s, points in setups.items() for p in points if p.predicted_us is not None]


def bench(opt):
    setups = read(opt.data or os.path.join(HERE, "published.csv"))
    failed = predict(setups)
    show(setups, failed)
    judge("from the fabric alone, trust HIGH", {s: errors(points) for s, points in setups.items() if s.is_high() and s not in failed})
    return rows(setups, "no")
