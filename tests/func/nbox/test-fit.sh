#!/usr/bin/env bash
# nbox fit and nbox model: from what a benchmark prints to a model that runs answer by.
. "$(dirname "$0")/lib.sh"
perf="$PERF -b 1K -e 256K -n 4 -w 1 --no-check --no-table"

# a text as nccl-tests prints it: 20 us and 50 GB/s of wire bytes, 2 x 15/16 of the size
python3 - >tests.txt <<'PY'
print("# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 1 minBytes 1024 maxBytes 1073741824")
for rank in range(16):
    print("#  Rank %2d Group  0 Pid   6899 on host%d device  %d [0000:04:00] NVIDIA H100 80GB HBM3" % (rank, rank // 8, rank % 8))
print("#\n#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong")
for i in range(10, 31):
    us = 20 + 2 * 15 / 16 * 2**i / 50e3
    print("%12d %12d float sum -1 %.4f 0.00 0.00 0 %.4f 0.00 0.00 N/A" % (2**i, 2**i / 4, us, 2 * us))
print("# Out of bounds values : 0 OK")
PY
exits 0 "a fit" "$NBOX" fit tests.txt --out line.model
says "AllReduce, 16 ranks on 2 nodes: 21 sizes, 1 KiB to 1 GiB" "ranks, nodes and sizes are the file's"
says "* alphabeta" "a line is recognized"
says "alphabeta: 20 us + wire bytes / 50 GB/s" "its parameters"
says "written: line.model, for --model fitted:file=line.model" "where it is"
exits 0 "a model that is sound" "$NBOX" model check line.model
is "$out" "AllReduce, 16 ranks on 2 nodes: alphabeta: more bytes never take less time; no jump above 5 %" "is said to be"
exits 0 "its times" "$NBOX" model eval --sizes 1M:16G:64 line.model
says "       1048576        1966080        59.32      33.14" "are those that were fitted, bus bandwidth beside"
is "$(grep -c extrapolated <<<"$out")" 1 "one size lies beyond the measured ones"
says "4294967296     8053063680    161081.27      49.99  extrapolated 4 times beyond the measured bytes" "it is marked"
exits 0 "the times of other ranks" "$NBOX" model eval --ranks 64 --sizes 1M:1M:2 line.model
says "# AllReduce, 64 ranks on 8 nodes" "on nodes as large"
says "extrapolated 4 times beyond the measured ranks" "are marked"
exits 0 "a drawing" "$NBOX" model plot line.model --svg line.svg
check "is XML" python3 -IS -c 'import sys, xml.dom.minidom as x; d = x.parse(sys.argv[1]); assert len(d.getElementsByTagName("circle")) == 22 # and one in the legend' line.svg
exits 0 "a form that is asked for, of the right half" "$NBOX" fit --kind table --in-place tests.txt
says "* table" "is taken"
exits 0 "a sigmoid" "$NBOX" fit --kind sigmoid tests.txt --out sigmoid.model
exits 0 "is sound, too" "$NBOX" model check sigmoid.model
says "bridged: " "where its parts do not meet is said"
sed 's/^form = .*/form = table\nknot = 1024 50\nknot = 2048 20/' line.model >falling.model
exits 1 "a model whose times fall" "$NBOX" model check falling.model
says "WRONG: time falls by" "is not sound"

# a run that the model answers
exits 0 "a run" "$NBOX" run --quiet --nodes 2 --gpus-per-node 8 --real 0 --device host --model fitted:file=line.model --data none --json run.json --out run -- \
	$perf --op allreduce
is "$("$NBOX" report --csv run | python3 -IS -c '
import csv, sys
rows = [r for r in csv.DictReader(sys.stdin) if r["bytes"] == "262144"]
print({"%.3f" % (float(r["model_ns"]) / 1e3) for r in rows})')" "{'29.830'}" "takes what the model says"
exits 0 "the same run, before it starts" "$NBOX" run --dry-run --nodes 4 --gpus-per-node 8 --model fitted:file=line.model -- true
says "line.model was measured for allreduce (16 ranks); beyond those ranks only the bytes are rescaled" "says where it was measured"

exits 0 "a table of it" "$NBOX" perf allreduce --nodes 8 --gpus-per-node 8 --model fitted:file=line.model -b 1G -e 4G -f 2
says "calibrated: a mean error of 0.0 % on points held out, of the worst curve; extrapolated 4 times beyond measured ranks; extrapolated 4 times beyond measured bytes" \
	"says how far it may be believed"

# what a run has measured: NCCL among its real ranks
exits 0 "a run with two real ranks" "$NBOX" run --quiet --nodes 2 --gpus-per-node 2 --device host --model alphabeta --out two -- $perf --op allreduce
exits 0 "a fit to it" "$NBOX" fit two
says "AllReduce, 2 ranks on 1 node: 9 sizes, 1 KiB to 256 KiB" "knows what ran"
exits 2 "a fit to a run of one real rank" "$NBOX" fit run
says "no collective of this run went among two or more real ranks" "says why not"

# an all-to-all that is not even: the busiest rank in its busier direction decides
printf 'kind,ranks,nodes,bytes,us\n' >a2a.csv
for i in 12 14 16 18 20 22 24 26; do echo "alltoall,4,1,$((2 ** i)),$((10 + 2 ** i * 3 / 4 / 1024))"; done >>a2a.csv
exits 0 "a fit of all-to-all" "$NBOX" fit --kind alphabeta a2a.csv --out a2a.model
printf '# bytes, a line for each that sends\n0 4M 1M 1M\n2M 0 2M 2M\n1M 1M 0 7M\n3M 3M 3M 0\n' >skew.txt
exits 0 "its skewed ops" "$NBOX" model eval --matrix skew.txt a2a.model
says "busiest  rank 3 receives 10 MiB, 1.333 times the mean" "know the busiest rank"
says "time     10250.00 us; if all sent alike 7690.00 us" "take what its bytes take"
exits 0 "a run whose ranks send to all by calls" "$NBOX" run --nodes 2 --gpus-per-node 2 --real 0 --device host --model fitted:file=a2a.model --data none --out calls -- \
	$PERF --op alltoall -b 64K -e 64K -n 2 -w 0 --no-check --no-table
says " 58.000 us" "takes what an all-to-all of 48 KiB on the wire takes"
exits 0 "a run of sizes below those that were measured" "$NBOX" run --nodes 2 --gpus-per-node 8 --real 0 --device host --model fitted:file=line.model --data none --out below -- \
	$PERF --op allreduce -b 256 -e 256 -n 2 -w 0 --no-check --no-table
says "on points held out, of the worst curve; extrapolated 4 times beyond measured bytes" "says in its summary how far"
exits 2 "a model without all-to-all" "$NBOX" model eval --matrix skew.txt line.model
says "line.model has no curve of alltoall" "cannot say"

# the links of a fabric: times of a slower one are found again, and other sizes and ranks follow
printf 'preset: dgx-h100\nclasses: [{preset: dgx-h100, name: node, nic_efficiency: 0.5}]\nnetwork: {preset: dgx-h100, latency: 8us}\n' >slow.yaml
modelled() { "$NBOX" perf allreduce --fabric "$1" --model nccl --nodes "$2" --gpus-per-node 8 -b "$3" -e "$4" -f 2 --json -; }
modelled slow.yaml 4 64 4G | python3 -IS -c '
import json, sys
print("kind,bytes,us,ranks,nodes")
for r in json.load(sys.stdin)["rows"]: print("allreduce,%d,%.6f,32,4" % (r["bytes"], r["modelled_us"]))' >slow.csv
exits 0 "a fit of links" "$NBOX" fit --fabric dgx-h100 slow.csv --out fitted.yaml
says "dgx-h100, fitted to 27 times of up to 32 ranks" "says what to"
says "written: fitted.yaml, for --fabric fitted.yaml" "and where it is"
check "its errors are small where they were large" python3 -IS -c '
import re, sys
before, after = re.search(r"  all +\d+ +([\d.]+) % +\d+ % +([\d.]+) %", sys.argv[1]).groups()
assert float(before) > 20 and float(after) < 2, (before, after)' "$out"
check "a larger world follows" python3 -IS -c '
import json, sys
for a, b in zip(json.loads(sys.argv[1])["rows"], json.loads(sys.argv[2])["rows"]): assert abs(a["modelled_us"] / b["modelled_us"] - 1) < 0.05, (a, b)' \
	"$(modelled slow.yaml 16 64 1G)" "$(modelled fitted.yaml 16 64 1G)"
# small sizes 1.6 times as long, others as they were: no five numbers hold both, but residuals
modelled dgx-h100 4 64 4G | python3 -IS -c '
import json, sys
print("kind,bytes,us,ranks,nodes")
for r in json.load(sys.stdin)["rows"]: print("allreduce,%d,%.6f,32,4" % (r["bytes"], r["modelled_us"] * (1.6 if r["bytes"] <= 65536 else 1)))' >odd.csv
exits 0 "a fit that helps some sizes only" "$NBOX" fit --fabric dgx-h100 odd.csv
says "residuals by size    x 0." "has residuals"
check "small sizes are right" grep -qE '^  up to 64 KiB .* 37\.5 % .* 0\.[0-9] %' <<<"$out"
check "warns of the others" grep -qE '^warning: sizes 64 KiB to 64 MiB are further off by the fit: [0-9.]+ %, 0\.0 % before; --fabric dgx-h100 as it was says them better' <<<"$out"
check "the file says how good it is" grep -qE '^  error: 0\.0' fitted.yaml
exits 2 "a fabric that is not there" "$NBOX" fit --fabric dgx-h1oo slow.csv
says "dgx-h100" "has a near one"
head -4 slow.csv >little.csv
exits 1 "too little" "$NBOX" fit --fabric dgx-h100 little.csv

# more numbers of ranks than a model holds
python3 -IS -c '
print("kind,ranks,nodes,bytes,us")
for r in range(2, 4200):
    for i in range(5): print("allreduce,%d,2,%d,%d" % (r, 8 << i, 5 + i))' >worlds.csv
exits 1 "a fit of too much" "$NBOX" fit worlds.csv --out worlds.model
says "4198 curves are more than a model holds: fit one collective at a time" "is refused"
check "nothing is written that could not be read" test ! -e worlds.model

# CSV without ranks
(echo bytes,us; for i in 1 2 4 8 16 32; do echo "$((i * 1024)),$((i + 5))"; done) >bare.csv
exits 0 "what the file does not say" "$NBOX" fit --coll alltoall --ranks 8 --nodes 1 bare.csv
says "AllToAll, 8 ranks on 1 node: 6 sizes" "the line says"
says "sigmoid                  these sizes do not make one" "a form that cannot be is no error"
exits 0 "a kind among others" "$NBOX" fit --coll allreduce tests.txt
exits 2 "a kind that is not there" "$NBOX" fit --coll broadcast tests.txt
is "$out" "nbox fit: tests.txt has no time of Broadcast" "is an error"
nothing_left
finish
