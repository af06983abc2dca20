#!/usr/bin/env python3
"""A peer of the tool, with pyzmq alone.

    peer.py push|pub|pair|req|pull|sub|rep bind|connect ENDPOINT [COUNT]

What it sends are lines on stdin, what it receives goes to stdout: each line is a message, a JSON array of its frames in
hexadecimal digits. `push`, `pub` and `pair` send each line; `pair` then receives one message for each. `req` prints the
reply to each line. `pull` and `sub` print COUNT messages; `rep` prints COUNT requests and sends each one back.
The first line on stdout is `READY` and the endpoint.
"""

import binascii
import json
import sys
import time

import zmq


def main():
    kind, how, endpoint = sys.argv[1:4]
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    socket = zmq.Context().socket(getattr(zmq, kind.upper()))
    socket.setsockopt(zmq.RCVTIMEO, 60_000)
    socket.setsockopt(zmq.SNDTIMEO, 60_000)
    if kind == "sub":
        socket.setsockopt(zmq.SUBSCRIBE, b"")
    getattr(socket, how)(endpoint)
    print("READY", socket.getsockopt(zmq.LAST_ENDPOINT).decode().rstrip("\0"), flush=True)

    def show(frames):
        print(json.dumps([binascii.hexlify(frame).decode() for frame in frames]), flush=True)

    if kind in ("push", "pub", "pair", "req"):
        lines = [[binascii.unhexlify(frame) for frame in json.loads(line)] for line in sys.stdin]
        if kind == "pub":
            time.sleep(0.5)  # what is published before the subscriber has joined is lost
        for frames in lines:
            socket.send_multipart(frames)
            if kind == "req":
                show(socket.recv_multipart())
        if kind == "pair":
            for _ in lines:
                show(socket.recv_multipart())
    for _ in range(count):
        frames = socket.recv_multipart()
        show(frames)
        if kind == "rep":
            socket.send_multipart(frames)


main()
