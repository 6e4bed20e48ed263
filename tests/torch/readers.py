"""Tools of others read what nbox makes of a run: Holistic Trace Analysis its trace, Prometheus's own parser its metrics."""
import gzip
import json
import os
import re
import subprocess
import tempfile

from harness import NBOX, environment, execute, expect, main, torchrun


def nbox(*args):
    return subprocess.run([NBOX, *args], stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout


def cut(path, first_step):
    """Leaves of a trace what is between the beginning of @first_step and the end of the last step. Returns how many steps that is and how long
    communication lasted in it, in us."""
    with gzip.open(path, "rt") as f:
        trace = json.load(f)
    steps = {int(re.search(r"\d+$", e["name"])[0]): e for e in trace["traceEvents"] if e.get("cat") == "user_annotation"}
    steps = [e for number, e in steps.items() if number >= first_step]
    begin, end = min(e["ts"] for e in steps), max(e["ts"] + e["dur"] for e in steps)
    expect(abs(sum(e["dur"] for e in steps) - (end - begin)) < 1, "the steps do not follow each other")
    kernels, busy, until = {}, 0, 0
    for e in sorted((e for e in trace["traceEvents"] if e.get("cat") == "kernel"), key=lambda e: e["ts"]):
        of, to = max(begin, e["ts"]), min(end, e["ts"] + e["dur"])
        if to <= of:
            continue
        kernels[e["args"]["correlation"]] = {**e, "ts": of, "dur": to - of}
        if e["name"].startswith("nccl"):
            busy += max(0, to - max(of, until))
            until = max(until, to)
    launches = [{**e, "ts": max(begin, e["ts"])} for e in trace["traceEvents"]
                if e.get("cat") == "cuda_runtime" and e["args"]["correlation"] in kernels]
    trace["traceEvents"] = [*steps, *launches, *kernels.values()]
    with gzip.open(path, "wt") as f:
        json.dump(trace, f)
    return len(steps), busy


def metrics_are_read(text, figures):
    import prometheus_client.parser
    found = {s.name: s.value for family in prometheus_client.parser.text_string_to_metric_families(text) for s in family.samples}
    got = (found["nbox_ranks"], found["nbox_step_seconds_count"], round(1e3 * found["nbox_step_exposed_seconds"], 6))
    expect(got == (figures["world_size"], figures["steps"]["timed"], round(figures["exposed_ms"], 6)), str(got))


def overlap_is_that_of_hta():
    """What a step exposes of its communication, by the summary, HTA does not find beside computation: within 1 % of the communication."""
    import hta.trace_analysis
    with tempfile.TemporaryDirectory(prefix="nbox-torch-") as d:
        run, traces, summary = (os.path.join(d, name) for name in ("run", "traces", "summary.json"))
        job = torchrun(2, "mingpt.py", ["--steps", "10", "--warmup", "1", "--batch", "128", "--quiet"])
        execute([NBOX, "run", "--nodes", "16", "--gpu", "h100", "--model", "ring:bw=20Gbps,alpha=5us", "--out", run, "--json", summary, "--", *job],
                300, environment())
        nbox("report", run, "--trace", traces + "/")
        with open(summary) as f:
            figures = json.load(f)
        metrics_are_read(nbox("report", run, "--metrics", "-"), figures)
        n, busy = cut(os.path.join(traces, "rank-0.json.gz"), figures["steps"]["warm_up"] + 1)
        found = hta.trace_analysis.TraceAnalysis(trace_dir=traces, include_last_profiler_step=True).get_comm_comp_overlap(visualize=False)
    got = float(found.loc[found["rank"] == 0, "comp_comm_overlap_pctg"].iloc[0])
    want = 100 * (1 - 1e3 * figures["exposed_ms"] * n / busy)
    print(f"      {n} steps, communication {busy / n / 1e3:.3f} ms each, overlapped {want:.2f} %, by HTA {got:.2f} %")
    ms = figures["steps"]["ms"]
    if ms["p95"] > 1.2 * ms["p50"] or ms["mean"] > 1.05 * ms["p50"]:
        print("      not judged: the steps are unlike, so this machine was busy")
        return
    expect(n >= 3 and 0 < want < 100 and abs(got - want) <= 1, f"nbox {want:.2f} %, HTA {got:.2f} %")


try:
    import hta  # noqa: F401
except ImportError as why:
    print(f"skip  {overlap_is_that_of_hta.__name__}: {why}: ./scripts/torch-env could not install it")
else:
    main(overlap_is_that_of_hta)
