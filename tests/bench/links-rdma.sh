#!/usr/bin/env bash
# The rdma link and perftest one after the other on the same device, in the same boot: usage: links-rdma.sh BUILD JSON PERFTEST
# Writes bench-links' JSON to JSON and lines "bytes latency_us gbytes_per_s" of perftest to PERFTEST. All sleep on completion channels.
# perftest has events for SEND only: ib_send_lat (over UC: over RC its event mode ends with an error on soft-RoCE) and ib_send_bw (RC).
set -uo pipefail
build=$1 json=$2 perftest=$3
address=$("$build/nbox" doctor --no-self-test --link rdma | sed -n 's/^ *ok *address *rdma://p')
device=${NBOX_IB_HCA:-$(ls /sys/class/infiniband | head -n 1)}
[ -n "$address" ] || { "$build/nbox" doctor --no-self-test --link rdma >&2; exit 1; }
gid=$(for f in "/sys/class/infiniband/$device/ports/1/gids/"*; do
	[ "$("$build/nbox" doctor --no-self-test --link rdma | grep -c "[ :]${f##*/} $address ")" = 1 ] && echo "${f##*/}" && break; done)

pair() { # pair PROGRAM ARGUMENT...: server and client; the client's last line of numbers
	local program=$1 port=$((20000 + RANDOM % 10000)) server i out; shift
	timeout 60 "$program" -d "$device" -x "${gid:-0}" -F -p $port "$@" >/dev/null 2>&1 & server=$!
	for i in $(seq 1 100); do grep -q ":$(printf %04X $port) .* 0A " /proc/net/tcp /proc/net/tcp6 && break; sleep 0.1; done
	out=$(timeout 60 "$program" -d "$device" -x "${gid:-0}" -F -p $port "$@" "$address" 2>/dev/null | grep -E '^ *[0-9]+ +[0-9]+ ' | tail -n 1)
	kill "$server" 2>/dev/null; wait "$server" 2>/dev/null
	echo "$out"
}
: >"$perftest"
for bytes in 8 64 1024 4096 16384 65536 262144 1048576 4194304 16777216; do
	n=1000; [ $bytes -gt 16384 ] && n=200; [ $bytes -gt 262144 ] && n=20; [ $bytes -gt 4194304 ] && n=10
	lat=$(pair ib_send_lat -e -c UC -s $bytes -n $n | awk '{ print $5 }')
	bw=$(pair ib_send_bw -e -s $bytes -n $((n > 100 ? n : 50)) -t 16 | awk '{ print $4 * 1048576 / 1e9 }')
	echo "$bytes ${lat:-none} ${bw:-none}" | tee -a "$perftest" | sed 's/^/perftest /'
done
exec "$build/tests/bench/bench-links" --quick --events --json "$json" "rdma:$address:0"
