"""./scripts/bench models: what nbox says of planned ops and how long it takes to say so, beside a simulation of each message and, on a
platform of one switch, SimGrid's SMPI, which plays the same messages (smpi-replay.c)."""
import glob, json, os, shutil, signal, subprocess, tempfile, time

LANE = "planner:chunk=1M,step_inter=0us"  # one ring, or one pair of trees
RAILS = "planner:lanes=16,rails=8,chunk=512K,step_intra=600ns,step_inter=2700ns"
KINDS = ("ring", "tree", "alltoall", "allgather", "reducescatter", "broadcast", "reduce", "gather", "scatter")
SMPI_KINDS = KINDS[:5]
KB, MB, GB = 1 << 10, 1 << 20, 1 << 30
SIMULATED = 5_000_000  # messages; --full: eight times as many
PAIRS = 1 << 23  # nbox simulates no all-to-all of more connections
SMPI_LIMIT_S = 60  # --full: ten times as long
# SimGrid's plain model of links: each shares its bandwidth among its flows, nothing else is corrected
SMPI_FLAGS = ["network/model:CM02", "network/latency-factor:1", "network/bandwidth-factor:1", "network/weight-S:0", "network/TCP-gamma:1e12", "network/crosstraffic:0",
              "smpi/simulate-computation:no", "smpi/shared-malloc:global"]
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="world" routing="Full">
<cluster id="nodes" prefix="n" suffix="" radical="0-1023" speed="1Gf" bw="49GBps" lat="1us" sharing_policy="SPLITDUPLEX"/>
</zone></platform>
"""


def model_of(base, kind):
    return base + (",algo=tree" + ("" if "lanes" in base else ",lanes=2") if kind == "tree" else "")


class Nbox:
    def __init__(self, build):
        self.program = os.path.join(build, "tests", "bench", "bench-models")
        self.dirs = os.path.join(build, "delaymodels") + ":" + os.path.join(build, "tests", "unit", "delaymodels")

    def ask(self, preset, nodes, gpus, model, kind, size, how):
        p = subprocess.run([self.program, self.dirs, preset, str(nodes), str(gpus), model, kind, str(size), how], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, timeout=600)
        if p.returncode != 0:
            raise SystemExit(f"bench: {p.stderr.strip()}")
        return json.loads(p.stdout)


class Smpi:
    """SMPI on a switch: NICs of 49 GB/s and 1 us, as those of the preset `switch` in bench-models."""

    def __init__(self, top, where, limit_s):
        self.where, self.limit_s = where, limit_s
        core = os.path.join(top, "emulator", "core")
        sources = [os.path.join(top, "tests", "bench", "models", "smpi-replay.c"), *glob.glob(os.path.join(core, "schedule", "*.c")),
                   os.path.join(core, "base", "err.c"), os.path.join(core, "base", "plain.c")]
        subprocess.run(["smpicc", "-O2", "-D_GNU_SOURCE", "-I" + os.path.join(top, "emulator"), "-I" + core, "-o",
                        os.path.join(where, "replay"), *sources], check=True, timeout=300)
        with open(os.path.join(where, "platform.xml"), "w") as f:
            f.write(PLATFORM)
        with open(os.path.join(where, "hosts"), "w") as f:
            f.writelines(f"n{i}\n" for i in range(1024))

    def play(self, kind, ranks, size):
        """(simulated us, seconds it took), or None: it took too long."""
        coll, algo = {"ring": ("allreduce", "ring"), "tree": ("allreduce", "tree"), "alltoall": ("alltoall", "direct")}.get(kind, (kind, "ring"))
        size = size if coll == "allreduce" else size // ranks // 4 * 4
        chunk = 2 * MB if algo == "tree" else MB  # a step of a tree is half of it
        command = ["smpirun", "-np", str(ranks), "-platform", "platform.xml", "-hostfile", "hosts",
                   *("--cfg=" + f for f in SMPI_FLAGS), "--log=root.thres:critical", "./replay", coll, algo, str(size), str(chunk), "1", "1"]
        begin = time.monotonic()
        # a group of its own: smpirun is a script, and what it started goes with it
        p = subprocess.Popen(command, cwd=self.where, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            out, err = p.communicate(timeout=self.limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            p.communicate()
            return None
        if p.returncode != 0:
            raise SystemExit(f"bench: smpirun ended with {p.returncode}: {err[-500:]}")
        return float(out.split()[-1]) * 1e6, time.monotonic() - begin


def show(row):
    def cell(key, text):
        return "-" if row.get(key) is None else format(row[key], text)
    print(f"{row['what']:<22}{row['ranks']:>7}{row['bytes']:>12}{cell('predicted_us', '.2f'):>14}{cell('closed_us', '.2f'):>14}"
          f"{cell('bound_us', '.2f'):>13}{cell('differ', '.0e'):>8}{cell('seconds', '.6f'):>11}{cell('again_us', '.2f'):>9}"
          f"{cell('sim_seconds', '.4f'):>11}{cell('messages_per_s', '.3g'):>11}{cell('smpi_us', '.2f'):>14}{cell('smpi_seconds', '.2f'):>10}"
          f"{cell('smpi_times', '.0f'):>9}", flush=True)


def row_of(nbox, what, preset, nodes, gpus, base, kind, size, most):
    model = model_of(base, kind)
    closed = nbox.ask(preset, nodes, gpus, model, kind, size, "closed")
    row = {"what": what, "ranks": nodes * gpus, "bytes": size, "predicted_us": closed["predicted_us"], "bound_us": closed["bound_us"],
           "closed_us": closed["predicted_us"] if closed["how"] != "simulation" else None, "seconds": closed["seconds"],
           "again_us": closed["again_seconds"] * 1e6, "messages_per_s": None, "smpi_us": None, "smpi_seconds": None}
    pairs = row["ranks"] ** 2 * (16 if base == RAILS else 1) if kind == "alltoall" else 0
    if 0 < closed["messages"] <= most and pairs <= PAIRS:
        sim = nbox.ask(preset, nodes, gpus, model, kind, size, "sim")
        row["predicted_us"], row["sim_seconds"] = sim["predicted_us"], sim["seconds"]
        row["messages_per_s"] = sim["messages"] / sim["seconds"]
        if row["predicted_us"] and row["closed_us"] is not None:
            row["differ"] = abs(row["closed_us"] - sim["predicted_us"]) / sim["predicted_us"]
    return row


def on_a_switch(nbox, smpi, most, rows):
    for kind in KINDS:
        for ranks in (8, 64, 256, 1024):
            for size in (64 * KB, 64 * MB):
                row = row_of(nbox, f"switch {kind}", "switch", ranks, 1, LANE, kind, size, most)
                # large messages of a thousand ranks take SMPI minutes
                got = smpi.play(kind, ranks, size) if smpi and kind in SMPI_KINDS and (size <= 64 * KB or ranks <= 64 or most > SIMULATED) else None
                if got:
                    row["smpi_us"], row["smpi_seconds"] = got
                    row["smpi_times"] = got[1] / row.get("sim_seconds", row["seconds"])
                rows.append(row)
                show(row)


def on_rails(nbox, most, rows):
    for kind in KINDS:
        for nodes in (1, 8, 64, 128, 512, 2048):
            for size in (KB, MB, 64 * MB, GB, 8 * GB):
                rows.append(row_of(nbox, f"dgx-h100 {kind}", "dgx-h100", nodes, 8, RAILS, kind, size, most))
                show(rows[-1])


def rates(nbox, rows):
    """The same messages over two kinds of hop and over a fabric's paths, in turns; the best of three."""
    print("\nsimulated messages a second, ring of 512 ranks, one lane")
    for what, preset, model in (("two kinds of hop", "-", "alphabeta"), ("dgx-h100's paths", "dgx-h100", "planner:chunk=1M")):
        got = [nbox.ask(preset, 64, 8, model, "ring", 64 * MB, "sim") for _ in range(3)]
        best = max(g["messages"] / g["seconds"] for g in got)
        rows.append({"what": what, "ranks": 512, "bytes": 64 * MB, "predicted_us": got[0]["predicted_us"], "bound_us": got[0]["bound_us"],
                     "closed_us": None, "seconds": min(g["seconds"] for g in got), "messages_per_s": best, "smpi_us": None,
                     "smpi_seconds": None})
        print(f"{what:<22}{best / 1e6:>8.1f} million", flush=True)


def bench(opt, top, build):
    nbox, rows = Nbox(build), []
    most = SIMULATED * (8 if opt.full else 1)
    print("predicted: each message simulated where there are few enough; closed: the short cut, which took `seconds`; again: an equal op\n"
          "smpi x: SMPI's seconds over those of nbox's simulation, or of its short cut")
    print(f"{'what':<22}{'ranks':>7}{'bytes':>12}{'predicted us':>14}{'closed us':>14}{'bound us':>13}{'differ':>8}{'seconds':>11}{'again us':>9}"
          f"{'sim s':>11}{'messages/s':>11}{'smpi us':>14}{'smpi s':>10}{'smpi x':>9}")
    with tempfile.TemporaryDirectory() as where:
        smpi = Smpi(top, where, SMPI_LIMIT_S * (10 if opt.full else 1)) if shutil.which("smpirun") and shutil.which("smpicc") else None
        if not smpi:
            print("SMPI is skipped: smpicc and smpirun are not installed (apt-get install libsimgrid-dev)")
        on_a_switch(nbox, smpi, most, rows)
    on_rails(nbox, most, rows)
    rates(nbox, rows)
    return rows
