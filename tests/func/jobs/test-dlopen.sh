#!/usr/bin/env bash
# Programs that open NCCL by name and look its functions up in that handle: ctypes, as vLLM does.
. "$(dirname "$0")/../nbox/lib.sh"
if is_sanitized || ! command -v python3 >/dev/null; then
	echo "1..0 # SKIP a sanitized libnbox.so cannot be preloaded into python"
	exit 0
fi
cat >user.py <<'EOP'
import ctypes, os, sys
for path in sys.argv[4:]:
    ctypes.CDLL(path)
nccl = ctypes.CDLL(sys.argv[1])
class Id(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]
def check(rc):
    if rc:
        nccl.ncclGetLastError.restype = ctypes.c_char_p
        sys.exit(f"{rc}: {nccl.ncclGetLastError(None).decode()}")
uid, comm, n, version = Id(), ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
check(nccl.ncclGetVersion(ctypes.byref(version)))
check(nccl.ncclGetUniqueId(ctypes.byref(uid)))
world, rank = (int(sys.argv[i]) for i in (2, 3))
check(nccl.ncclCommInitRank(ctypes.byref(comm), world, uid, rank))
check(nccl.ncclCommCount(comm, ctypes.byref(n)))
check(nccl.ncclAllReduce(None, None, ctypes.c_size_t(0), 7, 0, comm, None))
check(nccl.ncclCommDestroy(comm))
print("size", n.value, "version", version.value)
EOP
run=("$NBOX" run --nodes 4 --gpus-per-node 1 --device host)
exits 0 "dlopen(\"libnccl.so.2\") under nbox run" "${run[@]}" --out a -- python3 user.py libnccl.so.2 4 0
says "size 4" "is the virtual world's NCCL"
says "version 2" "over the real one"
exits 0 "the real one by its path" "${run[@]}" --out b -- python3 user.py "$BUILD/emulator/standins/libnccl.so.2" 1 0
says "size 1" "is the real one"
says "not through libnbox.so" "and the summary says so"
exits 1 "without any NCCL" env NBOX_NCCL=/nowhere/libnccl.so.2 "${run[@]}" --out c -- python3 user.py libnccl.so.2 4 0
says "NBOX_NCCL" "the sentence names the variable"

# where the real one is found: as PyTorch's wheels have it, beside something that is loaded
site=$tmp/env/lib/python3/site-packages
mkdir -p "$site/nvidia/nccl/lib" "$site/pkg"
cp -L "$BUILD/emulator/standins/libnccl.so.2" "$BUILD/emulator/standins/libcudart.so.13" "$site/nvidia/nccl/lib"
cp "$BUILD/delaymodels/none.so" "$site/pkg/ext.so"
exits 0 "a wheel's NCCL" env NBOX_DEBUG=DEBUG "${run[@]}" --out d -- python3 user.py libnccl.so.2 4 0 "$site/pkg/ext.so"
says "real NCCL: $site/nvidia/nccl/lib/libnccl.so.2" "goes before the search path"
exits 0 "one that is loaded already" env NBOX_DEBUG=DEBUG "${run[@]}" --out e -- python3 user.py libnccl.so.2 4 0 "$site/nvidia/nccl/lib/libnccl.so.2"
says "real NCCL: $site/nvidia/nccl/lib/libnccl.so.2" "is taken"
exits 0 "two of them" env NBOX_DEBUG=WARN NBOX_NCCL="$BUILD/emulator/standins/libnccl.so.2" "${run[@]}" --out f -- \
	python3 user.py libnccl.so.2 4 0 "$site/nvidia/nccl/lib/libnccl.so.2"
says "two NCCLs are in this process" "are warned of"
finish
