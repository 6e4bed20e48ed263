#!/usr/bin/env bash
# nbox perf: nccl-tests' table for a virtual world, live through the shim.
. "$(dirname "$0")/lib.sh"

exits 0 "perf allreduce 64 x 8" "$NBOX" perf allreduce --nodes 64 --gpus-per-node 8 -b 8 -e 1M -f 8 -n 3 -w 1 --model ring --json perf.json --out perf-out
says "algbw" "nccl-tests' header"
says "# Avg bus bandwidth" "nccl-tests' footer"
says "512" "the world's size"
for op in allgather reducescatter broadcast reduce alltoall; do
	exits 0 "perf $op" "$NBOX" perf $op --nodes 8 --gpus-per-node 2 -b 64K -e 64K -n 2 -w 1 --model alphabeta --out "o-$op"
	says "65536" "a row of $op"
done
exits 2 "perf of what?" "$NBOX" perf
exits 2 "perf of an option" "$NBOX" perf --nodes 4
says "which collective? One of allreduce, allgather," "asks"
exits 2 "perf of an unknown collective" "$NBOX" perf allreduc --nodes 2
says "allreduce" "suggests allreduce"
nothing_left
finish
