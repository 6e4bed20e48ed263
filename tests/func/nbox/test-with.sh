#!/usr/bin/env bash
# nbox run --with: real ranks without a process compute as a record says, beside the live ones.
test=$(realpath "$0")
. "$(dirname "$0")/lib.sh"
cat >job <<'J'
parallel pp=2
micro 4
bucket 1MiB
update 1ms
layer forward=1ms backward=2ms params=512KiB send=128KiB
layer forward=4ms backward=8ms params=512KiB send=128KiB
J
# run NAME [OPTION...]: a pipeline of a light and a heavy stage, on hosts of one GPU each
run() {
	local out=$1; shift
	timeout 100 "$NBOX" run --quiet --gpus-per-node 1 --model ring --out "$out" "$@" -- "$BUILD/tests/apps/stepper" job --iterations "${iterations:-4}" --warmup 1
}
# compare FILE FILE TEST: of a and b, the means of their steps
compare() { python3 -IS -c 'import json, sys; a, b = (json.load(open(f))["steps"]["ms"]["mean"] for f in sys.argv[1:3]); assert eval(sys.argv[3]), (a, b)' "$@"; }
# rows DIR RANK: how many the record has of a rank
rows() { "$NBOX" record dump "$1" | grep -c " world_rank=$2 "; }
four=(--nodes 4 --layout dp=2,pp=2)
exits 0 "a record of the heavy stage" run heavy "${four[@]}" --as-node 2
exits 0 "a run of the light one beside it" run beside "${four[@]}" --as-node 0 --with heavy
exits 0 "its report" "$NBOX" report beside
says "pp=1: 2 ranks, 1 real (rank 2 of heavy)" "says whose timeline the heavy stage has"
says "(of $("$NBOX" record dump beside | grep -c '^OP.* world_rank=0 ') released gates" "says how late the gates of the live rank were, no others"
check "a step takes as long as the heavy stage computes" compare beside/summary.json heavy/summary.json "a > .9 * b"
for options in "--exchange messages" "--exchange payload --link tcp" "--what-if slow:rank=3,compute=2 --nodes 4" "--nodes 8 --layout dp=4,pp=2"; do
	[[ $options == *layout* ]] || options+=" --layout dp=2,pp=2"
	[[ $options == *nodes* ]] || options+=" --nodes 4"
	rm -rf other
	# shellcheck disable=SC2086
	exits 0 "the same: $options" run other $options --as-node 0 --with heavy
	exits 0 "... re-timed as it was" "$NBOX" retime other --json again.json
	check "... has its times" compare other/summary.json again.json "abs(a / b - 1) < 1e-2"
	check "... and the heavy stage's" compare other/summary.json heavy/summary.json "a > .9 * b"
done
exits 0 "its report" "$NBOX" report other
says "follow the world's size as 'keep'; their records (with) are of another size" "says what is assumed of another world's ops"
exits 0 "its record" "$NBOX" record dump other
says "n_real=1 " "one rank had a process"
exits 0 "the critical path" "$NBOX" why beside
says "computation on stream 1 of rank 2" "goes over the heavy stage"

iterations=2 exits 0 "a run that is shorter than its record" run shorter "${four[@]}" --as-node 0 --with heavy
case $out in *aborted*) fail "ends as any other" "$out" ;; *) pass "ends as any other" ;; esac

iterations=1 exits 0 "a record of the light stage" run light "${four[@]}" --as-node 0
iterations=1 exits 0 "a run of the heavy one, which is over first" run tail "${four[@]}" --as-node 2 --with light --inter-bandwidth 20Mbps
is "$(rows tail 0)" "$(rows light 0)" "plays the light one to its end"

# communicators that a live rank leaves while a rank without a process is to use them
cat >remake.py <<'P'
import ctypes, os, time
nccl, cuda = ctypes.CDLL("libnccl.so.2"), ctypes.CDLL("libcudart.so.13")
class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]
def must(result):
    assert result == 0, result
rank, name, world, pair, mem = int(os.environ["RANK"]), Id(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
must(cuda.cudaMalloc(ctypes.byref(mem), ctypes.c_size_t(4 << 20)))
must(nccl.ncclGetUniqueId(ctypes.byref(name)))
must(nccl.ncclCommInitRank(ctypes.byref(world), 4, name, rank))
for i in range(3):
    must(nccl.ncclCommSplit(world, rank // 2, rank, ctypes.byref(pair), None))
    must(nccl.ncclBroadcast(mem, mem, ctypes.c_size_t(1 << 20), 7, 0, pair, None))
    time.sleep(.02 * (rank % 2))
    must((nccl.ncclRecv if rank % 2 else nccl.ncclSend)(mem, ctypes.c_size_t(16), 7, 1 - rank % 2, pair, None))
    must(cuda.cudaStreamSynchronize(None))
    must(nccl.ncclCommDestroy(pair))
    must(nccl.ncclAllReduce(mem, mem, ctypes.c_size_t(16), 7, 0, world, None))
    must(cuda.cudaStreamSynchronize(None))
must(nccl.ncclCommDestroy(world))
P
remake() { timeout 60 "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --inter-bandwidth 10Gbps --inter-latency 10ms --timeout 20s --model ring --out "$@" -- python3 -IS remake.py; }
if ! is_sanitized; then
	exits 0 "a record of a rank that receives last" remake receiver --as-node 1
	exits 0 "a run of the sender beside it" remake sender --as-node 0 --with receiver
	is "$(rows sender 1)" "$(rows receiver 1)" "plays all that the record has"
fi

# what cannot be
iterations=9 exits 1 "a run that is longer than its record" run longer "${four[@]}" --as-node 0 --with heavy
says "world rank 2), which has no process, and its record (--with) has no such op" "ends, and says so"
sed -i 's/send=128KiB$/send=64KiB/' job
exits 1 "a run of a job that sends less" run less "${four[@]}" --as-node 0 --with heavy
says "rank 0 sends 65536 bytes to rank 1 (send 0 between them), which receives 131072" "ends at the first message"
exits 1 "a run that sends on another communicator" run other-comm --nodes 2 --layout dp=1,pp=2 --as-node 0 --with heavy
says "record a run as long as this one, of the same job" "ends, and says so"
exits 1 "the same rank live and recorded" run same "${four[@]}" --as-node 2 --with heavy
says "all ranks of these runs have a process here" "is refused"
exits 2 "a run that is none" run none "${four[@]}" --with nobody
says "nobody is neither" "is refused"
exits 1 "another layout" run layout --nodes 4 --layout tp=2,pp=2 --with heavy
says "axis 1 of the run was dp, not tp" "is refused"
echo 'layer x2 forward=1ms backward=2ms params=1MiB' >job
exits 0 "a record of one of four that do the same" run third --nodes 4 --as-node 2
exits 0 "a run of another beside it" run first --nodes 4 --as-node 0 --with third
exits 0 "its record" "$NBOX" record dump first
says "real=[0:0,2:2]" "has both"
sed -i 's/1MiB/2MiB/' job
exits 1 "a run of a job with other gradients" run more --nodes 4 --as-node 0 --with third
says "by its record" "ends at the first op"
finish
