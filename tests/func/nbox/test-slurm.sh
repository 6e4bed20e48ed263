#!/usr/bin/env bash
# nbox sweep --on slurm, against a Slurm of one node, this machine, that the test starts (Debian: slurm-wlm).
test=$(realpath "$0")
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin
skip() { echo "1..0 # SKIP $1"; exit 0; }
for program in slurmctld slurmd sbatch squeue scontrol munged; do
	command -v $program >/dev/null || skip "no $program here (Debian, Ubuntu: slurm-wlm, munge)"
done
[ "$(id -u)" = 0 ] || skip "slurmd wants root"

host=$(hostname -s) daemons=()
stop() {
	kill "${daemons[@]}" 2>/dev/null
	wait "${daemons[@]}" 2>/dev/null
	rm -rf "$tmp"
}
trap stop EXIT
free_port() { python3 -IS -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
mkdir -m 755 munge spool state
chmod 755 "$tmp"
head -c 1024 /dev/urandom >munge/key; chmod 400 munge/key
cat >slurm.conf <<C
ClusterName=nbox
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$tmp/munge/socket
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmctldPidFile=$tmp/slurmctld.pid
SlurmdPidFile=$tmp/slurmd.pid
SlurmdSpoolDir=$tmp/spool
StateSaveLocation=$tmp/state
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
C
export SLURM_CONF=$tmp/slurm.conf
logs=(munge/log slurmctld.log slurmd.log run-sweep/slurm-0.txt)
munged --force --foreground --key-file="$tmp/munge/key" --socket="$tmp/munge/socket" --pid-file="$tmp/munge/pid" \
	--seed-file="$tmp/munge/seed" --log-file="$tmp/munge/log" >munge/log 2>&1 &
daemons+=($!)
check "munge answers" within 60 munge --socket="$tmp/munge/socket" -n
slurmctld -D -i >slurmctld.log 2>&1 &
daemons+=($!)
slurmd -D -N "$host" >slurmd.log 2>&1 &
daemons+=($!)
node_idle() { [ "$(sinfo -h -o %T)" = idle ]; }
check "a Slurm of one node is up" within 120 node_idle
[ $bad = 0 ] || finish

exits 0 "a run" timeout 100 "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --real 0 --model ring --out run -- \
	"$BUILD/tests/apps/stepper" "$(dirname "$test")/../../apps/stepper/jobs/ddp.job" --iterations 5 --warmup 1
exits 0 "a job array is written and submitted" "$NBOX" sweep run --nodes 2..16:x2 --gpus-per-node 1,2 --on slurm
says "Submitted batch job" "Slurm has taken it"
no_jobs() { [ -z "$(squeue -h)" ]; }
check "it comes to an end" within 200 no_jobs
is "$(find run-sweep/points -name summary.json | wc -l)" 4 "every point that can be is there"
is "$(find run-sweep/points -name failed.txt | wc -l)" 4 "the others say why not"
is "$(find run-sweep -name 'slurm-*.txt' | wc -l)" 8 "a task a point"
exits 1 "the same line shows the sweep" "$NBOX" sweep run --nodes 2..16:x2 --gpus-per-node 1,2
says "4 of 8 points are complete already" "nothing is done again"
finish
