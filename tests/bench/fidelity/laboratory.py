"""A lab for as long as a block of code lasts, programs in it, and what the machine's processors did meanwhile."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
LAB = os.path.join(TOP, "scripts", "lab")
SAMPLE_S = 0.1


class Failed(Exception):
    """A program ended badly; the text is its last words."""


class Skipped(Exception):
    """This machine cannot do it; the text is the reason."""


def last_words(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "without a word"


class Idle(threading.Thread):
    """Samples /proc/stat until it is stopped; share() says how idle all processors were in a span of time.monotonic()."""

    def __init__(self):
        super().__init__(daemon=True)
        self.samples, self.over = [], threading.Event()
        self.start()

    def run(self):
        while True:
            with open("/proc/stat") as f:
                fields = [int(x) for x in f.readline().split()[1:9]]  # what comes after is part of these
            self.samples.append((time.monotonic(), fields[3] + fields[4], sum(fields)))
            if self.over.wait(SAMPLE_S):
                return

    def stop(self):
        self.over.set()
        self.join()

    def share(self, begin, end):
        inside = [s for s in self.samples if begin <= s[0] <= end]
        if len(inside) < 2 or inside[-1][2] == inside[0][2]:
            return None
        return (inside[-1][1] - inside[0][1]) / (inside[-1][2] - inside[0][2])


class Laboratory:
    """`with Laboratory(name, options) as lab:` is `lab up` before and `lab down` after, however the block ends."""

    def __init__(self, name, options):
        self.name, self.options = f"{name}-{os.getpid()}", options

    def __enter__(self):
        try:
            code, text = self._execute([LAB, "up", *self.options, "--name", self.name], 120)
        except BaseException:
            self.__exit__()
            raise
        if code == 77:
            raise Skipped(last_words(text).removeprefix("lab: "))
        if code:
            self.__exit__()
            raise Failed(last_words(text))
        return self

    def __exit__(self, *exc):
        self._execute([LAB, "down", "--name", self.name], 60)

    def measure(self):
        """What `lab measure` says of its cables."""
        with tempfile.NamedTemporaryFile("r", suffix=".json") as f:
            code, text = self._execute([LAB, "measure", "--name", self.name, "--json", f.name], 300)
            if code:
                raise Failed(last_words(text))
            return json.load(f)

    def start(self, which, command, env=None):
        """`lab run`: `which` are its options."""
        return subprocess.Popen([LAB, "run", "--name", self.name, *which, "--", *command], env={**clean_environment(), **(env or {})},
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")

    def run(self, which, command, env=None, timeout=120):
        return finish(self.start(which, command, env), timeout)

    @staticmethod
    def _execute(command, timeout):
        try:
            p = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return 1, f"{' '.join(command[1:3])} was not over after {timeout} s"
        return p.returncode, p.stdout


def finish(p, timeout):
    """The output of a process of start(); Failed when it fails or takes too long. `lab run` ends what it started when it is told to end."""
    try:
        text = p.communicate(timeout=timeout)[0]
    except subprocess.TimeoutExpired:
        text = end(p)
        print(text[-3000:], file=sys.stderr)
        raise Failed(f"was not over after {timeout} s: {last_words(text)}") from None
    except BaseException:
        end(p)
        raise
    if p.returncode:
        print(text[-3000:], file=sys.stderr)
        raise Failed(f"exit code {p.returncode}: {last_words(text)}")
    return text


def end(p):
    p.send_signal(signal.SIGTERM)
    try:
        return p.communicate(timeout=15)[0]
    except subprocess.TimeoutExpired:
        p.kill()
    try:
        return p.communicate(timeout=5)[0]
    except subprocess.TimeoutExpired:  # somebody else holds the pipe
        return ""


def clean_environment():
    """Ours, without what would change a job."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("NBOX_", "NCCL_", "TORCHELASTIC_"))}
