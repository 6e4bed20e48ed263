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
is "$(python3 -ISc 'import json
threads, bad = {}, 0
for e in json.load(open("t.json"))["traceEvents"]:
    if e["ph"] == "X": threads.setdefault((e["pid"], e["tid"]), []).append((round(1e3 * e["ts"]), -round(1e3 * (e["ts"] + e["dur"]))))
for slices in threads.values():
    open_until = []
    for begin, end in sorted(slices):
        while open_until and open_until[-1] <= begin: open_until.pop()
        bad += bool(open_until) and -end > open_until[-1]
        open_until.append(-end)
print(bad)')" 0 "what a thread does is one after the other, or one in the other"
exits 0 "a trace for each rank" "$NBOX" report r --trace t/
is "$(for i in 0 1; do gunzip -c t/rank-$i.json.gz | python3 -ISc 'import json, sys
d = json.load(sys.stdin); print(d["distributedInfo"]["rank"], {e["pid"] for e in d["traceEvents"]})'; done)" "0 {0}
1 {1}" "holds that rank"
exits 1 "a trace where nothing can be written" "$NBOX" report r --trace none/t.json
says "none/t.json" "names the file"

# --- metrics: a grammar of the text format, stricter than Prometheus: a family is whole, with HELP and TYPE; histograms rise
grammar='import re, sys
kinds, seen, last, values = {}, [], "", {}
for line in sys.stdin.read().splitlines():
    head = re.fullmatch(r"# (HELP|TYPE) ([a-z_]+) (.+)", line)
    if head:
        if head[1] == "TYPE": kinds[head[2]] = head[3]
        elif head[2] in seen: sys.exit("twice: " + line)
        last = head[2]; seen.append(last)
        continue
    m = re.fullmatch(r"([a-z_]+)(\{(?:[a-z_]+=\"(?:[^\"\\\\]|\\\\.)*\"(?:,(?=[a-z]))?)+\})? (-?[0-9.e+-]+)", line)
    if not m or kinds.get(last) not in ("counter", "gauge", "histogram", "summary"): sys.exit("no sample: " + line)
    suffixes = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}.get(kinds[last], ("",))
    if m[1] not in [last + s for s in suffixes]: sys.exit("of no family: " + line)
    if (kinds[last] == "counter") != last.endswith("_total"): sys.exit("called wrongly: " + line)
    values[m[1] + (m[2] or "")] = float(m[3])
late = [v for k, v in values.items() if k.startswith("nbox_gate_lateness_seconds_bucket")]
if late != sorted(late) or late[-1] != values["nbox_gate_lateness_seconds_count"]: sys.exit("a histogram falls: %s" % late)
print(eval("(" + sys.argv[1] + ")", {"v": values}))'
exits 0 "metrics of the run" "$NBOX" report r --metrics m.prom
is "$(python3 -ISc "$grammar" 'int(sum(v[k] for k in v if k.startswith("nbox_ops_total")))' <m.prom)" "$(lines op)" "count its ops"
is "$(python3 -ISc "$grammar" 'round(1e3 * v["nbox_step_exposed_seconds"], 9)' <m.prom)" "$(json nbox-out/r/summary.json 'round(d["exposed_ms"], 9)')" "say what summary.json says"
fetch() { # ADDR [TOKEN]
	python3 -I -c 'import sys, urllib.request, urllib.error
request = urllib.request.Request("http://%s" % sys.argv[1], headers={"Authorization": "Bearer " + sys.argv[2]} if len(sys.argv) > 2 else {})
try: sys.stdout.write(urllib.request.urlopen(request, timeout=60).read().decode())
except urllib.error.HTTPError as e: print(e.code)' "$@"
}
metrics_addr() { "$NBOX" status --json "$@" | python3 -ISc 'import json, sys; print(json.load(sys.stdin)["metrics"])'; }
TMPDIR=$tmp timeout 100 "$NBOX" run --nodes 4 --gpus-per-node 2 --metrics 127.0.0.1:0 --out live -- "$BUILD/tests/func/jobs/flaky" until "$tmp/go" >live.log 2>&1 &
run=$! logs=(live.log)
check "a run serves its metrics" within 100 metrics_addr live
addr=$(metrics_addr live)
is "$(fetch "$addr/metrics" | python3 -ISc "$grammar" 'v["nbox_ranks"], v["nbox_real_ranks"]')" "(8.0, 2.0)" "which are its own, and well formed"
is "$(fetch "$addr/")" 404 "and nothing else"
touch go
wait $run
is "$?" 0 "the run goes on undisturbed"
# NCCL's own messages: until enough have been counted
sample() { fetch "$addr/metrics" | python3 -ISc "$grammar" "$1"; }
many() { [ "$(sample 'min(v["nbox_nccl_messages_total{direction=\"%s\"}" % d] for d in ("in", "out")) > 100')" = True ]; }
NBOX_NCCL=$BUILD/tests/apps/proxy-nccl/libnccl.so.2 timeout 100 "$NBOX" run --nccl full --nodes 8 --gpus-per-node 1 --real 0 --exchange payload --data identity \
	--metrics 127.0.0.1:0 --out full -- "$BUILD/tests/apps/full-check" --real 1 --data none --ops alone --counts 4096 --times 1000000 >full.log 2>&1 &
run=$! logs=(full.log)
check "a run of full mode serves its metrics" within 100 metrics_addr full
addr=$(metrics_addr full)
check "which count NCCL's own messages" within 100 many
fetch "$addr/metrics" >full.prom
is "$(python3 -ISc "$grammar" 'v["nbox_nccl_communicators"], v["nbox_nccl_open_flows"] <= 4, v["nbox_nccl_waiting_messages"] <= 64,
	v["nbox_nccl_message_bytes_total{direction=\"in\"}"] > 0 < v["nbox_nccl_identity_messages_total"], v["nbox_nccl_late_seconds_total"] >= 0' <full.prom)" \
	"(1.0, True, True, True, True)" "with bytes, flows and receives"
"$NBOX" status --json full >full.json
is "$(json full.json 'd["traffic"]["communicators"], d["traffic"]["flows"] <= 4, d["traffic"]["waiting"] <= 64')" "(1, True, True)" "as nbox status does"
kill -TERM $run
wait $run
exits 2 "metrics for everybody" "$BUILD/nboxd" --nodes 2 --metrics 0.0.0.0:0
says "that needs a token" "are refused"
NBOX_TOKEN=secret timeout 100 "$BUILD/nboxd" --nodes 2 --metrics 0.0.0.0:0 --addr "shm:@nbox-exports-$$" >nboxd.log 2>&1 &
nboxd=$! logs=(nboxd.log)
check "with a token they are served" within 100 metrics_addr --addr "shm:@nbox-exports-$$" --token secret
addr=$(metrics_addr --addr "shm:@nbox-exports-$$" --token secret)
addr=127.0.0.1:${addr##*:}
is "$(fetch "$addr/metrics") $(fetch "$addr/metrics" secre) $(fetch "$addr/metrics" secret | grep -c '^nbox_info')" "401 401 1" "to who shows it"
kill $nboxd
wait $nboxd

# --- NCCL Inspector's log, and Chakra's graphs
exits 0 "ops as NCCL Inspector logs them" "$NBOX" report r --inspector i.json
is "$(python3 -ISc 'import json, sys
o = [json.loads(line) for line in sys.stdin]
print(len(o), sorted({k for x in o for k in x}), {(x["header"]["n_ranks"], x["header"]["nnodes"]) for x in o})' <i.json)" \
	"$(lines op) ['coll_perf', 'header', 'metadata'] {(4, 4)}" "one a line"
exits 0 "a run of many sizes" timeout 100 "$NBOX" perf --live allreduce --nodes 4 --gpus-per-node 1 --model ring -b 1K -e 64K -n 2 -w 0 --quiet --out sizes
exits 0 "its log" "$NBOX" report sizes --inspector sizes.json.gz
gunzip sizes.json.gz
exits 0 "nbox fit reads it" "$NBOX" fit sizes.json
exits 0 "a run that sends" timeout 100 "$NBOX" run --nodes 4 --gpus-per-node 1 --real 0,1 --model ring --name p -- \
	"$BUILD/tests/apps/stepper" "$jobs/pipeline.job" --iterations 3 --warmup 0
exits 0 "Chakra's graphs" "$NBOX" report p --chakra c
exits 0 "are as its schema says" python3 -I "$(dirname "$0")/read-chakra.py" c.0.et c.1.et
says "'1': []" "with the world as a group"
is "$(grep -c "off by [01]$" <<<"$out")" 2 "each node begins when those before it are over"
is "$(grep -o "'\(send\|recv\|coll\)': [0-9]*" <<<"$out" | awk '{ n += $2 } END { print n }')" \
	"$("$NBOX" record dump --json --kind op p | python3 -ISc 'import json, sys; print(sum(max(1, len(json.loads(l)["calls"])) for l in sys.stdin))')" "and each call is one"

finish
