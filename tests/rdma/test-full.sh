#!/usr/bin/env bash
# --nccl full over rdma: NCCL's own messages (tests/apps/proxy-nccl), each value that comes out, memory that cannot be registered, a link
# that breaks under way. The last of these changes the guest's network: only in ./scripts/vm.
. "$(dirname "$0")/lib.sh"
export NBOX_NCCL=$BUILD/tests/apps/proxy-nccl/libnccl.so.2 NBOX_TOKEN=for-tests PATH=$PATH:/usr/sbin:/sbin
job=$BUILD/tests/apps/full-check copied="are copied before they are sent"
full() { # full NAME OPTIONS... -- OPTIONS OF THE JOB...: two real ranks of 16
	local name=$1 of_run=(); shift
	while [ "$1" != -- ]; do of_run+=("$1"); shift; done
	shift
	exits 0 "$name" timeout 400 "$NBOX" run --nccl full --nodes 8 --gpus-per-node 2 --exchange payload --data identity --link rdma \
		--out "${name//[^a-z0-9]/-}" "${of_run[@]}" -- "$job" --data identity --real 2 --gpus 2 "$@"
	says "values are right" "... each value is looked at"
}
stays() { is "$(grep -c "$copied" <<<"$out")" 0 "... and all goes from where it lies"; }

full "messages of all sizes" -- --ops allreduce,sendrecv --counts 1,1000,300001
stays
for protocol in LL LL128; do
	FAKE_NCCL_PROTO=$protocol full "lines with flags, $protocol" -- --ops allreduce --counts 70001
	stays
done
FAKE_NCCL_ALGO=Tree full "trees" -- --ops allreduce --counts 1000,300001
stays
full "two real nodes" --real 0-3 -- --real 4 --ops sendrecv --counts 70001
full "several queue pairs" --ib-qps 3 -- --ops reduce,broadcast --counts 300001
nothing_registered "the kernel keeps nothing"

exits 0 "an abort while ops are under way" timeout 400 "$NBOX" run --nccl full --nodes 16 --gpus-per-node 1 --exchange payload --data identity --link rdma \
	--out abort -- "$job" --data none --real 1 --counts 300001 --end abort
says "rank 0: aborted" "... comes back"

# a buffer of NCCL's has 4 MiB
chmod 777 .
exits 0 "a worker that may lock too little memory for them" setpriv --reuid 65534 --clear-groups --bounding-set -all sh -c "ulimit -l 4096; timeout 400 '$NBOX' run \
	--nccl full --nodes 8 --gpus-per-node 1 --real 0 --exchange payload --data identity --link rdma --ib-ring 256K --out lock -- \
	'$job' --data identity --real 1 --ops allreduce --counts 300001"
says "values are right" "... sends copies"
is "$(grep "$copied" <<<"$out" | grep -c "this process may lock 4 MiB (ulimit -l)")" 1 "... and the summary says so once, with the cause"

if ip link show rd0 >/dev/null 2>&1; then
	"$NBOX" run --nccl full --nodes 8 --gpus-per-node 2 --exchange payload --data identity --link rdma --out cut -- \
		"$job" --data none --real 2 --gpus 2 --ops alone --counts 300001 --times 1000000 >cut.log 2>&1 &
	run=$! logs=(cut.log)
	check "ops are over" within 400 ops_recorded cut 3
	ip link set rd0 down
	check "a link that breaks under way: the run ends" within 400 sh -c "! kill -0 $run"
	kill -KILL $run 2>/dev/null; wait $run
	is "$(($? != 0 && $? != 137))" 1 "... as one that has failed"
	is "$(grep -cE "(link closed|lost the link).*device rxe0 port 1, QP [0-9]+ to rdma:.*(IBV_WC_|the port is down)" cut.log | awk '{ print ($1 > 0) }')" 1 \
		"... and says where it broke, and why"
	ip link set rd0 up
	rdma link delete rxe0; rdma link add rxe0 type rxe netdev rd0
	nothing_registered "... and the kernel keeps nothing"
fi
nothing_left
finish
