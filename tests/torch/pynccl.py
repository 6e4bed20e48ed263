"""A caller that opens NCCL itself, as vLLM's pynccl and JAX do: ctypes.CDLL("libnccl.so.2"), functions by dlsym. Needs no torch.

Run as a case it starts itself under `nbox run`, two real ranks of 16; the worker's part is below."""
import ctypes
import os
import sys
import tempfile
import time

WORKER = "NBOX_TEST_PYNCCL_DIR"


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


class Nccl:
    """What pynccl declares of NCCL; each call's result is checked."""

    def __init__(self, name="libnccl.so.2"):
        self.lib = ctypes.CDLL(name)
        comm, stream, buffer = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
        size, integer = ctypes.c_size_t, ctypes.c_int
        self.declare("ncclGetVersion", ctypes.POINTER(integer))
        self.declare("ncclGetUniqueId", ctypes.POINTER(UniqueId))
        self.declare("ncclCommInitRank", ctypes.POINTER(comm), integer, UniqueId, integer)
        self.declare("ncclCommCount", comm, ctypes.POINTER(integer))
        self.declare("ncclAllReduce", buffer, buffer, size, integer, integer, comm, stream)
        self.declare("ncclAllGather", buffer, buffer, size, integer, comm, stream)
        self.declare("ncclBroadcast", buffer, buffer, size, integer, integer, comm, stream)
        self.declare("ncclCommDestroy", comm)

    def declare(self, name, *types):
        f = getattr(self.lib, name)
        f.restype, f.argtypes = ctypes.c_int, types

        def call(*args):
            result = f(*args)
            if result != 0:
                raise SystemExit(f"{name}: result {result}")
        setattr(self, name, call)


def worker(folder):
    rank, world, local = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])
    cuda = ctypes.CDLL("libcudart.so.13")
    cuda.cudaMalloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]
    cuda.cudaMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    nccl = Nccl()
    version = ctypes.c_int()
    nccl.ncclGetVersion(ctypes.byref(version))
    assert version.value >= 22000, version.value
    # the id goes to the other process in a file
    path, uid = os.path.join(folder, "id"), UniqueId()
    if local == 0:
        nccl.ncclGetUniqueId(ctypes.byref(uid))
        with open(path + ".new", "wb") as f:
            f.write(bytes(uid.internal))
        os.rename(path + ".new", path)
    else:
        deadline = time.monotonic() + 120
        while not os.path.exists(path):
            assert time.monotonic() < deadline, "no id"
            time.sleep(0.02)
        with open(path, "rb") as f:
            ctypes.memmove(uid.internal, f.read(), 128)
    assert cuda.cudaSetDevice(local) == 0
    comm = ctypes.c_void_p()
    nccl.ncclCommInitRank(ctypes.byref(comm), world, uid, rank)
    n = ctypes.c_int()
    nccl.ncclCommCount(comm, ctypes.byref(n))
    assert n.value == world, n.value
    floats = (ctypes.c_float * world)(*[rank + 1.0] * world)
    device, wide = ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cudaMalloc(ctypes.byref(device), ctypes.sizeof(floats)) == 0
    assert cuda.cudaMalloc(ctypes.byref(wide), ctypes.sizeof(floats)) == 0

    def put():
        assert cuda.cudaMemcpy(device, floats, ctypes.sizeof(floats), 1) == 0

    def get(pointer):
        out = (ctypes.c_float * world)()
        assert cuda.cudaDeviceSynchronize() == 0
        assert cuda.cudaMemcpy(out, pointer, ctypes.sizeof(out), 2) == 0
        return list(out)

    put()
    nccl.ncclAllReduce(device, wide, world, 7, 0, comm, None)
    real = int(os.environ["LOCAL_WORLD_SIZE"])
    assert get(wide) == [world / real * sum(r + 1.0 for r in range(real))] * world, get(wide)
    nccl.ncclAllGather(device, wide, 1, 7, comm, None)
    assert get(wide) == [r % real + 1.0 for r in range(world)], get(wide)
    nccl.ncclBroadcast(device, device, world, 7, 0, comm, None)
    assert get(device) == [1.0] * world, get(device)
    nccl.ncclCommDestroy(comm)
    print(f"ok {rank} pynccl (0.0 s)", flush=True)


def a_handle_from_dlopen_works():
    """All-reduce, all-gather and broadcast in a world of 16 through a handle from dlopen"""
    from harness import NBOX, all_said, environment, execute, expect
    with tempfile.TemporaryDirectory() as d:
        r = execute([NBOX, "run", "--nodes", "8", "--gpus-per-node", "2", "--device", "host", "--out", os.path.join(d, "out"), "--",
                     sys.executable, os.path.abspath(__file__)], 240, environment({WORKER: d}))
    all_said(r, ["pynccl"], range(2))
    expect("AllGather" in r.text, f"the ops did not reach nboxd:\n{r.text}")


if __name__ == "__main__":
    if WORKER in os.environ:
        worker(os.environ[WORKER])
    else:
        from harness import main
        main(a_handle_from_dlopen_works)
