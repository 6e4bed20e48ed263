#!/usr/bin/env bash
# A run in the forms of others. Holistic Trace Analysis reads the trace in tests/torch/readers.py.
. "$(dirname "$0")/lib.sh"
jobs=$(dirname "$0")/../../apps/stepper/jobs
exits 0 "a run of two real ranks" timeout 100 "$NBOX" run --nodes 4 --gpus-per-node 1 --real 0-1 --model ring --name r -- \
	"$BUILD/tests/apps/stepper" "$jobs/fsdp.job" --iterations 5 --warmup 1
lines() { "$NBOX" record dump --kind "$1" r | wc -l; }

# --- a trace
exits 0 "a trace of all ranks" "$NBOX" report r --trace t.json
is "$out" "" "takes the summary's place"
trace() { json t.json "$1"; }
is "$(trace 'sum(e["name"].startswith("ncclDevKernel_") for e in d["traceEvents"])')" "$(lines op)" "has a kernel for each op"
is "$(trace 'sorted({e["name"] for e in d["traceEvents"] if "Collective name" in e.get("args", {})})')" \
	"['ncclDevKernel_AllGather_RING_LL', 'ncclDevKernel_ReduceScatter_Sum_f32_RING_LL']" "named as NCCL names them"
is "$(trace '[e["args"] for e in d["traceEvents"] if "ReduceScatter" in e["name"]][-1]["In msg nelems"] // [e["args"] for e in d["traceEvents"] if "ReduceScatter" in e["name"]][-1]["Out msg nelems"]')" \
	4 "a reduce-scatter of 4 ranks puts in four times what it gets out"
is "$(trace 'sum(e["name"].startswith("ProfilerStep#") for e in d["traceEvents"])')" 10 "and the 5 steps of each rank that another follows"
exits 0 "a trace for each rank" "$NBOX" report r --trace t/
is "$(for i in 0 1; do gunzip -c t/rank-$i.json.gz | python3 -ISc 'import json, sys
d = json.load(sys.stdin); print(d["distributedInfo"]["rank"], {e["pid"] for e in d["traceEvents"]})'; done)" "0 {0}
1 {1}" "holds that rank"
exits 2 "a trace and a table" "$NBOX" report r --trace t.json --csv
exits 1 "a trace where nothing can be written" "$NBOX" report r --trace none/t.json
says "none/t.json" "names the file"

finish
