"""Rows of ./scripts/bench papers: each figure of the papers beside ours, by tests/papers; then what it costs, and what is held to a cluster
that nobody tuned, live."""
import glob, os, subprocess, sys

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


def bench(opt, build):
    print(f"{'paper':<12} {'item':<78} {'expected':>12} {'got':>12} {'diff':>11}  ok")
    rows = []
    for path in sorted(glob.glob(os.path.join(build, "tests", "papers", "papers-*"))):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            rows += program(path)
    rows.sort(key=lambda r: r["paper"])
    for r in rows:
        show(r)
    print(f"{len(rows)} rows, {sum(not r['ok'] for r in rows)} off")
    return rows
