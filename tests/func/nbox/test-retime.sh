#!/usr/bin/env bash
# nbox retime: a run's own settings give its times back, from the record alone; other settings give what the arithmetic says.
test=$(realpath "$0")
. "$(dirname "$0")/lib.sh"
jobs=$(dirname "$test")/../../apps/stepper/jobs
reader=$(dirname "$test")/../../../share/nbox_record.py

# same DIR DIR: virtual, plain, exposed, queued and waited times are the same to 2 ns
same() {
	python3 -IS - "$NBOX" "$@" <<'P'
import csv, subprocess, sys
nbox, was, now = sys.argv[1:]
worst, n = 0, 0
for table in "--csv", "--points":
    a, b = (list(csv.DictReader(subprocess.run([nbox, "report", table, d], capture_output=True, text=True, check=True).stdout.splitlines()))
            for d in (was, now))
    assert len(a) == len(b), f"{len(a)} rows, re-timed {len(b)}"
    for x, y in zip(a, b):
        for key in x:
            if key.startswith(("virtual", "plain", "exposed", "queued_ns", "waited_ns")):
                worst, n = max(worst, abs(float(x[key]) - float(y[key]))), n + 1
print(f"{n} times, off by at most {worst} ns")
sys.exit(worst > 10 or n == 0) # each is rounded, and follows from others
P
}

# run DIR REAL JOB [OPTION...]: five iterations of the job, or $iterations, on 4 nodes
run() {
	local dir=$1 real=$2 job=$3; shift 3
	timeout 100 "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --real "$real" --model ring --out "$dir" "$@" -- \
		"$BUILD/tests/apps/stepper" "$jobs/${job%+graph}.job" --iterations "${iterations:-5}" --warmup 1 ${graph:+--graph}
}

while IFS='|' read -r job real graph what_ifs; do
	# shellcheck disable=SC2086
	exits 0 "$job: a run" run "$job" "$real" "$job" $what_ifs
	exits 0 "$job: its own settings" "$NBOX" retime "$job" --out "$job-again"
	# an end that moved behind an open gate is one that the re-timed run knows in time
	[ "$(json "$job/summary.json" 'd["debts"]["count"]')" = 0 ] && { exits 0 "$job: give its times back" same "$job" "$job-again"; echo "# $out"; }
	[ "$job" = hsdp ] && is "$(json "$job-again/summary.json" 'd["shared_ms"] > 1')" True "$job: its ops share links"
	check "$job: the reader in Python reads what nbox record dump says" python3 -I - "$job/record.nbox" "$NBOX" "$reader" <<-'P'
		import json, subprocess, sys
		record, nbox, reader = sys.argv[1:]
		number = lambda text: int(float(text)) if float(text).is_integer() else float(text)
		rows = lambda *command: sorted(json.dumps(json.loads(line, parse_float=number), sort_keys=True)
		                               for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())
		assert rows(sys.executable, "-I", reader, record) == rows(nbox, "record", "dump", "--json", record)
	P
	is "$(json "$job/summary.json" 'd["steps"]["count"]')" 6 "$job: its iterations are found"
	is "$(json "$job-again/summary.json" 'd["steps"]["warm_up"]')" "$(json "$job/summary.json" 'd["steps"]["warm_up"]')" "$job: and the same ones left out"
	[ "$job" = ddp ] || rm -rf "$job" "$job-again"
done <<'T'
ddp|0||
fsdp|0-1|graph|--what-if slow:rank=0,compute=1.5
tp-dp|0||--what-if slow:rank=3,compute=2 --what-if jitter:on=compute,stddev=10%
pipeline|0,1||
hsdp|0||--inter-bandwidth 150MB/s
moe|0-1||--seed 5 --what-if jitter:on=compute,stddev=5%
T

# the job computes 60 ms, of these 40 backwards, with an all-reduce of 1 MiB after each 5: what is left of it hides 35 ms of their delay,
# on a busy machine more, but never more than a step
ms() { "$NBOX" retime ddp --json - "$@" | python3 -IS -c 'import json,sys; print(json.load(sys.stdin)["steps"]["ms"]["mean"])'; }
base=$(ms)
check "a delay of 20 ms of each of eight ops: they stand one behind the other" \
	python3 -IS -c "got = $(ms --what-if add:op=allreduce,delay=20ms) - $base; assert got > 160 - $base, got"
check "rank 3 computes half as long again: all wait for it" python3 -IS -c "got = $(ms --what-if slow:rank=3,compute=1.5) / $base; assert got > 1.3, got"
check "on 1024 nodes each op takes what the model says of them" \
	python3 -IS -c "assert $(ms --nodes 1024) > $base"
# a pipeline recorded rank by rank has none that waits for the rank before it; played together they do
iterations=3
for rank in 0 1 2 3; do exits 0 "pipeline, rank $rank alone" run "alone$rank" "$rank" pipeline --layout dp=2,pp=2; done
warning() { json "$1" '[w for w in d["warnings"] if "never seen" in w]'; }
is "$(json alone0/summary.json '[(c["class"], c["ranks"], c["real"], c["timeline_of_class"]) for c in d["classes"]]')" \
	"[('pp=0', 2, 1, 'pp=0'), ('pp=1', 2, 0, 'pp=0')]" "whose timeline each stage has"
check "a stage that was never seen is a warning" grep -q "1 of 2 classes of ranks (pp=1)" <<<"$(warning alone0/summary.json)"
exits 0 "nbox report knows them, too" "$NBOX" report alone0
says "pp=1: 2 ranks, never seen: computes as pp=0 does (rank 0)" "in words"
exits 0 "all four together" "$NBOX" retime alone0 --with alone1 --with alone2 --with alone3 --out four --json four.json
# spent DIR...: of each rank what its ops waited for others, and what the rest took, ms: as a list
spent() {
	for dir; do "$NBOX" report --csv "$dir"; done | python3 -IS -c '
import csv, sys
rows = [r for r in csv.DictReader(sys.stdin) if r["number"] != "number"]
for rank in sorted({int(r["world_rank"]) for r in rows}):
    own = [r for r in rows if int(r["world_rank"]) == rank]
    waited = sum(float(r["waited_ns"]) for r in own)
    took = max(int(r["virtual_end_ns"]) for r in own) - min(int(r["virtual_arrive_ns"]) for r in own)
    print((waited / 1e6, (took - waited) / 1e6), end=", ")'
}
is "$(json four.json 'd["real_ranks"]')" 4 "are four real ranks"
check "a stage waits for the stage before it, alone for nobody" \
	python3 -IS -c "alone, four = [$(spent alone?)], [$(spent four)]; assert len(four) == 4 and all(f[0] > a[0] == 0 for a, f in zip(alone, four)), (alone, four)"
exits 0 "one rank of each stage" "$NBOX" retime alone0 --with alone2 --out two --json two.json
is "$(json two.json '[(c["class"], c["timeline_of_rank"], c["of_run"].split("/")[-1]) for c in d["classes"]]') $(warning two.json)" \
	"[('pp=0', 0, 'alone0'), ('pp=1', 2, 'alone2')] []" "each stage has the timeline of its own"
exits 0 "the same on twice as many nodes" "$NBOX" retime alone0 --with alone2 --nodes 8 --json eight.json
is "$(json eight.json '[(c["ranks"], c["timeline_of_rank"], c["of_run"].split("/")[-1]) for c in d["classes"]]')" "[(4, 0, 'alone0'), (4, 2, 'alone2')]" "by their numbers in the records"
exits 0 "all ranks of a stage compute three times as long" "$NBOX" retime alone0 --with alone2 --what-if slow:rank=2-3,compute=3 --out slow
check "that is what its real rank does, and no other" \
	python3 -IS -c "two, slow = [$(spent two)], [$(spent slow)]; same, thrice = (s[1] / t[1] for t, s in zip(two, slow)); assert 0.9 < same < 1.1 and 2.7 < thrice < 3.1, (two, slow)"
exits 2 "classes along an axis that is none" "$NBOX" retime alone0 --classes ep
says "'ep' are no axes of one declared layout" "with a sentence"
exits 2 "a rank that is real twice is refused" "$NBOX" retime alone0 --with alone0
says "rank 0 is real in two of the runs" "with a sentence"
exits 1 "nodes of other GPUs are refused" "$NBOX" retime ddp --gpus-per-node 2
says "recorded on nodes of 1 GPUs" "with a sentence"
exits 0 "a bandwidth that the model does not look at" "$NBOX" retime ddp --model ring:bw=400Gbps --inter-bandwidth 10Gbps
says "may change nothing" "is a warning"
exits 2 "other real ranks are refused" "$NBOX" retime ddp --real 1
says "--with RUN2" "with what to do"
exits 1 "what only a live run has is refused" "$NBOX" retime ddp --exchange payload
says "--exchange: a record is re-timed without it" "with the reason"
exits 0 "counts of what the run has not" "$NBOX" retime ddp --nodes 8 --counts alltoall=total
says "warning: --counts: no AllToAll" "are a warning"
mkdir mine
printf 'kind,bytes,us\nall,8,10\nall,1048576,500\n' >mine/times.csv
"$NBOX" topo --preset dgx-h100 --nodes 4 --yaml >mine/lab.yaml
iterations=1
exits 0 "a run on a fabric of the user's" run here 0 ddp --fabric mine/lab.yaml
mkdir elsewhere
exits 0 "a run by a table of the user's" "$NBOX" retime here --model table:file=mine/times.csv --out tabled
mv here tabled elsewhere && rm -r mine
exits 0 "goes elsewhere with its fabric" "$NBOX" retime elsewhere/here --out elsewhere/there
exits 0 "and so does what was re-timed of it" env -C / "$NBOX" retime "$tmp/elsewhere/there"
exits 0 "a table goes with it" env -C / "$NBOX" retime "$tmp/elsewhere/tabled" --json "$tmp/tabled.json"
is "$(json tabled.json 'd["modelled_ms"]')" "$(json elsewhere/tabled/summary.json 'd["modelled_ms"]')" "with its times"
is "$(json tabled.json 'd["model"]')" table:file=times.csv "by its name"
is "$(sed -n 's/^ *fabric: \([^ ]*\) .*/\1/p' elsewhere/there/config.yaml)" '"config-fabric/lab.yaml"' "each has its copy"
exits 2 "an unknown run is refused" "$NBOX" retime no-such-run
exits 2 "an unknown flag is refused" "$NBOX" retime ddp --nodez 8
says "--nodes" "with a suggestion"

# two leaf switches of four nodes: pairs across them, fours within them
printf '%s\n' 'parallel tp=4' 'bucket 1MiB' 'update 1ms' 'layer x2 forward=1ms backward=1ms params=512KiB tp=64KiB' >leaves.job
printf '%s\n' 'preset: 100gbe' 'network: {kind: leaf-spine, latency: 2us, nodes_per_leaf: 4}' >leaves.yaml
exits 0 "a run on leaves with full bandwidth" timeout 100 "$NBOX" run --quiet --nodes 8 --gpus-per-node 1 --layout tp=4,dp=2 --fabric leaves.yaml \
	--out leaves -- "$BUILD/tests/apps/stepper" leaves.job --iterations 2
for ratio in 2 4; do "$NBOX" retime leaves --oversubscription $ratio --out leaves-$ratio >/dev/null; "$NBOX" report --csv leaves-$ratio >leaves-$ratio.csv; done
check "ops across take as much longer as less goes up, to the nanosecond; others as long" python3 -IS -c '
import csv
two, four = ([(r["n_ranks"], int(r["virtual_end_ns"]) - int(r["virtual_arrive_ns"])) for r in csv.DictReader(open(f"leaves-{n}.csv"))] for n in (2, 4))
assert len(two) == len(four) > 8 and {n for n, _ in two} >= {"2", "4"}
assert all(a[0] == b[0] and abs(b[1] - (2 * a[1] if a[0] == "2" else a[1])) <= 2 for a, b in zip(two, four)), (two, four)'
finish
