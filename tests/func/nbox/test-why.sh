#!/usr/bin/env bash
# nbox why: on runs, the critical path adds up to the iteration, and what could be won is named. The figures: tests/unit/nbox/test-why.c.
test=$(realpath "$0")
. "$(dirname "$0")/lib.sh"
jobs=$(dirname "$test")/../../apps/stepper/jobs

# run DIR JOB ITERATIONS [OPTION...]
run() {
	local dir=$1 job=$2 n=$3; shift 3
	timeout 100 "$NBOX" run --quiet --gpus-per-node 1 --model ring --out "$dir" "$@" -- \
		"$BUILD/tests/apps/stepper" "$job" --iterations "$n" --warmup 1
}
# holds NAME FILE...: Python's assertions on standard input hold; why(RUN, OPTION...): as JSON
holds() {
	local name=$1
	cat - >holds.py
	check "$name" python3 -S -c 'import json, subprocess, sys
nbox = sys.argv[1]
def ask(*words):
    return json.loads(subprocess.run([nbox, *words, "--json", "-"], stdout=subprocess.PIPE, check=True).stdout)
def why(*words): return ask("why", *words)
def of(w, kind): return sum(p["ms"] for p in w["path"] if p["kind"] == kind)
def near(a, b, share): assert abs(a - b) <= share * abs(b), f"{a} and {b}: further apart than {share:.3g} of it"
exec(open("holds.py").read())' "$NBOX"
}

exits 0 "a run" run ddp "$jobs/ddp.job" 5 --nodes 4
exits 0 "a run of two axes" run tp-dp "$jobs/tp-dp.job" 5 --nodes 4 --layout tp=2,dp=2
exits 0 "a run of two real stages" run pipeline "$jobs/pipeline.job" 4 --nodes 4 --layout dp=2,pp=2 --real 0,2
exits 0 "a run of two real ranks of one axis" run both "$jobs/ddp.job" 5 --nodes 4 --real 0,1
exits 0 "a run of sharded parameters" run fsdp "$jobs/fsdp.job" 4 --nodes 4
exits 0 "a run of experts" run moe "$jobs/moe.job" 4 --nodes 4
exits 0 "why, as text" "$NBOX" why ddp
says "are computation" "with a headline"
exits 0 "a run of a real straggler" timeout 100 "$NBOX" run --quiet --gpus-per-node 1 --nodes 4 --real 0,1 --model ring --out straggler -- \
	"$BUILD/tests/apps/stepper" "$jobs/ddp.job" --iterations 3 --warmup 1 --slow 1=6
exits 0 "why" "$NBOX" why straggler --what-if none
says "are computation of rank 1" "the headline names it"
check "it has no template" test "${out/its template/}" = "$out"

holds "the parts of the critical path are the iteration" <<'P'
for words in ["ddp"], ["tp-dp"], ["pipeline"], ["ddp", "--what-if", "add:op=allreduce,delay=20ms"]:
    w = why(*words)
    near(sum(p["ms"] for p in w["path"]), w["iteration_ms"], 1e-9)
    assert w["has_iterations"] and not [p for p in w["path"] if p["kind"] == "other"], words
P
cat >kinds.py <<'P'
kinds = {"ddp": ["--nodes", "64"], "fsdp": ["--nodes", "64"], "tp-dp": ["--nodes", "64", "--layout", "tp=2,dp=32"],
         "pipeline": ["--nodes", "32", "--layout", "dp=16,pp=2"], "moe": ["--nodes", "64", "--counts", "alltoall=total"]}
P
holds "in five kinds of jobs the path goes on at a virtual straggler: what it computes as another rank, and what slows it" <<'P'
exec(open("kinds.py").read())
for job, words in kinds.items():
    w = why(job, *words, "--what-if", "slow:rank=17,compute=3")
    own = [p for p in w["path"] if p.get("of_rank") == 17]
    copied, slowed = (sum(p["ms"] for p in own if p["kind"] == kind) for kind in ("computation", "what-ifs on computation"))
    assert all(p["as_rank"] != 17 for p in own) and not of(w, "waiting") and not of(w, "other"), (job, w["path"])
    assert 1.5 * copied < slowed < 2.5 * copied and slowed > 0.5 * w["iteration_ms"], (job, w["path"])  # the first one is cut off
    assert w["headline"].count("rank 17") == 2, (job, w)
    near(sum(p["ms"] for p in w["path"]), w["iteration_ms"], 1e-9)
P
holds "without a what-if an iteration takes as long as nbox retime says; the path under jitter has no gap" <<'P'
exec(open("kinds.py").read())
for job, words in kinds.items():
    w = why(job, *words, "--what-if", "jitter:on=compute,stddev=10%")
    out, = (x for x in w["retimed"] if x["if"].endswith("is left out"))
    steps = ask("retime", job, *words)["steps"]
    if steps["timed"] == w["iterations"]:  # else jitter made warm-up of another one
        near(out["ms"], steps["ms"]["p50"], 1e-9)
    near(sum(p["ms"] for p in w["path"]), w["iteration_ms"], 1e-9)
    assert not of(w, "waiting") and not of(w, "other") and of(w, "what-ifs on computation") > 0, (job, w["path"])
    # what waits for a peer is no message: those of an iteration take some tens of microseconds each
    assert sum(p["ms"] for p in w["path"] if p.get("op") == "SendRecv" and p["kind"] == "modelled") < 1, (job, w["path"])
P
holds_if_quiet tp-dp "a straggler that a virtual rank waits for is named: what is won without it" <<'P'
w = why("tp-dp", "--nodes", "64", "--layout", "tp=2,dp=32", "--what-if", "slow:rank=17,compute=3")
assert [x["rank"] for x in w["waited_for"]][0] == 16, w["waited_for"]
won = {x["if"]: x["ms"] for x in w["retimed"]}
near(won["rank 17 computes as long as its template"], won["the what-if slow:rank=17,compute=3 is left out"], 1e-9)
assert won["rank 17 computes as long as its template"] < 0.6 * w["median_ms"]
P
holds "text and JSON agree" <<'P'
text = subprocess.run([nbox, "why", "pipeline"], stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
w = why("pipeline")
assert w["headline"] in text and all(f'{p["ms"]:9.3f} ms' in text for p in w["path"][:3]) and f'{w["retimed"][0]["ms"]:9.3f} ms' in text, text
P
holds "each real rank has its slack" <<'P'
assert {s["rank"] for s in why("pipeline")["slack"]} == {0, 2} and {s["rank"] for s in why("ddp")["slack"]} == {0}
P
holds "a straggler that copies another real rank is named" <<'P'
w = why("both", "--what-if", "slow:rank=3,compute=2")
assert w["waited_for"][0]["rank"] == 3 and {x["if"]: x["won_ms"] for x in w["retimed"]}["rank 3 computes as long as its template"] > 0, w
P
holds "the path goes on at a real rank that ops waited for" <<'P'
w = why("both", "--what-if", "slow:rank=1,compute=2")
slowed = sum(p["ms"] for p in w["path"] if p["kind"] == "what-ifs on computation" and p["of_rank"] == 1)
assert slowed > 0.2 * w["iteration_ms"] and not [p for p in w["path"] if p["kind"] == "waiting"], w["path"]
near(sum(p["ms"] for p in w["path"]), w["iteration_ms"], 1e-9)
P
holds "each axis has its line; without ops their delays are gone" <<'P'
w = why("tp-dp", "--what-if", "add:op=allreduce,delay=1ms")
won = {x["if"]: x["won_ms"] for x in w["retimed"]}
assert {"ops of tp (2 ranks) take no time", "ops of dp (2 ranks) take no time"} <= set(won), won
assert won["no op takes any time"] == max(won.values()) > 5, won
P
cat >storm.yaml <<'T'
steps: {ops: 8, op: allreduce, communicator: world}
events:
  - {at: step 1, what: "slow:compute=1.5", rank: 3}
  - {at: step 1, what: "add:delay=1ms", op: allreduce}
T
holds "each what-if of a scenario is left out once" <<'P'
w = why("ddp", "--scenario", "storm.yaml")
out = [x for x in w["retimed"] if x["if"].endswith("is left out")]
assert len(out) == 2 and max(x["won_ms"] for x in out) > 0, w["retimed"]
P
holds "faster NICs help a slow network" <<'P'
assert {x["if"]: x["won_ms"] for x in why("ddp", "--inter-bandwidth", "100MB/s")["retimed"]}["each NIC is twice as fast"] > 0
P
holds "a pipeline: what its messages cost, and what eager 1F1B wins, as nbox pipe has it; with the memory that it takes" <<'P'
w, p = why("pipeline"), ask("pipe", "--from", "pipeline", "--overlap", "all")
of = w["pipeline"]
assert (of["stages"], of["micro_batches"], of["schedule"], of["more_activations"], of["message_bytes"]) == (2, 8, "1f1b", 1, 128 << 10), of
row = {(r["schedule"], r["overlap"]): r for r in p["rows"]}
is_, eager = row["1f1b", of["overlap"]], row["eager", "on"]
near(of["ms"], is_["iteration_ns"] / 1e6, 1e-6)
near(of["eager_ms"], eager["iteration_ns"] / 1e6, 1e-6)
near(of["exposed_ms"], is_["makespan_ns"] * (1 - is_["of_signal"]) / 1e6, 1e-6)
near(of["path_ms"], sum(x["ms"] for x in w["path"] if x.get("op") == "SendRecv" and x["kind"] in ("modelled", "injected", "shared links")), 1e-9)
slow = why("pipeline", "--inter-bandwidth", "20MB/s")["pipeline"]  # a message takes as long as a stage's forward pass
assert slow["exposed_ms"] > 3 * of["exposed_ms"] and slow["ms"] - slow["eager_ms"] > 5, (of, slow)
assert "pipeline" not in why("ddp") and "pipeline" not in why("moe")
P
exits 0 "a run of a trainer that computes" timeout 100 "$NBOX" run --quiet --gpus-per-node 1 --nodes 8 --model ring --out trainer -- \
	"$BUILD/tests/apps/trainer" --steps 8 --batch 8 --layer-ms 2
holds "ranks whose op before is over later are no stragglers: the network is slow" <<'P'
w = why("trainer", "--nodes", "16", "--model", "nccl", "--preset", "dgx-a100", "--inter", "1x1Gbps")
assert w["path"][0]["kind"] == "modelled" and sum(p["ms"] for p in w["path"] if p["kind"] == "waiting") < 0.1 * w["iteration_ms"], w
P
check "the knee of its all-reduces is where re-timed delays turn" python3 -IS "$(dirname "$test")/knee.py" "$NBOX" trainer
printf '%s\n' 'parallel pp=2' 'micro 2' 'layer x2 forward=1ms backward=2ms send=64KiB' >pp.job
for stage in 0 1; do
	exits 0 "stage $stage of a pipeline" timeout 100 "$NBOX" run --quiet --nodes 2 --gpus-per-node 1 --layout pp=2 --as-node $stage --model ring \
		--out stage$stage -- "$BUILD/tests/apps/stepper" pp.job --iterations 4 --warmup 1
done
exits 0 "of one stage" "$NBOX" why stage0
says "warning: 1 of 2 classes of ranks (pp=1) were never seen" "it says that the other is missing"
exits 0 "of both" "$NBOX" why stage0 --with stage1 --what-if slow:rank=1,compute=20 --json both.json
check "the path goes over the second, for which the first waits" python3 -IS -c '
import json
w = json.load(open("both.json"))
assert sum(p["ms"] for p in w["path"] if p.get("of_rank") == 1) > 0.3 * w["iteration_ms"], w["path"]'
exits 2 "an unknown run is refused" "$NBOX" why no-such-run
exits 2 "an unknown flag is refused" "$NBOX" why ddp --nodez 8
says "--nodes" "with a suggestion"
exits 2 "a place for results is refused" "$NBOX" why ddp --out here
exits 2 "no run is refused" "$NBOX" why
holds "nbox replay, message by message, is within 5 % of nbox retime, also on links that bind; daydream is further off where they do" <<'P'
worlds = {"ddp": [[], ["--nodes", "64"]], "fsdp": [[], ["--nodes", "64"]], "both": [[], ["--nodes", "16"]],
          "tp-dp": [[], ["--nodes", "64", "--layout", "tp=2,dp=32"]], "pipeline": [[], ["--nodes", "64", "--layout", "dp=32,pp=2"]],
          "moe": [[], ["--nodes", "64", "--counts", "alltoall=total"]]}
for job, settings in worlds.items():
    for words in settings:
        for network in [], ["--inter-bandwidth", "400Mbps"], ["--model", "alphabeta", "--nic", "1Gbps,20us", "--algo", "tree"]:
            r = ask("replay", job, *words, *network)
            near(r["iteration_ms"], r["recorded_iteration_ms"], 0.05)
            path = r["critical_path"]
            near(path["computation_ms"] + path["communication_ms"] + path["waiting_ms"], path["ms"], 1e-6)
            assert r["graph"]["sends"] > 0 and not r["graph"]["as_one"], (job, words, r["graph"])
for job in "ddp", "both", "fsdp":
    r, d = (ask("replay", job, "--nodes", "64", "--inter-bandwidth", "400Mbps", *w)["iteration_ms"] for w in ([], ["--policy", "daydream"]))
    assert d < 0.8 * r, (job, r, d)
P
holds "a virtual rank that what-ifs tell apart has computation of its own there: within 2 % of nbox retime; those alike stay folded" <<'P'
# with the rank that it shares layers with, and one that copies rank 1 of its tensor-parallel pair; with its other stage
apart = {"ddp": 1, "fsdp": 1, "tp-dp": 3, "pipeline": 2, "moe": 1}
exec(open("kinds.py").read())
for job, words in kinds.items():
    # on links that bind two communicators share one in most, which the two do not do alike
    for network in ([], ["--inter-bandwidth", "400Mbps"]) if job in ("ddp", "fsdp") else [[]]:
        for what, n in ["slow:rank=17,compute=1.5", apart[job]], ["jitter:on=compute,stddev=10%", None]:
            r = ask("replay", job, *words, *network, "--what-if", what)
            near(r["iteration_ms"], r["recorded_iteration_ms"], 0.02)
            assert n is None or r["ranks_apart"] == n, (job, what, r["ranks_apart"])
P
holds "nbox diagnose names a virtual straggler, and what is won without it" <<'P'
exec(open("kinds.py").read())
for job, words in kinds.items():
    slow = ask("diagnose", job, *words, "--what-if", "slow:rank=17,compute=3")
    late = {c["cause"]: c for c in slow["causes"]}["straggler"]
    assert late["found"] and late["evidence"].startswith("rank 17 computes 3.0"), (job, late)
    near(slow["iteration_ms"] - late["won_ms"], ask("replay", job, *words)["iteration_ms"], 0.01)
P
holds "what-ifs on ops, and a scenario's window, are played as nbox retime does" <<'P'
for words in ["--what-if", "add:op=allreduce,delay=5ms"], ["--scenario", "storm.yaml"], ["--what-if", "jitter:on=op,stddev=2ms"]:
    r = ask("replay", "ddp", "--nodes", "16", *words)
    near(r["iteration_ms"], r["recorded_iteration_ms"], 0.01)
P
holds "stages that wait for each other are a cause: by how much, and what of it messages take" <<'P'
of = {c["cause"]: c for c in ask("diagnose", "pipeline")["causes"]}["pipeline bubble"]
assert of["found"] and "take no time" in of["evidence"], of
assert not {c["cause"]: c for c in ask("diagnose", "moe")["causes"]}["pipeline bubble"]["found"]
P
holds "nbox replay with twice the NIC, more ranks and factors; nbox diagnose names the cause, and what it wins" <<'P'
slow = ask("replay", "ddp", "--nic", "400Mbps")["iteration_ms"]
twice = ask("replay", "ddp", "--nic", "800Mbps")["iteration_ms"]
near(ask("replay", "ddp", "--nic", "400Mbps", "--scale", "comm=0.5")["iteration_ms"], twice, 0.01)
assert twice < 0.7 * slow and ask("replay", "ddp", "--nic", "400Mbps", "--ranks", "16")["iteration_ms"] > slow
assert ask("replay", "both", "--scale", "compute=3")["iteration_ms"] > 1.5 * ask("replay", "both")["iteration_ms"]
near(ask("replay", "ddp", "--nic", "400Mbps", "--scale", "op:allreduce=+10ms")["iteration_ms"], slow + 80, 0.05)  # 8 a step
bound = {c["cause"]: c for c in ask("diagnose", "ddp", "--nic", "400Mbps")["causes"]}
assert bound["communication-bound"]["found"] and not bound["computation-bound"]["found"], bound
near(bound["communication-bound"]["won_ms"], slow - ask("replay", "ddp", "--nic", "400Mbps", "--scale", "comm=0")["iteration_ms"], 1e-6)
free = {c["cause"]: c for c in ask("diagnose", "ddp", "--model", "none")["causes"]}
assert free["computation-bound"]["found"] and not free["communication-bound"]["found"], free
late = {c["cause"]: c for c in ask("diagnose", "straggler", "--what-if", "none")["causes"]}["straggler"]
assert late["found"] and "rank 1" in late["evidence"], late
ps = ask("replay", "ddp", "--nic", "400Mbps", "--algo", "ps:servers=2")
assert ps["graph"]["sends"] == 2 * 4 * ps["graph"]["by_hops"], ps["graph"]
P
for job in ddp both fsdp; do "$NBOX" report "$job" --trace "$job.json" >/dev/null; done
holds "traces that nbox report wrote are replayed as they are; with a NIC their ops cost what it says" <<'P'
for job in "ddp", "both", "fsdp":
    r = ask("replay", job + ".json")
    near(r["iteration_ms"], r["recorded_iteration_ms"], 0.1)  # of a run on a busy machine
    assert r["has_iterations"] and r["graph"]["sends"] > 0, (job, r)
    assert ask("replay", job + ".json", "--nic", "100Mbps,5us")["iteration_ms"] > 2 * r["iteration_ms"], job
    assert {c["cause"] for c in ask("diagnose", job + ".json")["causes"]} >= {"straggler", "queueing"}
P
exits 2 "ranks without a NIC, of a trace" "$NBOX" replay ddp.json --ranks 64
says "--nic RATE,LATENCY" "are refused with what is needed"
exits 2 "a run beside a trace" "$NBOX" replay ddp.json ddp
exits 2 "a change of nothing" "$NBOX" replay ddp --scale network=2
says "none of comm, compute, op:NAME and rank:N" "is refused with what there is"
exits 2 "a rank that was not recorded" "$NBOX" replay ddp --scale rank:99=2
exits 2 "an op that the job has not" "$NBOX" replay ddp --scale op:alltoall=2
says "this record has no names of kernels: scale compute" "is told what there is"
exits 2 "a rate without a unit" "$NBOX" replay ddp --nic 25
exits 2 "an algorithm that there is not" "$NBOX" replay ddp --algo star
exits 2 "half a node" "$NBOX" diagnose ddp --ranks 0
exits 2 "one factor twice" "$NBOX" replay ddp --scale comm=2,comm=3
says "comm is given twice" "is refused"
exits 2 "an option of a live run" "$NBOX" replay ddp --exchange payload
exits 2 "a link that gets slower" "$NBOX" diagnose ddp --preset dgx-h100 --what-if link:node=0,slower=2
says "what-if link:node=0,slower=2" "is refused by its name"
exits 2 "real ranks" "$NBOX" replay ddp --real 1
exits 2 "expectations" "$NBOX" diagnose ddp --expect "exposed_ms < 1"
exits 0 "a job of puts" timeout 60 "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --model alphabeta --out puts -- "$BUILD/tests/apps/puts" --rounds 2
exits 0 "its replay" "$NBOX" replay puts
says "puts are played as sends" "says what it lacks"
exits 0 "a job whose ranks have roles" timeout 60 "$NBOX" run --quiet --nodes 4 --gpus-per-node 4 --model alphabeta --out roles -- "$BUILD/tests/apps/pipeline" --rounds 3
holds "sends and receives of roles are played as recorded" <<'P'
r = ask("replay", "roles")
near(r["iteration_ms"], r["recorded_iteration_ms"], 0.02)
P
exits 1 "where ranks that copy them are told apart" "$NBOX" replay roles --what-if slow:rank=9,compute=3
says "nbox retime knows how late they are" "they do not fit together"
exits 2 "all ranks of many told apart, of which each sends to all" "$NBOX" replay moe --nodes 1024 --counts alltoall=total --what-if jitter:on=compute,stddev=10%
says "too much for one graph" "is refused"
exits 0 "a job that fails" "$NBOX" replay ddp --what-if fail:rank=1,after=30
says "world rank 1 is gone" "is played until then, and it says so"
for verb in replay diagnose; do
	exits 2 "a job that fails before its first op: $verb" "$NBOX" $verb ddp --what-if fail:rank=1,time=0s
	says "no op is left to replay" "$verb says that there is nothing to play"
done
exits 1 "... why" "$NBOX" why ddp --what-if fail:rank=1,time=0s
says "no op is left to look at" "... says so"
holds "a drawing or a trace on standard output is alone there" <<'P'
for words in ["replay", "ddp", "--trace"], ["topo", "--preset", "dgx-h100", "--nodes", "2", "--dot"], \
             ["perf", "allreduce", "--preset", "dgx-h100", "--nodes", "2", "-e", "64K", "--svg"]:
    text = subprocess.run([nbox, *words, "-"], stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
    assert text.startswith(("{", "<svg", "graph", "digraph")) and text.strip().endswith(("}", "</svg>")), (words, text[:80])
P
exits 0 "a replay for a viewer" "$NBOX" replay ddp --trace seen.json
check "is JSON with SENDs on links" python3 -S -c 'import json; assert any(e["name"].startswith("SEND") for e in json.load(open("seen.json"))["traceEvents"])'
finish
