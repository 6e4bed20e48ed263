"""A real torch TCPStore client against nboxd's store: every operation that this torch has.

    NBOX_BUILD=build python tests/torch/store_client.py
"""
import os
import subprocess
import threading
import time
from datetime import timedelta

import torch
from cases import expect, main
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
    yield "wait there", outcome(store.wait, ["n", "w"], LONG)
    yield "wait missing", outcome(store.wait, ["n", "nobody"], SHORT)
    yield "after the cancelled wait", outcome(store.add, "n", 0)
    waiter = threading.Thread(target=other.wait, args=(["late", "later"], LONG))
    waiter.start()
    time.sleep(0.1)
    store.set("late", "")
    store.set("later", "x" * 1000000)
    waiter.join(60)
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
        popper.join(60)
        yield "queue waits", popped
    if has(store, "list_keys"):
        yield "list_keys", sorted(k for k in store.list_keys() if "many" not in k)
    if has(store, "barrier"):
        both = threading.Thread(target=other.barrier, args=("bar", 2, LONG))
        both.start()
        yield "barrier", outcome(store.barrier, "bar", 2, LONG)
        both.join(60)
        yield "barrier over", both.is_alive()
    if has(store, "clone"):
        yield "clone", outcome(store.clone().get, "n")
    yield "set_timeout", outcome(store.set_timeout, SHORT)
    yield "get missing", outcome(store.get, "nobody")
    store.set_timeout(LONG)
    yield "at the end", outcome(store.get, "n")


def connect(port, **more):
    return TCPStore("127.0.0.1", port, is_master=False, timeout=LONG, **more)


class Nboxd:
    """nboxd for a world of 8 of which ranks 6 and 7 are real, with its store on a free port."""

    def __enter__(self):
        self.process = subprocess.Popen(
            [os.path.join(os.environ["NBOX_BUILD"], "nboxd"), "--nodes", "4", "--gpus-per-node", "2",
             "--real", "6,7", "--model", "none", "--store", "127.0.0.1:0", "--addr", "tcp:127.0.0.1:0", "--settle", "50ms"],
            env={k: v for k, v in os.environ.items() if k != "NBOX_BUILD"},
            stdout=subprocess.PIPE, text=True)
        words = self.process.stdout.readline().split()
        expect(words[:2] == ["nboxd", "ready"] and words[3] == "store", words)
        return int(words[4].rsplit(":", 1)[1])

    def __exit__(self, *_):
        self.process.terminate()
        expect(self.process.wait(60) == 0, "nboxd ended with %s" % self.process.returncode)


def the_store_answers_as_torch_does():
    """Every answer is the one that torch's own server gives, in this process."""
    own = TCPStore("127.0.0.1", 0, is_master=True, timeout=LONG, wait_for_workers=False)
    theirs = list(session(own, connect(own.port)))
    with Nboxd() as port:
        ours = list(session(connect(port), connect(port)))
    expect(len(ours) == len(theirs), "%d questions and %d" % (len(ours), len(theirs)))
    for t, o in zip(theirs, ours):
        expect(t == o, "torch's server: %r\nnboxd:          %r" % (t, o))
    print("torch %s: %d questions; it has %s" % (
        torch.__version__, len(ours), "no " + ", ".join(missing) if missing else "all operations"))


def the_store_plays_virtual_ranks():
    """Ranks 0 to 5 do not exist: their ids and check-ins are there, their addresses are not."""
    with Nboxd() as port:
        store, other = connect(port), connect(port)
        # what torch asks for as rank 6 and 7
        for key in "default_pg/0//cuda//0", "default_pg/0//cuda//2:6":
            expect(len(store.get(key)) == 128 and store.get(key) == other.get(key), key)
        expect(len(store.get("default_pg/0//3//cuda//0")) == 128, "nobody sets it: after settle")
        barrier = "default_pg/store_based_barrier_key:0"
        expect(store.add(barrier, 1) == 7 and other.add(barrier, 1) == 8, "the world is there")
        connect(port, world_size=8, wait_for_workers=True)
        expect(outcome(store.wait, ["default_pg/0//cpu//0/1"], SHORT) == "DistStoreError",
               "a gloo address of a virtual rank")


if __name__ == "__main__":
    main(the_store_answers_as_torch_does, the_store_plays_virtual_ranks)
