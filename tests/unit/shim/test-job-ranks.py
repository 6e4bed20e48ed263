"""shim/job-ranks.c in a real Python: a stand-in for torch.distributed.distributed_c10d keeps groups as PyTorch does, and its functions call down
as PyTorch's do. argv: the library that holds job_ranks(). Prints TAP."""
import ctypes
import os
import signal
import sys
import threading
import types

NAME = "torch.distributed.distributed_c10d"
GROUPS = {"world": range(16), "dp": [1, 5, 9, 13], "pp": [1, 2, 3, 4], "tp": [1, 2], "one": [0, 1, 7]}
STAND_IN = """
class _world:
    pg_group_ranks = {}
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


def check(what, got, want):
    global n_tests, n_bad
    n_tests += 1
    n_bad += got != want
    print(f"{'ok' if got == want else 'not ok'} {n_tests} - {what}" + ("" if got == want else f": {got}, not {want}"), flush=True)


def run(lib, how):
    check(f"{how}: PyTorch is not loaded", ranks(lib, 4, 0, 1), None)
    module = types.ModuleType(NAME)
    exec(STAND_IN, module.__dict__)
    module._world.pg_group_ranks = {k: {r: i for i, r in enumerate(v)} for k, v in GROUPS.items()}
    sys.modules[NAME] = module

    def ask(n, rank, world):
        return lambda: ranks(lib, n, rank, world)

    check(f"{how}: a split", module.split_group(ask(0, 1, 5), [[2, 5, 11]]), [2, 5, 11])
    check(f"{how}: a split that this rank is not in", module.split_group(ask(0, 0, 5), [[2, 5, 11]]), None)
    check(f"{how}: a new group", module._new_process_group_helper(ask(3, 2, 9), [0, 4, 9]), [0, 4, 9])
    check(f"{how}: first use, two groups of that size", module.all_reduce(ask(4, 0, 1), "pp"), [1, 2, 3, 4])
    check(f"{how}: first use of the other", module.all_reduce(ask(4, 0, 1), "dp"), [1, 5, 9, 13])
    check(f"{how}: a pair of a group, by its rank", module.send(ask(2, 0, 5), "dp", 3), [5, 13])
    check(f"{how}: a pair, by world rank", module.recv(ask(2, 1, 9), "dp", 1), [1, 9])
    check(f"{how}: without a frame the only one that fits", ranks(lib, 3, 1, 1), [0, 1, 7])
    check(f"{how}: without a frame two fit", ranks(lib, 4, 0, 1), None)
    check(f"{how}: without a frame no pair", ranks(lib, 2, 0, 1), None)
    check(f"{how}: another rank", ranks(lib, 3, 0, 1), None)
    check(f"{how}: more than there is room for", ranks(lib, 3, 1, 1, 2), None)
    check(f"{how}: what nobody expected", module.broken(ask(3, 1, 1)), [0, 1, 7])

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
    check(f"{how}: what a signal's handler raises is the job's", got, "raised")
    out = []
    thread = threading.Thread(target=lambda: out.append(ranks(lib, 3, 1, 1)))
    thread.start()
    thread.join(30)
    check(f"{how}: another thread", out, [[0, 1, 7]])
    module._world = None
    check(f"{how}: groups are kept elsewhere", ranks(lib, 3, 1, 1), None)
    del sys.modules[NAME]


# with the interpreter's lock given up around the call, as PyTorch does, and held
run(ctypes.CDLL(sys.argv[1]), "lock free")
run(ctypes.PyDLL(sys.argv[1]), "lock held")
print(f"1..{n_tests}")
sys.exit(1 if n_bad else 0)
