#!/usr/bin/env bash
# The stepper's jobs as four processes on host NCCL, and as one real rank of four: each does the ops of its kind, and no iteration is
# shorter than what this rank computes.
test=$(realpath "$0")
. "$(dirname "$0")/../nbox/lib.sh"
stepper=$BUILD/tests/apps/stepper
jobs=$(dirname "$test")/../../apps/stepper/jobs

# checked FILE OPS MS ITERATIONS: what the JSON file of a run says holds together
checked() {
	is "$(json "$1" 'd["world"], d["ops"], len(d["iterations"])')" "(4, $2, $4)" "$1: world, ops and iterations"
	is "$(json "$1" "min(d['iterations']) >= $3 and d['q1_ms'] <= d['iteration_ms'] <= d['q3_ms']")" True "$1: no less than $3 ms, and in order"
	is "$(json "$1" "0 <= d['exposed_ms'] < max(d['iterations'])")" True "$1: it waits for a part of the time"
}
# job, ops of rank 0, ms that rank 0 computes
while read -r job ops ms; do
	exits 0 "$job on four ranks" timeout 100 "$NBOX" run --plain --quiet --procs 4 -- "$stepper" "$jobs/$job.job" --iterations 2 --warmup 1 --json "$job.json"
	says "$job.job on 4 ranks, 2 iterations: " "$job: one line says what was measured"
	checked "$job.json" "$ops" "$ms" 2
	exits 0 "$job with one real rank of four" timeout 100 "$NBOX" run --nodes 4 --gpus-per-node 1 --real 0 --model ring --out "o-$job" -- \
		"$stepper" "$jobs/$job.job" --iterations 2 --warmup 1 --json "n-$job.json"
	case $out in *guessed*) fail "$job: the members of all communicators are known" "$out" ;; *) pass "$job: the members of all communicators are known" ;; esac
	checked "n-$job.json" "$ops" "$ms" 2
	rm -rf "o-$job"
done <<'T'
ddp 8 62
fsdp 24 97
hsdp 32 97
tp-dp 15 55
pipeline 11 193
eager 10 97
moe 10 37
uneven 4 73
accumulate 4 98
T
is "$(ls "$jobs" | wc -l)" 9 "all jobs were run"

sed -n '/^    # llm.job/,/^$/s/^    //p' "$jobs/../README.md" >llm.job
exits 0 "the README's job" timeout 100 "$NBOX" run --nodes 64 --gpus-per-node 8 --real 0 --data none --model ring --out llm -- \
	"$stepper" llm.job --iterations 1 --warmup 0 --json llm.json
is "$(json llm.json 'd["world"], d["ops"], d["iteration_ms"] > 401')" "(512, 71, True)" "its world, its ops and the time that it computes"

exits 0 "a rank that is slow" timeout 100 "$NBOX" run --plain --quiet --procs 4 -- "$stepper" "$jobs/ddp.job" --iterations 1 --slow 0=2 --slow 0,3=2@7 --json slow.json
checked slow.json 8 139 1
exits 0 "jitter" timeout 100 "$NBOX" run --plain --quiet --procs 4 -- "$stepper" "$jobs/ddp.job" --iterations 1 --jitter 10% --seed 3 --json jitter.json
checked jitter.json 8 6.2 1

# captured: the lag of a slow virtual rank goes into each replay, and on to the next as it is
for job in fsdp pipeline eager; do
	exits 0 "$job, captured, on four ranks" timeout 100 "$NBOX" run --plain --quiet --procs 4 -- "$stepper" "$jobs/$job.job" --iterations 2 --graph
done
exits 0 "captured, beside a slow rank" timeout 100 "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --real 0 --model ring:bw=1GB/s \
	--what-if slow:rank=2,compute=1.5 --out graph -- "$stepper" "$jobs/ddp.job" --iterations 40 --graph --json graph.json
# the shortest of many: a busy machine stretches some of them, a lag that grew from one to the next would stretch all
is "$(json graph.json 'sum(d["iterations"]) > 40 * 62 * 1.4, min(d["iterations"][4:]) < 2 * 62 * 1.5')" "(True, True)" \
	"its 62 ms take half as long again, each time: $(json graph.json 'd["iterations"]')"

# stages 0 and 1 are real: stage 1 talks to stage 2, which copies stage 0 and computes for 36 ms a micro-batch, not for 24
printf '%s\n' 'parallel pp=4' 'micro 4' 'layer x4 forward=8ms backward=16ms send=64KiB' >stages.job
exits 0 "a stage beside a slow one that copies another" timeout 100 "$NBOX" run --quiet --nodes 2 --gpus-per-node 2 --real 0-1 \
	--model ring:bw=1GB/s --what-if slow:rank=2,compute=1.5 --out stages -- "$stepper" stages.job --iterations 6 --json stages.json
is "$(json stages.json 'sum(d["iterations"][1:]) > 5 * 4 * 36')" True "it waits for it: $(json stages.json 'd["iterations"]')"

# one that is killed: the others end, and say why
all_ready() { [ "$(grep -l ' ready, ' nccl.* | wc -l)" = 3 ]; }
printf 'layer forward=1s backward=1s params=4KiB\n' >long.job
pids=()
for rank in 0 1 2; do
	RANK=$rank WORLD_SIZE=3 LOCAL_RANK=$rank timeout -k 5 100 env LD_LIBRARY_PATH="$BUILD/emulator/standins" NCCL_DEBUG=INFO \
		NCCL_DEBUG_FILE="$tmp/nccl.$rank" "$stepper" long.job --iterations 100000 --id-file "$tmp/id" >$rank.out 2>&1 &
	pids+=($!)
done
within 80 all_ready
pkill -KILL -P "${pids[2]}"
for rank in 0 1; do
	wait "${pids[$rank]}"
	is $? 1 "rank $rank ends with an error when rank 2 was killed"
	is "$(grep -c "^stepper: rank $rank: " $rank.out) $(wc -l <$rank.out)" "1 1" "in one line: $(cat $rank.out)"
done
wait "${pids[2]}"

while IFS='|' read -r words why; do
	# shellcheck disable=SC2086
	exits 2 "stepper $words" env WORLD_SIZE=4 RANK=3 "$stepper" $words
	is "$out" "stepper: $why" "says why"
done <<T
|which job? stepper JOBFILE; see --help
$jobs/ddp.job --iteratons 3|unknown option '--iteratons'; did you mean '--iterations'?
$jobs/ddp.job --iterations|--iterations needs a value
$jobs/ddp.job --iterations 0|--iterations: '0' is no number from 1 to 1000000
$jobs/ddp.job more.job|'more.job' is one word too many: the job is $jobs/ddp.job
$jobs/ddp.job --jitter 10|--jitter: '10' has no unit: write a percentage, such as 10%
$jobs/ddp.job --slow 4=2|--slow: '4' names a rank beyond the last one, 3
$jobs/ddp.job --help=1|--help: it takes no value
$jobs/ddp.job --graph=1|--graph: it takes no value
$jobs|$jobs is no file, but a folder, a pipe or a device
none.job|cannot open none.job: No such file or directory
T
printf 'layer forward=1ms backward=2ms params=1M\nparallel tp=3\n' >three.job
exits 2 "a world that does not fit" env WORLD_SIZE=4 RANK=0 "$stepper" three.job
is "$out" "stepper: three.job: the world has 4 ranks, and tp=3 x pp=1 = 3 does not divide it" "names both"
exits 2 "a rank that is not below the world" env WORLD_SIZE=4 RANK=4 "$stepper" three.job
is "$out" "stepper: RANK=4 is not below WORLD_SIZE=4" "names both"
exits 0 "stepper --help" "$stepper" --help
says "usage: stepper JOBFILE [options]" "says how it is called"
nothing_left
finish
