#!/usr/bin/env python3
"""A peer of a Rust service, of numpy and pyzmq alone: the format needs no torch, and no Rust on this side.

    peer.py serve IN OUT    doubles the plain float32 and float64 tensors of each message, and sends all back,
                            until one says {"stop":true}, or Ctrl-C
    peer.py ask OUT IN      sends a request to a service that does the same, and looks at the answer

IN is pulled from, OUT pushed to; both are connected to: tcp://127.0.0.1:PORT or ipc://PATH.
"""

import json
import sys

import numpy as np
import zmq

NUMPY = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "float16", "float32", "float64", "complex64", "complex128"]
# What numpy has no dtype for comes as its bits; the name goes along in the dtype's metadata.
BITS = {"bfloat16": "u2", "float8_e4m3fn": "u1", "float8_e5m2": "u1", "float8_e4m3fnuz": "u1",
        "float8_e5m2fnuz": "u1", "float8_e8m0fnu": "u1"}
DTYPES = {name: np.dtype(name) for name in NUMPY}
DTYPES |= {name: np.dtype(bits, metadata={"wire": name}) for name, bits in BITS.items()}


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


def serve(pull, push):
    while True:
        frames = pull.recv_multipart(copy=False)
        try:
            tensors, scalars = unpack(frames)
            if scalars.get("stop"):
                return
            for name, value in tensors.items():
                if not isinstance(value, list) and value.dtype in ("f4", "f8"):
                    tensors[name] = value + value
        except Exception as error:  # whatever a peer sends, the service goes on
            tensors, scalars = {}, {"_disagg_error": f"{type(error).__name__}: {error}"}
        push.send_multipart(pack(tensors, scalars))


def ask(pull, push):
    latents, mask = np.arange(6, dtype="f4").reshape(2, 3), np.array([True, False])
    push.send_multipart(pack({"latents": latents, "masks": [mask, None, mask]}, {"request_id": "r1", "seed": 42}))
    tensors, scalars = unpack(pull.recv_multipart(copy=False))
    assert scalars["request_id"] == "r1", scalars
    assert np.array_equal(tensors["latents"], latents * 2), tensors
    assert tensors["masks"][1] is None and np.array_equal(tensors["masks"][2], mask), tensors


if __name__ == "__main__":
    if "-h" in sys.argv or "--help" in sys.argv:
        sys.exit(print(__doc__))
    if len(sys.argv) != 4 or sys.argv[1] not in ("serve", "ask"):
        sys.exit(__doc__)
    context = zmq.Context()
    context.linger = 1000  # milliseconds for what is still on its way out at the end
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    first, second = (pull, push) if sys.argv[1] == "serve" else (push, pull)
    first.connect(sys.argv[2])
    second.connect(sys.argv[3])
    try:
        (serve if sys.argv[1] == "serve" else ask)(pull, push)
    except KeyboardInterrupt:
        pass
