#!/usr/bin/env python3
"""Reads record.nbox, the record of a run of nbox, without nbox: python3 nbox_record.py RECORD prints what `nbox record dump --json` prints,
in the order of the file.

    import nbox_record
    for row in nbox_record.rows("nbox-out/mine/record.nbox"):
        if row["row"] == "OP" and row["kind"] == "AllReduce":
            print(row["world_rank"], row["virtual_end_ns"] - row["virtual_arrive_ns"])

RECORD.md describes rows and fields. One file, Python 3.8; libzstd, which nbox needs as well, unpacks."""
import ctypes
import ctypes.util
import json
import signal
import struct
import sys

MAGIC = b"\x50\x2a\x4d\x18\x08\0\0\0nboxrec2"
FRAME_MAX = 16 << 20

KINDS = ["AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "AllToAll", "Gather", "Scatter", "SendRecv"]
DTYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"]
ALGOS = ["ring", "tree", "direct", "chain"]
TOOK_ALGORITHMS = ["tree", "ring", "CollNet direct", "CollNet chain", "NVLS", "NVLS tree", "PAT"]
TOOK_PROTOCOLS = ["LL", "LL128", "Simple"]
HOW = ["model", "symmetry", "simulated"]
EXCHANGES = ["none", "messages", "payload"]
NCCL = ["gate", "full"]
DATA = ["mirror", "fill", "identity", "none"]
SOURCES = ["world", "all real", "parent", "color", "job's list", "store", "layout", "template", "guess"]
SURE = ["exact", "guessed"]
POINTS = ["stream", "host"]

# Of each kind of row: its name; fields behind the letter that struct has for their type; lists with those of an entry; fields that are words.
ROWS = {
    1: ("HEADER", "I world_size n_nodes gpus_per_node n_real exchange data Q seed start_ns start_unix_ns 512s model 256s layout data_for retimed_of Q n_warm_up I nccl unused", {},
        {"exchange": EXCHANGES, "data": DATA, "nccl": NCCL}),
    2: ("END", "Q n_lost clock_error_ns I n_lost_notes lost_errno Q n_debts debt_ns", {}, {}),
    3: ("COMM", "I number parent n_ranks base stride source sure axes", {"members": "I", "real": "I rank world_rank"},
        {"source": SOURCES, "sure": SURE}),
    4: ("OP", "Q number seq name host bytes count call_ns arrive_ns start_ns due_ns release_ns local_done_ns virtual_arrive_ns virtual_end_ns "
        "plain_arrive_ns plain_end_ns d model_ns injected_ns Q n_messages I comm rank world_rank stream kind dtype redop root algo how flags "
        "waited_for Q exposed_ns work_ns order done_order d shared_ns queued_ns waited_ns I took_algorithm took_protocol took_channels unused",
        {"deps": "Q name I is_same_stream unused", "calls": "I peer is_send Q bytes"},
        {"kind": KINDS, "dtype": DTYPES, "algo": ALGOS, "how": HOW, "took_algorithm": TOOK_ALGORITHMS, "took_protocol": TOOK_PROTOCOLS}),
    5: ("POINT", "Q name host call_ns time_ns virtual_ns plain_ns exposed_ns I world_rank stream kind is_host_bound Q work_ns order",
        {"deps": "Q name I is_same_stream unused"}, {"kind": POINTS}),
    6: ("JOB", "I unused", {"texts": "1s"}, {}),
}


class Fields:
    """Turns bytes into a dict; a single nameless field into its value."""

    def __init__(self, text):
        form, self.names = "<", []
        for word in text.split():
            if word in ("I", "Q", "d") or word[0].isdigit():
                letter = word
            else:
                form += letter
                self.names.append(word)
        self.struct = struct.Struct(form if self.names else "<" + letter)

    def take(self, data):
        values = self.struct.unpack(data[:self.struct.size].ljust(self.struct.size, b"\0"))  # what a row lacks is zero
        if not self.names:
            return values[0]
        return {n: v.partition(b"\0")[0].decode(errors="replace") if isinstance(v, bytes) else v
                for n, v in zip(self.names, values) if n != "unused"}


FORMS = {kind: (name, Fields(fields), [(n, Fields(f)) for n, f in lists.items()], words) for kind, (name, fields, lists, words) in ROWS.items()}


def frames(data):
    """What each frame of zstd unpacks to, up to one that is not whole."""
    zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    for name in ("ZSTD_findFrameCompressedSize", "ZSTD_decompress"):
        getattr(zstd, name).restype = ctypes.c_size_t
    zstd.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
    packed, at = ctypes.create_string_buffer(data, len(data)), len(MAGIC)
    while at < len(data):
        here, left = ctypes.byref(packed, at), ctypes.c_size_t(len(data) - at)
        n = zstd.ZSTD_findFrameCompressedSize(here, left)
        if zstd.ZSTD_isError(ctypes.c_size_t(n)):
            return
        size = zstd.ZSTD_getFrameContentSize(here, left)
        if size > FRAME_MAX:
            raise ValueError(f"a frame at byte {at} has no size, or is too large")
        plain = ctypes.create_string_buffer(max(size, 1))
        if zstd.ZSTD_decompress(plain, ctypes.c_size_t(size), here, ctypes.c_size_t(n)) != size:
            raise ValueError(f"the frame at byte {at} cannot be unpacked")
        yield plain.raw[:size]
        at += n


def take_row(form, body, n_fields, n_lists):
    name, fields, lists, words = form
    row = {"row": name, **fields.take(body[:n_fields])}
    for field, names in words.items():
        row[field] = names[row[field]] if row[field] < len(names) else "?"
    at = n_fields
    for i, (list_name, entry) in enumerate(lists):
        row[list_name] = []
        if i >= n_lists:
            continue
        n, size = struct.unpack_from("<II", body, at)
        at += 8
        row[list_name] = [entry.take(body[at + k * size:at + (k + 1) * size]) for k in range(n)]
        at += (n * size + 7) & ~7
    if name == "JOB":
        row["texts"] = b"".join(row["texts"]).decode(errors="replace").split("\0")[:-1]
    return row


def rows(path):
    """The rows of a record as dicts, in the order of the file; rows of kinds that it does not know are passed over. Where END is missing the
    run's nboxd died, or writes just now. Raises ValueError of what is no record."""
    with open(path, "rb") as f:
        data = f.read()
    if data[:len(MAGIC)] != MAGIC:
        raise ValueError(f"{path} is no record of nbox, version 2")
    for frame in frames(data):
        at = 0
        while at < len(frame):
            kind, size, n_fields, n_lists = struct.unpack_from("<IIII", frame, at)
            if size < 16 or n_fields > size - 16 or size > len(frame) - at:
                raise ValueError(f"{path}: a row has a size that cannot be")
            if kind in FORMS:
                yield take_row(FORMS[kind], frame[at + 16:at + size], n_fields, n_lists)
            if kind == 2:
                return
            at += size


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ... | head
    for line in rows(sys.argv[1]):
        print(json.dumps(line))
