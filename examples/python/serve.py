#!/usr/bin/env python3
"""Doubles the plain float32 and float64 tensors of each message, and sends all back: serve.py IN OUT

Until a message says {"stop":true}, or Ctrl-C. IN is pulled from, OUT pushed to; both are connected to.
"""

import sys

import zmq
from peer import pack, unpack


def answer(frames):
    """What is sent back; `None` for a message that says stop."""
    tensors, scalars = unpack(frames)
    if scalars.get("stop"):
        return None
    for name, value in tensors.items():
        if not isinstance(value, list) and value.dtype in ("f4", "f8"):
            tensors[name] = value + value
    return pack(tensors, scalars)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(print(__doc__) if sys.argv[1:] in (["-h"], ["--help"]) else __doc__)
    context = zmq.Context()
    context.linger = 1000  # milliseconds for what is still on its way out at the end
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    pull.connect(sys.argv[1])
    push.connect(sys.argv[2])
    try:
        while True:
            try:
                frames = answer(pull.recv_multipart(copy=False))
            except Exception as error:  # whatever a peer sends, the service goes on
                frames = pack({}, {"_disagg_error": f"{type(error).__name__}: {error}"})
            if frames is None:
                break
            push.send_multipart(frames)
    except KeyboardInterrupt:
        pass
