#!/usr/bin/env bash
# The lab itself: hosts are apart, cables have their rates, and nothing is left.
. "$(dirname "$0")/lib.sh"
interfaces() { ip -brief link | awk '{ print $1 }'; }
before=$(interfaces)

lab_up --hosts 4 --gpus 2 --cables 2 --link 400Mbps --slow-link 3=50Mbps
holder=$(holder)
is "$(pgrep -fxc "nbox-lab $lab infinity")" 1 "one process holds it"
exits 1 "a second one of that name" "$LAB" up --name "$lab" --hosts 2 --link 1Gbps
says "'$lab' is up already" "says so"
is "$(interfaces)" "$before" "no interface is added outside"

lab_run -- sh -c 'echo "$RANK $WORLD_SIZE $LOCAL_RANK $GROUP_RANK $(hostname) $MASTER_ADDR $NCCL_COMM_ID"' | sort -n >ranks
is "$(cut -d' ' -f1-6 ranks | head -n 3 | tr '\n' ';')" "0 8 0 0 lab0 10.91.0.1;1 8 1 0 lab0 10.91.0.1;2 8 0 1 lab1 10.91.0.1;" "ranks are numbered as torchrun does"
is "$(cut -d' ' -f7 ranks | sort -u | wc -l)" 1 "all know one address of the id"
exits 0 "srun's variables" lab_run --only 1,3 --launcher srun -- sh -c 'echo "$SLURM_PROCID/$SLURM_NTASKS $SLURM_NODEID $SLURM_STEP_NODELIST ${RANK-none}"'
says "3/4 1 lab1,lab3 none" "count among the hosts that were named"
lab_run --per-host --hosts 2 -- sh -c 'echo "$NODE_RANK of $NNODES ${RANK-none}"' | sort >nodes
is "$(tr '\n' ';' <nodes)" "0 of 2 none;1 of 2 none;" "one process a host, for launchers"

clocks=$(lab_run --per-host -- cut -d' ' -f1 /proc/uptime | sort -n | awk 'NR > 1 && $1 - last < 900 { bad++ } { last = $1 } END { print NR, bad + 0 }')
is "$clocks" "4 0" "each host's clock is its own"
lab_run --per-host -- sh -c 'touch "/dev/shm/of-$LAB_HOST"; ls /dev/shm /sys/class/net' | sort | uniq -c | tr -s ' ' >apart
is "$(grep -c of- apart) $(grep -c '^ 4 eth1' apart) $(grep -c '^ 4 lo' apart) $(wc -l <apart)" "4 1 1 10" "each host has its own shared memory and cables: $(tr '\n' ';' <apart)"
is "$(lab_run --per-host -- sh -c 'ls -d /proc/[0-9]* | wc -l' | awk '$1 > 40' | wc -l)" 0 "nobody sees processes outside"

is "$(RANK=9 WORLD_SIZE=9 lab_run --per-host --hosts 1 -- sh -c 'echo "${RANK-none} ${WORLD_SIZE-none}"')" "none none" "no launcher around it is seen"
exits 3 "the exit code is that of the process that failed" lab_run -- sh -c '[ "$RANK" != 5 ] || exit 3; sleep 0.2'
exits 143 "a signal's, too, and others are ended" lab_run -- sh -c '[ "$RANK" != 5 ] || kill -TERM $$; exec sleep 1000'
exits 127 "a program that is not there" lab_run --hosts 1 -- ./no-such-program
says "lab: ./no-such-program: No such file or directory" "is named"
exits 2 "a host that is not there" lab_run --only 4 -- true
says "host 4: this lab has hosts 0 to 3" "says which there are"

# A stream takes at least as long as its cable's rate says, from before its first byte until after its last. 3 MB, less the two buckets.
cat >stream.py <<'P'
import os, socket, sys, time
to = sys.argv[1]
if to == os.environ["ADDRESS"]:
    s = socket.create_server((to, 7000)).accept()[0]
    got = 0
    while got < 3000000:
        got += len(s.recv(1 << 20))
else:
    while True:
        try:
            s = socket.create_connection((to, 7000), 30)
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    start = time.monotonic()
    s.sendall(bytes(3000000))
    s.recv(1)  # the end, when the other has all of it
    print(time.monotonic() - start)
P
stream() { lab_run --per-host --only "0,$2" -- sh -c "ADDRESS=10.91.$1.\$((LAB_HOST + 1)) exec timeout 60 python3 -IS stream.py 10.91.$1.$(($2 + 1))"; }
took=$(stream 0 1)
is "$(awk -v t="$took" 'BEGIN { print (t >= (3000000 * 1514 / 1448 - 65536) * 8 / 400e6) }')" 1 "a cable of 400 Mbit/s is no faster: $took s"
took=$(stream 1 3)
is "$(awk -v t="$took" 'BEGIN { print (t >= (3000000 * 1514 / 1448 - 65536) * 8 / 50e6) }')" 1 "a slow cable is slow, also the second one: $took s"
exits 0 "lab measure" "$LAB" measure --name "$lab" --seconds 0.2 --json measured.json
is "$(json measured.json '[r["host"] for r in d["rows"]] == [1, 3, 0, 1, 2, 3] and all(r["mbps"] > 0 for r in d["rows"]) and d["round_trip_us"] > 0')" True "measures one stream, the slow cable and all to all"

lab_run -- sleep 1000 &
run=$!
all_sleep() { [ "$(pgrep -fxc 'sleep 1000')" -ge 8 ]; }
within 100 all_sleep
inside=$(pgrep --ns "$holder" --nslist pid | wc -l)
kill -KILL "$holder"
wait $run; is $? 137 "kill -9 of the holder ends what runs there ($inside processes)"
exits 77 "then there is no lab" "$LAB" status --name "$lab"
says "no lab '$lab' is up" "says so"

lab_up --hosts 4 --link 400Mbps --leaf 2 --uplink 50Mbps
is "$("$LAB" status --name "$lab" | head -n 1 | sed 's/process [0-9]*/process N/')" "'$lab', held by process N: 4 hosts x 1 GPUs, 2 a leaf, uplinks of 50 Mbit/s" "status"
took=$(stream 0 2)
is "$(awk -v t="$took" 'BEGIN { print (t >= (3000000 * 1514 / 1448 - 131072) * 8 / 50e6) }')" 1 "an uplink is no faster than its rate: $took s"
"$LAB" down --name "$lab"
is "$(pgrep -fxc "nbox-lab $lab infinity")" 0 "down ends it"
is "$(interfaces)" "$before" "nothing is left outside"

while IFS='|' read -r words why; do
	# shellcheck disable=SC2086
	exits 2 "lab $words" "$LAB" $words
	says "$why" "says why"
done <<'T'
up --hosts 4 --link 200|'200' is no rate from 10Kbps to 1000Gbps; write for example 200Mbps
up --hosts 1 --link 200Mbps|--hosts 1: a lab has 2 to 32 hosts
up --hosts 4 --link 200Mbps --gpus 0|'0' is no number from 1 to 255
run --only 1,1 -- true|'1,1' names a host twice
measure --seconds inf|'inf' is no number of seconds
up --hosts 4 --link 200Mbps --delay 1|'1' is no latency; write for example 1ms (us, ms)
up --hosts 4 --link 1Gbps --leaf 2|--leaf and --uplink belong together
up --hosts 4 --link 1Gbps --slow-link 4=1Mbps|--slow-link 4: hosts are 0 to 3
up --hosts 4 --link 1Gbps --slow-link 4|'4' is no slow link; write for example 3=50Mbps
run --only a -- true|'a' is no list of hosts; write for example 0,2
T
finish
