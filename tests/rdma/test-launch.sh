#!/usr/bin/env bash
# Launchers that start the ranks, over rdma: what func/launch shows over shm, as far as its workers make links.
. "$(dirname "$0")/lib.sh"
here=$BUILD/tests/func/jobs
export PATH=$here:$PATH:/usr/sbin:/sbin TMPDIR=$tmp NBOX_LINK=rdma
unset NBOX_NCCL # found as users have it
run=(timeout 400 "$NBOX" run --quiet --nodes 4 --model ring)
# the workers of the last test
workers() { grep -lsa "FLAKY_TEST=$tmp" /proc/[0-9]*/environ | while read -r f; do [ "$(cat "${f%environ}comm" 2>/dev/null)" = flaky ] && echo "$f"; done; }

for node in first last; do
	exits 0 "two real ranks run as the $node node of 4, with payload" "${run[@]}" --exchange payload --as-node $node --out "n-$node" -- torchrun --nproc-per-node=2 "$here/flaky"
	is "$("$NBOX" report --csv "n-$node" | grep -c AllReduce)" 2 "the record has the op"
done
exits 0 "the agent starts all again when one fails" env FLAKY=1 "${run[@]}" --out again -- torchrun --nproc-per-node=2 --max-restarts=1 "$here/flaky"
nothing_registered "the kernel keeps nothing of the workers that failed"
exits 1 "a rank that ends well before the communicator, without a launcher" "${run[@]}" --gpus-per-node 2 --out leave -- "$here/flaky" leave
says "the process of world rank 1 has ended with exit code 0" "the other rank is told which one"

# the agent is killed, and its workers have sessions of their own
FLAKY_TEST=$tmp TORCHRUN_SESSIONS=1 "${run[@]}" --out killed -- torchrun --nproc-per-node=2 "$here/flaky" forever >/dev/null 2>&1 &
for _ in $(seq 600); do [ "$(workers | wc -l)" = 2 ] && break; sleep 0.1; done
is "$(workers | wc -l)" 2 "both workers run"
agent=$(workers | head -n 1 | cut -d/ -f3)
kill -KILL "$(awk '{ print $4 }' "/proc/$agent/stat")"
wait
is "$(workers | wc -l)" 0 "none is left when their agent was killed"

nothing_registered "the kernel keeps nothing"
nothing_left
finish
