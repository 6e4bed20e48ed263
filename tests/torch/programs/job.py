"""What the training programs of this folder share: joining the job, wrapping a model, timing iterations, a profile, a results file.

Written as one writes it for any cluster: torchrun's variables, the NCCL backend on GPUs (gloo where there are none)."""
import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist


def parser(text, batch, steps=20):
    p = argparse.ArgumentParser(description=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--steps", type=int, default=steps, help="measured iterations")
    p.add_argument("--warmup", type=int, default=3, help="iterations before the measured ones")
    p.add_argument("--batch", type=int, default=batch, help="samples a rank and iteration")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--json", metavar="FILE", help="local rank 0 writes its times here")
    p.add_argument("--quiet", action="store_true", help="no line for each iteration")
    return p


def add_model_options(p):
    p.add_argument("--parallel", choices=["ddp", "fsdp1", "fsdp2"], default="ddp")
    p.add_argument("--buckets", metavar="MIB,...", help="ddp: bucket_cap_mb, or bucket_cap_mb_list (PyTorch 2.11), in place of its default")
    p.add_argument("--bf16", action="store_true", help="autocast to bfloat16")
    p.add_argument("--graph", action="store_true", help="the iteration is captured in a CUDA graph and replayed (ddp only)")
    p.add_argument("--trace", metavar="FILE", help="profile three iterations; Chrome trace of local rank 0")
    return p


class Job:
    """This process's place in the job."""

    def __init__(self, args):
        self.rank = int(os.environ["RANK"])
        self.world = int(os.environ["WORLD_SIZE"])
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.cuda = torch.cuda.is_available()
        if self.cuda:
            # several processes may share a device
            self.device = torch.device("cuda", self.local_rank % torch.cuda.device_count())
            torch.cuda.set_device(self.device)
            if getattr(args, "graph", False):
                os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")  # as PyTorch's notes on graphs ask for
        else:
            self.device = torch.device("cpu")
        started = time.perf_counter()
        dist.init_process_group("nccl" if self.cuda else "gloo")
        dist.barrier()
        self.init_s = time.perf_counter() - started
        torch.manual_seed(args.seed)

    def synchronize(self):
        if self.cuda:
            torch.cuda.synchronize(self.device)

    def say(self, *words):
        """One voice a node, so that something is seen whichever node this is."""
        if self.local_rank == 0:
            print(f"[rank {self.rank}/{self.world}]", *words, flush=True)

    def leave(self):
        self.synchronize()
        dist.barrier()
        dist.destroy_process_group()


def wrap(model, args, job, blocks=(), fsdp2_options={}, **ddp_options):
    """The model on this rank's device, in the wrapper that --parallel names; blocks: classes of modules that FSDP shards one by one."""
    model = model.to(job.device)
    if args.parallel == "ddp":
        ids = [job.device.index] if job.cuda else None
        if args.buckets:
            limits = [float(x) for x in args.buckets.split(",")]
            ddp_options |= {"bucket_cap_mb_list": limits} if len(limits) > 1 else {"bucket_cap_mb": limits[0]}
        # its gradients must not belong to the default stream if they are to be captured
        side = torch.cuda.Stream() if args.graph else None
        with torch.cuda.stream(side):
            model = torch.nn.parallel.DistributedDataParallel(model, device_ids=ids, **ddp_options)
        job.synchronize()
        return model
    if args.parallel == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy
        return FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy(set(blocks)), use_orig_params=True,
                                        device_id=job.device if job.cuda else None)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh(job.device.type, (job.world,))
    for m in model.modules():
        if isinstance(m, tuple(blocks)):
            fully_shard(m, mesh=mesh, **fsdp2_options)
    return fully_shard(model, mesh=mesh, **fsdp2_options)


def graphed(step, job):
    """The step, captured: warm-up on a side stream (DDP wants 11 iterations before a capture), then replays."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(11):
            step()
    torch.cuda.current_stream().wait_stream(side)
    job.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay():
        graph.replay()
        return loss
    return replay


def train(step, args, job):
    """Runs step() and times it, the device idle before and after each iteration. step returns the loss (a tensor). Returns the times in ms."""
    if getattr(args, "graph", False):
        if not job.cuda or args.parallel != "ddp":
            raise SystemExit("--graph needs a GPU and --parallel ddp")
        step = graphed(step, job)
    for _ in range(args.warmup):
        step()
    times, losses = [], []
    for i in range(args.steps):
        job.synchronize()
        started = time.perf_counter()
        loss = step()
        job.synchronize()
        times.append((time.perf_counter() - started) * 1e3)
        losses.append(float(loss))
        if not args.quiet:
            job.say(f"iteration {i}: {times[-1]:.2f} ms, loss {losses[-1]:.6g}")
    if getattr(args, "trace", None):
        trace(step, args.trace, job)
    q = statistics.quantiles(times, n=4) if len(times) > 1 else [times[0]] * 3
    result = {"ranks": job.world, "rank": job.rank, "device": torch.cuda.get_device_name(job.device) if job.cuda else "cpu", "torch": torch.__version__,
              "init_s": job.init_s, "iteration_ms": {"p25": q[0], "p50": q[1], "p75": q[2], "mean": statistics.fmean(times)}, "times_ms": times, "losses": losses}
    job.say(f"{args.steps} iterations, median {q[1]:.2f} ms (quartiles {q[0]:.2f} and {q[2]:.2f}), {args.batch * job.world / q[1] * 1e3:.0f} samples/s in all")
    if args.json and job.local_rank == 0:
        with open(args.json, "w") as f:
            json.dump(result, f)
    return times


def trace(step, path, job):
    from torch.profiler import ProfilerActivity, profile
    kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if job.cuda else [])
    with profile(activities=kinds) as prof:
        for _ in range(3):
            step()
        job.synchronize()
    if job.local_rank == 0:
        prof.export_chrome_trace(path)
