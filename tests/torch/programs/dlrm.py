"""A recommendation model: embedding tables divided among the ranks, an all-to-all brings each rank the vectors of its own samples,
dense layers under DDP."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import job as jobs


class Exchange(torch.autograd.Function):
    """[samples of all ranks, my tables, width] -> [my samples, tables of all ranks, width]; backward the other way."""

    @staticmethod
    def forward(ctx, mine, world):
        ctx.world = world
        n, tables, width = mine.shape
        got = torch.empty(world, n // world, tables, width, dtype=mine.dtype, device=mine.device)
        dist.all_to_all_single(got.view(-1), mine.contiguous().view(-1))
        return got.transpose(0, 1).reshape(n // world, world * tables, width)

    @staticmethod
    def backward(ctx, grad):
        n, all_tables, width = grad.shape
        tables = all_tables // ctx.world
        send = grad.view(n, ctx.world, tables, width).transpose(0, 1).contiguous()
        back = torch.empty_like(send)
        dist.all_to_all_single(back.view(-1), send.view(-1))
        return back.reshape(ctx.world * n, tables, width), None


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers)


class Dense(nn.Module):
    """Bottom layers, pairwise dot products, top layers; their gradients are all-reduced."""

    def __init__(self, features, tables, width, hidden):
        super().__init__()
        self.bottom = mlp(features, hidden, width)
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(mlp(width + pairs, hidden, hidden), nn.Linear(hidden, 1))
        rows, columns = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("columns", columns, persistent=False)

    def forward(self, x, vectors):
        x = self.bottom(x)
        all_ = torch.cat([x.unsqueeze(1), vectors], 1)
        products = torch.bmm(all_, all_.transpose(1, 2))
        return self.top(torch.cat([x, products[:, self.rows, self.columns]], 1)).squeeze(1)


def main():
    p = jobs.add_model_options(jobs.parser(__doc__, batch=32))
    p.add_argument("--tables", type=int, default=1, help="embedding tables on each rank")
    p.add_argument("--rows", type=int, default=10000, help="rows of a table")
    p.add_argument("--width", type=int, default=32, help="of an embedding vector")
    p.add_argument("--hidden", type=int, default=256)
    p.add_argument("--features", type=int, default=13, help="dense features of a sample")
    p.add_argument("--lookups", type=int, default=4, help="rows that are summed for a vector")
    p.add_argument("--interact", type=int, default=26, help="at most so many vectors meet in dot products; the others are averaged")
    args = p.parse_args()
    if args.parallel != "ddp":
        raise SystemExit("dlrm: its tables are divided already; --parallel ddp only")
    job = jobs.Job(args)
    tables = nn.ModuleList(nn.EmbeddingBag(args.rows, args.width, mode="sum") for _ in range(args.tables)).to(job.device)
    all_tables = args.tables * job.world
    n_interact = min(args.interact, all_tables)
    dense = jobs.wrap(Dense(args.features, n_interact, args.width, args.hidden), args, job)
    optimizer = torch.optim.SGD([*dense.parameters(), *tables.parameters()], lr=0.05)
    # each rank looks its tables up for the samples of all ranks
    indices = torch.randint(args.rows, (args.tables, args.batch * job.world, args.lookups)).to(job.device)
    x, y = torch.rand(args.batch, args.features).to(job.device), (torch.rand(args.batch) < 0.3).float().to(job.device)

    def step():
        optimizer.zero_grad(set_to_none=not args.graph)
        with torch.autocast(job.device.type, torch.bfloat16, enabled=args.bf16):
            mine = torch.stack([t(i) for t, i in zip(tables, indices)], 1)
            vectors = Exchange.apply(mine, job.world)
            if all_tables > n_interact:
                last = vectors[:, n_interact - 1:].mean(1, keepdim=True)
                vectors = torch.cat([vectors[:, :n_interact - 1], last], 1)
            out = dense(x, vectors)
        loss = F.binary_cross_entropy_with_logits(out.float(), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    jobs.train(step, args, job)
    job.leave()


if __name__ == "__main__":
    main()
