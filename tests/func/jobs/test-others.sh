#!/usr/bin/env bash
# nbox run with accelerate, deepspeed, srun and mpirun: the line that a cluster has, as any node; the variables and NCCL's own view agree.
. "$(dirname "$0")/../nbox/lib.sh"
here=$BUILD/tests/func/jobs
export PATH=$tmp/bin:$PATH TMPDIR=$tmp
unset SLURM_NNODES SLURM_NTASKS SLURM_NTASKS_PER_NODE SLURM_JOB_ID
mkdir bin
for name in accelerate deepspeed srun mpirun; do ln -s "$here/torchrun" "bin/$name"; done
printf '%s\n' "a slots=2" "b slots=2" "c slots=2" "d slots=2" >hosts

declare -A line=(
	[accelerate]="accelerate launch --num_machines 4 --num_processes 8 --machine_rank 0 --main_process_ip head --main_process_port 29500"
	[deepspeed]="deepspeed --hostfile hosts --num_nodes 4 --num_gpus 2 --master_addr head"
	[srun]="srun -N4 --ntasks-per-node=2"
	[mpirun]="mpirun -np 8 -H a:2,b:2,c:2,d:2")
declare -A vars=(
	[accelerate]="RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE"
	[deepspeed]="RANK LOCAL_RANK WORLD_SIZE LOCAL_SIZE CROSS_RANK CROSS_SIZE"
	[srun]="SLURM_PROCID SLURM_LOCALID SLURM_NTASKS SLURM_STEP_TASKS_PER_NODE SLURM_NODEID SLURM_NNODES"
	[mpirun]="OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_SIZE")
for name in accelerate deepspeed srun mpirun; do
	for node in first 2 last; do
		k=${node/first/0}; k=${k/last/3}
		# shellcheck disable=SC2086 # words
		exits 0 "$name as node $node of 4: NCCL among 2 real ranks of 8" "$NBOX" run --nodes 4 --gpus-per-node 2 --as-node "$node" --model ring \
			--out "$name-$node" -- ${line[$name]} "$here/flaky"
		says "8 ranks (4 nodes x 2), 2 real" "$name as node $node: the summary's world"
		is "$("$NBOX" report --csv "$name-$node" | awk -F, 'NR > 1 && $6 == "AllReduce" { print $5 }' | sort | tr '\n' ' ')" \
			"$((2 * k)) $((2 * k + 1)) " "$name as node $node: the record's ranks"
	done
	rm -f env.*
	# shellcheck disable=SC2086
	exits 0 "$name: what its workers see" "$NBOX" run --quiet --nodes 4 --gpus-per-node 2 --as-node last --out "$name-env" -- \
		${line[$name]} "$here/show-env" "$tmp/env" ${vars[$name]}
	case $name in
	mpirun) want="6 0 8 2
7 1 8 2" ;;
	*) want="6 0 8 2 3 4
7 1 8 2 3 4" ;;
	esac
	is "$(cat env.*)" "$want" "$name: its variables, as the last node"
done
nothing_left
finish
