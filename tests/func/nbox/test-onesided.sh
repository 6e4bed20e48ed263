#!/usr/bin/env bash
# nbox onesided, and the what-if: of an unmodified job's all-to-all only what computation does not hide is left. In the record, with the
# window by the record's own times, each op's time is the closed form's, to the nanosecond.
. "$(dirname "$0")/lib.sh"

# forward and backward compute for 20 ms between two all-to-alls; behind backward nothing is computed before the next
echo 'layer forward=20ms backward=20ms moe=4MiB' >emb.job
model=(--model alltoall:alpha=1us,bw=1GB/s)
stores=(--what-if onesided:alpha=1us,message=4KiB)
job=(--nodes 4 --gpus-per-node 1 --real 0 --data none)
run() { timeout 100 "$NBOX" run --quiet "${job[@]}" "${model[@]}" "$@" -- "$BUILD/tests/apps/stepper" emb.job --iterations 2 --warmup 0; }
# tails RUN: how many all-to-alls, each as long as what was computed before it leaves of it, and whether one is hidden. A busy machine
# stamps a point late, and then less was computed by the record: what that says is asked for, not 20 ms.
tails() {
	python3 -IS - "$NBOX" "$1" <<'P'
import csv, subprocess, sys
def rows(form):
    return list(csv.DictReader(subprocess.run([sys.argv[1], "report", sys.argv[2], form], capture_output=True, text=True, check=True).stdout.splitlines()))
alpha, wire, n = 1000, 3 << 20, 768
ops, nodes = rows("--csv"), {}
for p in rows("--points"):
    nodes[p["name"]] = p, int(p["virtual_ns"]), int(p["virtual_ns"])
for o in ops:
    nodes[o["name"]] = o, int(o["virtual_arrive_ns"]), int(o["virtual_end_ns"])
# how long the rank had computed since it waited for an op
def window(name):
    row, at, _ = nodes[name]
    waits = [d for d in row["deps"].split() if d.strip("*") in nodes]
    before = [d.strip("*") for d in ([row["host"]] if row["host"] in nodes else []) + waits]
    if not before:
        return 0
    last = max(reversed(before), key=lambda d: nodes[d][2])
    is_op = lambda d: "op" in nodes[d][0]
    return at - nodes[last][2] + (0 if is_op(last) or any(is_op(d) for d in waits if d[-1] != "*") else window(last))
hidden = False
for row in sorted(ops, key=lambda r: int(r["seq"])):
    tail, w = int(row["virtual_end_ns"]) - int(row["virtual_arrive_ns"]), window(row["name"])
    left = max(wire / n, wire - w * (n - 1) / n)
    assert abs(float(row["model_ns"]) - alpha - wire) < 1, row
    assert abs(float(row["model_ns"]) + float(row["injected_ns"]) - tail) < 3, row
    if row["deps"]:
        assert abs(tail - alpha - left) < 3, (row, tail, w)
    else: # of the first one nobody knows what was computed before
        assert alpha + wire / n - 3 < tail < alpha + wire + 3, (row, tail)
    hidden |= left == wire / n
print(len(ops), hidden)
P
}
exits 0 "a job with stores" run "${stores[@]}" --out stores
is "$(tails stores)" "8 True" "with computation before it an all-to-all leaves its latency and one message, without any all of it"
exits 0 "the summary of it" "$NBOX" report stores
says "the job still unpacks what it received" "what no what-if can take away, the summary says"
exits 0 "the job without" run --out plain
exits 0 "re-timed with stores" "$NBOX" retime plain "${stores[@]}" --out retimed
is "$(tails retimed)" "8 True" "the same comes out of a record without them"
for run in plain stores; do
	exits 0 "$run, replayed" "$NBOX" replay $run --json replayed.json
	is "$(json replayed.json 'abs(d["iteration_ms"] / d["recorded_iteration_ms"] - 1) < 1e-3')" True "$run: a model of whole ops says how long the replay's messages take"
done
exits 0 "headers" "$NBOX" retime plain --what-if onesided:alpha=1us,message=4KiB,header=400KiB --out headers
is "$(json headers/summary.json 'd["total_injected_ms"] > 2000')" True "are counted, too"
exits 2 "a wrong key" "$NBOX" retime plain --what-if onesided:headers=4B
says "did you mean" "is corrected"
exits 2 "asked why, too" "$NBOX" why plain --what-if onesided:headers=4B
exits 0 "no all-to-all" "$NBOX" retime plain --what-if onesided:communicator=1
says "warning: what-if onesided:communicator=1: it never took effect: the run has no all-to-all that it is for" "is said"

# ncclAlltoAll: 4000 bytes for each of 3 others, 20 ms of computation before each but the first, which has nothing before it
collective() { timeout 60 "$NBOX" run --quiet "${job[@]}" "${model[@]}" --what-if onesided:alpha=1us,message=1000B "$@" -- "$BUILD/tests/apps/puts" --collective 20 --rounds 4; }
took() {
	"$NBOX" report "$1" --csv | python3 -IS -c 'import csv, sys
rows = sorted((r for r in csv.DictReader(sys.stdin) if r["op"] == "AllToAll"), key=lambda r: int(r["seq"]))
print(*(int(r["virtual_end_ns"]) - int(r["virtual_arrive_ns"]) for r in rows))'
}
exits 0 "ncclAlltoAll" collective --out alltoall
is "$(took alltoall)" "13000 2000 2000 2000" "leaves its latency and one message, too"
exits 0 "beside a slow rank" collective --what-if slow:rank=3,compute=1.5 --out late
is "$(took late | python3 -IS -c 'print(all(int(ns) > 9e6 for ns in input().split()[1:]))')" True "ends when that has come"

exits 0 "the closed form" "$NBOX" onesided --compute 1ms --bags 180000 --ranks 2 --nic 25GB/s,3us --header 64B --agg 4KiB --csv sent.csv --svg sent.svg --json answer.json
says "one-sided         1000.000     0.000             3.166" "and what an aggregator makes of it"
is "$(json answer.json 'd["onesided"]["link_packets"], d["bound"], round(d["onesided"]["end_us"], 3), d["sent"][-1]["onesided_bytes"]')" \
	"(5625, 'compute', 1003.166, 23040000.0)" "as JSON"
is "$(tail -1 sent.csv | cut -d, -f2-)" "23040000,23040000" "as CSV, all bytes"

# PyTorch's traces of two ranks, of which one looks up for 100 us longer; two steps, each with an all-to-all of gradients, too
mkdir emb
python3 -IS - <<'P'
import json
def rank(r, late):
    events = []
    def gpu(name, at, takes, n, **args):
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": n, "dur": .5, "args": {"correlation": n}})
        events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at, "dur": takes, "args": {"stream": 20 if args else 7, "correlation": n} | args})
    def alltoall(at, takes, n, seq):
        gpu("ncclDevKernel_SendRecv", at, takes, n, **{"Collective name": "all_to_all", "dtype": "Float", "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20,
            "Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Seq": seq})
    for step in range(2):
        at, n = 10000 * step + 100, 10 * step + 1
        gpu("embedding_forward_kernel", at, 1000 + late, n)
        alltoall(at + 1010 + late, 301 - late, n + 1, 2 * step)
        gpu("permute_pooled_kernel", at + 1400, 50, n + 2)
        gpu("gemm", at + 1500, 3000, n + 3)
        alltoall(at + 5000, 300, n + 4, 2 * step + 1)
    json.dump({"schemaVersion": 1, "distributedInfo": {"rank": r, "world_size": 2, "backend": "nccl"}, "traceEvents": events}, open(f"emb/rank{r}.json", "w"))
rank(0, 0)
rank(1, 100)
P
exits 0 "traces of GPUs" "$NBOX" onesided --trace emb --fuse embedding,permute --header 0B
says "emb: 2 all-to-alls behind 'embedding', of 201.000 us on average; 2 others" "those behind a lookup count, as long as the last rank is in them"
says "collective        1100.000    10.000           201.000     50.000    1361.000" "and the slowest rank's kernels"
says "one-sided         1100.000     0.000             1.024      0.000    1101.024" "beside which stores leave the latency and a message"
exits 2 "no such kernel" "$NBOX" onesided --trace emb --fuse lookup
says "no all-to-all of known size with a kernel 'lookup' before it (4 others)" "is said"
finish
