#!/usr/bin/env bash
# A results directory that somebody else has made: nothing waits for ever, no device is opened, no terminal obeys.
. "$(dirname "$0")/lib.sh"
unset NBOX_ADDR NBOX_TOKEN
esc=$'\e[2J\e]0;x\a\u009b\u202e'
# printed NAME: what $out is holds nothing that a terminal obeys
printed() {
	is "$(printf '%s' "$out" | python3 -c 'import sys, unicodedata
t = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
print(sorted({hex(ord(c)) for c in t if c != "\n" and (unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp"))}))')" "[]" "$1: nothing that a terminal obeys"
}

exits 0 "a run" timeout 300 "$NBOX" perf --live allreduce --nodes 4 --gpus-per-node 2 --model const:time=1us -b 1K -e 1K --out good
# fresh: a copy of it in the folder bad
fresh() { rm -rf bad && cp -r good bad; }
for name in record.nbox summary.json notes.txt aborts.txt ends.txt; do
	case $name in record.nbox) code=2 ;; *) code=0 ;; esac
	for kind in pipe device folder; do
		fresh && rm -f bad/$name
		case $kind in pipe) mkfifo bad/$name ;; device) ln -s /dev/zero bad/$name ;; folder) mkdir bad/$name ;; esac
		exits $code "report, $name is a $kind" timeout 60 "$NBOX" report bad
		says "bad/$name is no file, but a folder, a pipe or a device" "and says so"
	done
	fresh && truncate -s 1T bad/$name 2>/dev/null || truncate -s 10G bad/$name
	exits 0 "report, $name is huge" timeout 60 "$NBOX" report bad
	[ $name = record.nbox ] || says "bad/$name" "and says so" # nobody reads what lies behind a record's end
done

fresh
python3 - "$esc" <<'PY'
import json, struct, sys
esc = sys.argv[1].encode()
def row(kind, fields):
    return struct.pack("<4I", kind, 16 + len(fields), len(fields), 0) + fields
def text(name, size):
    return (esc + b"\x9b\xff\n-- forged " + name).ljust(size, b"\0")
rows = row(1, struct.pack("<6I3Q", 8, 4, 2, 1, 0, 0, 1, 1, 1) + text(b"model", 512) + text(b"layout", 256) + text(b"data_for", 256))
rows += row(3, struct.pack("<8I", 1, 0, 8, 0, 1, 0, 0, 0)) + row(4, bytes(152) + struct.pack("<12I", 1, *[0] * 11))
with open("bad/record.nbox", "r+b") as f: # a frame of zstd with one block that is not packed
    f.seek(16)
    f.write(b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(rows)) + struct.pack("<I", len(rows) << 3 | 1)[:3] + rows)
    f.truncate()
for name in ("notes.txt", "aborts.txt", "ends.txt"):
    open("bad/" + name, "wb").write(b"a word " + esc + b"\x9b\xff\r\n" + b"payload in memory of " + esc + b"\ndecided by: " + esc + b"\n")
json.dump({"exit_code": 3, "network": esc.decode(), "warnings": ["w " + esc.decode()]}, open("bad/summary.json", "w"))
PY
exits 0 "report of one that is full of escape sequences" timeout 60 "$NBOX" report --json out.json bad
printed "report"
says "warning: a word ?[2J" "what can be printed is"
for field in model data_for; do says "forged $field" "also of the record's $field"; done
is "$(json out.json '[c for c in str(d) if ord(c) < 32 or 127 <= ord(c) < 160]')" "[]" "nor is it in the JSON"
mkdir -p "nbox-out/$esc" && cp bad/record.nbox "nbox-out/$esc/"
exits 0 "report of the newest, whose name is" timeout 60 "$NBOX" report
printed "its name"
for name in summary.json config.yaml command.txt versions.txt nboxd.addr; do
	cp -r good "nbox-out/$name" && rm -f "nbox-out/$name/$name" && mkfifo "nbox-out/$name/$name"
	exits 0 "compare, $name is a pipe" timeout 60 "$NBOX" compare good "nbox-out/$name"
done
printf '%s\n' "$esc" >nbox-out/versions.txt/command.txt
exits 0 "a list of all these" timeout 60 "$NBOX" list
printed "the list"
rm -rf nbox-out

for kind in pipe device; do
	fresh
	case $kind in pipe) mkfifo bad/nboxd.addr ;; device) ln -s /dev/zero bad/nboxd.addr ;; esac
	exits 1 "status, nboxd.addr is a $kind" timeout 60 "$NBOX" status bad
	says "bad/nboxd.addr is no file" "and says so"
done
fresh
# what listens at the address is no nboxd: its words have no end, or are no frame
for kind in error status rubbish; do
	rm -f bad/nboxd.addr
	python3 - "$esc" $kind <<'PY' &
import os, socket, struct, sys
esc = sys.argv[1].encode()
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(4)
open("bad/nboxd.addr.new", "w").write("addr tcp:127.0.0.1:%d\npid 1\ntoken \n" % s.getsockname()[1])
os.rename("bad/nboxd.addr.new", "bad/nboxd.addr")
c, _ = s.accept()
hello = c.recv(48, socket.MSG_WAITALL)
def frame(kind, body): # magic and version as in HELLO
    return hello[:6] + struct.pack("<HQ", kind, len(body)) + bytes(32) + body
if sys.argv[2] == "error":
    c.sendall(frame(14, struct.pack("<i", 1) + (esc + b"\x9b" * 512)[:512]))
elif sys.argv[2] == "status":
    c.sendall(frame(2, struct.pack("<Q12I", 1, 0, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0)))
    c.sendall(frame(16, b'{"nboxd": "' + esc + b'\x9b"}'))
else:
    c.sendall(b"HTTP/1.0 200 " + esc + b"\x9b" * 4096)
c.recv(65536, socket.MSG_WAITALL)
PY
	server=$!
	check "somebody listens" within 60 test -s bad/nboxd.addr
	exits $([ $kind = status ] && echo 0 || echo 1) "status of what is no nboxd: $kind" timeout 60 "$NBOX" status --json bad
	printed "$kind"
	[ $kind != error ] || says "ERROR frame: the text has no end" "is told of the frame"
	kill $server 2>/dev/null; wait $server 2>/dev/null
done

# and one to write into
mkdir into && mkfifo into/config.yaml
exits 1 "a run whose --out has a pipe for a file" timeout 60 "$NBOX" run --nodes 2 --gpus-per-node 1 --out into -- true
says "into/config.yaml is there and is not of a run of nbox" "is refused"
finish
