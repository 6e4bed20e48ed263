#!/usr/bin/env bash
# nbox doctor: what it says of this machine, and that what is asked for decides the exit code. Where there is an RDMA device
# (./scripts/vm, a NIC) also that.
. "$(dirname "$0")/lib.sh"
unset NBOX_LINK NBOX_DEVICE NBOX_IB_HCA LD_LIBRARY_PATH
export NBOX_NCCL=$BUILD/emulator/standins/libnccl.so.2 # the real one is large, and perhaps not there
# one "name.key value" a line; one start of Python, which is slow in an emulated machine
flat() {
	python3 - "$1" >facts <<-'PY'
	import json, sys
	d = json.load(open(sys.argv[1]))
	print("wrong", d["wrong"]); print("use", d["would_use"]["link"], d["would_use"]["device"])
	for f in d["findings"]:
	    for k, v in f.items():
	        print(f["name"].replace(" ", "-") + "." + k, v)
	    if "latency_us_p50" in f:
	        print(f["name"] + ".measured", 0 < f["latency_us_p50"] <= f["latency_us_p99"] and f["gbytes_per_s"] > 0 and f["messages_per_s"] > 0)
	PY
}
fact() { sed -n "s/^$1 //p" facts; }

devices=$(ls /sys/class/infiniband 2>/dev/null)
if [ -z "$devices" ]; then
	exits 1 "rdma where there is none" "$NBOX" doctor --link rdma
	says "WRONG" "... is wrong"
else
	device=$(echo "$devices" | head -n 1)
	check "rdma over $device" sh -c "'$NBOX' doctor --device host --link rdma --hca $device --json >d.json"
	flat d.json
	is "$(fact rdma.level)" ok "rdma was tried"
	is "$(fact rdma.measured)" True "... and measured"
	is "$(fact "$device-port-1.is_active")" True "its port is active"
	is "$(fact "$device.provider" | grep -c '^lib.*-rdmav[0-9]*\.so$')" 1 "its provider is named"
	is "$(fact used.used_device)" "$device" "it is what would be used"
	is "$(fact "$device-port-1.active_mtu_bytes")" "$(ibv_devinfo -d "$device" | sed -n 's/.*active_mtu:[[:space:]]*\([0-9]*\).*/\1/p')" "its MTU is ibv_devinfo's"
	exits 1 "a port that it has not" env NBOX_IB_PORT=9 "$NBOX" doctor --no-self-test --link rdma --hca "$device"
	says "WRONG  address" "... has no address"
	exits 1 "a variable that is wrong" env NBOX_IB_PORT=many "$NBOX" doctor --no-self-test --device host
	says "NBOX_IB_PORT" "... is named"
	exits 1 "one letter is wrong" "$NBOX" doctor --no-self-test --hca "${device}x"
	says "did you mean $device?" "... with a suggestion"
	exits 1 "no locked memory for a user" setpriv --reuid 65534 --clear-groups --bounding-set -all sh -c "ulimit -l 64; '$NBOX' doctor --no-self-test --link rdma"
	says "ulimit -l unlimited" "... says what to do"
fi
if [ -n "${NBOX_TEST_RDMA:-}" ]; then # the rest is of no device, and suite func has it
	nothing_left
	finish
fi

check "nothing asked for, nothing wrong" sh -c "'$NBOX' doctor --device host --json >d.json"
flat d.json
is "$(fact wrong)" 0 "it says so"
is "$(fact use)" "shm host" "what would be used"
is "$(fact nboxd.text)" "$BUILD/nboxd" "nboxd is found"
is "$(fact libnbox.so.text)" "$BUILD/libnbox.so" "libnbox.so is found"
for link in shm tcp; do
	is "$(fact $link.level)" ok "$link was tried"
	is "$(fact $link.measured)" True "$link was measured"
done
exits 0 "nbox run takes the reductions' rate as it is printed" "$NBOX" run --dry-run --nodes 2 \
	--reduce-bandwidth "$(fact float-sum.text | sed 's/.*--reduce-bandwidth //; s/,.*//')" -- true
exits 2 "an unknown link" "$NBOX" doctor --link rmda
says "did you mean 'rdma'" "... with a suggestion"
exits 0 "help behind another option" "$NBOX" doctor --json --help
exits 2 "a value is missing" "$NBOX" doctor --hca
exits 1 "a device that is not there" "$NBOX" doctor --no-self-test --hca no_such_device
says "WRONG" "... is wrong"
mkdir -p $'odd\xff' && cp "$NBOX" $'odd\xff/nbox'
exits 1 "a folder whose name is no UTF-8, without nboxd" $'odd\xff/nbox' doctor --no-self-test --device host
says "WRONG  parts" "... is told of"
exits 1 "the same by its variable" env NBOX_IB_HCA=no_such_device "$NBOX" doctor --no-self-test
exits 1 "an NCCL that is not there" env NBOX_NCCL=/nonexistent/libnccl.so.2 "$NBOX" doctor --no-self-test
says "NBOX_NCCL names no NCCL" "... with the reason"
if [ ! -e /dev/nvidiactl ] && [ -z "$(ldconfig -p 2>/dev/null | grep libcuda.so.1)" ]; then
	exits 1 "CUDA where there is none" "$NBOX" doctor --no-self-test --device cuda
	says "WRONG  CUDA driver" "... is wrong"
fi
# a driver that is none of NVIDIA's, over the host CUDA runtime
export LD_LIBRARY_PATH=$BUILD/tests/driver
exits 0 "CUDA where there is one" "$NBOX" doctor --no-self-test --device cuda
says "version 13.0, 8 devices" "its version and devices"
says "device cuda" "... would be used"
exits 0 "nbox run --device cuda" "$NBOX" run --dry-run --nodes 4 --device cuda --out dry -- true
for what in "no-device=the NVIDIA driver shows no device" "crash=the NVIDIA driver crashes" \
	"old=the NVIDIA driver is of CUDA 11.4, and the gate needs one of 12.0 at least"; do
	exits 1 "a driver with ${what%%=*}" env NBOX_TEST_DRIVER="${what%%=*}" "$NBOX" doctor --no-self-test --device cuda
	says "${what#*=}" "is told"
	exits 2 "... by nbox run, too" env NBOX_TEST_DRIVER="${what%%=*}" "$NBOX" run --dry-run --nodes 4 --device cuda --out dry -- true
	says "--device cuda: ${what#*=}; without a GPU: --device host" "... with what else there is"
done
unset LD_LIBRARY_PATH
nothing_left
finish
