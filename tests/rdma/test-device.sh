#!/usr/bin/env bash
# A device that goes wrong under a running job, and one that cannot be had: a port that is down for a moment, a port that
# stays down, a device that is removed, no provider, too little memory to lock. Changes the guest's network: only in ./scripts/vm.
. "$(dirname "$0")/lib.sh"
if ! ip link show rd0 >/dev/null 2>&1; then echo "1..0 # SKIP a device is broken here, so only in ./scripts/vm"; exit 0; fi
export PATH=$PATH:/usr/sbin:/sbin
now_ms() { date +%s%3N; }
wait_for() { within 400 "$@"; }
# start NAME EXCHANGE TIME: a job whose ops take TIME each; one real rank, so that only links of nbox use the device
start() {
	"$NBOX" run --nodes 8 --gpus-per-node 2 --real 0 --model "const:time=$3" --link rdma --exchange "$2" --out "$1" -- \
		"$PERF" --op allreduce -b 64K -e 64K -n 100000 -w 1 --no-check >"$1.log" 2>&1 &
	run=$!
	check "$1: an op is over" wait_for ops_recorded "$1" 0
}
# silent: an op has just begun, nothing has been sent for a while, nor will be before that op is over, which is most of its time
sent() { echo "$(</sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts)"; }
silent() {
	local before; before=$(sent)
	for _ in $(seq 1 1000); do [ "$(sent)" = "$before" ] || break; snooze 0.1; done
	before=$(sent)
	for _ in $(seq 1 100); do snooze 0.4; [ "$(sent)" = "$before" ] && return 0; before=$(sent); done
}
# A program may take seconds to start here, longer than a port may be down: ip has been started before, and bash sleeps
exec {ip}> >(exec ip -batch -) {never}<> <(:)
link() { echo "link set rd0 $1" >&"$ip"; }
snooze() { read -rt "$1" -u "$never"; }
anew() { rdma link delete rxe0; rdma link add rxe0 type rxe netdev rd0; } # what was sent by the connection manager has stopped its queue pair for good
# ends NAME PATTERN: the job fails by itself; nboxd or the worker says why, with device, port, queue pair and peer
ends() {
	local t0 code; t0=$(now_ms)
	wait_for sh -c "! kill -0 $run" || kill -KILL $run
	wait $run; code=$?
	is "$([ $code != 0 ] && [ $code != 137 ] && echo failed)" failed "$1: the job fails (exit code $code after $(($(now_ms) - t0)) ms)"
	out=$(grep -E 'nbox (ERROR|WARN) .*(link closed|lost the link)' "$1.log")
	is "$(grep -cE "device rxe0 port 1, QP [0-9]+ to rdma:10.77.0.1:[0-9]+: .*$2" <<<"$out" | awk '{ print ($1 > 0) }')" 1 "$1: is told why, with device, port, queue pair and peer"
	sed 's/^/# /' <"$1.log"
	nothing_registered "$1: nothing is kept"
}

# Nothing is to be sent while it is down: soft-RoCE fails what is sent then at once, where a device would try again
start blink none 5s
silent
link down; snooze 0.5; link up
check "blink: the job goes on" wait_for ops_recorded blink 2
kill -TERM $run 2>/dev/null; wait $run
is "$?" 143 "blink: ends when it is told to"
nothing_registered "blink: nothing is kept"

start quiet none 5s
silent
link down
ends quiet "the port is down"
ip link set rd0 up; anew

start busy payload 1ms
ip link set rd0 down
ends busy "(IBV_WC_|the port is down)"
ip link set rd0 up; anew

start removed none 5s
silent
check "removed: the device can go" timeout 400 rdma link delete rxe0
ends removed "(the device was removed|IBV_EVENT_DEVICE_FATAL)"
exits 1 "a run without a device fails" timeout 400 "$NBOX" run --nodes 2 --gpus-per-node 1 --link rdma --out none -- "$PERF" --op allreduce -b 1K -e 1K -n 2 --no-check
says "no RDMA device was found" "nbox says that there is no device"
check "the device is back" rdma link add rxe0 type rxe netdev rd0
exits 0 "the device works again" timeout 400 "$NBOX" run --quiet --nodes 2 --gpus-per-node 1 --link rdma --out back -- "$PERF" --op allreduce -b 1K -e 1K -n 2 --no-check

# libibverbs finds its providers by the files of this folder
exits 1 "a run without a provider fails" unshare -m sh -c "mount -t tmpfs none /etc/libibverbs.d && timeout 400 '$NBOX' run --nodes 2 --gpus-per-node 1 --link rdma --out prov -- '$PERF' --op allreduce -b 1K -e 1K -n 2"
says "its provider is missing" "nbox says that the provider is missing"
provider() { unshare -m sh -c "mount -t tmpfs none /etc/libibverbs.d && '$NBOX' doctor --no-self-test --device host $*"; }
exits 1 "nbox doctor fails without a provider" provider --link rdma
says "its provider is missing (package ibverbs-providers)" "nbox doctor names the package"
exits 0 "a missing provider is no error where rdma is not asked for" provider
chmod 777 .
exits 1 "a run that may lock too little memory fails" setpriv --reuid 65534 --clear-groups --bounding-set -all sh -c "ulimit -l 64; timeout 400 '$NBOX' run --nodes 2 --gpus-per-node 1 --link rdma --out lock -- '$PERF' --op allreduce -b 1K -e 1K -n 2"
says "this process may lock 64 KiB (ulimit -l); raise it" "nbox says how much it may lock, and what to do"
# nothing has been sent for a while, nor is while it is down
ip link set rd0 down
exits 1 "nbox doctor fails while the port is down" "$NBOX" doctor --no-self-test --device host --link rdma
says "WRONG  address            no IPv4 address on device (any)" "nbox doctor finds no address"
says "the port is down" "nbox doctor says why"
says "rxe0 port 1        down, RoCE (Ethernet)" "nbox doctor names the port"
exits 0 "a port that is down is no error where rdma is not asked for" "$NBOX" doctor --no-self-test --device host
ip link set rd0 up
nothing_left
finish
