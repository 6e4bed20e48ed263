"""Times one collective over a range of sizes, as every benchmark of them does: device to device, median of many calls."""
import json
import statistics
import time

import torch
import torch.distributed as dist

import job as jobs


def main():
    p = jobs.parser(__doc__, batch=0, steps=50)
    p.add_argument("--op", choices=["allreduce", "allgather"], default="allreduce")
    p.add_argument("--sizes", type=int, nargs="+", default=[1 << n for n in range(10, 29, 3)], help="bytes")
    args = p.parse_args()
    job = jobs.Job(args)
    rows = []
    for size in args.sizes:
        n = max(1, size // 4)
        data = torch.zeros(n).to(job.device)
        part = torch.zeros(max(1, n // job.world)).to(job.device)
        out = torch.zeros(len(part) * job.world).to(job.device)

        def call():
            if args.op == "allreduce":
                dist.all_reduce(data)
            else:
                dist.all_gather_into_tensor(out, part)
        times = []
        for i in range(args.warmup + args.steps):
            job.synchronize()
            started = time.perf_counter()
            call()
            job.synchronize()
            if i >= args.warmup:
                times.append((time.perf_counter() - started) * 1e6)
        q = statistics.quantiles(times, n=4)
        rows.append({"op": args.op, "bytes": size, "us": q[1], "us_p25": q[0], "us_p75": q[2]})
        job.say(f"{args.op} {size} bytes: {q[1]:.1f} us")
    if args.json and job.local_rank == 0:
        with open(args.json, "w") as f:
            json.dump({"ranks": job.world, "init_s": job.init_s, "rows": rows}, f)
    job.leave()


if __name__ == "__main__":
    main()
