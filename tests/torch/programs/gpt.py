"""A GPT of 1.3 billion parameters (GPT-3 XL: 24 layers, width 2048, 16 heads of 128, 2048 tokens) on random text, in bfloat16: DDP with
weights, gradients and their sums in float32, or FSDP 2, which gathers weights in bfloat16; fused AdamW, clipped gradients."""
import argparse
import resource
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy
from torch.utils.checkpoint import checkpoint

import job as jobs
import mingpt


class Block(mingpt.Block):
    recompute = False

    def forward(self, x):
        return checkpoint(super().forward, x, use_reentrant=False) if self.recompute else super().forward(x)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--parallel", choices=["ddp", "fsdp2"], default="ddp")
    for name, value in (("layers", 24), ("width", 2048), ("heads", 16), ("length", 2048), ("vocabulary", 50304), ("batch", 8), ("steps", 8), ("warmup", 2), ("seed", 1)):
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--buckets", metavar="MIB,...", help="ddp: bucket_cap_mb, or bucket_cap_mb_list, in place of its default")
    p.add_argument("--recompute", action="store_true", help="blocks compute their activations again in the backward pass")
    args = p.parse_args()
    args.graph, Block.recompute = False, args.recompute
    job = jobs.Job(args)
    with job.device:  # 1.3 billion parameters are made where they stay
        model = mingpt.GPT(args.vocabulary, args.length, args.width, args.heads, args.layers, block=Block)
    model.head.weight = model.token.weight
    n_parameters = sum(w.numel() for w in model.parameters())
    model = jobs.wrap(model, args, job, blocks=(Block,), fsdp2_options={"mp_policy": MixedPrecisionPolicy(torch.bfloat16, torch.float32)},
                      gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    text = torch.randint(args.vocabulary, (args.batch, args.length + 1), device=job.device)

    def step():
        optimizer.zero_grad()
        with torch.autocast(job.device.type, torch.bfloat16):
            logits = model(text[:, :-1])
            loss = F.cross_entropy(logits.view(-1, args.vocabulary), text[:, 1:].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    for _ in range(args.warmup):
        step()
    job.synchronize()
    started = time.perf_counter()
    for _ in range(args.steps):  # the host runs ahead of its GPU
        step()
    job.synchronize()
    seconds = (time.perf_counter() - started) / args.steps
    tokens = args.batch * args.length
    job.say(f"{n_parameters / 1e9:.2f} billion parameters, {args.steps} steps of {seconds * 1e3:.1f} ms, {tokens * job.world / seconds / 1e6:.3f}M tokens/s of {job.world} "
            f"ranks; peak memory: device {torch.cuda.max_memory_allocated() / 1e9:.1f} GB, process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB")
    job.leave()


if __name__ == "__main__":
    main()
