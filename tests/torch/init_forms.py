"""init_process_group in every form, under torchrun's three ways to meet, in worlds of 8, 512 and 4,096 ranks; two ranks are real."""
import sys

from harness import Failed, all_said, emulate, expect, free_port, main, script, under_nbox


def torchrun_without_flags():
    """torchrun as it is without flags; then other forms in the same processes, each with a store of its own."""
    forms = ["env", "eager", "default", "both"]
    r = emulate(256, 2, "init.py", forms)
    all_said(r, forms, range(2))
    expect(r.summary["world_size"] == 512, r.text)


def torchrun_standalone():
    """--standalone; init_device_mesh as the one who joins; tcp:// with the address that the launcher gives"""
    r = emulate(4, 2, "init.py", ["mesh", "default"], ["--standalone"])
    all_said(r, ["mesh", "default"], range(2))
    r = emulate(4, 2, "init.py", ["tcp"], ["--standalone"])
    all_said(r, ["tcp"], range(2))


def torchrun_with_c10d():
    """--rdzv-backend=c10d; 4,096 ranks"""
    r = emulate(2048, 2, "init.py", ["eager"], ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--rdzv-id=job"])
    all_said(r, ["eager"], range(2))
    expect(r.summary["world_size"] == 4096, r.text)


def rank_0_may_be_virtual():
    """The real ranks are the last node's: rank 0 is virtual, its ids and its part in barriers are played."""
    r = emulate(4, 2, "init.py", ["env", "eager"], nbox=["--as-node", "last"])
    all_said(r, ["env", "eager"], range(6, 8))


def spawned_ranks_meet_the_others():
    """mp.spawn, by a program that knows of the other nodes: --procs 1, and --store where it says itself where to meet"""
    def spawn(nodes, node, form, nbox=(), address=()):
        job = [sys.executable, script("spawn.py"), nodes, 2, node, form, *address]
        return under_nbox(256, [str(word) for word in job], ["--gpus-per-node", "2", "--procs", "1", *nbox])

    address = f"127.0.0.1:{free_port()}"
    r = spawn(256, 255, "env", ["--as-node", "last"])
    all_said(r, ["env"], range(510, 512))
    expect({c["ranks"] for c in r.summary["communicators"]} == {512, 256}, r.text)
    all_said(spawn(256, 0, "tcp", ["--store", address], [address]), ["tcp"], range(2))
    # one that knows nothing of them runs alone, and that is said
    r = spawn(1, 0, "env")
    expect(any("no virtual rank took part in any op" in w for w in r.summary["warnings"]), str(r.summary["warnings"]))


def spawned_twice_is_told():
    """mp.spawn as in a tutorial, once for each rank of nbox run: nbox says what to do, and nothing hangs"""
    job = [sys.executable, script("spawn.py"), "1", "2", "0", "env", f"127.0.0.1:{free_port()}"]
    try:
        r = under_nbox(4, job, ["--gpus-per-node", "2"], timeout=200)
    except Failed as e:
        # two copies of the program have one port: the second may find it taken, which is PyTorch's own error
        expect("mp.spawn), and is started 2 times" in str(e) and "say --procs 1" in str(e), str(e))
        expect("was not over" not in str(e), str(e))
    else:
        # on a busy machine one copy may be over before the other begins: each ran alone
        expect("mp.spawn), and is started 2 times" in r.text and "say --procs 1" in r.text, r.text)
        expect(any("no virtual rank took part in any op" in w for w in r.summary["warnings"]), str(r.summary["warnings"]))


main(torchrun_without_flags, torchrun_standalone, torchrun_with_c10d, rank_0_may_be_virtual, spawned_ranks_meet_the_others,
     spawned_twice_is_told)
