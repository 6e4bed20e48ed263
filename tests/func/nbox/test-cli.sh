#!/usr/bin/env bash
# The command line itself: help, versions, dry runs. Starts no job. Errors that need no preparation: wrong-inputs.txt.
. "$(dirname "$0")/lib.sh"

exits 0 "--version" "$NBOX" --version
says "nbox " "--version names it"
for c in run perf models status report; do
	exits 0 "$c --help" "$NBOX" $c --help
	says "usage: nbox $c" "$c --help shows its usage"
done
exits 0 "help of a command" "$NBOX" help report
says "usage: nbox report" "is that command's"
exits 1 "a table that cannot be written" sh -c '"$0" models >/dev/full' "$NBOX"
says "nbox: not all of the output could be written" "is an error"

exits 0 "models" "$NBOX" models
for m in none const alphabeta ring tree alltoall table add slow jitter; do says "  $m " "models lists $m"; done
says "bw=" "models shows parameters"
says "between nodes (default 50GB/s)" "and the network that they take, unless told otherwise"
exits 0 "models ring" "$NBOX" models ring
says "chunk=" "its parameters"
is "$(grep -c "^  tree" <<<"$out")" 0 "no other's"
exits 0 "models fail" "$NBOX" models fail
says "world rank that is gone" "its parameters"
exits 0 "the defaults of the network" "$NBOX" run --help
says "of a rank's port between nodes [50GB/s]" "are in the help"
exits 2 "a flag of run's a second time" "$NBOX" run --nodes 4 --json a --json b -- true
says "--json b: given a second time, after a" "is an error, too"
exits 0 "options that may be repeated" "$NBOX" run --nodes 4 --what-if add:op=all,delay=1us --what-if add:hop=inter,delay=1us --model alphabeta --dry-run -- true

exits 2 "a value that was forgotten before an option" "$NBOX" run --json --quiet -- true
says "--json needs a value" "says what is missing there"
for job in ./does-not-exist does-not-exist "$tmp"; do
	exits 2 "no such program: $job" "$NBOX" run --nodes 4 --out no -- "$job"
	says "$job: not found here, or no program" "names it"
done
echo "print()" >train.py
# scripts that could not be executed; said before anything is made, dry or not
printf '#!/no/such/interpreter\n' >bad-line
printf '#!/usr/bin/env -S A=1 no-such-program -u\n' >bad-env
printf '#!/bin/sh\r\n' >from-windows
printf '#!/usr/bin/env -S A=1 sh -u\n' >good-env
printf '#!/usr/bin/env -S -u A sh\n' >unset-env
printf '#!/usr/bin/env -S ${SH} -u\n' >variable-env
printf 'true\n' >no-line
chmod +x bad-line bad-env from-windows good-env unset-env variable-env no-line
for dry in --dry-run --quiet; do
	exits 2 "$dry: an interpreter that is not there" "$NBOX" run $dry --nodes 4 --out no -- ./bad-line
	says "./bad-line: its first line names the interpreter '/no/such/interpreter', which is not here" "is said"
	exits 2 "$dry: one that env does not find" "$NBOX" run $dry --nodes 4 --out no -- ./bad-env
	says "./bad-env: its first line names the interpreter 'no-such-program', which is not on the PATH" "is said"
	exits 2 "$dry: a first line of Windows" "$NBOX" run $dry --nodes 4 --out no -- ./from-windows
	says "ends with a carriage return" "is said"
	exits 2 "$dry: a script that python would not find" "$NBOX" run $dry --nodes 4 --out no -- python3 -u tarin.py
	says "python3: the script tarin.py: No such file or directory" "is said"
	exits 2 "$dry: no such program" "$NBOX" run $dry --nodes 4 --out no -- ./tarin
	says "./tarin: not found here" "is said"
done
for job in ./good-env ./unset-env ./variable-env ./no-line "python3 -u train.py" "python3 -c tarin.py" "python3 -m tarin" \
	"python3 -mtimeit tarin.py" "python3 -uc pass tarin.py"; do
	# shellcheck disable=SC2086
	exits 0 "$job is none of these" "$NBOX" run --dry-run --nodes 4 -- $job
done
is "$(ls -d no nbox-out 2>/dev/null)" "" "and leaves nothing"
: >file
for dry in --dry-run --quiet; do
	exits 2 "$dry: a summary that cannot be written" "$NBOX" run $dry --nodes 4 --out no --json "$tmp/none/x.json" -- true
	says "--json $tmp/none/x.json: cannot be written there: No such file or directory" "is said"
	exits 2 "$dry: a folder that cannot be made" "$NBOX" run $dry --nodes 4 --out file/no -- true
	says "file/no: no results can be written there: " "is said, too"
done
is "$(ls -d no nbox-out 2>/dev/null)" "" "and both leave nothing"
exits 2 "a folder in /proc, which root may not write to either" "$NBOX" run --dry-run --nodes 4 --out /proc/no -- true
says "/proc/no: no results can be written there: /proc: " "is said"
exits 2 "a summary in /proc" "$NBOX" run --dry-run --nodes 4 --json /proc/no.json -- true
mkdir ro
read_only='mount --bind ro ro && mount -o remount,bind,ro ro && exec "$@"'
if unshare -Urm sh -c "$read_only" sh true 2>/dev/null; then
	exits 2 "a folder on a read-only mount" unshare -Urm sh -c "$read_only" sh \
		"$NBOX" run --dry-run --nodes 4 --out ro/no -- true
	says "ro/no: no results can be written there: ro: Read-only file system" "is said"
else
	pass "a read-only mount # SKIP none can be had here"
fi
is "$(find . -name '.nbox-*')" "" "and trying leaves nothing"
exits 0 "a summary in a folder that will be made" "$NBOX" run --dry-run --nodes 4 --out no/such --json no/such/x.json -- true

printf '#!/bin/sh\n' >train && chmod +x train
exits 0 "--dry-run" "$NBOX" run --dry-run --nodes 64 --gpus-per-node 8 --model ring --out dry -- ./train --x
says "512" "--dry-run says the world's size"
says "./train --x" "--dry-run says the command"
exits 2 "--dry-run where the launcher is not installed" "$NBOX" run --dry-run --nodes 64 --gpus-per-node 8 --model ring -- env/bin/torchrun --nproc-per-node=8 train.py
says "world      512 ranks: 64 nodes x 8" "says what would run"
is "$(tail -n 1 <<<"$out")" "nbox run: env/bin/torchrun: not found here, or no program" "and what is missing"
printf 'kind,bytes,us\nallreduce,8,1\n' >no-broadcast.txt
exits 0 "a table without all kinds" "$NBOX" run --dry-run --nodes 4 --model table:file=no-broadcast.txt -- ./train
says "warning    delay model table: no-broadcast.txt has times of allreduce; an op of another kind (allgather reducescatter " "says so"
exits 0 "without --nodes" "$NBOX" run --dry-run --gpus-per-node 8 -- true
says "16 ranks: 2 nodes x 8 (the number of nodes is not given: --nodes)" "says what is taken"
for given in "--nodes 2" "--world 16"; do
	# shellcheck disable=SC2086
	exits 0 "with $given" "$NBOX" run --dry-run --gpus-per-node 8 $given -- true
	is "$(grep -c "not given" <<<"$out")" 0 "says no such thing"
done
# the network that times come from: the model's own, where it was given one
while IFS='|' read -r options network; do
	# shellcheck disable=SC2086
	exits 0 "the network of $options" "$NBOX" run --dry-run --nodes 4 $options -- true
	is "$(sed -n 's/^network  *//p' <<<"$out")" "$network" "is said as it is"
done <<'T'
--model ring|1us, 400GB/s inside a node; 5us, 50GB/s between nodes
--model ring --inter-latency 9us|1us, 400GB/s inside a node; 9us, 50GB/s between nodes
--model ring:bw=400Gbps,alpha=5us|5us, 400Gbps on every hop (alpha, bw: the model's own)
--model tree:alpha=2us|2us, 400GB/s inside a node; 2us, 50GB/s between nodes (alpha: the model's own)
--model alphabeta:inter_bw=25GB/s|1us, 400GB/s inside a node; 5us, 25GB/s between nodes (inter_bw: the model's own)
--model alphabeta:bw=25GB/s,inter_alpha=7us|1us, 25GB/s inside a node; 7us, 25GB/s between nodes (bw, inter_alpha: the model's own)
--model const:time=1ms|1us, 400GB/s inside a node; 5us, 50GB/s between nodes (model const has no parameter of it)
--model none|
T
while IFS='|' read -r options warning; do
	# shellcheck disable=SC2086
	exits 0 "options that the model does not look at: $options" "$NBOX" run --dry-run --nodes 4 $options -- true
	is "$(sed -n 's/^warning  *//p' <<<"$out")" "$warning" "are named, and others are not"
done <<'T'
--model ring:bw=400Gbps --inter-bandwidth 10Gbps|inter-bandwidth 10Gbps may change nothing: model ring has bw=400Gbps of its own, which counts
--model alphabeta:inter_bw=25GB/s --intra-bandwidth 10GB/s|
--model none --inter-latency 9us|inter-latency 9us may change nothing: model none has no parameter of it
T
if ! ldconfig -p | grep -q libcuda.so.1; then
	for dry in --dry-run --quiet; do
		exits 2 "$dry --device cuda without a driver" "$NBOX" run $dry --nodes 64 --device cuda --out dry -- ./train
		says "there is no NVIDIA driver here" "says so"
		says "without a GPU: --device host" "and what else there is"
	done
fi
is "$(ls -d dry 2>/dev/null)" "" "--dry-run leaves nothing"

for command in "$NBOX run --dry-run" "$NBOX perf --live allreduce --dry-run" "$BUILD/nboxd --check"; do
	job=; case $command in *run\ *) job='-- true' ;; esac
	# shellcheck disable=SC2086
	exits 2 "${command##*/} refuses a mistyped variable" env NBOX_MODLE=ring $command --nodes 2 $job
	says "variable NBOX_MODLE is unknown; did you mean 'NBOX_MODEL'?" "and suggests one"
done

exits 1 "status of nobody" "$NBOX" status --addr "shm:$tmp/none.sock"
finish
