"""shim/job/job-ranks.c in a real Python: a stand-in for torch.distributed.distributed_c10d keeps groups as PyTorch does, and its functions call down
as PyTorch's do. argv: the library that holds job_ranks(). Prints TAP."""
import ctypes
import os
import signal
import sys
import threading
import time
import types

NAME = "torch.distributed.distributed_c10d"
GROUPS = {"world": range(16), "dp": [1, 5, 9, 13], "pp": [1, 2, 3, 4], "tp": [1, 2], "one": [0, 1, 7]}
STAND_IN = """
class _world:
    pg_group_ranks = {}
    pg_names = {}
    default_pg = "world"
def split_group(call, split_ranks):
    parent_group_to_global_ranks = {i: r for i, r in enumerate(_world.pg_group_ranks["world"])}
    my_group = split_ranks[0]
    return call()
def _new_process_group_helper(call, global_ranks_in_group):
    return call()
def all_reduce(call, group):
    return call()
def send(call, group, group_dst):
    return call()
def recv(call, group, src):
    return call()
def broken(call):
    group = 7j
    return call()
"""
n_tests = n_bad = 0


def ranks(lib, n, rank, world, most=16):
    """What the C function finds: as a list; None when nothing."""
    found = ctypes.POINTER(ctypes.c_uint32)()
    count = lib.job_ranks(n, rank, world, most, ctypes.byref(found))
    return found[:count] if count else None


def groups(lib):
    """{name: ranks} of all groups that the C function tells."""
    found = {}

    class Group(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char * 124), ("n_ranks", ctypes.c_uint32)]

    @ctypes.CFUNCTYPE(None, ctypes.POINTER(Group), ctypes.POINTER(ctypes.c_uint32))
    def each(group, ranks):
        found[group.contents.name.decode()] = ranks[:group.contents.n_ranks]

    lib.job_groups(each)
    return found


def check(what, got, want):
    global n_tests, n_bad
    n_tests += 1
    n_bad += got != want
    print(f"{'ok' if got == want else 'not ok'} {n_tests} - {what}" + ("" if got == want else f": {got}, not {want}"), flush=True)


def make():
    module = types.ModuleType(NAME)
    exec(STAND_IN, module.__dict__)
    module._world.pg_group_ranks = {k: {r: i for i, r in enumerate(v)} for k, v in GROUPS.items()}
    sys.modules[NAME] = module
    return module


def run(lib):
    check("PyTorch is not loaded", ranks(lib, 4, 0, 1), None)
    module = make()

    def ask(n, rank, world):
        return lambda: ranks(lib, n, rank, world)

    check("a split", module.split_group(ask(0, 1, 5), [[2, 5, 11]]), [2, 5, 11])
    check("a split that this rank is not in", module.split_group(ask(0, 0, 5), [[2, 5, 11]]), None)
    check("a new group", module._new_process_group_helper(ask(3, 2, 9), [0, 4, 9]), [0, 4, 9])
    check("first use, two groups of that size", module.all_reduce(ask(4, 0, 1), "pp"), [1, 2, 3, 4])
    check("first use of the other", module.all_reduce(ask(4, 0, 1), "dp"), [1, 5, 9, 13])
    check("a pair of a group, by its rank", module.send(ask(2, 0, 5), "dp", 3), [5, 13])
    check("a pair, by world rank", module.recv(ask(2, 1, 9), "dp", 1), [1, 9])
    check("without a frame the only one that fits", ranks(lib, 3, 1, 1), [0, 1, 7])
    check("without a frame two fit", ranks(lib, 4, 0, 1), None)
    check("without a frame no pair", ranks(lib, 2, 0, 1), None)
    check("another rank", ranks(lib, 3, 0, 1), None)
    check("more than there is room for", ranks(lib, 3, 1, 1, 2), None)
    check("what nobody expected", module.broken(ask(3, 1, 1)), [0, 1, 7])

    module._world.pg_names = {"world": "0", "dp": "1", "one": "a/b", "tp": "x" * 124, "gone": "5"}
    check("groups by name, but the default one, too long names, and those without ranks", groups(lib), {"1": [1, 5, 9, 13], "a/b": [0, 1, 7]})

    class Interrupted(dict):
        """Who looks at it is interrupted there."""

        def values(self):
            os.kill(os.getpid(), signal.SIGINT)
            return super().values()

    kept, got = module._world.pg_group_ranks, None
    module._world.pg_group_ranks = Interrupted(kept)
    try:
        ranks(lib, 3, 1, 1)
        for _ in range(10**6):
            pass
    except KeyboardInterrupt:
        got = "raised"
    module._world.pg_group_ranks = kept
    check("what a signal's handler raises is the job's", got, "raised")
    out = []
    thread = threading.Thread(target=lambda: out.append(ranks(lib, 3, 1, 1)))
    thread.start()
    thread.join(60)
    check("another thread", out, [[0, 1, 7]])
    module._world = None
    check("groups are kept elsewhere", ranks(lib, 3, 1, 1), None)
    del sys.modules[NAME]


def other_thread_has_the_lock(lib, python_lib):
    """Only ask_while_lock_is_held() knows when it came back: here nothing runs before it gives up the lock."""
    took_ms = python_lib.ask_while_lock_is_held()
    check("lock kept by who waits for us: goes on within the bound", 4900 <= took_ms < 55000 or took_ms, True)
    # the thread that is left ends now; until then, nobody is asked
    for _ in range(600):
        if ranks(lib, 3, 1, 1) == [0, 1, 7]:
            break
        time.sleep(0.1)
    check("lock kept by who waits for us: asked again afterwards", ranks(lib, 3, 1, 1), [0, 1, 7])


lib, python_lib = ctypes.CDLL(sys.argv[1]), ctypes.PyDLL(sys.argv[1])
run(lib)  # with the interpreter's lock given up around the call, as PyTorch does
module = make()
check("lock held: not asked, since it might not come back", ranks(python_lib, 3, 1, 1), None)
other_thread_has_the_lock(lib, python_lib)
print(f"1..{n_tests}")
sys.exit(1 if n_bad else 0)
