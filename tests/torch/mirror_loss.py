"""With data policy mirror, one node of 64 learns what a plain job of its 8 processes learns: real DDP, real ProcessGroupNCCL.

Operators on the device are computed by CPU kernels in the same memory (workers/cpu_kernels.py), gradients go through host NCCL."""
import json
import os
import tempfile

from harness import emulate, expect, main, plain


def the_loss_is_that_of_a_plain_run():
    """50 steps, 8 real ranks: alone, and as one node of 64"""
    with tempfile.TemporaryDirectory() as d:
        alone, node = os.path.join(d, "alone.json"), os.path.join(d, "node.json")
        plain(8, "loss.py", ["--json", alone], timeout=240)
        emulate(64, 8, "loss.py", ["--json", node], timeout=240)
        a, b = (json.load(open(f)) for f in (alone, node))
    expect((a["world"], b["world"]) == (8, 512), f"worlds {a['world']} and {b['world']}")
    worst = max(abs(x - y) / abs(x) for x, y in zip(a["losses"], b["losses"]))
    print(f"      loss {a['losses'][0]:.6f} -> {a['losses'][-1]:.6f} in 50 steps, 8 processes; as one node of 512 ranks {b['losses'][-1]:.6f}; "
          f"largest relative difference {worst:.1e}; parameters {'equal' if a['sha256'] == b['sha256'] else 'differ in rounding'}")
    expect(a["losses"][-1] < 0.2 * a["losses"][0], "the model learns")
    expect(worst < 1e-5, "the losses are equal to rounding")


main(the_loss_is_that_of_a_plain_run)
