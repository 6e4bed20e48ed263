#!/usr/bin/env bash
# LD_PRELOAD and a description of the cluster, by variables or by a file: the workers start nboxd themselves, once, and it ends with them.
. "$(dirname "$0")/raw.sh"
export PATH=$here:$PATH TMPDIR=$tmp LD_LIBRARY_PATH=$BUILD/emulator/standins NBOX_DEVICE=host NBOX_HOST_DEVICES=8
# a port for each test, which nobody binds, so that runs that overlap with others' do not share an nboxd
port=$((20000 + $$ % 12000)) # below those that the kernel gives to others
# said: $out without what nboxd warns of where the machine is busy: an op is decided late, a worker comes long after the other
said() { grep -vE 'nbox WARN .*(: finding its end took nboxd |has waited [0-9.]+ s)' <<<"$out"; }
raw_and_end() { raw "$@" && echo "the command has ended"; }
gone() { # no nboxd of the job with these results is left: it lingers while links close
	within 200 none_names "$1" && return 0
	nboxds_left
	return 1
}

exits 0 "torchrun, nothing else" raw_and_end NBOX_NODES=64 NBOX_MODEL=ring NBOX_OUT="$tmp/a" -- \
	torchrun --nproc-per-node=2 --master-port=$port "$here/flaky" -- "$tmp"
check "nboxd is gone" gone "$tmp/a"
is "$(said)" "$("$NBOX" report "$tmp/a"; echo "the command has ended")" "prints the summary before it ends, and nothing else"
is "$("$NBOX" report a | grep -o "128 ranks (64 nodes x 2), 2 real")" "128 ranks (64 nodes x 2), 2 real" "one nboxd had the whole world"
is "$(json a/summary.json '(d["world_size"], d["ops"])')" "(128, 1)" "nboxd has the summary written"
is "$("$NBOX" report --csv a | grep -c AllReduce)" 2 "both ranks' ops are in its record"

# the folder tells what ran, and where
is "$(tr '\n' ' ' <a/command.txt)" "-- $here/flaky -- $tmp " "command.txt has the workers' command"
is "$(json a/host.json 'sorted(d)')" "['cores', 'cpu', 'host', 'kernel', 'machine', 'memory_bytes']" "host.json has what nbox run writes"
is "$(ls a)" "$(printf '%s\n' command.txt config.yaml host.json record.nbox summary.json versions.txt)" "and nothing else is in it"

# a GPU that cannot be used is told, by one worker a node and in the summary
exits 0 "auto, with a driver older than CUDA 12" raw NBOX_NODES=4 NBOX_DEVICE=auto NBOX_TEST_DRIVER=old NBOX_OUT="$tmp/old" \
	LD_PRELOAD="$BUILD/libnbox.so:$BUILD/tests/driver/libcuda.so.1" -- torchrun --nproc-per-node=2 --master-port=$((port + 8)) "$here/flaky"
is "$(printf '%s\n' "$out" | grep -c "WARN the gates are host functions.*of CUDA 11.4")" 1 "one line says that the gates are host functions"
check "its nboxd is gone too" gone "$tmp/old"
is "$("$NBOX" report old | grep -c "the gates are host functions.*of CUDA 11.4")" 1 "and so does the summary"
# the stand-in that an environment without a GPU has for a driver is no old driver
exits 0 "auto, with the stand-in for a driver" raw NBOX_QUIET=1 NBOX_NODES=4 NBOX_DEVICE=auto NBOX_HOST_KERNEL_TIME=h100 NBOX_OUT="$tmp/standin" \
	LD_LIBRARY_PATH="$BUILD/emulator/standins/driver-13:$LD_LIBRARY_PATH" -- torchrun --nproc-per-node=2 --master-port=$((port + 9)) "$here/flaky"
is "$(said)" "" "NBOX_QUIET=1: prints nothing"
check "its nboxd is gone as well" gone "$tmp/standin"
"$NBOX" report standin >standin.txt 2>&1
is "$(grep -c "no GPU: the job ran on the CPU.*compute is modelled: NBOX_HOST_KERNEL_TIME=h100" standin.txt) $(grep -c "driver lacks" standin.txt)" "1 0" "the summary says that there is no GPU, and how long kernels take"

# the worker is a script, whose programs come one after the other
echo 'FLAKY_ID=$TMPDIR/one flaky && FLAKY_ID=$TMPDIR/two flaky && sleep 0.2' >twice.sh
exits 0 "a script with two programs" raw NBOX_NODES=64 NBOX_MODEL=ring NBOX_OUT="$tmp/twice" -- torchrun --nproc-per-node=2 --master-port=$port sh twice.sh
check "its nboxd is gone" gone "$tmp/twice"
is "$(json twice/summary.json '(d["world_size"], d["ops"])')" "(128, 2)" "one nboxd had both"
is "$(said)" "$("$NBOX" report "$tmp/twice")" "one summary tells of both, and nothing else is said"

# what a job without stdin, stdout and stderr writes to them goes nowhere, least of all into a link of libnbox.so's
for link in shm tcp; do
	exits 0 "a job without standard descriptors, $link" raw NBOX_NODES=4 NBOX_LINK=$link NBOX_OUT="$tmp/mute-$link" -- \
		sh -c 'exec torchrun --nproc-per-node=2 --master-port=$0 flaky chatty <&- >&- 2>&-' $port
	check "its nboxd is gone" gone "$tmp/mute-$link"
	is "$(json mute-$link/summary.json '(d["ops"], d["warnings"])')" "(1, [])" "nothing went wrong"
done

# the library by a relative path; results in the usual place
exits 0 "a relative path" timeout 120 env -C "$BUILD" LD_PRELOAD=./libnbox.so NBOX_NODES=4 NBOX_MODEL=none NBOX_EXPECT="ops == 1;modelled_ms < 0;exit_code == 0" NBOX_OUT="$tmp/rel" torchrun --nproc-per-node=2 --master-port=$port "$here/flaky"
check "its nboxd is gone" gone "$tmp/rel"
says "ops == 1: yes, 1" "what was expected is judged, but for an exit code"
says "nboxd: the run was not as expected, and $tmp/rel/summary.json says where; the job's exit code does not" "and what is not met is told"
is "$(json rel/summary.json '[x["met"] for x in d["expected"]]')" "[True, False]" "so does its summary"
exits 0 "without NBOX_OUT" raw NBOX_NODES=4 -- torchrun --nproc-per-node=2 --master-port=$((port + 1)) "$here/flaky"
is "$(find nbox-out -name record.nbox | wc -l)" 1 "results go to nbox-out/"

exits 0 "a restart by the agent" raw FLAKY=1 NBOX_NODES=4 NBOX_OUT="$tmp/r" -- torchrun --nproc-per-node=2 --max-restarts=1 --master-port=$((port + 2)) "$here/flaky"
check "each attempt has results" test -s r/record.nbox -a -s r-restart1/record.nbox
check "no nboxd is left of both" gone "$tmp/r"
# nobody tells nboxd the job's exit code, but the workers tell theirs
out=$("$NBOX" report r)
says "no op was recorded: the job seems to have failed (world rank 1, worker" "the summary of the first says that it failed"
says "ended with exit code 3) before its first op was over" "and how"

# what is wrong is said once, and is an error of NCCL's
exits 1 "a model that is not there" raw NBOX_NODES=4 NBOX_MODEL=rnig -- torchrun --nproc-per-node=1 --master-port=$((port + 3)) "$here/flaky"
says "did you mean" "nboxd's own line says why"
is "$(printf '%s' "$out" | grep -c "or nboxd), or unset NBOX_ADDR")" 0 "without advice that would not help"
exits 1 "an nboxd that is not there" raw "NBOX_ADDR=shm:$tmp/none.sock" NBOX_TOKEN=x RANK=0 WORLD_SIZE=2 -- "$here/flaky"
says "start the virtual cluster with 'nbox run' (or nboxd), or unset NBOX_ADDR" "leads to nbox run"
exits 1 "more than a worker can be told" raw NBOX_NODES=4 NBOX_REAL="0,$(printf %016280d 1)" NBOX_OUT="$tmp/long" -- torchrun --nproc-per-node=2 --master-port=$((port + 3)) "$here/flaky"
says "what each worker has to be told takes more than 16383 bytes: shorten NBOX_REAL" "is told"
check "before anything is started" test ! -e long
exits 1 "no nboxd" raw NBOX_NODES=4 NBOX_NBOXD=/nowhere -- torchrun --nproc-per-node=1 --master-port=$((port + 4)) "$here/flaky"
says "NBOX_NBOXD=/nowhere" "is said"
exits 0 "as the last node: nboxd's store is there before the job" raw NBOX_NODES=4 NBOX_AS_NODE=last NBOX_OUT="$tmp/last" -- \
	torchrun --nproc-per-node=2 --master-port=$((port + 5)) "$here/flaky"
is "$("$NBOX" report --csv last | awk -F, 'NR > 1 { print $5 }' | sort | tr '\n' ' ')" "6 7 " "the last node's ranks"
exits 0 "NBOX_LINK=tcp" raw NBOX_NODES=4 NBOX_LINK=tcp NBOX_OUT="$tmp/tcp" -- torchrun --nproc-per-node=2 --master-port=$((port + 5)) "$here/flaky"
is "$(grep -c 'kind: "tcp"' tcp/config.yaml)" 1 "is the link"
exits 1 "no launcher" raw NBOX_NODES=4 RANK=0 LOCAL_RANK=0 WORLD_SIZE=8 -- "$here/flaky"
says "start the job with torchrun or with 'nbox run'" "is said too"
exits 0 "NBOX_ENABLE=0" raw NBOX_ENABLE=0 NBOX_NODES=4 -- torchrun --nproc-per-node=2 --master-port=$((port + 6)) "$here/flaky"
is "$out" "" "and not a word"
# nothing describes a cluster: said once, and the job is what it was
exits 0 "neither file nor variables" raw -- torchrun --nproc-per-node=2 --master-port=$((port + 6)) "$here/flaky"
is "$(printf '%s\n' "$out" | grep -c "no virtual cluster is described: the job runs without nbox")/$(printf '%s\n' "$out" | wc -l)" 1/1 "one line says so"
exits 0 "NBOX_QUIET=1" raw NBOX_QUIET=1 -- torchrun --nproc-per-node=2 --master-port=$((port + 6)) "$here/flaky"
is "$out" "" "silences it"
exits 0 "NBOX_MODEL, and no number of nodes" raw NBOX_MODEL=ring -- torchrun --nproc-per-node=2 --master-port=$((port + 6)) "$here/flaky"
is "$(printf '%s\n' "$out" | grep -c "NBOX_MODEL is set, but nothing says how many nodes there are: the job runs without nbox.*NBOX_NODES")/$(printf '%s\n' "$out" | wc -l)" 1/1 "one line says what is missing"
# a mistyped variable asks for nothing
exits 0 "NBOX_NODEZ" raw NBOX_NODEZ=64 -- torchrun --nproc-per-node=2 --master-port=$((port + 10)) "$here/flaky"
is "$(printf '%s\n' "$out" | grep -c "NBOX_NODEZ is unknown; did you mean 'NBOX_NODES'?")" 1 "is told of once a node"

# a cluster file: ./nbox.yaml, or the one that is named; variables go before it
mkdir job && cd job || exit 1
printf '%s\n' 'cluster: {nodes: 32, as_node: 3}' 'model: "ring:bw=400Gbps,alpha=5us"' "out: $tmp/file" >nbox.yaml
exits 0 "./nbox.yaml" raw -- torchrun --nproc-per-node=2 --master-port=$((port + 11)) "$here/flaky"
says "-- nbox: 64 ranks (32 nodes x 2), 2 real; exchange none; model ring:bw=400Gbps,alpha=5us; seed 1" "is the cluster"
says "network        5us, 400Gbps on every hop" "the summary says where times come from"
is "$("$NBOX" report --csv ../file | awk -F, 'NR > 1 { print $5 }' | sort | tr '\n' ' ')" "6 7 " "its node"
is "$(grep nodes: ../file/config.yaml)" '  nodes: "32"  # nbox.yaml:1:18' "config.yaml says what came from where"
exits 0 "a variable" raw NBOX_NODES=16 NBOX_LAYOUT=dp=16,pp=2 NBOX_OUT="$tmp/var" -- torchrun --nproc-per-node=2 --master-port=$((port + 11)) "$here/flaky"
says "-- nbox: 32 ranks (16 nodes x 2), 2 real; exchange none; model ring:bw" "goes before the file"
says "classes        pp=0: 16 ranks, 2 real (from rank 6)" "of which class the node is"
says "pp=1: 16 ranks, never seen: computes as pp=0 does (rank 6)" "and which nobody is of"
sed 's/32/8/; s/^out.*//' nbox.yaml >"$tmp/other.yaml"
exits 0 "NBOX_CONFIG" raw NBOX_CONFIG="$tmp/other.yaml" NBOX_OUT="$tmp/named" -- torchrun --nproc-per-node=2 --master-port=$((port + 11)) "$here/flaky"
says "-- nbox: 16 ranks (8 nodes x 2)" "goes before ./nbox.yaml"
echo "modle: ring" >>nbox.yaml
exits 1 "a file that is wrong" raw NBOX_OUT="$tmp/wrong" -- torchrun --nproc-per-node=2 --master-port=$((port + 11)) "$here/flaky"
says "nbox.yaml:4:1: unknown key 'modle'; did you mean 'model'?" "its error is nboxd's, with file, line and column"
printf '%s\n' 'cluster:' '  nodes: 4' '  gpus_per_node: 3' >nbox.yaml
exits 1 "a file that contradicts the launcher" raw NBOX_OUT="$tmp/wrong" -- torchrun --nproc-per-node=2 --master-port=$((port + 11)) "$here/flaky"
says "nbox.yaml:3:18: a node has 3 ranks, but the launcher started 2 on this one: make them equal" "its line is named"
exits 1 "a variable that does" raw NBOX_GPUS_PER_NODE=1 NBOX_OUT="$tmp/wrong" -- torchrun --nproc-per-node=2 --master-port=$((port + 11)) "$here/flaky"
says "NBOX_GPUS_PER_NODE: a node has 1 rank," "it is named"
printf '%s\n' 'cluster: {nodes: 4, real: 0-2}' >nbox.yaml
exits 1 "real ranks that are others" raw NBOX_OUT="$tmp/wrong" -- torchrun --nproc-per-node=2 --master-port=$((port + 11)) "$here/flaky"
says "nbox.yaml:1:27: 3 ranks are real, but the launcher started 2" "they are named"
printf '%s\n' 'cluster: {world: 7}' >nbox.yaml
exits 1 "a world that cannot be" raw NBOX_OUT="$tmp/wrong" -- torchrun --nproc-per-node=2 --master-port=$((port + 11)) "$here/flaky"
says "nbox.yaml:1:18: a world of 7 is no multiple of 2 gpus per node (as the launcher says)" "no variable is named that nobody set"
check "of none there are results" test ! -e "$tmp/wrong"
exits 1 "NBOX_CONFIG, and no such file" raw NBOX_CONFIG=/nowhere.yaml -- torchrun --nproc-per-node=2 --master-port=$((port + 11)) "$here/flaky"
says "/nowhere.yaml: cannot read the cluster file: No such file or directory" "is told"
exits 1 "a file, and no launcher" raw RANK=0 LOCAL_RANK=0 WORLD_SIZE=8 -- "$here/flaky"
says "./nbox.yaml asks for a virtual cluster, but RANK" "is no silent job without nbox"
# it may say where an nboxd is, and its store, that somebody has started with the same file
printf '%s\n' 'cluster: {nodes: 4, gpus_per_node: 2, as_node: last}' "link: {addr: \"shm:$tmp/own.sock\", token: abc}" "store: 127.0.0.1:$((port + 12))" "model: none" >nbox.yaml
exits 1 "a file that says where nboxd is, and nobody there" raw -- torchrun --nproc-per-node=2 --master-port=$((port + 11)) "$here/flaky"
says "nobody listens there; is nboxd running?" "is told"
"$BUILD/nboxd" --config nbox.yaml --once --out "$tmp/own" >own.log 2>&1 &
logs=(own.log)
check "it runs" within 200 grep -q "nboxd ready" own.log
exits 0 "the workers come to it" raw -- torchrun --nproc-per-node=2 --master-port=$((port + 11)) "$here/flaky"
check "it ends with them" gone "$tmp/own"
wait $!
is "$("$NBOX" report --csv ../own | awk -F, 'NR > 1 { print $5 }' | sort | tr '\n' ' ')" "6 7 " "as the node that the file says"
logs=()
exits 0 "under nbox run" "$NBOX" run --quiet --nodes 4 --model none --device host --out "$tmp/run" -- torchrun --nproc-per-node=2 "$here/flaky"
is "$(json ../run/summary.json 'd["world_size"]')" 8 "./nbox.yaml is not asked"
cd .. || exit 1

# a job that is killed takes nboxd with it
env LD_PRELOAD="$BUILD/libnbox.so" NBOX_NODES=4 NBOX_MODEL=none NBOX_OUT="$tmp/k" torchrun --nproc-per-node=2 --master-port=$((port + 7)) "$here/flaky" forever >k.log 2>&1 &
job=$! logs=(k.log)
# both have come: after fewer nboxd waits for the others
check "a job is under way" within 200 ops_recorded k 1
kill -KILL $job
check "killed, nboxd goes too" gone "$tmp/k"
wait 2>/dev/null
out=$("$NBOX" report k)
says "warning: the job seems to have failed (world rank" "its summary says that it failed"
says "vanished (killed, or ended by _exit()): the peer closed the connection): these figures are of what came before" "and how"
"$NBOX" list --json . >list.json
is "$(json list.json '{r["name"]: r["has_failed"] for r in d if r["name"] in "a k r r-restart1"}')" "{'a': False, 'r': True, 'r-restart1': False, 'k': True}" "list knows which failed"
is "$(json list.json '[r["command"] for r in d if r["name"] == "a"]')" "['$here/flaky -- $tmp']" "and its whole command"
is "$("$NBOX" list . | awk '$1 == "a" || $1 == "k" { printf "%s ", $10 }')" "- failed? " "and shows it"
finish
