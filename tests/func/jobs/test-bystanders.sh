#!/usr/bin/env bash
# LD_PRELOAD is inherited by everything. Whoever is no worker prints nothing more, and sees its environment as it was.
. "$(dirname "$0")/../nbox/lib.sh"
if is_sanitized; then
	echo "1..0 # SKIP a sanitized libnbox.so cannot be preloaded into other programs"
	exit 0
fi
lib=$BUILD/libnbox.so
agent=(NBOX_NODES=64 NBOX_MODEL=ring NBOX_STORE=127.0.0.1:1 TORCH_DISTRIBUTED_DEBUG=DETAIL MASTER_ADDR=h MASTER_PORT=1 RANK=0 WORLD_SIZE=2)
slurm=(NBOX_NODES=64 SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_NTASKS=2 SLURM_NNODES=1)

# same NAME VARIABLES... -- COMMAND...: the same output with and without libnbox.so, nothing on stderr
same() {
	local name=$1 vars=()
	shift
	while [ "$1" != -- ]; do vars+=("$1"); shift; done
	shift
	env "${vars[@]}" "$@" >without 2>without.err
	env "${vars[@]}" LD_PRELOAD="$lib" "$@" >with 2>with.err
	grep -v '^LD_PRELOAD=' with >with.env
	is "$(cmp without with.env && cmp without.err with.err && echo same)" same "$name"
}
same "env" "${agent[@]}" -- env
same "a shell" "${agent[@]}" -- sh -c 'env'
same "a shell of shells" "${agent[@]}" -- sh -c 'sh -c env; true'
same "a shell under srun" "${slurm[@]}" -- sh -c 'echo $SLURM_PROCID $SLURM_NTASKS $SLURM_NNODES $RANK'
for cc in cc gcc clang; do
	command -v $cc >/dev/null && same "$cc" "${agent[@]}" -- $cc --version
done
if command -v python3 >/dev/null; then
	same "python" "${agent[@]}" -- python3 -c 'import os; print(sorted((k, v) for k, v in os.environ.items() if k != "LD_PRELOAD"))'
	same "python's children" "${agent[@]}" -- python3 -c 'import subprocess, sys; subprocess.run(["env"])'
	worker=(LOCAL_RANK=1 RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=1 NBOX_NODES=8 NBOX_AS_NODE=3 NBOX_STORE=127.0.0.1:77 NBOX_ADDR=shm:/nobody)
	out=$(env "${worker[@]}" LD_PRELOAD="$lib" python3 -c 'import os, subprocess, sys
print(*[os.environ[k] for k in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE", "NBOX_WORLD")])
sys.stdout.flush()
subprocess.run([sys.executable, "-c", "import os; print(os.environ[\"RANK\"], os.environ[\"WORLD_SIZE\"])"])' 2>&1)
	is "$out" "7 16 127.0.0.1 77 True 16
7 16" "python sees the virtual world in os.environ, and so do those that it spawns"
	# a nested launcher gives its workers a world of their own, which is rewritten again
	out=$(env "${worker[@]}" LD_PRELOAD="$lib" sh -c 'LOCAL_RANK=0 RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 python3 -c "import os; print(os.environ[\"RANK\"], os.environ[\"WORLD_SIZE\"])"' 2>&1)
	is "$out" "12 32" "a nested launcher's workers are rewritten as well"
fi
finish
