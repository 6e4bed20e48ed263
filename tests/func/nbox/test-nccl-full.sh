#!/usr/bin/env bash
# nccl full as nbox run takes it: what is printed, what is refused, which NCCL. Starts no job.
. "$(dirname "$0")/lib.sh"
unset NBOX_NCCL NCCL_NET NCCL_NET_PLUGIN NCCL_PROFILER_PLUGIN NCCL_TOPO_FILE NBOX_NET_DEVICES
dry=("$NBOX" run --dry-run --device host --nodes 4 --gpus-per-node 2)
way="nccl       full: NCCL's own decisions and messages, times by the model"

exits 2 "without a GPU and an NCCL that runs here" "${dry[@]}" --nccl full -- true
says "--nccl full: without a GPU the job runs on a stand-in for NCCL, which has no messages of NCCL's: take nccl gate, or an NCCL" "is said"
exits 0 "the gate needs none" "${dry[@]}" --nccl gate -- true
is "$(grep -c '^nccl  ' <<<"$out")" 0 "and is what it always was"
exits 0 "the help" "$NBOX" run --help
says "NBOX_NCCL_MODE, nccl" "names its variable and its key"

export NBOX_NCCL=$BUILD/tests/apps/fake-nccl/libnccl.so.2
exits 0 "an NCCL that is named" "${dry[@]}" --nccl full -- true
says "$way" "the plan says whose messages there are"
says "           NCCL 2.28.9, $NBOX_NCCL" "which NCCL"
says "           NICs nbox0:400000,nbox1:400000" "which NICs it finds"
says "exchange   payload over shm" "that they have bytes"
says 'nccl: "full"  # --nccl' "the configuration has it"
says 'exchange: "payload"  # default exchange' "with what follows from it"
cat >file.yaml <<'T'
cluster: {nodes: 4, gpus_per_node: 2, preset: p4d}
nccl: full
exchange: messages
T
exits 0 "a file" "$NBOX" run --dry-run --device host --config file.yaml -- true
says "$way" "says it, too"
says "exchange   messages over shm" "and that they have none"
says "NICs nbox0:100000,nbox1:100000,nbox2:100000,nbox3:100000" "the preset has the NICs"
sed -n '/^configuration:/,$p' <<<"$out" >again.yaml
exits 0 "what is written" "$NBOX" run --dry-run --device host --config <(tail -n +2 again.yaml) -- true
says "exchange   messages over shm" "gives the same again"
exits 0 "a variable" env NBOX_NCCL_MODE=full "${dry[@]}" -- true
says "$way" "says it as well"
exits 0 "a flag against the variable" env NBOX_NCCL_MODE=full "${dry[@]}" --nccl gate -- true
is "$(grep -c '^nccl  ' <<<"$out")" 0 "goes before it"
exits 2 "the path of an NCCL in its place" env NBOX_NCCL_MODE="$NBOX_NCCL" "${dry[@]}" -- true
says "NBOX_NCCL_MODE: unknown nccl '" "is an error"
exits 0 "nboxd" "$BUILD/nboxd" --check --nodes 2 --nccl full
says 'exchange: "payload"' "takes it alike"

echo '<system><net name="mlx5_0" speed="200000"/></system>' >topo.xml
exits 0 "NCCL's topology file" env NCCL_TOPO_FILE=topo.xml "${dry[@]}" --nccl full -- true
says "NICs mlx5_0:200000" "has the NICs, then"
exits 2 "one that is not there" env NCCL_TOPO_FILE=none.xml "${dry[@]}" --nccl full -- true
says "NCCL_TOPO_FILE: cannot open none.xml: No such file or directory" "is an error"
exits 0 "NICs that the user names" env NBOX_NET_DEVICES=a:1000 NCCL_TOPO_FILE=topo.xml "${dry[@]}" --nccl full -- true
says "NICs a:1000" "go before it"

exits 0 "variables of NCCL's that libnbox.so sets" env NCCL_NET=IB "${dry[@]}" --nccl full -- true
says "warning    NCCL_NET=IB of the environment does not count: with nccl full libnbox.so is NCCL's network and profiler" "are named"
exits 0 "with the gate" env NCCL_NET=IB "${dry[@]}" -- true
is "$(grep -c NCCL_NET <<<"$out")" 0 "they count"

exits 2 "an NCCL that is too old" env FAKE_NCCL_VERSION=22105 "${dry[@]}" --nccl full -- true
says "NBOX_NCCL: NCCL 2.21.5 ($NBOX_NCCL): nccl full needs 2.23 or newer, which tells a plug-in which op a message is of" "is said"
exits 2 "one whose records are unknown" env FAKE_NCCL_VERSION=29905 "${dry[@]}" --nccl full -- true
says "NBOX_NCCL: NCCL 2.99.5: its records are not known (tried: 2.21.5, " "names those that are"
exits 0 "for the gate" env FAKE_NCCL_VERSION=22105 "${dry[@]}" -- true
exits 0 "one that does not open here" env NBOX_NCCL="$BUILD/nbox" "${dry[@]}" --nccl full -- true
says "its version is not known here (NBOX_NCCL names no NCCL): the job's processes look" "may open in the job"
out=$(FAKE_NCCL_VERSION=22105 "$NBOX" doctor --device host --no-self-test 2>&1)
says "2.21.5, $NBOX_NCCL; not with --nccl full" "nbox doctor says which does not"
is "$(ls -A | sort | tr '\n' ' ')" "again.yaml file.yaml topo.xml " "nothing else is left"
finish
