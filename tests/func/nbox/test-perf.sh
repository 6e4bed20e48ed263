#!/usr/bin/env bash
# nbox perf: nccl-tests' table for a virtual world; first live through the shim, then modelled.
test=$(realpath "$0")
. "$(dirname "$0")/lib.sh"

exits 0 "perf allreduce 64 x 8" "$NBOX" perf --live allreduce --nodes 64 --gpus-per-node 8 -b 8 -e 1M -f 8 -n 3 -w 1 --model ring --json perf.json --out perf-out
says "algbw" "nccl-tests' header"
says "# Avg bus bandwidth" "nccl-tests' footer"
says "512" "the world's size"
says "# nbox: 512 ranks (64 nodes x 8), 1 real; model ring" "and the model"
says "1us, 400GB/s inside a node; 5us, 50GB/s between nodes" "and the network"
says "# gates opened late by p50 " "how late this machine was"
says "# results in perf-out" "where the results are"
# 2 x 511 steps of 5 us, and 1 MiB through the slowest hop
is "$(awk '$1 == 32768 { print $6, $10 }' <<<"$out")" "5111.31 0.00" "time is the formula's"
is "$(awk '$1 == 32768 { print ($11 >= $6) }' <<<"$out")" 1 "what this machine took is a column of its own, and never less"
columns=$(grep '^# *size' <<<"$out" | tr -s ' ')
is "$columns" "# size count type redop root time algbw busbw #wrong injected this machine" "nccl-tests' columns, and two more"
is "$(grep -cE '^ +[0-9]+ +[0-9]+ ' <<<"$out")" 6 "rows of nccl-tests' table: $(grep -cE '^ +[0-9]' <<<"$out")"
exits 0 "perf sendrecv" "$NBOX" perf --live sendrecv --nodes 4 --gpus-per-node 1 -b 1K -e 1K -n 1 -w 0 --model alphabeta --out o-sendrecv
says "# rank 0's send and receive; without --live: until all ranks are through" "says whose times these are"
for op in allgather reducescatter broadcast reduce alltoall; do
	exits 0 "perf $op" "$NBOX" perf --live $op --nodes 8 --gpus-per-node 2 -b 64K -e 64K -n 2 -w 1 --model alphabeta --out "o-$op"
	says "65536" "a row of $op"
	# a rank that waits for nobody is through before the op is
	is "$(awk '$1 == 65536 && $6 > 0 && $11 > 0 { print $3 }' <<<"$out")" float "with a time of $op, and this machine's"
	is "$(grep '^# *size' <<<"$out" | tr -s ' ')" "$columns" "the same columns"
	# as in nccl-tests: the count is that of a rank's part, and busbw is algbw x 15 / 16 where each of the 16 ranks keeps its own
	case $op in allgather|reducescatter|alltoall) want="1024 0.94" ;; *) want="16384 1.00" ;; esac
	is "$(awk '$1 == 65536 { printf "%d %.2f", $2, $8 / $7 }' <<<"$out")" "$want" "count and bus bandwidth are those of $op"
done
exits 1 "perf of sizes that are too small" "$NBOX" perf --live allgather --nodes 64 --gpus-per-node 8 -b 8 -e 1K -n 1 -w 0 --out small
says "nbox perf: there is nothing to print: a size is that of all ranks' parts, and none has an element for each of the 512 ranks; take a larger -e" "says what is wrong"
exits 0 "perf with a what-if" "$NBOX" perf --live allreduce --nodes 8 --gpus-per-node 2 -b 64K -e 64K -n 2 -w 1 --model const:time=100us --what-if add:op=allreduce,delay=300us --what-if fail:rank=15,time=1000000s --out o-add
is "$(awk '$1 == 65536 { print $6, $7, $8, $10 }' <<<"$out")" "400.00 0.16 0.31 300.00" "injected is a part of time, and bandwidths are those of time"
is "$(grep '^# *size' <<<"$out" | tr -s ' ')" "$columns" "the same columns"
says "model const:time=100us + add:op=allreduce,delay=300us + fail:rank=15,time=1000000s" "the head names all what-ifs"
is "$(json o-add/summary.json 'd["model"]')" "const:time=100us + add:op=allreduce,delay=300us + fail:rank=15,time=1000000s" "and so does the summary"
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
	exits 0 "perf with it" "$NBOX" perf --live allreduce --nodes 4 --gpus-per-node 1 -b 1K -e 1K -n 2 -w 1 --model ./lazy.so --out lazy-out
	says "finding its end took nboxd" "says that deciding took longer than the op"
	says "nothing was simulated: this machine was busy, or the model's code is slow" "and why"
fi
exits 0 "perf --live of a model that is far above the bound" "$NBOX" perf --live allreduce --preset dgx-h100 --nodes 4 --model ring -b 64M -e 64M -n 1 -w 0 --out above
says "modelled times are more than twice the bound, such as AllReduce of 64 MiB over 32 ranks: nbox explain, with config.yaml of the results, says" "is warned of"
exits 0 "the same of an all-gather" "$NBOX" perf --live allgather --preset dgx-h100 --nodes 4 --model ring -b 64M -e 64M -n 1 -w 0 --out gather
says "such as AllGather of 64 MiB over 32 ranks" "has the size that nbox explain takes, not a rank's part"
exits 0 "nbox explain takes the run's config.yaml" env -u NBOX_MODEL "$NBOX" explain allreduce 64MiB --config above/config.yaml
says "why         " "and says why"
exits 0 "perf --live of NCCL's choice" env -u NBOX_MODEL "$NBOX" perf --live allreduce --preset dgx-h100 --nodes 4 -b 8 -e 64M -f 1024 -n 1 -w 0 --exchange messages --out planned
says "# network: fabric dgx-h100 (assumed: preset dgx-h100 (" "needs no model"
is "$(grep -c "twice the bound" <<<"$out")" 0 "and is not far above"
for op in alltoall sendrecv allgather broadcast; do
	exits 0 "perf --live $op of NCCL's choice" env -u NBOX_MODEL "$NBOX" perf --live $op --preset dgx-a100 --nodes 4 --gpus-per-node 2 -b 1M -e 1M -n 1 -w 0 --out "choice-$op"
	live=$(awk '$1 == 1048576 { print $6 }' <<<"$out")
	is "$live" "$(env -u NBOX_MODEL "$NBOX" perf $op --preset dgx-a100 --nodes 4 --gpus-per-node 2 -b 1M -e 1M | awk '$1 == 1048576 { print $6 }')" "takes what is asked without a job"
done
exits 0 "perf --plain" "$NBOX" perf --live allreduce --plain -b 8 -e 8 -n 2
is "$(grep -c "# nbox:" <<<"$out") $(grep -c "nodes" <<<"$out")" "0 0" "speaks of no cluster, and misses no --nodes"
exits 0 "perf --help" "$NBOX" perf --help
says "mirror, fill, identity, none [none]" "has perf's own defaults"
says "-w, --warmup N       ops before them, untimed [5]" "and its own options"
says "-b, --min SIZE       first size [8]" "long names, too"
exits 0 "perf COLLECTIVE --help" "$NBOX" perf --live allreduce --nodes 2 --help
# its own options are checked before anything is made or started; those of a dry run, too
while IFS='|' read -r words why; do
	for dry in --dry-run --quiet; do
		# shellcheck disable=SC2086
		exits 2 "perf $dry $words" "$NBOX" perf --live allreduce $dry --nodes 2 --gpus-per-node 1 --out wrong $words
		is "$out" "nbox perf: $why" "says why"
	done
done <<'T'
-b 1G -e 8|the first size, -b 1073741824, is larger than the last, -e 8
-b 64M|the first size, -b 67108864, is larger than the last, -e 33554432 when not given
-e 8X|-e 8X is no size: a number of bytes, or with K, M or G, is expected
--min 8 --max=-1|--max -1 is no size: a number of bytes, or with K, M or G, is expected
-f 1|-f 1 is no factor: a number larger than 1 is expected
-n 0|-n 0 is no number from 1 to 100000000
-i 0|-i 0 is too small
--dtype flaot|--dtype: 'flaot' is none of int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2
--in-place=yes|--in-place takes no value
--dtype|--dtype needs a value: --dtype TYPE
--dtpe half|unknown option '--dtpe'; did you mean '--dtype'?
-b 8 16|'16' is one word too many; only the collective has no dash
T
is "$(ls -d wrong nbox-out 2>/dev/null)" "" "and nothing was made"
exits 0 "each way to write them" "$NBOX" perf --live allreduce --nodes 2 --gpus-per-node 1 -b1K --max=4KiB --factor 4 --iters=1 -w0 --dtype half --in-place --out ways
is "$(grep -E '^ +[0-9]+ +[0-9]+ ' <<<"$out" | awk '{ print $1, $2, $3 }' | tr '\n' ';')" "1024 512 half;4096 2048 half;" "means the same"
for word in all_reduce All-Gather reduce_scatter all_to_all send_recv; do
	exits 0 "perf $word" "$NBOX" perf --live $word --dry-run --nodes 2 --gpus-per-node 1
	says "nbox-perf --op $(tr -d _- <<<"${word,,}") " "is the collective of that name"
done

# without --live: nothing is started or made, and the table is what the model says
mkdir modelled
cd modelled || exit 1
exits 0 "perf without --live" "$NBOX" perf allreduce --nodes 64 --gpus-per-node 8 -b 8 -e 1M -f 8 --model ring --json rows.json --svg drawing.svg
is "$(awk '$1 == 32768 { print $6 }' <<<"$out")" "5111.31" "its time is that of the live run"
is "$(grep '^# *size' <<<"$out" | tr -s ' ')" "# size count type redop root time algbw busbw bound x" "nccl-tests' columns, the bound, and how many times that is"
is "$(grep -cE '^ +[0-9]+ +[0-9]+ ' <<<"$out")" 6 "a row a size"
is "$(grep -cvE '^#|^ +[0-9]+ +[0-9]+ ' <<<"$out")" 0 "all else are remarks"
says "# nbox: 512 ranks (64 nodes x 8), modelled; model ring" "the head says what it is"
says "# time over bytes, both logarithmic; o: modelled, .: the bound" "a drawing"
is "$(json rows.json '(len(d["rows"]), d["rows"][4]["op"], d["rows"][4]["bytes"], round(d["rows"][4]["modelled_us"], 2), d["ranks"], d["model"], d["rows"][4]["bound_us"] > 0)')" \
	"(6, 'AllReduce', 32768, 5111.31, 512, 'ring', True)" "the same as JSON"
is "$(python3 -IS -c 'import xml.dom.minidom as m; print(m.parse("drawing.svg").documentElement.tagName)')" svg "and as SVG"
is "$("$NBOX" perf allreduce --nodes 4 -b 8 -e 64 --json - | python3 -IS -c 'import json,sys; print([r["bytes"] for r in json.load(sys.stdin)["rows"]])')" \
	"[8, 16, 32, 64]" "--json -: nothing but JSON"
for op in allgather reducescatter broadcast reduce alltoall sendrecv; do
	exits 0 "perf $op, modelled" "$NBOX" perf $op --nodes 8 --gpus-per-node 2 -b 64K -e 64K --model alphabeta
	case $op in allgather|reducescatter|alltoall) want="1024 0.94" ;; *) want="16384 1.00" ;; esac
	is "$(awk '$1 == 65536 { printf "%d %.2f", $2, $8 / $7 }' <<<"$out")" "$want" "count and bus bandwidth are those of $op"
done
exits 0 "perf of a what-if, modelled" "$NBOX" perf allreduce --nodes 8 -b 64K -e 64K --model const:time=100us --what-if add:op=allreduce,delay=300us
is "$(awk '$1 == 65536 { print $6, $7 }' <<<"$out")" "400.00 0.16" "its time is in the row's"
exits 2 "modelled sizes that are too small" "$NBOX" perf allgather --nodes 64 --gpus-per-node 8 -b 8 -e 1K
says "nbox perf: there is nothing to print: a size is that of all ranks' parts, and none has an element for each of the 512 ranks; take a larger -e" "says what is wrong"
exits 2 "too many sizes" "$NBOX" perf allreduce --nodes 4 -b 0 -e 1G -i 1
says "nbox perf: there are more than 4096 sizes from -b 0 to -e 1073741824" "are refused"
exits 1 "a drawing that cannot be written" "$NBOX" perf allreduce --nodes 4 --svg /proc/none.svg
says "nbox perf: --svg: /proc/none.svg: cannot be written: No such file or directory" "is an error"
# NCCL's choice over a fabric
exits 0 "perf of a preset" "$NBOX" perf allreduce --preset dgx-h100 --nodes 64 -b 8 -e 1G -f 2 --model nccl --json planned.json --svg planned.svg
is "$(grep '^# *size' <<<"$out" | tr -s ' ')" "# size count type redop root time algbw busbw bound x algo proto ch" "says what NCCL takes"
says "# network: fabric dgx-h100 (assumed: preset dgx-h100 (" "and that the fabric is a preset's"
says "not calibrated" "and that nothing was measured"
says "# <-: from this size on NCCL 2.28.9 takes another algorithm, protocol or number of channels: a step of the time is its own" "and whose steps these are"
is "$(awk '$1 == 262144 || $1 == 33554432 { print $1, $11, $12, $13, $14, $15, $16 }' <<<"$out")" \
	"$(printf '262144 tree LL128 16 <- proto \n33554432 nvlstree Simple 16 <- algo proto')" "at the rows where NCCL changes its mind"
is "$(grep -o 'f-exposed[ a-z]*">[^<]*' planned.svg | cut -d'>' -f2 | tr '\n' ';')" "tree LL;tree LL128;nvlstree Simple;" "and in the picture"
is "$(sed -n 's/^# .\{10\} |\(.\).*/\1/p' <<<"$out" | tr -d ' \n')" "o." "the bound is in the drawing, too"
is "$(json planned.json '(len(d["rows"]), all(r["modelled_us"] >= r["bound_us"] for r in d["rows"]), d["rows"][0]["modelled_us"] < 100, d["rows"][-1]["modelled_us"] < 1.25 * d["rows"][-1]["bound_us"], d["rows"][0]["algo"], d["rows"][-1]["channels"] > 1)')" \
	"(28, True, True, True, 'tree', True)" "8 B take less than 100 us, 1 GiB less than 1.25 times the bound, nothing less than it"
exits 0 "one slow cable of 512" "$NBOX" perf allreduce --preset dgx-h100 --nodes 64 -b 1G -e 1G --model nccl:algo=ring --cable node3.nic2=200Gbps --json slow.json
exits 0 "and none" "$NBOX" perf allreduce --preset dgx-h100 --nodes 64 -b 1G -e 1G --model nccl:algo=ring --json even.json
is "$(python3 -IS -c 'import json; a, b = (json.load(open(f))["rows"][0]["modelled_us"] for f in ("slow.json", "even.json")); print(1.05 < a / b < 2)')" True \
	"costs no more than half of its rail: NCCL does not know of it, and gives that rail as much"
# 1 GiB from each rank to the next one: the last of all ranks counts, not rank 0
shifted() { "$NBOX" perf sendrecv --preset dgx-h100 --nodes 4 --model nccl -b 1G -e 1G "$@" | awk '$1 == 1073741824 { print $6 }'; }
is "$(shifted)" "24991.64" "a send and a receive take what the path between nodes takes"
is "$(shifted --cable node2.nic0=10Gbps)" "876544.83" "a slow cable far from rank 0 counts"
is "$(shifted --what-if slow:rank=12,link=400)" "1163951.68" "and a slow rank in the middle of its node"
exits 0 "nbox explain sendrecv" "$NBOX" explain sendrecv 1GiB --preset dgx-h100 --nodes 4 --model nccl --cable node2.nic0=10Gbps
says "slowest     a message of 1 MiB from rank 15 to rank 16" "says where"
says "1 flow has the 1.23 GB/s of node2.nic0.in" "and why"
exits 0 "a slow rank among 512 with jitter on messages" "$NBOX" explain sendrecv 1GiB --preset dgx-h100 --nodes 64 --model nccl --what-if jitter:on=message,min=0%,max=10% --what-if slow:rank=404,link=400
says "by a short cut that is near to a simulation of each message" "is found by its first message"
says "what-ifs    1.16 s in all" "and counts"
exits 0 "a model that is far above the bound" "$NBOX" perf allreduce --preset dgx-h100 --nodes 16 -b 64M -e 1G -f 16 --model ring
says "# warning: 1 GiB take " "is warned of"
says "x the bound (" "with the bound"
says "the model knows no rails and gives a node one port" "and why"
exits 1 "a model that is below the bound" "$NBOX" perf allreduce --preset dgx-h100 --nodes 16 -b 64M -e 1G -f 16 --model const:time=1us
says "nbox perf: 2 of 2 times are below the bound, such as 1.00 us for 64 MiB, which nothing on this network can do in less than " "is an error"
exits 0 "changed links" "$NBOX" perf allreduce --preset dgx-h100 --nodes 4 -b 1M -e 1M --model nccl --inter 4x400Gbps --cable node0.nic1=10Gbps --cable leaf0.up=1GB/s
says "; NICs given: 4x400Gbps; changed: node0.nic1=10Gbps and more); not calibrated" "are named beside the preset"
exits 0 "an all-to-all of uneven domains" "$NBOX" explain alltoall 1GiB --preset gb200-nvl72 --nodes 19 --model nccl
says "by a short cut that is near to a simulation of each message" "is said to be near"
exits 1 "nbox explain of such a model" "$NBOX" explain allreduce 1GiB --preset dgx-h100 --nodes 16 --model const:time=1us
says "nbox explain: the time is below the bound" "is an error, too"
exits 2 "NCCL without a fabric" "$NBOX" perf allreduce --nodes 16 --model nccl
says "nbox perf: --model: model nccl needs a fabric, and none is given: --preset NAME (" "is refused with the presets"
says "dgx-h100, " "by name"
says "or --model none, a network that takes no time" "and what else there is"
exits 2 "hops beside a preset" "$NBOX" perf allreduce --preset p5 --inter-bandwidth 1GB/s --model nccl
says "nbox perf: --inter-bandwidth: model nccl takes links from fabric p5: change them with --cable" "contradict it"
exits 2 "cables for a model without paths" "$NBOX" perf allreduce --preset p5 --nodes 4 -b 1M -e 1M --model ring --cable node0.nic1=10Gbps
says "--cable: model ring knows hops, no single cables: take nccl or pinned" "which knows no cables"
exits 0 "nbox explain" "$NBOX" explain allreduce 1GiB --preset dgx-a100 --nodes 64 --model nccl:algo=ring
for word in "op          AllReduce of 1 GiB, 512 ranks (64 nodes x 8)" "fabric      dgx-a100: preset dgx-a100" "candidates  by the costs of NCCL " \
	"<- taken" "choice      ring " "slowest     a message of " ".nic" "bound       " " x the bound" "the scheduler's own estimate: "; do says "$word" "says '$word'"; done
exits 0 "the README's op" env -u NBOX_MODEL "$NBOX" explain allreduce 1MiB --preset dgx-h100 --nodes 64
is "$(readme_block "$(dirname "$test")/../../../emulator/nbox/README.md" '$ nbox explain allreduce 1MiB --preset dgx-h100 --nodes 64' | grep -vFx -e "            ..." | grep -vFxf <(echo "$out"))" "" \
	"has all lines that the README shows"
exits 0 "a size that is no power of two" "$NBOX" explain allgather 25MB --preset dgx-h100 --nodes 64 --model nccl --links queue:threshold=2,penalty=10%
says "op          AllGather of 25 MB (24999936 B in whole elements for each rank), 512 ranks (64 nodes x 8)" "is said as it was given"
says "model       nccl; messages by queue:threshold=2,penalty=10%" "and what a message costs"
"$NBOX" explain allreduce 1GiB --preset dgx-a100 --nodes 64 --model nccl:algo=ring --json >explained.json
is "$(json explained.json '(d["plan"]["algo"], len(d["plan"]["candidates"]) > 5, len(d["slowest"]["links"]) > 1, d["bound_us"] < d["modelled_us"])')" "('ring', True, True, True)" \
	"the same as JSON"
printf 'classes:\n  - {preset: dgx-h100, name: new}\n  - {preset: dgx-a100, name: old}\nnodes: [{class: new, nodes: 2}, {class: old, nodes: 1}, {class: new}]\nnetwork: {preset: dgx-a100}\n' >"$tmp/mixed.yaml"
exits 0 "nbox explain of a mixed cluster" "$NBOX" explain allreduce 64MiB --fabric "$tmp/mixed.yaml" --nodes 4 --model nccl
says "new: 8 x H100" "shows one class"
says "old: 8 x A100" "and the other"
says "decided by the weakest: compute capability 8.0, 300 GB/s a GPU, 8 NICs of 25 GB/s a domain, no NVLS, GDR" "and what decides"
exits 0 "nbox explain of 8,000 ranks that all send to all" "$NBOX" explain alltoall 1GiB --preset dgx-b200 --nodes 1000 --cable node1.nic1=1Gbps --model nccl
says "1 flow has the 122 MB/s of node1.nic1." "finds the slow cable among 64 million messages"
says "; of a sample of " "and says that it did not look at each"
exits 0 "domains of 4 nodes, the last cut by the world's end" "$NBOX" perf allreduce --preset p5 --nodes 18 --domain-nodes 4 -b 1M -e 1M --model nccl
# 4 MiB over 4 ranks at 1 MB/s: 6/4 of them go over each NIC, 6.291456 s. What a link loses, that many times longer an op takes that
# needs all of it; from 1 s on for 2 s half of it: 1 s more; a load gets what it wants, or its fair share of the link: three of four
while read -r want what_ifs; do
	# shellcheck disable=SC2086 # words
	is "$("$NBOX" perf allreduce --nodes 4 --gpus-per-node 1 --inter-bandwidth 1MB/s --inter-latency 0us --model pinned -b 4M -e 4M $what_ifs | awk '$1 == 4194304 { print $6 / 1e6 }')" \
		"$want" "seconds with $what_ifs"
done <<'T'
12.5829 --what-if link:name=node2.nic0,slower=2
12.5829 --what-if link:node=2,bandwidth=0.5MB/s
7.86432 --what-if link:node=1,loss=20%
6.29146 --what-if link:rail=0,slower=3,from=6.5s
7.29146 --what-if link:rail=0,slower=2,from=1s,for=2s
8.29146 --what-if link:node=1,from=1s,down=2s
25.1658 --what-if link:name=node2.nic0,slower=2 --what-if link:name=node2.nic0.out,slower=2
8.38861 --what-if load:link=node3.nic0.in,bandwidth=0.25MB/s
25.1658 --what-if load:link=node3.nic0.in,bandwidth=9MB/s,connections=3
T
exits 0 "a what-if on links that the op does not use" "$NBOX" explain allreduce 1GiB --preset dgx-h100 --nodes 4 --model nccl --what-if link:rack=0,slower=100
says "what-ifs    add nothing to this op" "is said to do nothing"
exits 0 "the same as a table" "$NBOX" perf allreduce --preset dgx-h100 --nodes 4 --model nccl -b 1G -e 1G --what-if link:rack=0,slower=100
says "warning: the what-ifs add nothing to any of these times" "warns"
exits 0 "a send round all ranks over a slow NIC" "$NBOX" perf sendrecv --nodes 4 --gpus-per-node 1 --inter-bandwidth 1MB/s --inter-latency 0us --model pinned -b 1M -e 1M --what-if link:node=2,slower=2
is "$(awk '$1 == 1048576 { print $6 }' <<<"$out")" 2097152.00 "takes twice as long"
# a rate is a data sheet's, whatever it is of: NICs of 100 Gbit/s instead of 400, three times
nics() { "$NBOX" perf allreduce --preset dgx-h100 --nodes 4 -b 1G -e 1G --model pinned:algo=ring,channels=16 "$@" | awk '$1 == 1073741824 { print int($6 / 100) }'; }
is "$(nics --inter 8x100Gbps) $(nics --cable 'node*.nic*=100Gbps') $(nics --what-if 'link:name=node*.nic*,bandwidth=100Gbps')" "212 212 212" \
	"--inter, --cable and a what-if mean the same by 100Gbps"
# NVLSTree's trees over 128 domains: four of their edges leave the first leaf's 32 nodes, with a sixteenth of the bytes each on a rail
at_leaf() { "$NBOX" perf allreduce --preset dgx-h100 --nodes 128 --model nccl -b 1G -e 1G "$@" | awk '$1 == 1073741824 { print $6, $11 }'; }
is "$(at_leaf --what-if link:rack=0,slower=100)" "17119.61 nvlstree" "a what-if on a leaf acts on NVLSTree"
is "$(at_leaf --cable leaf0.up=10Gbps)" "219130.98 nvlstree" "so does a changed cable"
printf '%s\n' 'preset: 100gbe' 'network: {kind: leaf-spine, latency: 2us, nodes_per_leaf: 4}' >leaves.yaml
is "$("$NBOX" perf sendrecv --fabric leaves.yaml --nodes 16 --gpus-per-node 1 --model nccl -b 64M -e 64M --cable leaf0.up=1Gbps | awk '$1 == 67108864 { print $9 }')" 571139.27 "the bound of a send round all ranks sees the cables of a leaf"
printf 'classes: [{preset: p4d}]\nnetwork: {kind: leaf-spine, latency: 2us, nodes_per_leaf: 4, oversubscription: 2}\n' >leaves.yaml
# hashed SEED: the time of an all-to-all, in us; 0: no hash
hashed() { "$NBOX" perf alltoall --fabric leaves.yaml --nodes 16 -b 64M -e 64M --model nccl --ecmp "$1" | awk '$1 == 67108864 { print $6 }'; }
is "$(python3 -IS -c 'import sys; a, b, c = map(float, sys.argv[1:]); print(a < b, a < c, b != c, max(b, c) < 2 * a)' "$(hashed 0)" "$(hashed 1)" "$(hashed 2)")" \
	"True True True True" "connections that are hashed onto cables collide, by seed"
is "$(hashed 1)" "$(hashed 1)" "and by nothing else"
rm -f planned.* slow.json even.json explained.json leaves.yaml
is "$(ls)" "$(printf 'drawing.svg\nrows.json')" "nothing else was made"
nothing_left
finish
