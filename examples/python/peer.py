#!/usr/bin/env python3
"""Asks a service that doubles float tensors, and looks at the answer: peer.py OUT IN

Of numpy and pyzmq alone: the format, `pack` and `unpack`, needs no torch, and no Rust on this side. OUT is pushed to, IN
pulled from; both are connected to: tcp://127.0.0.1:PORT or ipc://PATH. `serve.py` is such a service, of these two functions.
"""

import json
import sys

import numpy as np
import zmq

DTYPES = {name: np.dtype(name) for name in (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128").split()}
# What numpy has no dtype for comes as its bits; the name goes along in the dtype's metadata.
for name in "bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu".split():
    DTYPES[name] = np.dtype("u2" if name == "bfloat16" else "u1", metadata={"wire": name})


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
    """Arrays by name, read where ZeroMQ has put them, and the scalars; raises if that is no message."""
    metadata, tensors = json.loads(frames[0].bytes), {}
    for descriptor, frame in zip(metadata["tensor_descriptors"], frames[1:], strict=True):
        name, shape, index = descriptor["field_name"], descriptor["shape"], descriptor.get("list_index", -1)
        if min(shape, default=0) < 0 or not -1 <= index <= 4096:  # numpy would guess, and a list be that long
            raise ValueError(f"{name!r} of shape {shape} at {index}")
        array = np.frombuffer(frame.buffer, DTYPES[descriptor["dtype"]]).reshape(shape)
        if index >= 0:
            members = tensors.setdefault(name, [])
            members.extend([None] * (index + 1 - len(members)))
            members[index] = array
        elif tensors.setdefault(name, array) is not array:
            raise ValueError(f"{name!r} twice")
    return tensors, metadata.get("scalar_fields", {})


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(print(__doc__) if sys.argv[1:] in (["-h"], ["--help"]) else __doc__)
    context = zmq.Context()
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    push.connect(sys.argv[1])
    pull.connect(sys.argv[2])
    latents, mask = np.arange(6, dtype="f4").reshape(2, 3), np.array([True, False])
    push.send_multipart(pack({"latents": latents, "masks": [mask, None, mask]}, {"request_id": "r1", "seed": 42}))
    tensors, scalars = unpack(pull.recv_multipart(copy=False))
    assert scalars["request_id"] == "r1" and np.array_equal(tensors["latents"], latents * 2), (tensors, scalars)
    assert tensors["masks"][1] is None and np.array_equal(tensors["masks"][2], mask), tensors
