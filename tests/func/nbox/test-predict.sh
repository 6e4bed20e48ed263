#!/usr/bin/env bash
# nbox predict, blame, overheads, shard, rf: of a run, and of traces of a GPU.
here=$(realpath "$(dirname "$0")")
. "$here/lib.sh"

# --- a run of four ranks, of which one computes three times as long ---
cat >ddp.job <<'JOB'
bucket 8MiB
layer x4 forward=2ms backward=4ms params=4MiB
JOB
exits 0 "a run is recorded" "$NBOX" run --name ddp --quiet --nodes 1 --gpus-per-node 4 --real 0-3 --data none --model alphabeta \
	--what-if slow:rank=2,compute=3 -- "$BUILD/tests/apps/stepper" ddp.job
exits 0 "it is predicted" "$NBOX" predict ddp --json p.json
says "critical path" "it has a critical path"
is_if_quiet ddp "$(json p.json 'abs(d["error_pct"]) < 5')" True "the prediction is the run's virtual time"
is "$(json p.json 'all(i["predicted_ms"] >= i["baseline_ms"] for i in d["iterations"])')" True "no prediction is below the baseline"
is "$(json p.json 'abs(sum(s["ms"] for s in d["critical_path"]) - sorted(i["predicted_ms"] for i in d["iterations"])[(len(d["iterations"]) - 1) // 2]) < 1e-3')" \
	True "the path has no gaps"
exits 0 "with a rank that computes longer still" "$NBOX" predict ddp --scale-compute 2=2 --scale-compute 0=1.5 --json slower.json
is "$("$NBOX" predict ddp --scale-compute 2=2 --json - | tee both.json | head -c 1)" "{" "JSON on standard output has no table before it"
is "$(python3 -c 'import json; a, b = (json.load(open(f))["predicted_ms"] for f in ("p.json", "slower.json")); print(b > 1.5 * a)')" True \
	"the iteration follows it"
exits 1 "a full disk" "$NBOX" predict ddp --json /dev/full
exits 0 "blame" "$NBOX" blame ddp --json b.json
is "$(json b.json 'd["blame"][0]["culprit"]')" 2 "the culprit is the slow rank"
is "$(json b.json 'd["blame"][0]["won_ms"] > 0 and sum(b["waits_ms"] for b in d["blame"]) > d["blame"][0]["won_ms"]')" True \
	"what could be won is less than all that waited"
exits 0 "on a slower network" "$NBOX" predict ddp --model alphabeta --intra-bandwidth 500MB/s --json net.json
exits 0 "the same by the replay" "$NBOX" retime ddp --intra-bandwidth 500MB/s --json retimed.json
is_if_quiet ddp "$(python3 -c 'import json; a = sorted(i["predicted_ms"] for i in json.load(open("net.json"))["iterations"]); b = json.load(open("retimed.json"))["steps"]["ms"]["p50"]; print(abs(a[(len(a) - 1) // 2] / b - 1) < .15)')" \
	True "both say the same of the middle iteration"
exits 2 "an nbox run has no host" "$NBOX" overheads ddp
says "no operator of a host is in it" "and that is said"
exits 0 "its trace, a file a rank" "$NBOX" report ddp --trace ddp-trace/
exits 0 "it is predicted" "$NBOX" predict ddp-trace --json again.json
says "the trace has no host" "marks of kernels are no host"
is_if_quiet ddp "$(python3 -c 'import json; a, b = (json.load(open(f))["predicted_ms"] for f in ("p.json", "again.json")); print(abs(a / b - 1) < .03)')" True \
	"as long as the run, though the trace does not say what waits for what"
exits 0 "the same by a wrong clock" "$NBOX" trace export ddp-trace --skew rank-1.json.gz=100ms --out skewed.json
exits 0 "it is predicted" "$NBOX" predict skewed.json --json skewed-p.json
is "$(python3 -c 'import json; a, b = (json.load(open(f))["predicted_ms"] for f in ("again.json", "skewed-p.json")); print(abs(a / b - 1) < .01)')" True \
	"it is as long by any clock"

# --- iterations that are long at first ---
cat >cold.job <<'JOB'
bucket 64MiB
layer x4 forward=2ms backward=4ms params=4MiB
JOB
exits 0 "a run whose first iterations are unlike the others" "$NBOX" run --name cold --quiet --nodes 1 --gpus-per-node 4 --real 0-3 --data none \
	--model ring -- "$BUILD/tests/apps/stepper" cold.job --iterations 4 --warmup 0 --jitter 90% --seed 7
exits 0 "it is predicted" "$NBOX" predict cold --json cold.json
cold=$(json nbox-out/cold/summary.json 'd["steps"]["warm_up"]') # 2, on a busy machine perhaps 1
says "$cold left out as warm-up" "they are left out"
is "$(json cold.json '(d["warm_up_iterations"], sorted(i["step"] for i in d["iterations"]))')" \
	"$(python3 -c "print(($cold, list(range($cold + 1, 5))))")" "of the mean, as in the run's summary"

# --- a pipeline of four stages, of which one is slow ---
cat >pp.job <<'JOB'
parallel pp=4
micro 8
update 1ms
layer x4 forward=1ms backward=2ms params=512KiB send=128KiB
layer x2 forward=2ms backward=4ms params=512KiB send=128KiB
layer x2 forward=1ms backward=2ms params=512KiB send=128KiB
JOB
exits 0 "a pipeline is recorded" "$NBOX" run --name pp --quiet --nodes 1 --gpus-per-node 4 --real 0-3 --data none --model ring \
	-- "$BUILD/tests/apps/stepper" pp.job --iterations 8
exits 0 "it is predicted" "$NBOX" predict pp --json pp.json
exits 0 "and re-timed" "$NBOX" retime pp --json ppr.json
cat >same.py <<'PY'
import json, sys
a = sorted(i["predicted_ms"] for i in json.load(open(sys.argv[1]))["iterations"])
print(abs(a[(len(a) - 1) // 2] / json.load(open(sys.argv[2]))["steps"]["ms"]["p50"] - 1) < .15)
PY
is_if_quiet pp "$(python3 same.py pp.json ppr.json)" True "both say the same of the middle iteration"
exits 0 "its trace, a file a rank" "$NBOX" report pp --trace pp-trace/
exits 0 "it is predicted" "$NBOX" predict pp-trace --json ppt.json
is_if_quiet pp "$(python3 same.py ppt.json ppr.json)" True "so does its trace, in which stages wait for messages, though it does not say so"
exits 2 "half a pipeline" "$NBOX" predict pp --ranks 6
says "a multiple of 4 copies all of them" "and that is said"
exits 2 "one rank at two speeds" "$NBOX" predict pp --scale-compute 0=2 --scale-compute 0-1=3
exits 2 "hosts that are not there" "$NBOX" predict pp --profiler-event 1us
exits 0 "blame of it" "$NBOX" blame pp --json ppb.json
is_if_quiet pp "$(json ppb.json 'd["blame"][0]["culprit"]')" 2 "the culprit is the slow stage"

# --- a mixture of experts, whose steps begin with an all-reduce that comes behind its all-to-alls ---
exits 0 "experts are recorded" "$NBOX" run --name moe --quiet --nodes 1 --gpus-per-node 4 --real 0-3 --data none --model ring \
	-- "$BUILD/tests/apps/stepper" "$here/../../apps/stepper/jobs/moe.job" --iterations 6
exits 0 "and predicted" "$NBOX" predict moe --json moe.json
is_if_quiet moe "$(grep -c '1 that is not whole left out' <<<"$out") $(json moe.json 'd["partial_iterations"]')" "1 1" \
	"but for what is before the first step; JSON has it, too"
exits 0 "and re-timed" "$NBOX" retime moe --json moer.json
is_if_quiet moe "$(python3 same.py moe.json moer.json)" True "both say the same"

# --- a trace of PyTorch's profiler: two ranks, worked out by hand ---
python3 - <<'PY'
import json
def rank(r, lookup):
    e, at, n = [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "pid": 1, "tid": 1, "ts": 0, "dur": 1000}], 0, 0
    def op(name, cuda, comm=None):
        nonlocal at, n
        at += 5
        e.append({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": 9})
        n += 1
        e.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 3, "dur": 4, "args": {"correlation": n}})
        args = {"stream": 20 if comm else 7, "correlation": n}
        if comm:
            args |= {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "Group size": 2,
                     "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Seq": 1}
        e.append({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce" if comm else name, "pid": 0, "tid": 7, "ts": cuda[0], "dur": cuda[1], "args": args})
        at += 9
    op("aten::embedding_bag", (10, lookup))
    op("c10d::allreduce_", (11 + lookup, 211 - lookup), True)
    json.dump({"schemaVersion": 1, "distributedInfo": {"rank": r, "world_size": 2, "backend": "nccl"}, "traceEvents": e}, open(f"gpu/rank{r}.json", "w"))
import os
os.mkdir("gpu")
rank(0, 100), rank(1, 161)
PY
exits 0 "T1 to T5" "$NBOX" overheads gpu --profiler-event 0us --profiler-launch 0us --json ov.json
is "$(json ov.json '[d["all"][t]["mean_ns"] for t in ("T1", "T2", "T3", "T4")]')" "[5000.0, 3000.0, 2000.0, 4000.0]" "are those of the trace"
exits 0 "a folder of traces is predicted" "$NBOX" predict gpu --overheads ov.json --json gpu.json
is "$(json gpu.json 'round(d["predicted_ms"] * 1e3, 3)')" "222.0" "by hand: 10 us until the look-up runs, 161 of it, a gap, 50 of the all-reduce"
exits 0 "blame of it" "$NBOX" blame gpu --overheads ov.json --json gb.json
is "$(json gb.json '(d["blame"][0]["culprit"], round(d["blame"][0]["won_ms"] * 1e3, 3))')" "(1, 61.0)" "rank 1's look-up costs what it is longer"

# --- a CUDA graph of 100 kernels, twice, before the first of which the GPU has nothing to do ---
python3 - <<'PY'
import json
e, n = [], 0
for step in range(2):
    at = 500 * step
    e.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step + 1}", "pid": 1, "tid": 1, "ts": at, "dur": 50})
    e.append({"ph": "X", "cat": "cpu_op", "name": "aten::graph", "pid": 1, "tid": 1, "ts": at, "dur": 10})
    e.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 1, "tid": 1, "ts": at + 3, "dur": 5, "args": {"correlation": step + 1}})
    for k in range(100):
        e.append({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + 400 + 3 * k, "dur": 2, "args": {"stream": 7, "correlation": step + 1}})
json.dump({"schemaVersion": 1, "traceEvents": e}, open("graph.json", "w"))
PY
exits 0 "a graph is predicted" "$NBOX" predict graph.json --profiler-event 0us --profiler-launch 0us --json graph-p.json
is "$(json graph-p.json 'round(d["predicted_ms"] * 1e3, 3)')" "304.5" "by hand: 3 us, half of one launch, 100 kernels, 99 gaps"
is "$(json graph-p.json '[i["traced_ms"] for i in sorted(d["iterations"], key=lambda i: i["step"])]')" "[0.699, 0.5]" \
	"an iteration is traced from the end of the one before it, though its host began sooner"

# --- tables of embeddings ---
printf 'E,D,L\n1000000,64,30\n500000,128,5\n2000,32,80\n10000000,64,1.5\n100,256,20\n300000,64,50\n50000,128,12\n8000000,32,25\n' >t.csv
exits 0 "six sharders, played in the emulator" "$NBOX" shard --tables t.csv --gpus 4 --mem 4GB --preset dgx-a100 --model nccl --verify --json s.json
is "$(json s.json '[p["gpu_of_table"] for p in d["tasks"][0]["plans"] if p["sharder"] == "lookup"]')" "[[3, 1, 2, 2, 0, 1, 3, 2]]" "tables go where they must"
exits 0 "two tasks" "$NBOX" shard --tables t.csv --tables t.csv --gpus 4 --mem 4GB --preset dgx-a100 --json two.json
is "$(json two.json 'len(d["tasks"])')" 2 "both are answered"
is "$(json s.json 'd["tasks"][0]["pick_is_good"] and all(abs(p["error_pct"]) < 5 for p in d["tasks"][0]["plans"] if p["fits"])')" True "the emulator agrees"
exits 0 "eight tables on four nodes" "$NBOX" shard --tables t.csv --gpus 32 --nodes 4 --preset dgx-a100 --verify --json four.json
is "$(json four.json 'all(abs(p["error_pct"]) < 5 for p in d["tasks"][0]["plans"])')" True "it agrees, though few GPUs send"
printf '0,0,0 1 4 6\n0,0,1 2 3 5 7\n0 0 0 5 7\n0 0 1 6\n' >i.txt
exits 0 "reuse factors" "$NBOX" rf --indices i.txt
says "0,0,14,8,0.428571,0.375,0.5,0.125,0" "of the paper's example"
nothing_left
finish
