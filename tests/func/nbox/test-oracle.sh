#!/bin/bash
# nbox oracle, with a fake NCCL that makes its communicators over the same bootstrap as NCCL does, and the host CUDA runtime.
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/func/nbox/lib.sh
. "$here/lib.sh"
export LD_LIBRARY_PATH=$BUILD/emulator/standins NBOX_HOST_DEVICES=4
export NBOX_NCCL=$BUILD/tests/apps/fake-nccl/libnccl.so.2
oracle() { "$NBOX" oracle "$@"; }
nothing_runs() { ! pgrep -f "nbox-oracle.*$BUILD/libnbox-oracle.so" >/dev/null; }

exits 0 "three worlds are asked about" oracle --nodes 2,16,5x2
says "64 ranks on 16 nodes (4 here, 60 played by nbox)" "the page has each"
says "10 ranks on 5 nodes (2 here, 8 played by nbox)" "a world of fewer ranks a node, too"
says "transports: none was made" "nothing was connected"
says "allreduce     8 tree ll; 64K tree ll128; 8M ring ll128; 128M ring simple" "what NCCL takes, from which size on"
says "graph ring          2 channels of 20 GB/s in the node (nvl), 20 between nodes (pix), ring" "NCCL's graphs"
says "channels: 2, NVLS 0, sends and receives 4, 2 a peer" "its channels"
says "nbox perf allreduce --preset NAME --nodes 5 --gpus-per-node 2 --model nccl:decisions=decisions.txt" "how the file is used"
check "the file has the order of a ring" grep -qx "order ring 0 = 0 1 2 3" decisions.txt
check "and of a tree" grep -qx "order tree 1 = 0 1 2 3" decisions.txt
# 2 steps of 1 us and 1 MiB at 5000 bytes/us, 1.25 of that for a tree of 8 ranks on 2 nodes: 4 + 262.144
check "costs are NCCL's own, and channels what its threads ask for" \
	grep -q "^at 1048576 = ring/ll128 2 of tree/ll 266.144 " decisions.txt
is "$(grep -c '^\[comm\]' decisions.txt)" 3 "a section each"
exits 0 "the model reads the file" env -u LD_LIBRARY_PATH "$NBOX" perf allreduce --preset dgx-a100 --nodes 16 --gpus-per-node 4 -b 64K -e 64K --model nccl:decisions=decisions.txt
says "decisions.txt" "and says that it decides"

exits 0 "one op, few sizes, to standard output" oracle --nodes 2 --ops allreduce -b 1K -e 4K -f 4 -o -
is "$(grep -c '^at ' <<<"$out")" 2 "two sizes"
is "$(head -n 1 <<<"$out" | cut -c1-1)" "#" "no page is printed there"

exits 0 "NCCL 2.25's tuner" env FAKE_NCCL_VERSION=22501 "$NBOX" oracle --untried --nodes 2 --ops allreduce -o 2.25.txt
is "$(grep '^at' 2.25.txt)" "$(sed -n '/cost allreduce/,/^$/{/^at/p}' decisions.txt | head -n "$(grep -c '^at' 2.25.txt)")" "it tells the same costs"
exits 0 "2.21 tells its tuner no costs" env FAKE_NCCL_VERSION=22105 "$NBOX" oracle --nodes 2 --ops allreduce -o 2.21.txt
check "its log has what it takes" grep -q "^at 1048576 = ring/simple 2 of ring/simple 116.4288" 2.21.txt

cat >topo.xml <<'XML'
<system version="1"><cpu><pci><nic><net name="mlx5_0" dev="0" speed="200000" port="1" latency="0.000000" guid="0x1" maxconn="262144" gdr="1"/>
</nic></pci></cpu></system>
XML
exits 0 "the NICs of a topology file are nbox's network" oracle --nodes 2 --topo topo.xml --ops allreduce -o topo.txt
check "where the topology is of is in the file" grep -q "^made = .*topo.xml" topo.txt
exits 0 "NCCL's log is kept where it is asked for" oracle --nodes 2 --ops allreduce -o log.txt --nccl-log nccl.log
check "it has NCCL's lines" grep -q "2 coll channels" nccl.log

exits 0 "a tuner of the user's" env NCCL_TUNER_PLUGIN=libnccl-ofi-tuner.so "$NBOX" oracle --nodes 2 --ops allreduce -o tuner.txt
says "NCCL_TUNER_PLUGIN" "it is said that it was not asked"

# what goes wrong
exits 1 "an NCCL that nobody knows" env FAKE_NCCL_VERSION=21903 "$NBOX" oracle --nodes 2
says "2.19.3" "its version is named"
is "$(ls decisions-none.txt 2>/dev/null)" "" "nothing is written"
exits 0 "an NCCL that was tried" env FAKE_NCCL_VERSION=22809 "$NBOX" oracle --nodes 2 --ops allreduce -o tried.txt
says "tried with nbox: 2.28.7 and 2.28.9, " "with which version, how and when"
exits 1 "an init that hangs" env FAKE_NCCL_DOES=hang "$NBOX" oracle --nodes 2 --timeout 1s
says "NCCL has not made its communicator within 1.00 s (--timeout): the root waits for ranks 0, 1, 2, 3" "whom the bootstrap waits for"
check "nothing is left of it" nothing_runs
exits 1 "records that are not where nbox's table has them" env FAKE_NCCL_DOES=lie "$NBOX" oracle --nodes 2
says "rank 0 sent other graphs than it logged" "that is noticed"
exits 1 "an init that crashes" env FAKE_NCCL_DOES=crash "$NBOX" oracle --nodes 2
says "signal 6" "the signal is named"
exits 1 "an init that crashes when it has checked in" env FAKE_NCCL_DOES=crash-midway "$NBOX" oracle --nodes 2
says "signal 6" "the signal is named"
exits 1 "an op that crashes" env FAKE_NCCL_DOES=crash-op "$NBOX" oracle --nodes 2
says "signal 6" "the signal is named"
exits 1 "an init that NCCL refuses" env FAKE_NCCL_DOES=refuse "$NBOX" oracle --nodes 2
says "does not make this communicator" "NCCL's own warning is the reason"
exits 1 "no GPU" env NBOX_HOST_DEVICES=0 "$NBOX" oracle --nodes 2
says "there is no GPU here" "it says so, and that the file is good everywhere"
exits 1 "no NCCL" "$NBOX" oracle --nodes 2 --nccl ./none.so
says "--nccl FILE" "how one is named"
exits 1 "no CUDA runtime" "$NBOX" oracle --nodes 2 --cudart ./none.so
says "--cudart FILE" "how one is named"
exits 1 "more ranks a node than GPUs" oracle --nodes 2 --gpus-per-node 8
says "there are 4 GPUs here" "it says how many there are"
exits 1 "nbox's network without a topology" oracle --nodes 2 --net null
says "NCCL_TOPO_DUMP_FILE" "how one is had"
says_not_started() { exits 1 "a file that cannot be written is known before NCCL is asked" env FAKE_NCCL_DOES=hang "$NBOX" oracle --nodes 2 -o "$1"; says "$1" "it is named"; }
says_not_started /none/decisions.txt
says_not_started /
exits 2 "one file for two things" oracle --nodes 2 -o x.txt --nccl-log x.txt
says "--nccl-log" "the other is named"
exits 2 "a topology is not overwritten" oracle --nodes 2 --topo topo.xml -o topo.xml
exits 2 "one size" oracle --nodes 2 -b 1M -e 1M
says "two or more" "nothing could be said between sizes"
exits 1 "sizes of which no rank has an element" oracle --nodes 2 -b 1 -e 2 -o none.txt
says "take a larger -e" "it says what to do"
check "no file without a cost is written" test ! -e none.txt
exits 0 "a shape that is named twice" oracle --nodes 2,2x4,2 --ops allreduce -o twice.txt
is "$(grep -c '^\[comm\]' twice.txt)" 1 "is in the file once"
exits 1 "a world that cannot be made behind one that can" oracle --nodes 2,2x8 --ops allreduce -o first.txt
says "only the first 1 of 2 worlds" "what was had is kept"
is "$(grep -c '^\[comm\]' first.txt)" 1 "in the file"
says "there are 4 GPUs here" "and the reason is told"
exits 2 "no nodes" "$NBOX" oracle
says "--nodes 64" "an example is given"
exits 2 "a misspelt op" "$NBOX" oracle --nodes 2 --ops allredcue
says "did you mean 'allreduce'" "the near one is named"
exits 2 "a bad shape" "$NBOX" oracle --nodes 2x
exits 2 "a network that is none" "$NBOX" oracle --nodes 2 --net ib
check "nothing is left" nothing_runs
finish
