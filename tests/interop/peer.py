#!/usr/bin/env python3
"""The Python end of the interop test, the pipeline example and the benches.

It runs the codec of an sglang release, found by path and left as it is, over ZeroMQ PUSH and PULL sockets:

    peer.py [--timeout SECONDS] CODEC send OUT [NAME ...]   sends the catalogue, or the messages named, and ends
    peer.py [--timeout SECONDS] CODEC recv IN REPLY N       unpacks N messages and says what was in each
    peer.py [--timeout SECONDS] CODEC echo IN OUT           unpacks, packs, sends back, until told to stop
    peer.py [--timeout SECONDS] CODEC stage NAME IN OUT     is the encoder, denoiser or decoder of a made-up pipeline
    peer.py [--timeout SECONDS] CODEC bench IN N            times unpack_tensors on the first message that comes
    peer.py [--timeout SECONDS] CODEC bench-pack IN N       times pack_tensors on what the first message held
    peer.py CODEC list                                      prints the names of the catalogue, one a line

An endpoint is `tcp://127.0.0.1:PORT` or `ipc://PATH` to connect to, or the same after an `@` to bind
(`@tcp://127.0.0.1:*` takes a free port). The first line on stdout is `READY` and the endpoints as they were bound or
connected, in the order of the arguments, with a space before each. No wait is longer than the timeout (60 seconds).
Exit status: 0 done, 2 wrong arguments, 3 timed out, 143 after SIGTERM.

`send`. A message's scalars hold `catalogue` (its name), `index` and `count` (which of how many), and `sha256`: for each
tensor field a list of hex digests of the payloads, one for a plain field, one per index or null for a list field.
Holes at the end of a list, and lists of nothing but holes, do not go over the wire and are not in `sha256`.

`recv`. Each message is answered with three frames: a JSON document, the metadata that pack_tensors writes for what was
unpacked, and the scalars alone as json.dumps writes them. The document is {"ok":true,"tensors":{NAME:T}}, T being
{"dtype":..,"shape":[..],"sha256":..}, or for a list field an array of such or null; or {"ok":false,"error":".."}
when the codec refused, and the other two frames are empty then. The fields are packed in the order in which their
names first occur on the wire, so the metadata is what came, byte for byte, when it is as the codec would write it:
list members together and in order, and no key twice in one object (json.loads keeps the last one).

`echo` ends after a message with the scalars {"stop":true}, which it does not answer. `stage` passes it on, then ends.

`stage`. Every payload of the pipeline is made by one formula; all arithmetic is modulo 256:

    byte i = a + 31*i + 7*(i >> 8) + 13*(i >> 16) + 17*(i >> 24)        a = 37*index + tag

`index` is the integer of that name in the request's scalars, at least 0; the tags and the tensors are in STAGES below.
A stage takes a message, compares every tensor in it, whole, with what the formula gives for the stage before
(the encoder expects none), and sends its own tensors with the scalars it got, in which `verified` is set: true if the
comparison held and an earlier stage did not say false. What the codec refuses, or scalars without an index, become
an error reply: no tensors, and the scalars {"request_id":..,"_disagg_error":".."}. Such a reply is passed on as it is.

`bench` and `bench-pack` print one line of JSON with medians in nanoseconds: unpack_ns and json_loads_ns, or pack_ns and
json_dumps_ns; and iterations, which is N, or as many as half the timeout allowed. The frames are read once, before.
For these two IN may also be `file:PATH`, a file that holds the frames; READY has no endpoint after it then. The file:

    count u32, then for each frame: length u64, bytes        (little-endian)
"""

import argparse
import hashlib
import importlib.util
import json
import random
import signal
import statistics
import struct
import sys
import time
import warnings

import numpy
import torch
import zmq

# stage -> [(field, list index or -1, dtype, shape, tag)], in the order on the wire
STAGES = {
    "encoder": [
        ("prompt_embeds", -1, torch.bfloat16, [1, 512, 4096], 1),
        ("negative_prompt_embeds", 0, torch.bfloat16, [1, 512, 4096], 2),
        ("negative_prompt_embeds", 1, torch.bfloat16, [1, 77, 768], 3),
    ],
    "denoiser": [
        ("latents", -1, torch.bfloat16, [1, 16, 21, 30, 52], 4),
        ("timesteps", -1, torch.float32, [40], 5),
    ],
    "decoder": [
        ("output", -1, torch.uint8, [1, 3, 81, 480, 832], 6),  # 97,044,480 bytes
    ],
}
STAGE_BEFORE = {"encoder": None, "denoiser": "encoder", "decoder": "denoiser"}


class TimedOut(Exception):
    """A wait was longer than the timeout."""


def usage_error(text):
    print(f"peer.py: {text}", file=sys.stderr)
    sys.exit(2)


def load_codec(path):
    spec = importlib.util.spec_from_file_location("codec", path)
    codec = importlib.util.module_from_spec(spec)
    sys.modules["codec"] = codec  # dataclasses look their module up
    spec.loader.exec_module(codec)
    return codec


def dumps(value):
    return json.dumps(value, separators=(",", ":")).encode()


def tensor_bytes(tensor):
    """A copy of the tensor's bytes in wire order."""
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def digest(tensor):
    return hashlib.sha256(tensor_bytes(tensor)).hexdigest()


def as_list(value):
    return value if isinstance(value, list) else [value]


# ---- the catalogue ----


def seeded(name, dtype, shape):
    """Arbitrary bytes, so that floats are NaNs and subnormals too; the same in every run."""
    item = torch.empty(0, dtype=dtype).element_size()
    size = item * int(numpy.prod(shape, dtype=numpy.int64))
    if size == 0:
        return torch.empty(shape, dtype=dtype)
    data = bytearray(random.Random(name).randbytes(size))
    if dtype == torch.bool:
        data = bytearray(byte & 1 for byte in data)
    return torch.frombuffer(data, dtype=dtype).reshape(shape)


def catalogue(codec):
    """Yields (name, tensor fields, scalars)."""
    dtypes = codec._DTYPE_TO_STR.items()
    for dtype, text in dtypes:
        yield f"dtype-{text}", {"latents": seeded(text, dtype, [2, 3, 5])}, {"guidance_scale": 7.5}
        yield f"scalar-{text}", {"sigma": seeded(text, dtype, [])}, {}
        yield f"empty-{text}", {"nothing": seeded(text, dtype, [0]), "flat": seeded(text, dtype, [2, 0, 3])}, {}

    def u8(name, *shape):
        return seeded(name, torch.uint8, shape)

    yield "all-dtypes", {text: seeded(text, dtype, [7]) for dtype, text in dtypes}, {}
    yield "rank-10", {"deep": u8("deep", *[1, 2] * 5)}, {}
    yield "not-contiguous", {"transposed": u8("t", 3, 4).t(), "strided": u8("s", 4, 6)[:, ::2]}, {}
    yield "list", {"embeds": [u8("0", 1, 4), seeded("1", torch.bfloat16, [2, 3]), u8("2")]}, {}
    yield "list-holes", {"embeds": [None, u8("1", 2), None, None, u8("4", 0), None]}, {}
    yield "list-all-holes", {"embeds": [None, None], "absent": None, "none": []}, {}
    yield "list-64", {"steps": [seeded(f"{i}", torch.float32, [i % 5, 3]) for i in range(64)]}, {}
    yield "list-between-plain", {"a": u8("a", 3), "b": [u8("b0", 1), u8("b1", 2)], "c": u8("c", 5)}, {}
    yield "tensor-and-scalar-of-one-name", {"seed": u8("seed", 8)}, {"seed": 42}
    names = ["", " ", "é", "潜在", "😀", "\0", "a\0b", 'q"q', "b\\s", "/", "\n\r\t\b\f", "\x7f", "\x1f", "\u2028", "\ufffd"]
    yield "names", {name: u8(name, i) for i, name in enumerate(names)}, {name: name for name in names}
    yield "long-name", {"n" * 1024: u8("long", 1)}, {}
    odd = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf"), "list": [float("nan"), [float("-inf")]]}
    yield "odd-floats", {"x": u8("x", 1)}, odd
    floats = [0.0, -0.0, 5.0, 1e16, 1e15, 1e-4, 1e-5, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3, 123456789.123456789]
    yield "floats", {"x": u8("x", 1)}, {"floats": floats}
    integers = [0, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64, 2**128 + 1, -(2**200), 10**400]
    yield "integers", {"x": u8("x", 1)}, {"integers": integers}
    deep = 0
    for i in range(100):
        deep = [deep] if i % 2 else {"k": deep}
    nested = {"null": None, "yes": True, "no": False, "empty": [{}, [], ""], "mixed": [1, "1", 1.0, [None, {"a": {"b": [{}]}}]]}
    yield "nested", {"x": u8("x", 1)}, {**nested, "deep": deep}
    yield "strings", {"x": u8("x", 1)}, {"every": "".join(map(chr, range(0x180))), "wide": "😀\U0010ffff", "long": "é" * 5000}
    yield "lone-surrogates", {"x": u8("x", 1)}, {"high": "\ud83d", "low": "a\ude00b", "turned": "\ude00\ud83d", "\udc80": 1}
    twice = {1: "a", "1": "b"}
    yield "duplicate-keys", {"x": u8("x", 1)}, {**twice, "inner": {None: 1, "null": 2, True: 3, "true": 4, 1.5: 5, "1.5": 6}}
    yield "no-tensors", {}, {}
    yield "error-reply", {}, {"request_id": "r1", "_disagg_error": 'RuntimeError: "CUDA out of memory"\n\tnode é'}
    yield "many-fields", {f"f{i}": u8(f"{i}", i) for i in range(300)}, {f"s{i}": i for i in range(300)}
    # Sizes around those at which libzmq and its readers change their ways.
    sizes = [28, 29, 30, 31, 32, 33, 34, 63, 64, 65, 255, 256, 257, 4095, 4096, 8191, 8192, 8193, 65536, 65537]
    yield "sizes", {f"{size}": u8(f"{size}", size) for size in sizes}, {}
    yield "video", {"output": formula(97_044_480, 99).reshape(1, 3, 81, 480, 832)}, {"request_id": "wan-test-001"}


def send(peer, args):
    out = peer.open(zmq.PUSH, args.out)
    messages = [message for message in catalogue(peer.codec) if not args.names or message[0] in args.names]
    if len(messages) < len(set(args.names)):
        usage_error("no message of that name")
    peer.ready()
    for index, (name, fields, scalars) in enumerate(messages):
        sha256 = {}
        for field, value in fields.items():
            digests = [None if item is None else digest(item) for item in as_list(value)]
            while digests and digests[-1] is None:
                digests.pop()
            if digests:
                sha256[field] = digests
        scalars = {**scalars, "catalogue": name, "index": index, "count": len(messages), "sha256": sha256}
        peer.send(out, fields, scalars)


def list_names(peer, args):
    print(*(name for name, _, _ in catalogue(peer.codec)), sep="\n")


# ---- recv and echo ----


def describe(codec, value):
    if value is None:
        return None
    if isinstance(value, list):
        return [describe(codec, item) for item in value]
    return {"dtype": codec.dtype_to_str(value.dtype), "shape": list(value.shape), "sha256": digest(value)}


def in_wire_order(frames, fields):
    names = [descriptor["field_name"] for descriptor in json.loads(frames[0])["tensor_descriptors"]]
    return {name: fields[name] for name in dict.fromkeys(names)}


def recv(peer, args):
    source = peer.open(zmq.PULL, args.source)
    reply = peer.open(zmq.PUSH, args.reply)
    peer.ready()
    for _ in range(args.n):
        frames = peer.receive(source)
        try:
            fields, scalars = peer.codec.unpack_tensors(frames)
            metadata, _ = peer.codec.pack_tensors(in_wire_order(frames, fields), scalars)
            tensors = {name: describe(peer.codec, value) for name, value in fields.items()}
            answer = [dumps({"ok": True, "tensors": tensors}), metadata, dumps(scalars)]
        except Exception as error:  # whatever the codec raises is the answer
            answer = [dumps({"ok": False, "error": f"{type(error).__name__}: {error}"[:1000]}), b"", b""]
        peer.wait(reply, zmq.POLLOUT)
        reply.send_multipart(answer)


def is_stop(fields, scalars):
    return not fields and scalars == {"stop": True}


def echo(peer, args):
    source = peer.open(zmq.PULL, args.source)
    out = peer.open(zmq.PUSH, args.out)
    peer.ready()
    while True:
        frames = peer.receive(source)
        try:
            fields, scalars = peer.codec.unpack_tensors(frames)
            if is_stop(fields, scalars):
                return
            fields = in_wire_order(frames, fields)
        except Exception as error:
            fields, scalars = {}, error_reply({}, error)
        peer.send(out, fields, scalars)


# ---- the pipeline ----


def formula(size, a):
    """The first `size` bytes of the formula in the module docs, as a tensor of uint8."""
    # Within 64 KiB the first three terms repeat from block to block; the last two are one number for a block.
    i = numpy.arange(1 << 16)
    block = (a + 31 * i + 7 * (i >> 8)).astype(numpy.uint8)
    k = numpy.arange(-(-size // (1 << 16)))
    blocks = block[None, :] + (13 * k + 17 * (k >> 8)).astype(numpy.uint8)[:, None]
    return torch.from_numpy(blocks.reshape(-1)[:size])


def stage_tensors(stage, index):
    fields = {}
    for name, list_index, dtype, shape, tag in STAGES[stage] if stage else []:
        size = torch.empty(0, dtype=dtype).element_size() * int(numpy.prod(shape))
        tensor = formula(size, 37 * (index % 256) + tag).view(dtype).reshape(shape)
        if list_index < 0:
            fields[name] = tensor
        else:
            fields.setdefault(name, []).append(tensor)
    return fields


def same(left, right):
    """Whether two sets of fields are equal in names, dtypes, shapes and every byte."""
    if left.keys() != right.keys():
        return False
    for name in left:
        if isinstance(left[name], list) != isinstance(right[name], list):
            return False
        ours, theirs = as_list(left[name]), as_list(right[name])
        if len(ours) != len(theirs):
            return False
        for a, b in zip(ours, theirs):
            if a is None or b is None or a.dtype != b.dtype or a.shape != b.shape:
                return False
            # As bytes: a NaN is not equal to itself.
            if not torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8)):
                return False
    return True


def error_reply(scalars, error):
    request_id = scalars.get("request_id", "") if isinstance(scalars, dict) else ""
    return {"request_id": request_id, "_disagg_error": f"{type(error).__name__}: {error}"[:1000]}


def stage(peer, args):
    source = peer.open(zmq.PULL, args.source)
    out = peer.open(zmq.PUSH, args.out)
    peer.ready()
    while True:
        frames, scalars = peer.receive(source), {}
        try:
            fields, scalars = peer.codec.unpack_tensors(frames)
            if is_stop(fields, scalars):
                peer.send(out, {}, scalars)
                return
            if "_disagg_error" in scalars:
                fields = {}
            else:
                index = scalars["index"]
                verified = same(fields, stage_tensors(STAGE_BEFORE[args.name], index))
                scalars = {**scalars, "verified": verified and scalars.get("verified", True) is True}
                fields = stage_tensors(args.name, index)
        except Exception as error:
            fields, scalars = {}, error_reply(scalars, error)
        peer.send(out, fields, scalars)


# ---- the benches ----


def median_ns(call, n, budget):
    """(median of up to `n` timed calls, how many there were)"""
    call()
    samples = []
    deadline = time.monotonic() + budget
    while len(samples) < n and (not samples or time.monotonic() < deadline):
        start = time.perf_counter_ns()
        call()
        samples.append(time.perf_counter_ns() - start)
    return statistics.median_low(samples), len(samples)


def frames_in(path):
    """The frames that a file holds."""
    with open(path, "rb") as file:
        (count,) = struct.unpack("<I", file.read(4))
        return [file.read(*struct.unpack("<Q", file.read(8))) for _ in range(count)]


def bench(peer, args):
    if args.source.startswith("file:"):
        frames = frames_in(args.source.removeprefix("file:"))
        peer.ready()
    else:
        source = peer.open(zmq.PULL, args.source)
        peer.ready()
        frames = peer.receive(source)
    metadata = frames[0]
    fields, scalars = peer.codec.unpack_tensors(frames)
    document = json.loads(metadata)
    if args.mode == "bench":
        whole, json_only = "unpack_ns", "json_loads_ns"
        calls = lambda: peer.codec.unpack_tensors(frames), lambda: json.loads(metadata)
    else:
        whole, json_only = "pack_ns", "json_dumps_ns"
        calls = lambda: peer.codec.pack_tensors(fields, scalars), lambda: dumps(document)
    budget = args.timeout / 4
    (whole_ns, iterations), (json_ns, _) = (median_ns(call, args.n, budget) for call in calls)
    size = sum(len(frame) for frame in frames)
    print(json.dumps({whole: whole_ns, json_only: json_ns, "iterations": iterations, "frames": len(frames), "bytes": size}))


# ---- the sockets ----


class Peer:
    """The codec, the sockets, and the one timeout of every wait."""

    def __init__(self, codec, timeout):
        self.codec = codec
        self.timeout_ms = int(timeout * 1000)
        self.context = zmq.Context()
        self.sockets = []

    def open(self, kind, endpoint):
        address = endpoint[1:] if endpoint.startswith("@") else endpoint
        if not address.startswith(("tcp://127.0.0.1:", "ipc://")):
            usage_error(f"{endpoint}: only loopback TCP and ipc")
        socket = self.context.socket(kind)
        socket.immediate = True  # a PUSH socket waits for its peer, so that the timeout counts
        self.sockets.append(socket)
        if endpoint.startswith("@"):
            socket.bind(address)
        else:
            socket.connect(address)
        return socket

    def ready(self):
        print("READY", *(socket.get_string(zmq.LAST_ENDPOINT) for socket in self.sockets), flush=True)

    def wait(self, socket, event):
        if not socket.poll(self.timeout_ms, event):
            raise TimedOut("nothing came" if event == zmq.POLLIN else "nobody took a message")

    def receive(self, socket):
        self.wait(socket, zmq.POLLIN)
        # As bytes objects, the way sglang itself receives. With copy=False the tensor would lie in libzmq's own buffer,
        # at any address, and torch 1.13 dies of a segmentation fault when it clones an unaligned complex128.
        return socket.recv_multipart()

    def send(self, socket, fields, scalars):
        self.wait(socket, zmq.POLLOUT)
        self.codec.send_tensors(socket, fields, scalars)

    def close(self, linger_ms):
        for socket in self.sockets:
            socket.close(linger=linger_ms)
        self.context.term()


def main():
    parser = argparse.ArgumentParser(prog="peer.py", usage="see the head of the file")
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("codec")
    modes = parser.add_subparsers(dest="mode", required=True)
    for mode, run, words in [
        ("send", send, ["out"]),
        ("recv", recv, ["source", "reply"]),
        ("echo", echo, ["source", "out"]),
        ("stage", stage, ["name", "source", "out"]),
        ("list", list_names, []),
        ("bench", bench, ["source"]),
        ("bench-pack", bench, ["source"]),
    ]:
        sub = modes.add_parser(mode)
        sub.set_defaults(run=run)
        for word in words:
            sub.add_argument(word, choices=STAGES if word == "name" else None)
        if mode == "send":
            sub.add_argument("names", nargs="*")
        if mode in ("recv", "bench", "bench-pack"):
            sub.add_argument("n", type=int)
    args = parser.parse_args()

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # The codec wraps read-only frames and clones them: torch's warning about that is of no use here.
    warnings.filterwarnings("ignore", message="The given buffer is not writable")
    peer = Peer(load_codec(args.codec), args.timeout)
    linger_ms = 0
    try:
        args.run(peer, args)
        linger_ms = peer.timeout_ms
    except TimedOut as error:
        print(f"peer.py {args.mode}: {error} for {args.timeout:g} s", file=sys.stderr)
        return 3
    finally:
        peer.close(linger_ms)
    return 0


if __name__ == "__main__":
    sys.exit(main())
