#!/usr/bin/env bash
# The what-if xmesh: a resharding step of an unmodified job takes a plan's times, live and re-timed. AlpaComm's case 3 (RS0R to S0RR, two
# meshes of 2 hosts x 4) moves plainly from ranks 0-7 to 8-15; the plan is that of `nbox reshard plan`.
. "$(dirname "$0")/lib.sh"
resharder=$BUILD/tests/apps/resharder
tensor=64x64x2048 src=RS0R@2x4 dst=S0RR@2x4
plan=xmesh:strategy=broadcast,nic=10Gbps,tensor=$tensor,src=$src,dst=$dst
job=("$resharder" $tensor f32 $src $dst)
world=(--nodes 4 --gpus-per-node 4 --layout tp=8,pp=2)

# ends DIR: OK, if the steps of the run end as plan.json does (by sendrecv: at its last receiver; the file has no others): each real receiver so long after the last of itself and those that
# send to it came; the all-reduce of all, that follows and takes no time, when the last rank has come from its end, virtual ones too
cat >ends.py <<'PY'
import csv, json, subprocess, sys
rows = list(csv.DictReader(subprocess.run([sys.argv[1], "report", "--csv", sys.argv[2]], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()))
plan = json.load(open(sys.argv[3]))
done = {}
for t in plan["tasks"]:
    for r in t["receivers"]: done[8 + r] = max(done.get(8 + r, 0), t["end_ns"])
    done[t["sender"]] = max(done.get(t["sender"], 0), t["end_ns"])
at = {(r["op"], int(r["seq"]), int(r["world_rank"])): r for r in rows}
steps = 1 + max(seq for op, seq, _ in at)
took = {}
bad = [] if len(rows) == 2 * steps * len({rank for *_, rank in at}) and max(done.values()) == plan["end_ns"] else ["rows, or the plan"]
near = lambda a, b: abs(a - b) <= 1e-6 * plan["end_ns"]
for seq in range(steps):
    own = {rank: r for (op, s, rank), r in at.items() if (op, s) == ("SendRecv", seq)}
    start = {rank: int(r["virtual_arrive_ns"]) + float(r["queued_ns"]) for rank, r in own.items()}
    end = {rank: int(r["virtual_end_ns"]) for rank, r in own.items()}
    for rank, r in own.items():
        peers = [int(c[1:].split(":")[0]) for c in r["calls"].split()]
        begin = max([start[rank]] + [start[p] for p in peers if p in start and done.get(rank, 0)])
        took[rank] = max(took.get(rank, 0), end[rank] - begin)
        if plan["strategy"] == "broadcast" and not near(end[rank] - begin, done.get(rank, 0)): bad.append((seq, rank, end[rank] - begin, done.get(rank, 0)))
    reduce = {rank: r for (op, s, rank), r in at.items() if (op, s) == ("AllReduce", seq)}
    gap = {rank: int(reduce[rank]["virtual_arrive_ns"]) - end[rank] for rank in own}
    ends = int(reduce[min(own)]["virtual_end_ns"])
    # a rank without a process begins as its template does, and calls the all-reduce no longer behind its end
    first = max(start.values()) + plan["end_ns"]
    if plan["strategy"] == "broadcast" and not first - 2 <= ends <= first + max(gap.values()) + 2: bad.append((seq, "all", ends - first, gap))
if not near(max(took.values()), max(done.get(rank, 0) for rank in took)): bad.append(took)
print("OK" if not bad else bad)
PY
ends() { python3 -IS ends.py "$NBOX" "$1" plan.json; }

check "a plan" "$NBOX" reshard plan --tensor $tensor --src $src --dst $dst --nic 10Gbps --json plan.json
is "$(json plan.json 'd["end_ns"], d["optimal"]')" "(13421772.8, True)" "... of half the time that the tensor takes through one NIC"

for real in 0-7 8-15 0-3,8-11 0-15; do
	exits 0 "live, ranks $real real" "$NBOX" run "${world[@]}" --real $real --what-if $plan --out "live-$real" --json live.json -- "${job[@]}"
	says "groups of calls of all real ranks took the plan's times" "$real: the summary says so"
	is "$(json live.json 'd["resharding"]["planned"] == 3 * d["real_ranks"], d["resharding"]["left_alone"], d["resharding"]["assumed"]')" "(True, 0, 0)" "$real: all of them"
	is "$(ends "live-$real")" OK "$real: steps end with the plan"
	[ $real != 8-15 ] || continue
	exits 0 "plain, ranks $real real" "$NBOX" run --quiet "${world[@]}" --real $real --out "plain-$real" -- "${job[@]}"
	exits 0 "re-timed, ranks $real real" "$NBOX" retime "plain-$real" --what-if $plan --out "retimed-$real"
	is "$(ends "retimed-$real")" OK "$real: re-timed from a plain run they end with the plan, too"
done

"$NBOX" retime plain-0-15 --what-if ${plan/broadcast/sendrecv} --out sendrecv >/dev/null
"$NBOX" reshard plan --tensor $tensor --src $src --dst $dst --nic 10Gbps --strategy sendrecv --json plan.json >/dev/null
is "$(ends sendrecv)" OK "another strategy, another plan"

# the user's own model stays: what is not of the step, and the times without the what-if
"$NBOX" retime plain-0-15 --model alphabeta --inter-bandwidth 10Gbps --json base.json --out base >/dev/null
"$NBOX" retime plain-0-15 --model alphabeta --inter-bandwidth 10Gbps --what-if $plan --json with.json --out with >/dev/null
is "$(json base.json '{k["op"]: k["modelled_ms"] for k in d["ops_by_kind"]}["AllReduce"]')" "$(json with.json '{k["op"]: k["modelled_ms"] for k in d["ops_by_kind"]}["AllReduce"]')" \
	"all-reduces take what they took"
is "$("$NBOX" report --csv with | awk -F, '$6 == "SendRecv" { print $26 }' | sort | tail -n 1)" "$("$NBOX" report --csv base | awk -F, '$6 == "SendRecv" { print $26 }' | sort | tail -n 1)" \
	"without the what-if sends end as they did"

# virtual senders that are late keep a receiver from its beginning, as without the plan
longest() { "$NBOX" report --csv "$1" | awk -F, '$6 == "SendRecv" && $5 == 8 && $25 - $24 > ns { ns = $25 - $24 } END { print ns / 1e9 }'; }
for x in plan none; do
	what=("--what-if" "slow:rank=4,compute=1000000")
	[ $x = none ] || what+=("--what-if" $plan)
	"$NBOX" retime plain-0-3,8-11 "${what[@]}" --out late-$x >/dev/null
done
is "$(awk -v plan="$(longest late-plan)" -v none="$(longest late-none)" 'BEGIN { print (none > 1 && plan > none / 2) }')" 1 "virtual senders may be late"
# alone, a plan waits for nobody: with plain sends four ranks share a NIC
shared() { "$NBOX" report --csv "$1" | awk -F, '$6 == "SendRecv" { ns += $43 } END { print (ns > 0) }'; }
nccl=(--model nccl --preset dgx-a100 --inter 1x10Gbps)
"$NBOX" retime plain-0-15 "${nccl[@]}" --out links >/dev/null
"$NBOX" retime plain-0-15 "${nccl[@]}" --what-if $plan --out no-links >/dev/null
is "$(shared links) $(shared no-links)" "1 0" "a plan by itself waits for no link"

# beside an all-reduce of another communicator on the same NICs: both are slower, as fair shares say
# fair DIR PLAN-MS ONES: OK, if in each step but the first the plan, which takes PLAN-MS by itself, and the all-reduce share from when both are there until one is over: the plan by one
# connection a NIC, the other by ONES. What ranks are apart is allowed for
cat >fair.py <<'PY'
import csv, subprocess, sys
rows = list(csv.DictReader(subprocess.run([sys.argv[1], "report", "--csv", sys.argv[2]], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()))
takes, ones = float(sys.argv[3]) * 1e6, int(sys.argv[4])
bad, steps = [], {int(r["seq"]) for r in rows if r["op"] == "SendRecv"}
large = max(int(r["bytes"]) for r in rows if r["op"] == "AllReduce")
for seq in sorted(steps - {0}):
    plan = [r for r in rows if r["op"] == "SendRecv" and int(r["seq"]) == seq and float(r["shared_ns"]) > 0]
    other = [r for r in rows if r["op"] == "AllReduce" and int(r["seq"]) == seq and int(r["bytes"]) == large]
    comes = [int(r["virtual_arrive_ns"]) for r in plan + other]
    apart = max(comes) - min(comes)
    wanted = min(takes, float(other[0]["model_ns"]) / ones)
    for r in other + plan:
        later, times = float(r["shared_ns"]), ones if r in plan else 1
        if r in plan and later < max(float(r["shared_ns"]) for r in plan) - 1: continue # its part of the plan is over earlier
        if not times * (wanted - apart) - 0.01 * wanted <= later <= times * wanted * 1.01: bad.append((seq, r["op"], r["world_rank"], later / 1e6, times * wanted / 1e6, apart / 1e6))
    if not plan: bad.append((seq, "alone"))
print("OK" if not bad and len(steps) > 1 else bad)
PY
fair() { python3 -IS fair.py "$NBOX" "$@"; }
both=${plan/nic=10Gbps/alpha=0s} # over all ports of a node, which have 10 Mbps or 100 each
ports=(--model alphabeta --inter-latency 0s --inter-bandwidth)
exits 0 "beside an all-reduce, plain" "$NBOX" run --quiet "${world[@]}" --real 0-15 --out beside -- "${job[@]}" --beside 1000000
exits 0 "... re-timed" "$NBOX" retime beside "${ports[@]}" 10Mbps --what-if $both --out beside-retimed
is "$(fair beside-retimed 3355.4432 1)" OK "the plan and the all-reduce have half of the NICs each"
"$NBOX" retime beside --model nccl --preset dgx-a100 --inter 1x10Mbps --what-if $both --out beside-nccl >/dev/null
is "$(fair beside-nccl 14000 2)" OK "NCCL's two channels have two thirds of a NIC, the plan the rest"
exits 0 "... live" "$NBOX" run --quiet "${world[@]}" --real 0-15 "${ports[@]}" 100Mbps --what-if $both --out beside-live -- "${job[@]}" --beside 1000000 --steps 2
is "$(fair beside-live 335.54432 1)" OK "live, too"

# what is not as declared keeps its times
exits 0 "another tensor" "$NBOX" retime plain-0-15 --what-if ${plan/2048/1024} --json other.json --out other
says "48 were not as declared and kept the times of plain sends" "... is left alone, and counted"
says "no resharding step as it says was seen" "... and the what-if had no effect"
says "where the tensor has 4 MiB" "... and why"
"$NBOX" retime plain-0-15 --out same >/dev/null
is "$("$NBOX" report --csv other | cut -d, -f1-6,24,25)" "$("$NBOX" report --csv same | cut -d, -f1-6,24,25)" "... so nothing else changes"
exits 0 "one by one" "$NBOX" run "${world[@]}" --real 0-15 --what-if $plan --json single.json -- "${job[@]}" --steps 1 --one-by-one
is "$(json single.json 'd["resharding"]["planned"], d["resharding"]["left_alone"]')" "(0, 32)" "a receiver that has its tile in two groups is left alone, and so are its senders"

exits 0 "nothing said of the tensor" "$NBOX" retime plain-0-15 --what-if xmesh:strategy=broadcast,nic=10Gbps --json assumed.json --out assumed
says "*assumed*" "... so it is assumed, and said"
# rank 0 sends 8 MiB to each of two hosts, one slice by broadcast in 100 pieces; 4 ranks share the NIC
is "$("$NBOX" report --csv assumed | awk -F, '$6 == "SendRecv" && $5 == 0 && $2 == 0 { printf "%.1f", $17 + $18 }')" "$(python3 -c 'print(round((1 + 1 / 100) * 2**23 / (1.25 / 4), 1))')" "... a sender's copies as one slice"
nothing_left
finish
