"""Runs jobs for the cases of this folder: torchrun under `nbox run`, or plain, always bounded, nothing left behind.

Environment: NBOX_BUILD, the build folder (default: build/ of this tree). The Python that runs a case is the one whose torch is tested."""
import csv
import ctypes
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

from cases import Failed, expect, main  # noqa: F401 (main: for the cases)

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("NBOX_BUILD", os.path.join(TOP, "build"))
NBOX = os.path.join(BUILD, "nbox")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]


def script(name):
    """programs/NAME or workers/NAME."""
    for folder in ("programs", "workers"):
        path = os.path.join(HERE, folder, name)
        if os.path.exists(path):
            return path
    raise SystemExit(f"harness: no program or worker '{name}'")


def end_with_parent():
    """A case that is killed takes its job with it: `nbox run` ends all that it started when it is told to end."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def execute(command, timeout, env=None):
    """The command's output; everything it started is gone afterwards. Raises Failed with the output when it fails or takes too long."""
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        started = time.monotonic()
        p = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env, start_new_session=True,
                             preexec_fn=end_with_parent)
        try:
            code = p.wait(timeout)
            why = f"ended with {code}"
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGTERM)
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                pass
            code, why = -1, f"was not over after {timeout} s"
        finally:
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()
        out.seek(0)
        text = out.read()
    if code != 0:
        raise Failed(f"{' '.join(command)}\n{why}:\n" + "\n".join("  " + line for line in text.splitlines()[-120:]))
    return Result(text, time.monotonic() - started)


class Result:
    """What a job left: its output, nbox's summary, its record."""

    def __init__(self, text, seconds):
        self.text, self.seconds, self.summary, self.rows = text, seconds, None, []

    def checks(self):
        """{name: ranks that said it}; what workers/world.py's passed() printed."""
        found = {}
        # two ranks' lines may run into each other
        for rank, name in re.findall(r"ok (\d+) (\S+) \([\d.]+ s\)", self.text):
            found.setdefault(name, set()).add(int(rank))
        return found

    def ops(self, kind=None, **columns):
        """Rows of the record (each a dict of texts), of this kind and with these values."""
        return [r for r in self.rows if (kind is None or r["op"] == kind) and all(r[k] == str(v) for k, v in columns.items())]


def environment(extra=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NBOX_", "TORCHELASTIC_", "NCCL_")) or k == "NBOX_BUILD"}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        env.pop(name, None)
    env.update({"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "NBOX_MODEL": "none"})
    env.update(extra or {})
    return env


def torchrun(local, program, args=(), flags=()):
    # a port of its own: cases run beside each other
    place = [] if any("rdzv" in f or f == "--standalone" for f in flags) else ["--master-port", str(free_port())]
    return [*TORCHRUN, f"--nproc-per-node={local}", *place, *flags, script(program), *map(str, args)]


def free_port():
    """torchrun binds it seconds later: so one that the kernel gives to nobody in the meantime, below its own range (32768 up)."""
    import socket
    while True:
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", random.randrange(20000, 30000)))
                return s.getsockname()[1]
            except OSError:
                pass


def emulate(nodes, local, program, args=(), flags=(), nbox=(), timeout=300, env=None, look=None):
    """One real node of `local` ranks, of `nodes` nodes."""
    return under_nbox(nodes, torchrun(local, program, args, flags), nbox, timeout, env, look)


def under_nbox(nodes, job, nbox=(), timeout=300, env=None, look=None):
    """Any command, as one node of `nodes`. `look` is called with the folder of the results."""
    with tempfile.TemporaryDirectory(prefix="nbox-torch-") as d:
        out, summary = os.path.join(d, "out"), os.path.join(d, "summary.json")
        command = [NBOX, "run", "--nodes", str(nodes), "--out", out, "--json", summary, *nbox, "--", *job]
        result = execute(command, timeout, environment(env))
        with open(summary) as f:
            result.summary = json.load(f)
        text = subprocess.run([NBOX, "report", "--csv", out], stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout
        result.rows = list(csv.DictReader(io.StringIO(text)))
        if look:
            look(out)
    return result


def plain(local, program, args=(), flags=(), timeout=300, env=None):
    """All ranks real, no nbox."""
    return execute(torchrun(local, program, args, flags), timeout, environment(env))


def all_said(result, names, ranks):
    found = result.checks()
    for name in names:
        expect(found.get(name) == set(ranks), f"'{name}' was said by {sorted(found.get(name, ()))}, not by {sorted(ranks)}:\n{result.text[-4000:]}")
