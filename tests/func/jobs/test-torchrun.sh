#!/usr/bin/env bash
# nbox run with a launcher that starts the ranks itself: what the workers see, other nodes than the first, restarts.
. "$(dirname "$0")/../nbox/lib.sh"
here=$BUILD/tests/func/jobs
export PATH=$here:$PATH TMPDIR=$tmp
# the processes of the last test but its shells
workers() { grep -lsa "FLAKY_TEST=$tmp" /proc/[0-9]*/environ | while read -r f; do [ "$(cat "${f%environ}comm" 2>/dev/null)" = flaky ] && echo "$f"; done; }
vars="RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE ROLE_RANK ROLE_WORLD_SIZE"

# shellcheck disable=SC2086 # words
exits 0 "torchrun under nbox run" "$NBOX" run --nodes 64 --out a -- torchrun --nproc-per-node=2 "$here/show-env" "$tmp/a.env" $vars
is "$(cat a.env.0 a.env.1)" "0 0 128 2 0 64 0 128
1 1 128 2 0 64 1 128" "what its workers see"
says "no op was recorded" "that no worker used NCCL is said"
exits 0 "another job's agent has the port" env PET_MASTER_PORT=29500 "$NBOX" run --quiet --nodes 64 --out port -- \
	torchrun --nproc-per-node=2 "$here/show-env" "$tmp/port.env" PET_MASTER_ADDR PET_MASTER_PORT
is "$(sed 's/ [0-9]*$/ PORT/' port.env.0)" "127.0.0.1 PORT" "the agent is told a free port"
is "$(grep -c ' 29500$' port.env.0)" 0 "not the one of the environment"
# shellcheck disable=SC2086
exits 0 "the line of a cluster" "$NBOX" run --quiet --out b -- torchrun --nnodes=16 --node-rank=5 --rdzv-backend=c10d --rdzv-endpoint=head:29500 \
	--nproc-per-node=2 "$here/show-env" "$tmp/b.env" $vars
is "$(cat b.env.0 b.env.1)" "10 0 32 2 5 16 10 32
11 1 32 2 5 16 11 32" "nodes and place are taken from it"
# shellcheck disable=SC2086
exits 0 "only some ranks of some nodes" "$NBOX" run --quiet --nodes 4 --gpus-per-node 4 --real 3,8 --out c -- \
	torchrun --nproc-per-node=2 "$here/show-env" "$tmp/c.env" $vars
is "$(cat c.env.0 c.env.1)" "3 0 16 2 0 4 3 16
8 1 16 2 2 4 8 16" "--real in the order of the launcher's ranks"
is_sanitized || exits 0 "a script that starts the ranks" "$NBOX" run --quiet --launcher --nodes 4 --gpus-per-node 2 --as-node last --out d -- \
	env torchrun --nproc-per-node=2 "$here/show-env" "$tmp/d.env" RANK WORLD_SIZE
is_sanitized || is "$(cat d.env.0 d.env.1)" "6 8
7 8" "--launcher --as-node last"
# a script that starts them, and nobody said so: nbox run starts it once a rank
printf '#!/bin/sh\n# torchrun x\necho torchrun\n[ -n "$1" ] && A=1 exec env B=2 torchrun --nproc-per-node=2 x\n' >job.sh && chmod +x job.sh
sed '4s/torchrun/true/' job.sh >mine.sh
printf '"""Uses mp.spawn(f), not torchrun."""\nimport torch.multiprocessing as mp\ndone = 1 # mp.spawn(f)\nif True:\n    x = mp.spawn(f)\n' >job.py
hint() { "$NBOX" run --dry-run --nodes 4 --gpus-per-node 2 "$@" | sed -n 's/^warning    the command seems to start its ranks itself //p'; }
twice="and is started 2 times, once for each real rank: say"
is "$(hint -- ./job.sh x)" "(./job.sh:4: torchrun), $twice --launcher, or --procs 2 if that is meant" "a script"
is "$(hint -- bash -e job.sh)" "(job.sh:4: torchrun), $twice --launcher, or --procs 2 if that is meant" "a shell's script"
is "$(hint -- sh -ec 'sleep 1 && python3 -m torch.distributed.run x')" "(-ec:1: torchrun), $twice --launcher, or --procs 2 if that is meant" "a shell's words"
is "$(hint -- python3 job.py)" "(job.py:5: mp.spawn), $twice --procs 1, or --procs 2 if that is meant" "mp.spawn"
is "$(hint --launcher -- ./job.sh)$(hint --procs 2 -- ./job.sh)$(hint -- sh mine.sh)$(hint -- sh)$(hint -- python3 -c 'mp.spawn()')" "" "none where it was said, or nothing is known"
exits 1 "it runs all the same" "$NBOX" run --plain --gpus-per-node 2 -- sh -c "exit 1 # (torchrun)"
is "$(grep -c "nbox run: the command seems" <<<"$out")" 0 "and words of another line say nothing"
exits 1 "one that fails" "$NBOX" run --plain --gpus-per-node 2 -- sh -c "exit 1; torchrun x"
is "$(grep -c "nbox run: the command seems to start its ranks itself (-c:1: torchrun)" <<<"$out")" 2 "is told so at the start, and at the end"
exits 0 "without nbox" "$NBOX" run --plain --quiet -- torchrun --nproc-per-node=2 "$here/show-env" "$tmp/p.env" RANK WORLD_SIZE NBOX_NODES
is "$(cat p.env.0 p.env.1)" "0 2 -
1 2 -" "--plain rewrites nothing"

exits 2 "--procs with a launcher" "$NBOX" run --procs 2 -- torchrun x
exits 2 "a dry run without the script" "$NBOX" run --dry-run --nodes 64 -- torchrun --nproc-per-node=8 --tee 3 train.py
says "torchrun: the script train.py: No such file or directory" "says so"
exits 0 "a dry run of a module" "$NBOX" run --dry-run --nodes 64 -- torchrun --nproc-per-node=8 -m train.py
: >train.py
exits 0 "a dry run" "$NBOX" run --dry-run --nodes 64 -- torchrun --nnodes=64 --nproc-per-node=8 train.py
says "512 ranks: 64 nodes x 8" "says the world"
says "without --nnodes=64" "and what it changed"

for node in first 2 last; do
	exits 0 "NCCL among 2 real ranks, as node $node of 4" "$NBOX" run --quiet --nodes 4 --as-node $node --model ring --out "n-$node" -- \
		torchrun --nproc-per-node=2 "$here/flaky"
done
is "$("$NBOX" report --csv n-last | grep -c AllReduce)" 2 "the op is in the record"
exits 0 "a job that asks PyTorch to compare all calls" env TORCH_DISTRIBUTED_DEBUG=DETAIL "$NBOX" run --nodes 4 --model ring --out debug -- \
	torchrun --nproc-per-node=2 "$here/flaky"
says "warning: TORCH_DISTRIBUTED_DEBUG=DETAIL was taken for INFO" "the summary says that it does not"
exits 3 "a job that fails before its first op" "$NBOX" run --nodes 4 --out f -- torchrun --nproc-per-node=2 "$here/flaky" early
is "$(tail -n 2 <<<"$out")" "
-- nbox: no op was recorded: the job ended with exit code 3 before its first op was over" "the summary is a line, behind the job's own words"
exits 2 "a line that torchrun refuses" "$NBOX" run --nodes 4 --out typo -- torchrun --nprocs-per-node=2 "$here/flaky"
is "$out" "torchrun: --nprocs-per-node=2?

-- nbox: no op was recorded: the job ended with exit code 2 before its first op was over" "has no longer one"
is "$("$NBOX" report f 2>&1 | grep -c .)" 1 "nor has nbox report"
# without a launcher nobody starts it again
exits 1 "a rank that ends well before the communicator, without a launcher" timeout 120 "$NBOX" run --nodes 4 --gpus-per-node 2 --out l -- "$here/flaky" leave
says "the process of world rank 1 has ended with exit code 0" "the other one is told who"
# torchrun never starts one again that ended well, and that is seen; but one that is only late, in disguise, is waited for
(timeout 150 "$NBOX" run --quiet --nodes 4 --out late -- torchrun --nproc-per-node=2 "$here/flaky" late >late.txt 2>&1; echo "code $?" >>late.txt) &
late=$!
# another job of this machine, whose workers have the same variables and are well
(timeout 300 "$NBOX" run --quiet --nodes 4 --out other -- torchrun --nproc-per-node=2 "$here/flaky" until "$tmp/other.go" >other.txt 2>&1; echo "code $?" >>other.txt) &
other=$!
(timeout 150 "$NBOX" run --quiet --nodes 4 --out once -- torchrun --nproc-per-node=2 --max-restarts=1 "$here/flaky" leave-once >once.txt 2>&1; echo "code $?" >>once.txt) &
once=$!
exits 1 "a rank that ends well before the communicator, under torchrun" timeout 150 "$NBOX" run --nodes 4 --out l2 -- torchrun --nproc-per-node=2 "$here/flaky" leave
says "the process of world rank 1 has ended (its launcher, pid " "the other one is told who, too"
touch other.go
wait $late $once $other
is "$(tail -n 1 other.txt)" "code 0" "another job's workers are not taken for it"
is "$(tail -n 1 late.txt)" "code 0" "a rank that is late is waited for"
is "$(grep -c "has ended" late.txt)" 0 "and nobody says that it has ended"
is "$(tail -n 1 once.txt)" "code 0" "one that ended in an attempt before, and is late in this one, is waited for"
is "$(grep -c "no communicator.*has ended" once.txt)" 1 "and was told of in the attempt before only"
exits 0 "the agent starts all again when one fails" env FLAKY=2 "$NBOX" run --quiet --nodes 4 --out r -- torchrun --nproc-per-node=2 --max-restarts=2 "$here/flaky"
# who of the two is reaped first decides about the code: the one that left, or the one that lost its peer
out=$(env FLAKY=2 "$NBOX" run --quiet --nodes 4 --out r2 -- torchrun --nproc-per-node=2 --max-restarts=1 "$here/flaky" 2>&1); code=$?
is "$([ $code = 3 ] || [ $code = 1 ] || echo "$code $out")" "" "and gives up after --max-restarts"
is "$(grep -c "a worker ended" <<<"$out")" 2 "after two attempts"
# the agent is killed, and its workers have sessions of their own
(cd "$tmp" && FLAKY_TEST=$tmp TORCHRUN_SESSIONS=1 "$NBOX" run --quiet --nodes 4 --out s -- torchrun --nproc-per-node=2 "$here/flaky" forever >/dev/null 2>&1) &
two_run() { [ "$(workers | wc -l)" = 2 ]; }
within 200 two_run
is "$(workers | wc -l)" 2 "two workers run"
agent=$(workers | head -n 1 | cut -d/ -f3)
agent=$(awk '{ print $4 }' "/proc/$agent/stat")
kill -KILL "$agent"
wait
is "$(workers | wc -l)" 0 "none is left when their agent was killed"
nothing_left
finish
