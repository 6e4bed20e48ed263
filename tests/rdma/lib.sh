# Shared by the shell tests of suite rdma, beside tests/func/nbox/lib.sh.
# shellcheck shell=bash
. "$(dirname "$0")/../func/nbox/lib.sh"
if [ -z "${NBOX_TEST_RDMA:-}" ]; then echo "1..0 # SKIP NBOX_TEST_RDMA names no address of an RDMA device"; exit 0; fi
export NBOX_NCCL=$BUILD/emulator/standins/libnccl.so.2
# What the kernel keeps for our processes: queue pairs, memory regions, connections
kernel_keeps() {
	local what
	for what in qp cq mr pd cm_id; do rdma resource show $what 2>/dev/null; done | grep -E 'comm \[?(nboxd|trainer|nbox-perf|full-check)' || true
}
keeps_nothing() { [ -z "$(kernel_keeps)" ]; }
nothing_registered() { # nothing_registered NAME
	within 200 keeps_nothing
	is "$(kernel_keeps)" "" "$1"
}
loss_of() { sed -n 's/.*"loss": *\([-+0-9.e]*\).*/\1/p' "$1"; }
