#!/usr/bin/env bash
# The main job with payload over rdma: 4 workers and nboxd, the same loss as over shm, nothing left behind, three times.
. "$(dirname "$0")/lib.sh"
# loss_of wants the numbers as they are printed: equal text, not nearly equal
job() { # job NAME LINK
	exits 0 "$1: runs" timeout 400 "$NBOX" run --quiet --nodes 2 --gpus-per-node 4 --model ring --link "$2" --exchange payload --out "$1" -- \
		"$BUILD/tests/apps/trainer" --steps 2 --batch 4 --hidden 32 --layers 2 --text '/usr/share/common-licenses/BSD' --json "$1.json"
}
not_ready() { cat /sys/class/infiniband/*/ports/*/hw_counters/rcvd_rnr_err 2>/dev/null; } # of the devices that count it
before=$(not_ready)
job shm shm
is "$(loss_of shm.json | grep -c .)" 1 "the trainer has a loss"
for i in 1 2 3; do
	job "rdma-$i" rdma
	is "$(loss_of "rdma-$i.json")" "$(loss_of shm.json)" "rdma-$i: the loss is the same as over shm"
	nothing_registered "rdma-$i: queue pairs and memory are given back"
done
# a peer was never found without a receive
is "$(not_ready)" "$before" "no receiver was ever not ready (RNR)"
nothing_left
finish
