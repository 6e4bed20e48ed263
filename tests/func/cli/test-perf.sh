#!/usr/bin/env bash
# nbox perf: nccl-tests' table for a virtual world, live through the shim.
test=$(realpath "$0")
. "$(dirname "$0")/lib.sh"

exits 0 "perf allreduce 64 x 8" "$NBOX" perf allreduce --nodes 64 --gpus-per-node 8 -b 8 -e 1M -f 8 -n 3 -w 1 --model ring --json perf.json --out perf-out
says "algbw" "nccl-tests' header"
says "# Avg bus bandwidth" "nccl-tests' footer"
says "512" "the world's size"
says "# nbox: 512 ranks (64 nodes x 8), 1 real; model ring" "and the model"
says "1us, 400GB/s inside a node; 5us, 50GB/s between nodes" "and the network"
says "# gates opened late by p50 " "how late this machine was"
says "# results in perf-out" "where the results are"
# 2 x 511 steps of 5 us, and 1 MiB through the slowest hop
is "$(awk '/modelled$/ || /modelled  / { on = 1 } on && $2 == 32768 { print $3 }' <<<"$out")" "5111.31" "the modelled time is the formula's"
is "$(grep -cE '^ +[0-9]+ +[0-9]+ ' <<<"$out")" 6 "rows of nccl-tests' table: $(grep -cE '^ +[0-9]' <<<"$out")"
ops="allgather reducescatter broadcast reduce alltoall"
over_rdma && ops="allgather alltoall"
for op in $ops; do
	exits 0 "perf $op" "$NBOX" perf $op --nodes 8 --gpus-per-node 2 -b 64K -e 64K -n 2 -w 1 --model alphabeta --out "o-$op"
	says "65536" "a row of $op"
	is "$(grep -cE '^# +65536 +[0-9.]+ +[0-9.]+ +[0-9.]+$' <<<"$out")" 1 "the modelled time of $op"
done
exits 0 "perf with a what-if" "$NBOX" perf allreduce --nodes 8 --gpus-per-node 2 -b 64K -e 64K -n 2 -w 1 --model const:time=100us --what-if add:op=allreduce,delay=300us --what-if fail:rank=15,time=1000000s --out o-add
is "$(grep -E '^# +65536 ' <<<"$out" | tr -s ' ')" "# 65536 100.00 300.00 0.16 0.31" "modelled and injected stand apart, bandwidths are those of both"
says "model const:time=100us + add:op=allreduce,delay=300us + fail:rank=15,time=1000000s" "the head names all what-ifs"
is "$(json o-add/summary.json 'd["model"]')" "const:time=100us + add:op=allreduce,delay=300us + fail:rank=15,time=1000000s" "and so does the summary"
if over_rdma; then # the rest makes no links
	nothing_left
	finish
fi
# a model whose code takes longer than its ops: nothing is simulated, and nobody's what-if is blamed
if command -v cc >/dev/null; then
	cat >lazy.c <<'C'
#include <unistd.h>
#include "nbox-delaymodel.h"
static int create(const struct nbox_host *h, const struct nbox_next *next, const struct nbox_kv *kv, size_t n, void **ret) { static int it; (void)h; (void)next; (void)kv; (void)n; *ret = &it; return 0; }
static void destroy(void *model) { (void)model; }
static int op(void *model, const struct nbox_op *o, double *ret_ns) { (void)model; (void)o; usleep(20000); *ret_ns = 1000; return 0; }
static const struct nbox_param params[] = {{0}};
NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {NBOX_DELAYMODEL_HEAD, .name = "lazy", .summary = "sleeps", .flags = NBOX_UNIFORM, .params = params, .create = create, .destroy = destroy, .op = op};
C
	check "a lazy model is built" cc -shared -fPIC -I "$(dirname "$test")/../../../delaymodels" -o lazy.so lazy.c
	exits 0 "perf with it" "$NBOX" perf allreduce --nodes 4 --gpus-per-node 1 -b 1K -e 1K -n 2 -w 1 --model ./lazy.so --out lazy-out
	says "finding its end took nboxd" "says that deciding took longer than the op"
	says "nothing was simulated: this machine was busy, or the model's code is slow" "and why"
fi
exits 0 "perf --help" "$NBOX" perf --help
says "how long ops and messages take [alphabeta]" "has perf's own defaults"
says "-w WARM-UPS    ops before them, untimed [5]" "and its own options"
exits 2 "sizes the wrong way round" "$NBOX" perf allreduce --nodes 2 --gpus-per-node 1 -b 1G -e 8 --out wrong-way
says "nbox-perf: the first size, -b 1073741824, is larger than the last, -e 8" "are said"
exits 2 "perf of what?" "$NBOX" perf
exits 2 "perf of an option" "$NBOX" perf --nodes 4
says "which collective? One of allreduce, allgather," "asks"
exits 2 "perf of an unknown collective" "$NBOX" perf allreduc --nodes 2
says "allreduce" "suggests allreduce"
nothing_left
finish
