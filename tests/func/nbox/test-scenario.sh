#!/usr/bin/env bash
# Scenarios in life: what-ifs that hold for some steps, what is expected of a run, and failures that end a job or leave it waiting.
. "$(dirname "$0")/lib.sh"
stepper=$BUILD/tests/apps/stepper
printf '%s\n' 'layer x4 forward=1ms backward=1ms params=64KiB' 'bucket 64KiB' >alike.job
printf '%s\n' 'layer forward=1ms backward=1ms params=64KiB' 'layer forward=1ms backward=1ms params=128KiB' 'bucket 64KiB' >unlike.job
run() { local out=$1 job=$2; shift 2; timeout 200 "$NBOX" run --nodes 4 --gpus-per-node 1 --out "$out" "$@" -- "$stepper" "$job" --iterations 17; }
# by RUN EXPRESSION: by step of the first rank, the sum of what EXPRESSION is for its ops (rows r)
by() { "$NBOX" report --csv "$1" | python3 -IS -c 'import csv, sys; s = {}
for r in csv.DictReader(sys.stdin): s[int(r["step"])] = s.get(int(r["step"]), 0) + eval(sys.argv[1])
print([k for k in sorted(s) if s[k]], sorted(set(round(v) for v in s.values() if v)))' "$2"; }

cat >storm.yaml <<'T'
steps: {ops: 4, op: allreduce, communicator: world}
events:
  - {at: step 5, for: 3 steps, what: "add:delay=2ms", bytes: 64KiB-}
  - {at: {step: 11}, what: "add:delay=1ms,rank=3", every: 4 steps, for: 1 step}
expect: [iteration_ms max > 9ms, iteration_ms min < 1s, injected_ms > 0, steps == 20]
T
exits 0 "a scenario" run storm alike.job --model ring --scenario storm.yaml
says "expected       iteration_ms max > 9ms: yes" "is as expected"
is "$(by storm 'float(r["injected_ns"])')" "[5, 6, 7, 11, 15, 19] [4000000, 8000000]" "ops of its steps, and no others, take longer"
case $out in *warning:*took*) fail "no what-if went unused" "$out" ;; *) pass "no what-if went unused" ;; esac
steps=$(sed -nE 's/.*found as .*: --steps (.*)/\1/p' <<<"$out")
is "$steps" "ops=4,communicator=1,skip=0" "the summary says how another run counts its steps"

exits 3 "a run that is not as expected" run not alike.job --model ring --steps ops=3 --what-if slow:rank=2,compute=1.5,from=1000steps --expect 'steps < 3'
says "expected       steps < 3: NO, 20" "says so"
says "warning: what-if slow:rank=2,compute=1.5,from=1000steps: it never took effect" "a what-if that never holds is a warning"
says "warning: a step by --steps ops=3 has 3 ops, one of the job 4: " "and so are steps that the record does not have"
exits 3 "a finished run that is not as expected" "$NBOX" report not --expect 'iteration_ms p50 > 3600s'
exits 0 "a finished run that is" "$NBOX" report not --expect 'iteration_ms p50 > 0'
exits 0 "steps that nobody takes" run none alike.job --model ring --steps ops=4,op=broadcast --what-if add:delay=1ms,from=3steps
says "warning: no step was recognised" "are a warning"

# the same timeline, from the record of a run without it
exits 0 "a run without what-ifs" run plain alike.job --model ring
exits 0 "it is re-timed with a scenario" "$NBOX" retime plain --scenario storm.yaml --out again
is "$(by again 'float(r["injected_ns"])')" "$(by storm 'float(r["injected_ns"])')" "the same ops take as much longer as live"
exits 3 "a re-timed run that is not as expected" "$NBOX" retime plain --expect 'steps < 3' --steps ops=40
says "warning: a step by --steps ops=40 has 40 ops, one of the job 4: " "steps are looked at, too"
exits 0 "with its own steps" "$NBOX" retime plain --steps "$steps"
case $out in *warning:*--steps*) fail "no warning" "$out" ;; *) pass "no warning" ;; esac

printf 'events: [{at: step 2, for: 1 step, what: "add:delay=2ms"}]\n' >other.yaml
exits 0 "a run with a scenario is re-timed with another" "$NBOX" retime storm --scenario other.yaml --out third
is "$(by third 'float(r["injected_ns"])')" "[2] [8000000]" "which takes its place"

# by links: the cables of node 2 carry a hundredth, for two steps, which begin when a run is under way
exits 0 "links change with steps" run links alike.job --preset dgx-h100 --inter 1x10Gbps --model nccl --steps "$steps" --what-if link:node=2,slower=100,from=6steps,for=2steps
is "$(by links 'float(r["injected_ns"]) > 1e5' | cut -d']' -f1)]" "[6, 7]" "for these steps"

# a rank that stands still: the others wait for it once
exits 0 "a rank that hangs" run hang alike.job --model none --steps "$steps" --what-if hang:rank=3,from=8steps,for=300ms
is "$(json hang/summary.json '300 <= d["total_injected_ms"] < 310')" True "the run is so much longer: $(json hang/summary.json 'd["total_injected_ms"]')"

exits 0 "a rank that fails, as expected" run dead alike.job --model none --steps "$steps" --what-if fail:rank=2,from=9steps --expect 'exit_code == 1' --expect 'ops == 32'
says "what-if fail:rank=2,from=9steps: world rank 2 is gone" "is named"
exits 0 "the exit code from its results" "$NBOX" report dead --expect 'exit_code == 1'
exits 3 "... another one" "$NBOX" report dead --expect 'exit_code == 0'

# from a record it ends there, too: with as many ops as live
ops() { "$NBOX" report --csv "$1" | tail -n +2 | wc -l; }
exits 0 "the same from the record of a run without it" "$NBOX" retime plain --steps "$steps" --what-if fail:rank=2,from=9steps --out dead-again \
	--expect 'exit_code == 1' --expect 'ops == 32'
says "warning: what-if fail:rank=2,from=9steps: world rank 2 is gone: the job ends here; what it does then no record knows: " "says where it ends"
says "exit_code == 1: not judged, no job has ended here" "says so of the exit code"
is "$(json dead-again/summary.json '[e["text"] for e in d["expected"]]')" "['ops == 32']" "what is expected of an exit code is not judged"
exits 0 "two real ranks" run two alike.job --model none --real 0-1
exits 0 "one rank fails before the other comes to the same op" "$NBOX" retime two --what-if fail:rank=2,after=1
says "world rank 2 is gone: the job ends here" "the other one has nothing to say against that op"
exits 0 "the record of the run that failed" "$NBOX" retime dead
says "what-if fail:rank=2,from=9steps: the record ends before" "ends before it"
exits 0 "where its time goes" "$NBOX" why dead
says "iteration      rank 0, the median of " "is known up to there"
exits 0 "a run of other calls" run unlike unlike.job --model ring

# nobody is told: the job waits until somebody else ends it
noted() { grep -qs "never completes" "$1/notes.txt"; }
while read -r name job record what op; do
	timeout 200 "$NBOX" run --nodes 4 --gpus-per-node 1 --out "$name" --steps "$steps" --what-if "$what" -- "$stepper" "$job" --iterations 17 >"$name.log" 2>&1 &
	pid=$!
	logs=("$name.log")
	check "$name: an op is held up" within 200 noted "$name"
	kill -TERM $pid
	wait $pid
	is $? 143 "$name: the job waited until it was ended"
	is "$(wc -l <"$name.log" | awk '{ print ($1 > 3) }') $("$NBOX" report --csv "$name" | wc -l)" "1 $((op + 1))" "$name: what came before is in the record"
	is "$(grep -c "what-if $what: op $op of communicator 1 never completes" "$name.log")" 1 "$name: the summary says why"
	exits 0 "$name: from a record" "$NBOX" retime "$record" --steps "$steps" --what-if "$what" --out "$name-again"
	is "$(ops "$name-again")" "$op" "$name: as many ops as live"
	says "what-if $what: op $op of communicator 1 never completes: world rank " "$name: and why"
done <<'T'
silent alike.job plain fail:node=1,from=4steps,how=silent 12
counted alike.job plain fail:rank=2,after=13,how=silent 13
desync unlike.job unlike desync:rank=1,after=10 10
T
exits 0 "one op off among calls that are alike" run unseen alike.job --model none --what-if desync:rank=1,after=10
says "warning: what-if desync:rank=1,after=10: no op was held up by it" "is not noticed, as in life"
logs=()
nothing_left
finish
