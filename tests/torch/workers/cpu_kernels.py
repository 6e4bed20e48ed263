"""Right numbers on the host CUDA runtime: what a kernel would compute is computed by PyTorch's CPU kernels, in place.

On that runtime copies, memset and NCCL are real, but kernel launches do nothing. With CpuKernels() as a context each operator on CUDA
tensors waits for the current stream and then runs on CPU tensors that share the CUDA tensors' memory (device memory is host memory
there). Everything above operators is PyTorch's own and unchanged: autograd, DDP's reducer, FSDP, DTensor, ProcessGroupNCCL, streams.

Says nothing about the time that kernels take; not for graph capture (what the CPU does is not captured); SDPA must use its math form.
On a GPU (CPU_KERNELS=0 in the environment) it does nothing: the kernels are the GPU's own."""
import contextlib
import ctypes
import os

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

aten = torch.ops.aten
# communication, and what touches no element
PASS_NAMESPACES = {"c10d", "_c10d_functional", "_c10d_functional_autograd", "profiler", "symm_mem"}
PASS = {"record_stream", "is_pinned", "_pin_memory", "set_", "resize_", "empty", "empty_like", "empty_strided", "new_empty",
        "new_empty_strided", "is_same_size", "sym_size", "sym_stride", "sym_numel", "sym_storage_offset", "stride", "size", "lift_fresh"}


def on_cuda(x):
    return isinstance(x, torch.Tensor) and x.device.type == "cuda"


def alias(t):
    """The same memory as a CPU tensor."""
    storage = t.untyped_storage()
    n = storage.nbytes() // t.element_size()
    if n == 0:
        return torch.empty_strided(t.size(), t.stride(), dtype=t.dtype)
    memory = (ctypes.c_ubyte * storage.nbytes()).from_address(storage.data_ptr())
    return torch.frombuffer(memory, dtype=t.dtype, count=n).as_strided(t.size(), t.stride(), t.storage_offset())


def upload(t, device):
    """A new CUDA tensor with this content."""
    dense = torch.empty_like(t, device="meta")  # t's strides where they are dense
    out = torch.empty_strided(dense.size(), dense.stride(), dtype=t.dtype, device=device)
    alias(out).copy_(t)
    return out


def is_view(func):
    returns = func._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


class CpuKernels(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if any(issubclass(t, FakeTensor) for t in types):
            return func(*args, **kwargs)  # DTensor asks for shapes only
        if any(t not in (torch.Tensor, torch.nn.Parameter) and t.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ for t in types
               if hasattr(t, "__torch_dispatch__")):
            return NotImplemented  # DTensor and its kind first take themselves apart
        name = func._overloadpacket.__name__
        if func.namespace in PASS_NAMESPACES or name in PASS or is_view(func):
            return func(*args, **kwargs)
        cuda = []
        tree_map(lambda x: cuda.append(x) if on_cuda(x) else None, (args, kwargs))
        asked = kwargs.get("device")
        asked = torch.device(asked) if asked is not None else None
        if not cuda and (asked is None or asked.type != "cuda"):
            return func(*args, **kwargs)
        # results live where was asked, else where the arguments live
        home = asked if asked is not None else cuda[0].device
        torch.cuda.current_stream(cuda[0].device if cuda else home).synchronize()
        originals = {}

        def down(x):
            if not on_cuda(x):
                return torch.device("cpu") if isinstance(x, torch.device) and x.type == "cuda" else x
            a = alias(x)
            originals.setdefault(a.untyped_storage().data_ptr(), []).append((a, x))
            return a

        host_args, host_kwargs = tree_map(down, (args, kwargs))
        if name in ("_to_copy", "copy_"):
            host_kwargs.pop("non_blocking", None)
            host_kwargs.pop("pin_memory", None)
        result = func(*host_args, **host_kwargs)

        def up(y):
            if not isinstance(y, torch.Tensor) or y.device.type != "cpu":
                return y
            for a, x in originals.get(y.untyped_storage().data_ptr(), ()) if y.numel() else ():
                if y is a:
                    return x
                if y.dtype == x.dtype:
                    return x.as_strided(y.size(), y.stride(), y.storage_offset())
            for pairs in originals.values():  # an empty one that was written in place
                for a, x in pairs:
                    if y is a:
                        return x
            if name == "copy_":
                return args[0]
            return upload(y, home) if home.type == "cuda" else y

        return tree_map(up, result)


if os.environ.get("CPU_KERNELS") == "0":
    CpuKernels = contextlib.nullcontext
