"""A real torch TCPStore client against nboxd: every operation that this torch has.

    NBOXD=build/nboxd python tests/torch/store_client.py

Starts nboxd itself (world of 8, ranks 6 and 7 real) on a free port. Prints what this torch
lacks; ends with 0 when every answer was the one that torch's own server gives (which is
asked the same, in this process), and virtual ranks were answered for.
"""
import os
import subprocess
import sys
import threading
import time
from datetime import timedelta

import torch
from torch.distributed import PrefixStore, TCPStore

SHORT = timedelta(milliseconds=300)
LONG = timedelta(seconds=60)
missing = []


def outcome(call, *args):
    """What a call gives; of a failure its kind only: the sentences are the client's own."""
    try:
        return call(*args)
    except Exception as e:  # noqa: BLE001
        return type(e).__name__


def has(store, name):
    if hasattr(store, name):
        return True
    if name not in missing:
        missing.append(name)
    return False


def session(store, other):
    """The same questions to any server. Yields (question, answer). What has no reply (set,
    append, queue_push) is asked for over the same connection, or by a call that waits."""
    yield "set", outcome(store.set, "a", "1")
    yield "get", outcome(other.get, "a")
    yield "add", [outcome(store.add, "n", 5), outcome(other.add, "n", -7), outcome(store.get, "n")]
    yield "add to a word", outcome(store.compare_set, "w", "", "word")
    yield "compare_set", [outcome(store.compare_set, "w", e, d) for e, d in
                          [("", "x"), ("word", "next"), ("word", "no"), ("next", "")]]
    yield "compare_set missing", outcome(store.compare_set, "cm", "expected", "new")
    yield "check", [outcome(store.check, ["a", "n"]), outcome(store.check, ["a", "-"])]
    yield "delete", [outcome(store.delete_key, "a"), outcome(store.delete_key, "a")]
    yield "num_keys", outcome(store.num_keys)
    yield "wait there", outcome(store.wait, ["n", "w"], SHORT)
    yield "wait missing", outcome(store.wait, ["n", "nobody"], SHORT)
    yield "after the cancelled wait", outcome(store.add, "n", 0)
    waiter = threading.Thread(target=other.wait, args=(["late", "later"], LONG))
    waiter.start()
    time.sleep(0.1)
    store.set("late", "")
    store.set("later", "x" * 1000000)
    waiter.join(30)
    yield "wait for two", waiter.is_alive()
    yield "large value", len(other.get("later"))
    yield "prefix", outcome(PrefixStore("p", store).set, "k", "v"), outcome(other.get, "p/k")
    if has(store, "append"):
        yield "append", [outcome(store.append, "ap", "x"), outcome(store.append, "ap", "y"),
                         outcome(store.get, "ap")]
    if has(store, "multi_get"):
        yield "multi", [outcome(store.multi_set, ["m1", "m2"], ["one", ""]),
                        outcome(other.multi_get, ["m2", "m1"])]
        many = ["many/%d" % i for i in range(3000)]
        yield "many", [outcome(store.multi_set, many, many),
                       outcome(other.multi_get, many) == [m.encode() for m in many]]
    if has(store, "queue_push"):
        yield "queue", [outcome(store.queue_push, "q", "1"), outcome(store.queue_push, "q", "2"),
                        outcome(store.queue_len, "q"), outcome(other.check, ["q"]),
                        outcome(other.queue_pop, "q"), outcome(store.queue_pop, "q"),
                        outcome(store.queue_pop, "q", False), outcome(store.queue_len, "q")]
        popped = []
        popper = threading.Thread(target=lambda: popped.append(other.queue_pop("q2")))
        popper.start()
        time.sleep(0.1)
        store.queue_push("q2", "late")
        popper.join(30)
        yield "queue waits", popped
    if has(store, "list_keys"):
        yield "list_keys", sorted(k for k in store.list_keys() if "many" not in k)
    if has(store, "barrier"):
        both = threading.Thread(target=other.barrier, args=("bar", 2, LONG))
        both.start()
        yield "barrier", outcome(store.barrier, "bar", 2, LONG)
        both.join(30)
        yield "barrier over", both.is_alive()
    if has(store, "clone"):
        yield "clone", outcome(store.clone().get, "n")
    yield "set_timeout", outcome(store.set_timeout, SHORT)
    yield "get missing", outcome(store.get, "nobody")
    yield "at the end", outcome(store.get, "n")


def connect(port, **more):
    return TCPStore("127.0.0.1", port, is_master=False, timeout=LONG, **more)


def virtual(port):
    """Ranks 0 to 5 do not exist."""
    store, other = connect(port), connect(port)
    # what torch asks for as rank 6 and 7
    for key in "default_pg/0//cuda//0", "default_pg/0//cuda//2:6":
        assert len(store.get(key)) == 128, key
        assert store.get(key) == other.get(key), key
    assert len(store.get("default_pg/0//3//cuda//0")) == 128  # nobody sets it: after settle
    barrier = "default_pg/store_based_barrier_key:0"
    assert store.add(barrier, 1) == 7 and other.add(barrier, 1) == 8
    begun = connect(port, world_size=8, wait_for_workers=True)  # init/: does not wait
    del begun
    assert outcome(store.wait, ["default_pg/0//cpu//0/1"], SHORT) == "DistStoreError"


def main():
    nboxd = subprocess.Popen(
        [os.environ["NBOXD"], "--nodes", "4", "--gpus-per-node", "2", "--real", "6,7", "--store",
         "127.0.0.1:0", "--addr", "tcp:127.0.0.1:0", "--settle", "50ms"],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "LD_PRELOAD": ""})
    try:
        words = nboxd.stdout.readline().split()
        assert words[:2] == ["nboxd", "ready"] and words[3] == "store", words
        port = int(words[4].rsplit(":", 1)[1])
        own = TCPStore("127.0.0.1", 0, is_master=True, timeout=LONG, wait_for_workers=False)
        theirs = list(session(own, connect(own.port)))
        ours = list(session(connect(port), connect(port)))
        bad = [(t, o) for t, o in zip(theirs, ours) if t != o]
        for t, o in bad:
            print("torch's server: %r\nnboxd:          %r" % (t, o))
        assert not bad and len(ours) == len(theirs)
        virtual(port)
        print("torch %s: %d questions answered as by torch's own server%s" % (
            torch.__version__, len(ours), "; it has no " + ", ".join(missing) if missing else ""))
    finally:
        nboxd.terminate()
        nboxd.wait(20)
    return nboxd.returncode


if __name__ == "__main__":
    sys.exit(main())
