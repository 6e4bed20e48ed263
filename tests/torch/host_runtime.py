"""PyTorch in one process on the host CUDA runtime: what is real (copies, fills, order, time, graphs, memory) and what is not (kernels)."""
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings

from cases import expect, main

os.environ.setdefault("NBOX_HOST_DEVICES", "4")
import torch  # noqa: E402  after the number of devices is said

GPU = torch.device("cuda", 0)


def devices_say_what_they_are():
    """They are there, and say what they are."""
    expect(torch.cuda.is_available() and torch.cuda.device_count() == 4, "4 devices")
    for i in range(4):
        p = torch.cuda.get_device_properties(i)
        expect(p.name == "nbox host device (stand-in, no GPU)" and p.major >= 8 and p.total_memory > 0, str(p))
    expect(torch.cuda.get_device_capability() >= (8, 0), "bfloat16's capability")
    expect(torch.cuda.is_bf16_supported(), "bfloat16")
    torch.cuda.set_device(2)
    expect(torch.cuda.current_device() == 2 and torch.empty(1, device="cuda").device.index == 2, "set_device")
    torch.cuda.set_device(0)
    expect(torch.backends.cudnn.version() > 90000, "cuDNN's version")
    expect(torch.cuda.can_device_access_peer(0, 1), "peers")


def copies_and_fills_are_done():
    """Host to device, device to device, between devices, pinned, back; and fills by memset."""
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64):
        x = torch.arange(1000).to(dtype)
        y = x.to(GPU)
        expect(y.is_cuda and torch.equal(y.cpu(), x), f"{dtype} there and back")
        expect(torch.equal(y.clone().cpu(), x) and torch.equal(y.to("cuda:1").cpu(), x), f"{dtype} on and between devices")
    pinned = torch.arange(1 << 20).pin_memory()
    expect(pinned.is_pinned() and not x.is_pinned(), "pinned")
    y = pinned.to(GPU, non_blocking=True)
    back = torch.empty(1 << 20, dtype=torch.int64, pin_memory=True)
    back.copy_(y, non_blocking=True)
    torch.cuda.synchronize()
    expect(torch.equal(back, pinned), "asynchronous copies")
    y[100:200].copy_(torch.zeros(100, dtype=torch.int64))
    expect(y[99].item() == 99 and y[100].item() == 0 and y[200].item() == 200, "a part, and item()")
    a, b = y.view(-1)[:10], torch.empty(10, dtype=torch.int64, device=GPU)
    b.copy_(a)
    expect(b.tolist() == list(range(10)), "tolist()")


def kernels_do_nothing():
    """Shapes and types are right, values are not computed, wrong calls are still errors."""
    x = torch.ones(8, 4, device=GPU)
    y = torch.nn.functional.relu(x @ x.t()).sum(dim=0, keepdim=True).to(torch.float16)
    expect(y.shape == (1, 8) and y.dtype == torch.float16 and y.is_cuda, str(y.shape))
    try:
        x @ x
    except RuntimeError as e:
        expect("shapes" in str(e), str(e))
    else:
        expect(False, "a product of shapes that do not fit")


def gradients_flow_and_optimizers_step():
    """Gradients flow backwards on the device's thread; optimizers step."""
    layers = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.LayerNorm(32), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 4)).to(GPU)
    threads = set()
    for p in layers.parameters():
        p.register_hook(lambda g: threads.add(threading.get_ident()))
    for optimizer in (torch.optim.SGD(layers.parameters(), 0.1, momentum=0.9), torch.optim.AdamW(layers.parameters())):
        loss = torch.nn.functional.cross_entropy(layers(torch.randn(8, 16, device=GPU)), torch.zeros(8, dtype=torch.int64).to(GPU))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    expect(threads and threading.get_ident() not in threads, "gradients come on another thread")


def convolutions_run_through_the_stub():
    """Through cuDNN's stub, which does nothing, and without cuDNN, as products."""
    for on, benchmark in ((True, False), (True, True), (False, False)):
        with torch.backends.cudnn.flags(enabled=on, benchmark=benchmark):
            net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2)).to(GPU)
            y = net(torch.randn(2, 3, 16, 16).to(GPU))
            y.sum().backward()
            expect(y.shape == (2, 8, 7, 7) and net[0].weight.grad.shape == (8, 3, 3, 3), str(y.shape))
            net.eval()(y.new_zeros(1, 3, 8, 8))


def streams_are_ordered_by_events_alone():
    """Order between streams is what events say, and nothing else."""
    s1, s2 = torch.cuda.Stream(), torch.cuda.Stream()
    a, b = torch.zeros(4 << 20, dtype=torch.uint8).to(GPU), torch.zeros(4 << 20, dtype=torch.uint8).to(GPU)
    src = torch.full((4 << 20,), 7, dtype=torch.uint8, device="cpu").pin_memory()
    for _ in range(20):
        with torch.cuda.stream(s1):
            torch.cuda._sleep(1)
            a.copy_(src, non_blocking=True)
            e = torch.cuda.Event()
            e.record()
        with torch.cuda.stream(s2):
            s2.wait_event(e)
            b.copy_(a, non_blocking=True)
        s2.synchronize()
        expect(e.query() and b[-1].item() == 7, "the second stream's copy comes after the first one's")
        a.zero_(), b.copy_(torch.zeros_like(src), non_blocking=False)
    expect(torch.cuda.current_stream() != s1, "the stream is only for its block")
    external = torch.cuda.ExternalStream(s1.cuda_stream)
    external.synchronize()


def a_launch_takes_its_time_of_its_stream():
    """NBOX_HOST_KERNEL_TIME is what a launch takes of its stream, and of no other."""
    program = """
import torch
x = torch.empty(8, device="cuda")
torch.cuda.synchronize()
e = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
is_waiting = True  # the host, for the kernels that it launches; or it was stopped for as long as they take, but not each time
for _ in range(8):
    e[0].record()
    for _ in range(50):
        x.add_(1)
    e[1].record()
    is_waiting = e[1].query()
    e[1].synchronize()
    ms = e[0].elapsed_time(e[1])
    assert 50 * 60 <= ms < 90000, ms
    if not is_waiting:
        break
assert not is_waiting
print("took its time")
"""
    out = subprocess.run([sys.executable, "-c", program], env=dict(os.environ, NBOX_HOST_KERNEL_TIME="60ms"), stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=100)
    expect("took its time" in out.stdout, out.stdout)
    out = subprocess.run([sys.executable, "-c", program], env=dict(os.environ, NBOX_HOST_KERNEL_TIME="2"), stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=100)
    expect("NBOX_HOST_KERNEL_TIME: '2' has no unit" in out.stdout and out.returncode, out.stdout)


def events_measure_and_refuse():
    """Timing events, blocking ones, and what may not be asked."""
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True, blocking=True)
    a.record()
    a.synchronize()  # the stream stamps it, however late: the sleep begins behind the stamp
    time.sleep(0.02)
    b.record()
    b.synchronize()
    expect(a.elapsed_time(b) >= 20 * 0.99, f"{a.elapsed_time(b)} ms")
    try:
        torch.cuda.Event().elapsed_time(b)
    except (RuntimeError, ValueError):
        pass
    else:
        expect(False, "an event without timing has no time")


def graphs_are_captured_and_replayed():
    """Capture, replay, the private pool; copies in a graph are done at each replay."""
    src, dst = torch.zeros(1000).to(GPU), torch.zeros(1000).to(GPU)
    layer = torch.nn.Linear(1000, 10).to(GPU)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        layer(src)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dst.copy_(src)
        layer(dst)
    for value in (1.0, 2.0, 3.0):
        src.copy_(torch.full((1000,), value))
        graph.replay()
        torch.cuda.synchronize()
        expect(dst.cpu().eq(value).all().item(), f"replay with {value}")
    called = torch.cuda.make_graphed_callables(layer, (torch.zeros(2, 1000, device=GPU, requires_grad=True),))
    called(torch.zeros(2, 1000, device=GPU, requires_grad=True)).sum().backward()
    broken = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(broken):
            torch.cuda.synchronize()
    except Exception as e:  # torch.AcceleratorError, by version
        expect("captur" in str(e), str(e))
    else:
        expect(False, "waiting for the device is no part of a graph")
    torch.cuda.synchronize()


def the_allocator_counts_and_limits():
    """The caching allocator's numbers, its limit, out of memory, and the other allocator."""
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    x = torch.empty(64 << 20, dtype=torch.uint8, device=GPU)
    expect(torch.cuda.memory_allocated() - before == 64 << 20, "allocated")
    free, total = torch.cuda.mem_get_info()
    expect(0 < free < total, "cudaMemGetInfo")
    del x
    expect(torch.cuda.memory_allocated() == before and torch.cuda.memory_reserved() >= 64 << 20, "cached")
    torch.cuda.empty_cache()
    expect(torch.cuda.mem_get_info()[0] >= free + (64 << 20), "given back")
    try:
        torch.empty(2 * total, dtype=torch.uint8, device=GPU)
    except torch.cuda.OutOfMemoryError as e:
        expect("out of memory" in str(e), str(e))
    else:
        expect(False, "more than there is")
    expect(len(torch.cuda.memory_snapshot()) >= 0 and "reserved_bytes.all.peak" in torch.cuda.memory_stats(), "statistics")
    program = """
import torch
x = torch.empty(1 << 20, device="cuda"); y = torch.arange(10).cuda()
assert y.clone().tolist() == list(range(10))
del x; torch.cuda.synchronize(); torch.cuda.empty_cache(); print(torch.cuda.memory_allocated() >= 0, torch.cuda.get_allocator_backend())
"""
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        os.environ[name] = "backend:cudaMallocAsync"
    out = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        del os.environ[name]
    expect("True cudaMallocAsync" in out.stdout, out.stdout)


def the_profiler_goes_on_without_device_data():
    """Kineto without CUPTI's data: the host's side is there, the program goes on."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]) as p:
        torch.ones(4, device=GPU).add(1)
        torch.cuda.synchronize()
    expect(any(e.key == "aten::add" for e in p.key_averages()), "operators in the profile")
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        p.export_chrome_trace(f.name)
        expect(os.path.getsize(f.name) > 1000, "a trace")


def what_is_not_there_is_refused_by_name():
    """What cannot be had is refused by name, and the process goes on."""
    x = torch.ones(2, 3, 8, 8, device=GPU)
    for what, call in (("cuDNN's recurrent networks", lambda: torch.nn.LSTM(8, 8).to(GPU)(x[0])),
                       ("cuFFT", lambda: torch.fft.fft(x)),
                       ("sharing memory between processes", lambda: x.untyped_storage()._share_cuda_())):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call()
        except RuntimeError:
            pass
        else:
            expect(False, what)
    torch.cuda.synchronize()
    expect(torch.arange(4).to(GPU).tolist() == [0, 1, 2, 3], "the process goes on")


# graphs last: PyTorch keeps the memory pool of a capture that failed
main(devices_say_what_they_are, copies_and_fills_are_done, kernels_do_nothing, gradients_flow_and_optimizers_step,
     convolutions_run_through_the_stub, streams_are_ordered_by_events_alone, a_launch_takes_its_time_of_its_stream,
     events_measure_and_refuse, the_allocator_counts_and_limits, the_profiler_goes_on_without_device_data,
     what_is_not_there_is_refused_by_name, graphs_are_captured_and_replayed)
