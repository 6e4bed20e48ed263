"""An encoder of BERT-large's size (24 layers, width 1024, 16 heads) that marks the first and last word of an answer, on random text."""
import torch
import torch.nn.functional as F
from torch import nn

import job as jobs


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, c)
        x = self.norm1(x + self.out(y))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Encoder(nn.Module):
    def __init__(self, vocabulary, length, width, heads, layers):
        super().__init__()
        self.word, self.place, self.part = nn.Embedding(vocabulary, width), nn.Embedding(length, width), nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.span = nn.Linear(width, 2)

    def forward(self, words, parts):
        x = self.norm(self.word(words) + self.place.weight[:words.shape[1]] + self.part(parts))
        for layer in self.layers:
            x = layer(x)
        return self.span(x).unbind(-1)


def main():
    p = jobs.add_model_options(jobs.parser(__doc__, batch=8))
    for name, value in (("layers", 24), ("width", 1024), ("heads", 16), ("length", 384), ("vocabulary", 30522)):
        p.add_argument(f"--{name}", type=int, default=value)
    args = p.parse_args()
    job = jobs.Job(args)
    model = jobs.wrap(Encoder(args.vocabulary, args.length, args.width, args.heads, args.layers), args, job, blocks=(Layer,))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5, capturable=args.graph)
    words = torch.randint(args.vocabulary, (args.batch, args.length)).to(job.device)
    parts = (torch.arange(args.length) > args.length // 4).long().expand(args.batch, -1).contiguous().to(job.device)
    first, last = (torch.randint(args.length, (args.batch,)).to(job.device) for _ in range(2))

    def step():
        optimizer.zero_grad(set_to_none=not args.graph)
        with torch.autocast(job.device.type, torch.bfloat16, enabled=args.bf16):
            starts, ends = model(words, parts)
        loss = (F.cross_entropy(starts.float(), first) + F.cross_entropy(ends.float(), last)) / 2
        loss.backward()
        optimizer.step()
        return loss.detach()

    jobs.train(step, args, job)
    job.leave()


if __name__ == "__main__":
    main()
