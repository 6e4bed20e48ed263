#!/usr/bin/env python3
"""Reads Chakra execution traces, strictly: read-chakra.py FILE... prints of each how many nodes there are of each type, its groups, and by how
many us at most a node begins at another time than when the ones before it are over. Field numbers and types are those of mlcommons/chakra,
schema/protobuf/et_def.proto; any other field is an error."""
import json
import sys

# field: its name, the kind of its value, whether it may come again
ATTR = {1: ("name", "text", 0), 7: ("int32_val", "number", 0), 9: ("int64_val", "number", 0), 27: ("bool_val", "number", 0),
        29: ("string_val", "text", 0)}
IO_INFO = {1: ("values", "text", 0), 2: ("shapes", "text", 0), 3: ("types", "text", 0)}
METADATA = {1: ("version", "text", 0), 2: ("attr", ATTR, 1)}
NODE = {1: ("id", "number", 0), 2: ("name", "text", 0), 3: ("type", "number", 0), 4: ("ctrl_deps", "number", 1), 5: ("data_deps", "number", 1),
        6: ("start_time_micros", "number", 0), 7: ("duration_micros", "number", 0), 8: ("inputs", IO_INFO, 0), 9: ("outputs", IO_INFO, 0),
        10: ("attr", ATTR, 1)}
TYPES = {1: "metadata", 4: "comp", 5: "send", 6: "recv", 7: "coll"}
WANTED = {"coll": {"is_cpu_op", "comm_size", "pg_name", "comm_type"}, "comp": {"is_cpu_op"}, "metadata": set()}
WANTED["send"] = WANTED["recv"] = {"is_cpu_op", "comm_size", "pg_name", "comm_src", "comm_dst", "comm_tag"}


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def message(data, form):
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        name, kind, is_repeated = form[tag >> 3]
        assert tag & 7 == (0 if kind == "number" else 2), f"wire type of {name}"
        value, at = varint(data, at)
        if kind != "number":
            value, at = data[at:at + value], at + value
            value = value.decode() if kind == "text" else message(value, kind)
        assert is_repeated or name not in found, f"{name} twice"
        found[name] = found.get(name, []) + [value] if is_repeated else value
    assert at == len(data)
    return found


def messages(data):
    at = 0
    while at < len(data):
        n, at = varint(data, at)
        yield data[at:at + n]
        at += n


def read(path):
    with open(path, "rb") as f:
        first, *nodes = messages(f.read())
    assert message(first, METADATA) == {"version": "0.0.4"}
    over, counts, off, groups = {}, {}, 0, None
    for n in (message(m, NODE) for m in nodes):
        kind = TYPES[n["type"]]
        counts[kind] = counts.get(kind, 0) + 1
        attributes = [a["name"] for a in n.get("attr", [])]
        assert set(attributes) == WANTED[kind] and len(attributes) == len(WANTED[kind]), f"attributes of {n}"
        if kind == "metadata":
            groups = {g["pg_name"]: g["ranks"] for g in json.loads(n["inputs"]["values"][2:-2])}
        begin = max((over[d] for d in n.get("ctrl_deps", []) + n.get("data_deps", [])), default=n["start_time_micros"])
        off = max(off, abs(begin - n["start_time_micros"]))
        assert n["id"] not in over
        over[n["id"]] = begin + n["duration_micros"]
    print(counts, groups, "off by", off)


for file in sys.argv[1:]:
    read(file)
