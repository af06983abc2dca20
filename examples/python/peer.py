#!/usr/bin/env python3
"""A peer of a Rust service, of numpy and pyzmq alone: the format needs no torch, and no Rust on this side.

    peer.py serve IN OUT    doubles the plain float32 and float64 tensors of each message, and sends all back,
                            until one says {"stop":true}
    peer.py ask OUT IN      sends a request to a service that does the same, and looks at the answer

IN is pulled from, OUT pushed to; both are connected to: tcp://127.0.0.1:PORT or ipc://PATH.
"""

import json
import sys

import numpy as np
import zmq

# What numpy has no dtype for comes as its bits; the name goes along in the dtype's metadata.
BITS = {"bfloat16": "u2", "float8_e4m3fn": "u1", "float8_e5m2": "u1", "float8_e4m3fnuz": "u1",
        "float8_e5m2fnuz": "u1", "float8_e8m0fnu": "u1"}


def pack(tensors, scalars):
    """Frames of arrays by name; a list of arrays may have holes: None."""
    descriptors, payloads = [], []
    for name, value in tensors.items():
        for index, array in enumerate(value) if isinstance(value, list) else [(-1, value)]:
            if array is not None:
                dtype = (array.dtype.metadata or {}).get("wire", array.dtype.name)
                descriptors.append({"field_name": name, "shape": array.shape, "dtype": dtype, "list_index": index})
                payloads.append(array.tobytes())
    metadata = {"tensor_descriptors": descriptors, "scalar_fields": scalars}
    return [json.dumps(metadata, separators=(",", ":")).encode(), *payloads]


def unpack(frames):
    """Arrays by name, read where ZeroMQ has put them, and the scalars."""
    metadata, tensors = json.loads(frames[0].bytes), {}
    for descriptor, frame in zip(metadata["tensor_descriptors"], frames[1:], strict=True):
        name, dtype, index = descriptor["field_name"], descriptor["dtype"], descriptor.get("list_index", -1)
        dtype = np.dtype(BITS[dtype], metadata={"wire": dtype}) if dtype in BITS else np.dtype(dtype)
        array = np.frombuffer(frame.buffer, dtype).reshape(descriptor["shape"])
        if index < 0:
            tensors[name] = array
        elif index <= 4096:  # the peer says how long the list is
            members = tensors.setdefault(name, [])
            members.extend([None] * (index + 1 - len(members)))
            members[index] = array
    return tensors, metadata.get("scalar_fields", {})


mode, first, second = sys.argv[1:]
context = zmq.Context()
pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
pull.connect(first if mode == "serve" else second)
push.connect(second if mode == "serve" else first)

if mode == "ask":
    latents, mask = np.arange(6, dtype="f4").reshape(2, 3), np.array([True, False])
    push.send_multipart(pack({"latents": latents, "masks": [mask, None, mask]}, {"request_id": "r1", "seed": 42}))
    tensors, scalars = unpack(pull.recv_multipart(copy=False))
    assert scalars["request_id"] == "r1", scalars
    assert np.array_equal(tensors["latents"], latents * 2), tensors
    assert tensors["masks"][1] is None and np.array_equal(tensors["masks"][2], mask), tensors

while mode == "serve":
    tensors, scalars = unpack(pull.recv_multipart(copy=False))
    if scalars.get("stop"):
        break
    for name, value in tensors.items():
        if not isinstance(value, list) and value.dtype in ("f4", "f8"):
            tensors[name] = value + value
    push.send_multipart(pack(tensors, scalars))
