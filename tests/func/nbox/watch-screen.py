"""watch-screen.py HOW COMMAND...: runs a live view on a terminal of 60 by 20, leaves it by a key or a signal, and checks what it drew, how
it ended, and that the terminal is as it was. HOW stop: is stopped and goes on before it is left."""
import fcntl, os, pty, re, signal, struct, sys, termios

COLUMNS, ROWS = 60, 20
how, command = sys.argv[1], sys.argv[2:]
ours, theirs = pty.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
before = termios.tcgetattr(theirs)
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
    for fd in range(3):
        os.dup2(theirs, fd)
    os.execv(command[0], command)
drawn = ""


def until(text):
    """The screen has said TEXT since the last time."""
    global drawn
    new = ""
    while text not in new:
        new += os.read(ours, 1 << 16).decode(errors="replace")
    drawn += new


until("\033[J")  # a whole screen is there
assert termios.tcgetattr(theirs)[3] & termios.ICANON == 0, "keys are not taken at once"
if how == "stop":
    os.kill(pid, signal.SIGTSTP)
    until("\033[?1049l")
    os.waitpid(pid, os.WUNTRACED)
    assert termios.tcgetattr(theirs) == before, "stopped, the terminal is not as it was"
    os.kill(pid, signal.SIGCONT)
    until("\033[J")
if how in ("term", "segv"):
    os.kill(pid, {"term": signal.SIGTERM, "segv": signal.SIGSEGV}[how])
else:
    os.write(ours, {"q": b"q", "int": b"\x03", "stop": b"q"}[how])
until("\033[?1049l")
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert code == {"term": 128 + signal.SIGTERM, "segv": -signal.SIGSEGV}.get(how, 0), f"it ended with {code}"
assert termios.tcgetattr(theirs) == before, "the terminal is not as it was"
assert drawn.count("\033[?25l") == drawn.count("\033[?25h"), "the cursor is hidden"
screen = drawn.split("\033[H")[1].split("\033[J")[0]
lines = re.sub("\033\\[[0-9;?]*[a-zA-Z]", "", screen).split("\r")
assert "nbox: 8 ranks (4 nodes x 2), 2 real" in lines[0], lines
assert any(re.match(r"\s*ops +\d+ begun, ", line) for line in lines), lines
assert any(re.match(r"\s*workers +2: 2 ", line) for line in lines), lines
assert len(lines) <= ROWS and max(len(line.strip("\r\n")) for line in lines) <= COLUMNS, lines
