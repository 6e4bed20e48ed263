"""Who is in a communicator: every group of a job of dp x pp x tp is found exactly, with node 0 real and with another, whether communicators are made at the first
use, by splits, or with nothing but colors and a declared layout."""
from harness import all_said, emulate, expect, main

SAID = ["mesh", "groups", "pairs"]


def check(r, nodes, ranks, sources):
    """All communicators are exact, by these sources; the right sizes are there."""
    all_said(r, SAID, ranks)
    comms = r.summary["communicators"]
    text = "\n".join(map(str, comms))
    expect(all(c["sure"] == "exact" for c in comms), text)
    expect({c["members"] for c in comms} <= sources, text)
    dp = nodes // 4
    expect({c["ranks"] for c in comms} >= {dp, 4, 2, 2 * dp}, text)


def groups_made_at_first_use_are_exact():
    """Communicators with ids, made at the first use of a group"""
    check(emulate(64, 2, "members.py", ["lazy"]), 64, range(2), {"job's list", "all real", "store"})


def splits_are_exact_from_any_node():
    """device_id: communicators by ncclCommSplit; the real node is number 3, a first stage"""
    check(emulate(16, 2, "members.py", ["eager"], nbox=["--as-node", "4"]), 16, range(8, 10), {"world", "job's list", "all real", "color", "store"})


def the_layout_alone_makes_groups_exact():
    """Nothing is asked of PyTorch: colors and the layout say it. From node 0 the lowest rank as color leaves sizes open; not from node 13."""
    r = emulate(32, 2, "members.py", ["eager"], nbox=["--layout", "tp=2,pp=4,dp=8", "--as-node", "13"], env={"NBOX_ASK_PYTHON": "0"})
    all_said(r, SAID, range(26, 28))
    named = {c["axes"]: c for c in r.summary["communicators"]}
    for axes in ("dp", "pp", "tp", "tp+dp"):
        expect(axes in named and named[axes]["sure"] == "exact", f"{axes}: {named}")
    expect(named["tp+dp"]["members"] == "color", str(named["tp+dp"]))


main(groups_made_at_first_use_are_exact, splits_are_exact_from_any_node, the_layout_alone_makes_groups_exact)
