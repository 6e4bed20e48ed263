#!/usr/bin/env bash
# nbox topo: what it says and draws of a fabric; its output is a fabric again. Starts no job.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"

exits 0 "--list" "$NBOX" topo --list
for p in dgx-a100 dgx-h100 gb200-nvl72 p5 alps 100gbe lab; do says "$p " "names $p"; done

exits 0 "a preset" "$NBOX" topo --preset dgx-h100 --nodes 64
says "dgx-h100: 64 nodes of 8 GPUs, 512 ranks" "its size"
says "8 x H100 (sm 90) on NVSwitch with NVLS; Intel" "its nodes"
says "450 GB/s each way, of which NCCL gets 369 GB/s" "raw and effective bandwidth"
says "8 x 400 Gbit/s InfiniBand: 50 GB/s each way, of which NCCL gets 49 GB/s" "its NICs"
says "rails: NIC i of each node of a group of 32 at leaf i" "its network"
says "12.5 TB/s each way, 49 GB/s for each rank of a half" "the bisection"
says "AllReduce      at least 5.39 ms  at most 397 GB/s bus bandwidth" "the bound of 1 GiB"
readme() { readme_block "$here/../../../emulator/fabric/README.md" "$1"; }
is "$out" "$(readme '$ nbox topo --preset dgx-h100 --nodes 64')" "is what the README shows"
readme 'name: mixed' | sed '1i name: mixed' >readme.yaml
exits 0 "the README's fabric file" "$NBOX" topo --fabric readme.yaml --nodes 64
says "class         old: node30 to node63: 8 x V100" "has two classes"
says "150 GB/s each way, of which NCCL gets 120 GB/s" "and one with an efficiency of its own"
"$NBOX" topo --fabric readme.yaml --nodes 64 --yaml >all.yaml
is "$(grep -oE '^[ {-]*[a-z_]+:|, [a-z_]+:' all.yaml | tr -dc 'a-z_:\n' | sort -u | while read -r key; do grep -q "\b$key" readme.yaml || echo "$key"; done)" "" "has every key"
readme 'network:' | sed '1i preset: 100gbe\nnetwork:' >readme.yaml
exits 0 "the README's cables" "$NBOX" topo --fabric readme.yaml
says "3 switches, 2 cables" "join switches"
exits 0 "two GPUs a node" "$NBOX" topo --preset dgx-h100 --nodes 64 --gpus-per-node 2
says "8 x 400 Gbit/s InfiniBand, 2 of them used:" "names what a run uses"
says "3.14 TB/s each way, 49 GB/s for each rank of a half" "and its bisection"
exits 0 "a slow cable" "$NBOX" topo --preset dgx-h100 --nodes 64 --cable node3.nic2=100Gbps,5us
says "node3.nic2.out: 12.5 GB/s, 5.00 us" "is named"

exits 0 "--json" "$NBOX" topo --preset alps --nodes 16 --json
is "$(python3 -c 'import json,sys; f=json.load(sys.stdin); print(f["ranks"], f["classes"][0]["nics"], len(f["bounds"]))' <<<"$out")" \
	"64 4 4" "is JSON"

"$NBOX" topo --preset gb200-nvl72 --nodes 36 --cable leaf0.up=10GB/s --yaml >f.yaml
"$NBOX" topo --preset gb200-nvl72 --nodes 36 --cable leaf0.up=10GB/s | grep -v ^source >preset.txt
"$NBOX" topo --fabric f.yaml | grep -v ^source >file.txt
is "$(cat file.txt)" "$(cat preset.txt)" "what --yaml prints is the same fabric for --fabric"

"$NBOX" topo --preset p5 --nodes 1 --yaml >one.yaml
exits 0 "a file of one node" "$NBOX" topo --fabric one.yaml
says "p5: 1 node of 8 GPUs, 8 ranks" "has one"

for nodes in 4 64; do
	exits 0 "$nodes nodes drawn" "$NBOX" topo --preset dgx-h100 --nodes $nodes --svg $nodes.svg --dot $nodes.dot
	is "$(python3 -c 'import sys,xml.dom.minidom as m; print(m.parse(sys.argv[1]).documentElement.tagName)' $nodes.svg)" svg "is SVG"
	is "$(grep -c '^  subgraph cluster_' $nodes.dot)" $((nodes == 4 ? 4 : 2)) "equal nodes are drawn once"
done
check "the picture names them" grep -q 'node32 to node63' 64.svg
"$NBOX" topo --preset dgx-h100 --nodes 64 --cable 'node*.nic0=1GB/s' --cable node40.nic1=1GB/s --dot changed.dot >/dev/null
is "$(grep -c '^  subgraph cluster_' changed.dot)" 4 "nodes that were changed alike are drawn once, others beside them"
printf 'name: "<&>"\npreset: p5\n' >odd.yaml
exits 0 "a name that XML could read" "$NBOX" topo --fabric odd.yaml --nodes 2 --svg odd.svg
check "is escaped" python3 -c 'import xml.dom.minidom as m; m.parse("odd.svg")'

printf 'preset: gb200-nvl72\nclasses: [{preset: gb200-nvl72, nics: 0}]\n' >rack.yaml
exits 0 "one rack without NICs" "$NBOX" topo --fabric rack.yaml --nodes 18
says "18 nodes of 4 GPUs, 72 ranks" "is a domain"

corpus=$here/../../fuzz/corpus/fabric
exits 0 "NCCL's topology file" "$NBOX" topo --fabric "$corpus/dgx.xml" --nodes 16
says "the network is assumed: one switch" "says that it knows no network"
says "1 x H100 (sm 90) on NVSwitch with NVLS; Intel" "gives a node"
exits 0 "ASTRA-sim's network" "$NBOX" topo --fabric "$corpus/astra.yml"
says "8 nodes of 8 GPUs, 64 ranks" "gives all"

# this machine's node, from a made-up /sys: eight H100 with a NIC each
pci() { # PLACE VENDOR DEVICE CLASS: a PCI device under its bridges
	local at=sys/devices/pci0000:${1:5:2}/$1
	mkdir -p "$at" sys/bus/pci/devices
	echo "$2" >"$at/vendor"; echo "$3" >"$at/device"; echo "$4" >"$at/class"; echo 0 >"$at/numa_node"
	echo "32.0 GT/s PCIe" >"$at/max_link_speed"; echo 16 >"$at/max_link_width"
	ln -s "/$at" "sys/bus/pci/devices/${1##*/}"
}
for i in 0 1 2 3 4 5 6 7; do
	pci "0000:${i}0:01.0/0000:${i}1:00.0/0000:${i}2:00.0/0000:${i}3:00.0" 0x10de 0x2330 0x030200
	pci "0000:${i}0:01.0/0000:${i}1:00.0/0000:${i}2:01.0/0000:${i}4:00.0" 0x15b3 0x1021 0x020700
	port=sys/class/infiniband/mlx5_$i/ports/1
	mkdir -p $port
	ln -s "../../../bus/pci/devices/0000:${i}4:00.0" sys/class/infiniband/mlx5_$i/device
	echo "200 Gb/sec (4X HDR)" >$port/rate; echo InfiniBand >$port/link_layer; echo "4: ACTIVE" >$port/state
done
# shellcheck disable=SC2016
there() { unshare -Urm sh -c 'mount --bind sys /sys && exec "$@"' sh "$@"; }
if there true 2>/dev/null; then
	exits 0 "nbox run --inter on a machine with GPUs" there "$NBOX" run --dry-run --nodes 64 --inter 8x400Gbps --model nccl -- true
	says "world      512 ranks: 64 nodes x 8" "is enough"
	says "network    fabric machine (read: this machine's GPUs and kind of NIC, by /sys; the network is assumed: one switch; NICs given: 8x400Gbps); not calibrated" \
		"and says what was read, what is assumed, what was given"
	exits 0 "its fabric" there "$NBOX" topo --nodes 64 --inter 8x400Gbps,5us
	says "8 x H100 (sm 90) on NVSwitch with NVLS" "has this machine's GPUs"
	is "$(grep "GPU's port" <<<"$out")" "$("$NBOX" topo --preset dgx-h100 | grep "GPU's port")" "whose ports are those of the preset"
	says "8 x 400 Gbit/s InfiniBand" "and NICs as they were given"
	says "latency     5.00 us from NIC to NIC" "and their latency"
	exits 0 "--preset machine" there "$NBOX" perf allreduce --nodes 2 --preset machine --model nccl -b 8 -e 8
	says "fabric machine (read: this machine's GPUs and NICs, by /sys; the network is assumed: one switch); not calibrated" "reads its NICs, too"
	rm -r sys/class/infiniband
	exits 0 "a machine without NICs" there "$NBOX" run --dry-run --nodes 64 --inter 8x400Gbps --model nccl -- true
	says "read: this machine's GPUs, by /sys; NICs and network are assumed: InfiniBand with GPUDirect RDMA, one switch; NICs given: 8x400Gbps" "takes them for InfiniBand"
	is "$(there "$NBOX" topo --inter 8x400Gbps | grep -o 'near to .*')" "near to GPU 0, 1, 2, 3, 4, 5, 6, 7 (PXB), with GPUDirect RDMA" "of that kind"
	exits 2 "neither preset nor NICs" there "$NBOX" run --dry-run --nodes 64 --model nccl -- true
	says "needs a fabric, and none is given: --preset NAME (" "is refused with the presets"
else
	pass "a made-up /sys # SKIP none can be had here"
fi

wrong() { # SENTENCE OPTION...
	local sentence=$1
	shift
	exits 2 "topo $*" "$NBOX" topo "$@"
	says "$sentence" "is said"
}
wrong "which fabric? --preset NAME (nbox topo --list) or --fabric FILE"
wrong "there is no preset 'dgxh100'; did you mean 'dgx-h100'?" --preset dgxh100
wrong "'dgx-h100': nbox topo takes options only; did you mean --preset dgx-h100?" dgx-h100
wrong "no link is called 'node3.nik2'" --preset p5 --cable node3.nik2=1Gbps
wrong "says nothing about a fabric" --preset p5 --exchange payload
printf 'presett: p5\n' >f.yaml
wrong "f.yaml:1:1: unknown key 'presett'; did you mean 'preset'?" --fabric f.yaml
printf 'preset: 100gbe\nnetwork: {kind: cables, switches: 2, nodes: [{switch: 0, nodes: 1}, {switch: 1, nodes: 1}], cables: []}\n' >f.yaml
wrong "there is no way from node0 to node1: a cable is missing" --fabric f.yaml --nodes 2
wrong "a node without NIC reaches no other one: give it nics, or --inter" --fabric rack.yaml --nodes 19
wrong "--domain-nodes: class alps: only an NVSwitch joins the GPUs of several nodes" --preset alps --domain-nodes 2
wrong "document types and entities are not taken here" --fabric "$corpus/bomb.xml"
exits 1 "a picture that cannot be written" "$NBOX" topo --preset p5 --svg /dev/full
says "/dev/full: cannot be written: No space left on device" "is an error"
finish
