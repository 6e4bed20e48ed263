#!/usr/bin/env bash
# The raw line with every launcher, and which jobs come to the same nboxd: the workers of one, never those of the next, nor of another user.
. "$(dirname "$0")/raw.sh"
export NBOX_MODEL=none # but where a job names one
export PATH=$tmp/bin:$here:$PATH TMPDIR=$tmp LD_LIBRARY_PATH=$BUILD/emulator/standins NBOX_DEVICE=host NBOX_HOST_DEVICES=8
unset SLURM_NNODES SLURM_NTASKS SLURM_NTASKS_PER_NODE SLURM_JOB_ID
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 12000)) # for each test, and nobody binds it
# begin OUT VARIABLES... -- COMMAND...: in the background, as $job, until its op is in its record
begin() {
	local vars=()
	out=$1
	shift
	while [ "$1" != -- ]; do vars+=("$1"); shift; done
	shift
	env LD_PRELOAD="$BUILD/libnbox.so" NBOX_OUT="$tmp/$out" "${vars[@]}" "$@" >"$out.log" 2>&1 &
	job=$! logs=("$out.log")
	check "job $out is under way" within 200 ops_recorded "$out" 1
}
gone() { within 200 none_names "$1"; }

mkdir bin
for name in accelerate deepspeed srun mpirun; do ln -s "$here/torchrun" "bin/$name"; done
declare -A line=(
	[accelerate]="accelerate launch --num_processes=2 --main_process_port=$MASTER_PORT"
	[deepspeed]="deepspeed --num_gpus=2 --master_port=$MASTER_PORT"
	[srun]="srun --ntasks=2"
	[mpirun]="mpirun -np 2")
for name in accelerate deepspeed srun mpirun; do
	for node in first last; do
		# shellcheck disable=SC2086 # words
		exits 0 "$name, node $node" raw NBOX_NODES=4 NBOX_AS_NODE=$node NBOX_OUT="$tmp/$name-$node" -- ${line[$name]} "$here/flaky"
		says "8 ranks (4 nodes x 2), 2 real" "one nboxd has the world"
	done
done

# the same variables, another model, begun while the workers or the nboxd of the job before are still there
declare -A line=([torchrun]="torchrun --nproc-per-node=2 --master-port=$MASTER_PORT" [srun]="srun --ntasks=2")
for name in torchrun srun; do
	# shellcheck disable=SC2086 # words
	begin $name-old NBOX_NODES=4 NBOX_MODEL=none -- ${line[$name]} "$here/flaky" forever
	kill -KILL $job
	# shellcheck disable=SC2086
	exits 0 "$name: the next one, begun at once" raw NBOX_NODES=8 NBOX_MODEL=ring NBOX_OUT="$tmp/$name-new" -- ${line[$name]} "$here/flaky"
	says "-- nbox: 16 ranks (8 nodes x 2), 2 real; exchange none; model ring" "has its own cluster"
	is "$(json $name-new/summary.json '(d["nodes"], d["ops"])')" "(8, 1)" "and its own results"
	check "the nboxd of the first has ended" gone "$tmp/$name-old"
	wait 2>/dev/null
done
# torchrun's workers outlive their agent: the next job does not mind
TORCHRUN_SESSIONS=1 begin orphans NBOX_NODES=4 -- ${line[torchrun]} "$here/flaky" until "$tmp/over"
kill -KILL $job
exits 0 "beside the orphans of a job with the same variables" raw NBOX_NODES=8 NBOX_OUT="$tmp/beside" -- ${line[torchrun]} "$here/flaky"
says "-- nbox: 16 ranks" "another one runs"
touch over
check "the orphans' nboxd ends with them" gone "$tmp/orphans"
# containers that share the network, but not their pids, which are the same numbers there; the second job waits meanwhile
container="unshare --user --map-root-user --pid --fork --kill-child --mount-proc"
$container true 2>/dev/null || container=
if [ "$container" ]; then
	rm over
	# shellcheck disable=SC2086 # words
	begin container FLAKY_ID="$tmp/id-1" NBOX_NODES=4 MASTER_PORT=$((MASTER_PORT + 1)) -- $container srun --ntasks=2 "$here/flaky" until "$tmp/in-container"
	in_container=$job
	# shellcheck disable=SC2086
	raw FLAKY_ID="$tmp/id-2" NBOX_NODES=8 NBOX_OUT="$tmp/container-2" MASTER_PORT=$((MASTER_PORT + 1)) -- $container srun --ntasks=2 "$here/flaky" >container-2.log 2>&1 &
	refused=$!
	# shellcheck disable=SC2086
	begin container-3 FLAKY_ID="$tmp/id-3" NBOX_NODES=4 -- $container ${line[torchrun]} "$here/flaky" until "$tmp/over"
	# shellcheck disable=SC2086
	exits 0 "torchrun, process 1 of another container" raw FLAKY_ID="$tmp/id-4" NBOX_NODES=8 NBOX_OUT="$tmp/container-4" -- $container ${line[torchrun]} "$here/flaky"
	touch over
	wait $job
	is "$?" 0 "the other one's job ends well, too"
fi
# a job that goes on is not disturbed, and whoever would be in its place is told
rm over
begin on NBOX_NODES=4 -- srun --ntasks=2 "$here/flaky" until "$tmp/over"
exits 1 "another one with the same variables" raw NBOX_NODES=8 NBOX_OUT="$tmp/second" -- srun --ntasks=2 "$here/flaky"
says "another job with the same variables runs under nboxd (pid " "is refused, and told why"
touch over
wait $job
is "$?" 0 "the first one ends well"
if [ "$container" ]; then
	wait $refused
	is "$?" 1 "a job with the same variables in another container is refused"
	out=$(cat container-2.log)
	says "in another container (pid namespace) of this host" "and told why"
	touch in-container
	wait $in_container
	is "$?" 0 "the first one ends well, too"
fi
# a worker that ends while its helper reads the configuration leaves no nboxd, which would wait for whoever has got the helper
mkfifo slow.yaml
NBOX_CONFIG=slow.yaml NBOX_OUT="$tmp/nobody" sh -c '"$0" --join 0 --local 2 &' "$BUILD/nboxd" 2>nobody.log | true
check "a helper without a worker" timeout 60 sh -c 'echo "cluster: {nodes: 4}" >slow.yaml'
check "ends without an nboxd" gone "$tmp/nobody"

# names in the abstract namespace are for everybody: somebody else, who sits there first, is not spoken to
if [ "$(id -u)" = 0 ] && python3 -c 'import os; os.setuid(65534)' 2>/dev/null; then
	cat >squat.py <<'E'
import os, socket, sys
os.setgroups([])
os.setuid(65534)
s = socket.socket(socket.AF_UNIX, getattr(socket, sys.argv[1]))
s.bind("\0" + sys.argv[2])
s.listen()
print("there", flush=True)
while True:
    c, _ = s.accept()
    c.settimeout(5)
    try:
        if c.recv(4096):
            print("heard something", flush=True)
    except OSError:
        pass
E
	cat >door.py <<'E'
import os, sys
names = {f[6]: f[7] for f in map(str.split, open("/proc/net/unix")) if len(f) > 7}
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if f"NBOX_OUT={sys.argv[1]}".encode() not in open(f"/proc/{pid}/environ", "rb").read().split(b"\0"):
            continue
        for fd in os.listdir(f"/proc/{pid}/fd"):
            name = names.get(os.readlink(f"/proc/{pid}/fd/{fd}")[8:-1], "")
            if name.startswith("@nbox-door-"):
                sys.exit(print(name[1:]))
    except OSError:
        pass
E
	# its name is that of the job before
	rm over
	export SLURM_JOB_ID=$MASTER_PORT
	begin before NBOX_NODES=4 -- srun --ntasks=2 "$here/flaky" until "$tmp/over"
	name=$(python3 door.py "$tmp/before")
	touch over
	wait $job
	check "its nboxd has ended" gone "$tmp/before"
	python3 squat.py SOCK_SEQPACKET "$name" >squat.log 2>&1 &
	squatter=$! logs=(squat.log)
	check "another user sits at ${name:-(no name was found)}" within 60 grep -q there squat.log
	exits 1 "the next job" raw NBOX_NODES=4 NBOX_OUT="$tmp/after" -- srun --ntasks=2 "$here/flaky"
	says "it is held by the user with uid 65534" "is told who sits there"
	kill $squatter
	wait $squatter 2>/dev/null
	is "$(cat squat.log)" there "who heard nothing"
	: >squat.log # the next one writes into it only once it has begun
	python3 squat.py SOCK_STREAM "nbox-squat-$MASTER_PORT" >squat.log 2>&1 &
	squatter=$!
	check "another user sits at a link's name" within 60 grep -q there squat.log
	exits 1 "a worker that is sent there" raw NBOX_ADDR="shm:@nbox-squat-$MASTER_PORT" NBOX_TOKEN=secret RANK=0 WORLD_SIZE=2 -- "$here/flaky"
	says "it is held by the user with uid 65534" "is told who sits there"
	exits 1 "an nboxd that wants the name" "$BUILD/nboxd" --addr "shm:@nbox-squat-$MASTER_PORT" --nodes 2 --gpus-per-node 1
	says "it is held by the user with uid 65534" "is told, too"
	kill $squatter
	wait $squatter 2>/dev/null
	is "$(cat squat.log)" there "the token was not sent"
	"$BUILD/nboxd" --addr "shm:@nbox-squat-$MASTER_PORT" --nodes 2 --gpus-per-node 1 >own.log 2>&1 &
	own=$! logs=(own.log)
	check "an nboxd that has it" within 60 grep -q ready own.log
	check "another user at its door" python3 -c 'import os, socket, sys; os.setgroups([]); os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.connect("\0" + sys.argv[1]); s.recv(1)' "nbox-squat-$MASTER_PORT"
	check "is refused by the same rule, and told of" within 60 grep -q "a connection was refused: it is held by the user with uid 65534" own.log
	kill $own
	wait $own
else
	pass "other users # SKIP not root"
fi
finish
