"""A small GPT on synthetic text: DDP or FSDP, AdamW with warm-up and cosine decay, clipped gradients, an averaged evaluation loss."""
import math

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

import job as jobs


class Text(Dataset):
    """Sequences that count upwards modulo the vocabulary, each from its own start with its own stride: can be learnt, needs no file."""

    def __init__(self, n, length, vocabulary):
        self.n, self.length, self.vocabulary = n, length, vocabulary

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        s = (i + torch.arange(self.length + 1) * (1 + i % 3)) % self.vocabulary
        return s[:-1], s[1:]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary, length, width, heads, layers, block=Block):
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens):
        x = self.token(tokens) + self.place(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def main():
    p = jobs.add_model_options(jobs.parser(__doc__, batch=8))
    for name, value in (("layers", 6), ("width", 384), ("heads", 6), ("length", 128), ("vocabulary", 256)):
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--lr", type=float, default=3e-4)
    args = p.parse_args()
    job = jobs.Job(args)
    model = jobs.wrap(GPT(args.vocabulary, args.length, args.width, args.heads, args.layers), args, job, blocks=(Block,))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.1, capturable=args.graph)
    total = args.steps + args.warmup
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda i: min(1, (i + 1) / 10) * 0.5 * (1 + math.cos(math.pi * min(1, i / max(1, total)))))
    data = Text(args.batch * job.world * 4, args.length, args.vocabulary)
    sampler = DistributedSampler(data, num_replicas=job.world, rank=job.rank, shuffle=True)
    loader = DataLoader(data, batch_size=args.batch, sampler=sampler, pin_memory=job.cuda, drop_last=True)

    def batches():
        epoch = 0
        while True:
            sampler.set_epoch(epoch)
            yield from loader
            epoch += 1
    batch = batches()
    tokens = torch.zeros(args.batch, args.length, dtype=torch.long, device=job.device)
    targets = torch.zeros_like(tokens)

    def loss_of():
        with torch.autocast(job.device.type, torch.bfloat16, enabled=args.bf16):
            logits = model(tokens)
        return F.cross_entropy(logits.float().view(-1, args.vocabulary), targets.view(-1))

    def step():
        if not args.graph:
            x, y = next(batch)
            tokens.copy_(x, non_blocking=True)
            targets.copy_(y, non_blocking=True)
        optimizer.zero_grad(set_to_none=not args.graph)
        loss = loss_of()
        loss.backward()
        if args.parallel == "fsdp1":
            model.clip_grad_norm_(1.0)
        else:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if not args.graph:
            schedule.step()
        return loss.detach()

    jobs.train(step, args, job)
    model.eval()
    with torch.no_grad():
        mean = loss_of().detach().clone()
    dist.all_reduce(mean)
    job.say(f"evaluation: loss {float(mean) / job.world:.6g} over all ranks")
    job.leave()


if __name__ == "__main__":
    main()
