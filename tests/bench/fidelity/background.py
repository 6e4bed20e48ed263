"""Traffic of somebody else, in the lab: the second host sends to the first, BYTES a second, until it is ended.

  lab run --only 4,3 --per-host -- python3 background.py 12.5e6
"""
import os
import socket
import sys
import time

SO_MAX_PACING_RATE = 47
PORT = 19002

address, rate = os.environ["MASTER_ADDR"], int(float(sys.argv[1]))
if os.environ["NODE_RANK"] == "0":
    taker, buf = socket.create_server((address, PORT)).accept()[0], bytearray(1 << 20)
    while taker.recv_into(buf):
        pass
else:
    while True:
        try:
            sender = socket.create_connection((address, PORT))
            break
        except ConnectionRefusedError:  # not there yet
            time.sleep(0.05)
    sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, rate)
    while True:
        sender.sendall(bytes(64 << 10))
