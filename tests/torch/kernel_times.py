"""How long kernels take without a GPU: a model under --gpu h100, and a table that a trace of torch.profiler makes. Times are what the runtime counts, none is
measured."""
import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile

from harness import NBOX, TOP, environment, execute, expect, main, torchrun

# products of matrices in every form: addmm, mm, bmm; both ways, in two types
PROGRAM = """
import sys, torch
from torch.profiler import ProfilerActivity, profile
layers = torch.nn.Sequential(torch.nn.Linear(64, 96, device="cuda"), torch.nn.Linear(96, 32, bias=False, device="cuda"))
def step():
    layers(torch.empty(128, 64, device="cuda")).sum().backward()
    a = torch.empty(6, 16, 24, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    torch.bmm(a, torch.empty(6, 24, 40, device="cuda", dtype=torch.bfloat16)).sum().backward()
    torch.cuda.synchronize()
step()
if len(sys.argv) > 1:
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as p:
        step()
    p.export_chrome_trace(sys.argv[1])
"""
FABRICS = [os.path.join(TOP, "share", "clusters", name + ".yaml") for name in ("8x400g-roce", "8x200g-ib", "100g-tcp")]
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm")


def launches(text):
    """{name: (launches, us in all)} of NBOX_HOST_KERNEL_LOG."""
    return {m[3]: (int(m[1]), float(m[2])) for m in re.finditer(r"kernel: (\d+) launches, ([\d.]+)us in all: (.*)", text)}


def plan_of(run, out):
    """plan.csv of what ./scripts/plan-gpt asks."""
    execute([NBOX, "plan", run, "--nodes", "4,8,32,128", "--fabric", "{%s}" % ",".join(FABRICS), "--tokens-per-step", "8K",
             "--prices", os.path.join(TOP, "share", "clusters", "prices.yaml"), "--out", out], 60)
    with open(os.path.join(out, "plan.csv")) as f:
        return f.read()


def a_gpt_is_planned_by_the_data_sheet_of_a_card():
    """a small gpt.py under --gpu h100: its kernels, and a plan for more nodes, which is the same each time"""
    steps, layers, width, length, batch = 4, 2, 64, 256, 8
    sizes = ["--layers", layers, "--width", width, "--heads", 1, "--length", length, "--vocabulary", 512, "--batch", batch]
    with tempfile.TemporaryDirectory(prefix="nbox-gpt-") as d:
        r = execute([NBOX, "run", "--nodes", "4", "--gpus-per-node", "1", "--model", "nccl", "--fabric", FABRICS[0], "--device", "host", "--gpu", "h100", "--out",
                     d + "/run", "--", *torchrun(1, "gpt.py", [*sizes, "--steps", steps - 1, "--warmup", 1])],
                    100, environment({"NBOX_HOST_KERNEL_LOG": "1"}))
        expect("compute is modelled: kernels take what their sizes and the data sheet of a card say (h100)" in r.text, r.text)
        first, second = plan_of(d + "/run", d + "/first"), plan_of(d + "/run", d + "/second")
    found = launches(r.text)
    matmuls = {name: v for name, v in found.items() if name.startswith("matmul bf16 ")}
    # four linear layers a block and the head: once forward, twice backward
    linear = 4 * layers + 1
    expect(sum(n for n, _ in matmuls.values()) == linear * 3 * steps, str(matmuls))
    expect(all(us >= 2 * n for n, us in found.values()), str(found))
    # causal attention: half of two products of all tokens with all, in blocks of its kernel; at 35 % of the peak
    attention = [us / n for name, (n, us) in found.items() if "flash_fwd_kernel<" in name]
    expect(len(attention) == 1 and abs(attention[0] - 2 - batch * 2 * length**2 * width / 989.5e6 / 0.35) < 0.01, str(attention))
    expect(first == second, first + second)
    rates = {}
    for row in csv.DictReader(io.StringIO(first)):
        rates.setdefault(row["fabric"], []).append(float(row["rate"]))
    expect(len(rates) == 3 and all(len(r) == 4 and r == sorted(r) for r in rates.values()), first)


def a_trace_becomes_a_table_that_the_job_meets():
    """torch.profiler's trace, with kernels as a GPU would have added them, since there are none here"""
    with tempfile.TemporaryDirectory(prefix="nbox-kernels-") as d:
        path, table = os.path.join(d, "trace.json"), os.path.join(d, "table")
        execute([sys.executable, "-c", PROGRAM, path], 100, environment())
        made = subprocess.run([NBOX, "kernels", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        expect(made.returncode == 2 and "no event is a kernel" in made.stdout, made.stdout)
        with open(path) as f:
            trace = json.load(f)
        ids = [e["args"]["External id"] for e in trace["traceEvents"] if e.get("cat") == "cpu_op" and e["name"] in PRODUCTS]
        expect(ids, "no product in the trace")
        trace["traceEvents"] += [{"ph": "X", "cat": "kernel", "name": "gemm", "dur": 7, "args": {"External id": i}} for i in ids]
        trace["traceEvents"].append({"ph": "X", "cat": "kernel", "name": "z", "dur": 0})
        with open(path, "w") as f:
            json.dump(trace, f)
        execute([NBOX, "kernels", "--out", table, path], 60)
        with open(table) as f:
            text = re.sub(r"^\* .*", "* 0s", f.read(), flags=re.M)
        with open(table, "w") as f:
            f.write(text)
        found = launches(execute([sys.executable, "-c", PROGRAM], 100, environment({"NBOX_HOST_KERNEL_TIME": table, "NBOX_HOST_KERNEL_LOG": "1"})).text)
    matmuls = {name: v for name, v in found.items() if name.startswith("matmul ")}
    expect(sum(n for n, _ in matmuls.values()) == len(ids), f"{len(ids)} in the trace, launched {matmuls}")
    expect(all(us == 7 * n for n, us in matmuls.values()), f"{matmuls}\n{text}")


main(a_gpt_is_planned_by_the_data_sheet_of_a_card, a_trace_becomes_a_table_that_the_job_meets)
