"""./scripts/bench published: measured collectives of real clusters against what `nbox perf` says of them. tests/bench/README.md says what
the columns mean."""
import concurrent.futures
import csv
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, replace

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


def fabric_words(setup):
    """A preset's name, and what the set-up has instead."""
    words = shlex.split(setup.fabric)
    return words if words and words[0].startswith("-") else ["--preset", *words]


def size_words(setup):
    return ["--nodes", str(setup.nodes), "--gpus-per-node", str(setup.ranks // setup.nodes)]


def run_nbox(setup, *words):
    """-> (its output, None) or (None, the sentence that says why not)."""
    env = {**os.environ, **dict(w.split("=", 1) for w in setup.env.split())}
    p = subprocess.run([NBOX, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)
    if p.returncode != 0:
        return None, p.stderr.strip().splitlines()[0] if p.stderr.strip() else f"nbox {words[0]} ended with {p.returncode}"
    return p.stdout, None


def ask(setup, size, words):
    """-> (microseconds, None) or (None, why not)."""
    out, why = run_nbox(setup, "perf", setup.op, *size_words(setup), *words, "-b", str(size), "-e", str(size), "--json", "-")
    return (None, why) if why else (json.loads(out)["rows"][0]["modelled_us"], None)


def predict(setups, words_of):
    """@words_of: the options of a set-up's fabric and model. -> ({Setup: [Point]}, {Setup: why not})."""
    failed, new = {}, defaultdict(list)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for setup, point, answer in [(s, p, pool.submit(ask, s, p.bytes, words_of(s))) for s, points in setups.items() for p in points]:
            us, why = answer.result()
            if why:
                failed[setup] = why
            new[setup].append(replace(point, predicted_us=us))
    return new, failed


def of_preset(setup):
    return [*fabric_words(setup), "--model", "nccl"]


# ---- fitted

def fit(given, out, of_fabric):
    """@given: {Setup: [Point]}, all of one fabric. Writes a model, or with @of_fabric a fabric. -> why not, or None."""
    setup = next(iter(given))
    with open(out + ".csv", "w") as f:
        f.write("kind,ranks,nodes,bytes,us\n")
        for s, points in given.items():
            f.writelines(f"{s.op},{s.ranks},{s.nodes},{p.bytes},{p.published_us}\n" for p in points)
    if not of_fabric:
        return run_nbox(setup, "fit", out + ".csv", "--out", out)[1]
    if not shlex.split(setup.fabric)[1:]:
        return run_nbox(setup, "fit", out + ".csv", "--fabric", setup.fabric, "--out", out)[1]
    text, why = run_nbox(setup, "topo", *fabric_words(setup), "--nodes", str(max(s.nodes for s in given)), "--yaml")
    if why:
        return why
    with open(out + ".yaml", "w") as f:
        f.write(text)
    return run_nbox(setup, "fit", out + ".csv", "--fabric", out + ".yaml", "--out", out)[1]


def in_halves(setups, folder, of_fabric):
    """Each set-up fitted to every other of its points, predicted at the others. -> as predict()."""
    words, others, failed = {}, {}, {}
    for i, (s, points) in enumerate(setups.items()):
        good = [p for p in points if not p.note]
        out = os.path.join(folder, f"{'fabric' if of_fabric else 'curve'}{i}")
        why = fit({s: good[::2]}, out, of_fabric) if len(good) > 1 else "one point"
        if why:
            failed[s] = why
            continue
        words[s] = ["--fabric", out, "--model", "nccl"] if of_fabric else [*fabric_words(s), "--model", f"fitted:file={out}"]
        others[s] = good[1::2]
    new, more = predict(others, words.get)
    return new, {**failed, **more}


def small_to_large(setups, folder):
    """Fabrics of one id that were measured with up to 16 nodes and with 64 or more: fitted to the first, predicted at the others."""
    worlds, others, words, failed = defaultdict(dict), {}, {}, {}
    for s, points in setups.items():
        family = (re.sub(r"-[0-9.]+-set[0-9]+$", "", s.id), s.fabric, s.op)  # Polaris: versions and settings are in its ids
        worlds[family][s] = [p for p in points if not p.note]
    for i, (family, all_of) in enumerate(worlds.items()):
        small = {s: p for s, p in all_of.items() if 2 <= s.nodes <= 16 and s.is_high()}
        large = {s: p for s, p in all_of.items() if s.nodes >= 64}
        if not small or not large:
            continue
        out = os.path.join(folder, f"small{i}")
        why = fit(small, out, True)
        for s, points in large.items():
            if why:
                failed[s] = why
            else:
                words[s], others[s] = ["--fabric", out, "--model", "nccl"], points
    new, more = predict(others, words.get)
    return new, {**failed, **more}


# ---- judged

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


def between(setups):
    """What `nbox plan` takes for the model's error (emulator/config/model-error.c)."""
    print("\npublished times / the model's, medians of set-ups: the 10th and the 90th percentile")
    for name, holds in BANDS:
        good = ([p.published_us / p.predicted_us for p in points if not p.note and p.predicted_us is not None and holds(p.bytes)]
                for points in setups.values())
        of = sorted(statistics.median(times) for times in good if times)
        if of:
            low, high = of[round(0.1 * (len(of) - 1))], of[round(0.9 * (len(of) - 1))]
            print(f"  {name:<10}x {low:.2f} to {high:.2f}   of {len(of)}")


def rows(setups, fitted):
    return [{"id": s.id, "fabric": s.fabric, "op": s.op, "nodes": s.nodes, "ranks": s.ranks, "bytes": p.bytes, "trust": s.trust,
             "note": p.note, "published_us": p.published_us, "predicted_us": p.predicted_us, "diff_pct": p.diff_pct(), "fitted": fitted}
            for s, points in setups.items() for p in points if p.predicted_us is not None]


def bench(opt):
    setups = read(opt.data or os.path.join(HERE, "published.csv"))
    alone, failed = predict(setups, of_preset)
    show(alone, failed)
    all_rows = rows(alone, "no")
    judge("from the fabric alone, trust HIGH", {s: errors(p) for s, p in alone.items() if s.is_high() and s not in failed})
    between({s: p for s, p in alone.items() if s.is_high() and s not in failed})
    with tempfile.TemporaryDirectory() as folder:
        high = {s: points for s, points in setups.items() if s.is_high() and s not in failed}
        for title, how, (new, why) in (
                ("a curve fitted to every other point, judged at the others", "curve", in_halves(high, folder, False)),
                ("its fabric fitted to every other point, judged at the others", "fabric", in_halves(high, folder, True)),
                ("a fabric fitted to 2 to 16 nodes, judged at 64 and more", "small worlds", small_to_large(setups, folder))):
            judge(title, {s: errors(p) for s, p in new.items() if s not in why})
            for sentence, n in Counter(re.sub(r"[0-9][0-9.]*|/tmp/\S*", "N", w) for w in why.values()).most_common():
                print(f"  not fitted: {n} ({sentence})")
            all_rows += rows(new, how)
    return all_rows
