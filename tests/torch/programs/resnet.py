"""ResNet-152 on random pictures (He et al., 2016: bottleneck blocks, 3-8-36-3), stochastic gradient descent with momentum."""
import torch
import torch.nn.functional as F
from torch import nn

import job as jobs


class Bottleneck(nn.Module):
    def __init__(self, wide_in, narrow, stride):
        super().__init__()
        wide = 4 * narrow
        self.body = nn.Sequential(
            nn.Conv2d(wide_in, narrow, 1, bias=False), nn.BatchNorm2d(narrow), nn.ReLU(inplace=True),
            nn.Conv2d(narrow, narrow, 3, stride, 1, bias=False), nn.BatchNorm2d(narrow), nn.ReLU(inplace=True),
            nn.Conv2d(narrow, wide, 1, bias=False), nn.BatchNorm2d(wide))
        self.past = nn.Identity()
        if stride != 1 or wide_in != wide:
            self.past = nn.Sequential(nn.Conv2d(wide_in, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))

    def forward(self, x):
        return F.relu(self.body(x) + self.past(x))


class ResNet(nn.Module):
    def __init__(self, layers, base, classes):
        super().__init__()
        parts = [nn.Conv2d(3, base, 7, 2, 3, bias=False), nn.BatchNorm2d(base), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
        wide = base
        for stage, n in enumerate(layers):
            narrow = base << stage
            for i in range(n):
                parts.append(Bottleneck(wide, narrow, 2 if i == 0 and stage > 0 else 1))
                wide = 4 * narrow
        self.body = nn.Sequential(*parts)
        self.head = nn.Linear(wide, classes)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def main():
    p = jobs.add_model_options(jobs.parser(__doc__, batch=64))
    p.add_argument("--layers", type=int, nargs="+", default=[3, 8, 36, 3], help="blocks in each stage")
    p.add_argument("--base", type=int, default=64, help="channels after the first layer")
    p.add_argument("--pixels", type=int, default=224)
    p.add_argument("--classes", type=int, default=1000)
    p.add_argument("--no-cudnn", action="store_true", help="PyTorch's own convolutions")
    args = p.parse_args()
    torch.backends.cudnn.enabled = not args.no_cudnn
    job = jobs.Job(args)
    model = jobs.wrap(ResNet(args.layers, args.base, args.classes), args, job, blocks=(Bottleneck,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    pictures = torch.rand(args.batch, 3, args.pixels, args.pixels).to(job.device)
    labels = torch.randint(args.classes, (args.batch,)).to(job.device)

    def step():
        optimizer.zero_grad(set_to_none=not args.graph)
        with torch.autocast(job.device.type, torch.bfloat16, enabled=args.bf16):
            out = model(pictures)
        loss = F.cross_entropy(out.float(), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    jobs.train(step, args, job)
    job.leave()


if __name__ == "__main__":
    main()
