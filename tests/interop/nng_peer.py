"""A raw NNG peer in Python: it knows the bundle from its documentation, and pynng; nothing of tensorwire.

    nng_peer.py TIMEOUT FROM TO REQUEST

It dials the three endpoints. What it pulls from FROM it takes apart, puts together again and pushes to TO, until a
message of the one frame b"stop". Before that it pushes the messages of `own()`, and asks REQUEST for each of them once,
whose reply has to be the same frames in reverse.
"""

import struct
import sys

import pynng

HEADER = struct.Struct("<8sIIQ")
ENTRY = struct.Struct("<QQ")


def aligned(offset):
    return (offset + 63) // 64 * 64


def encode(frames):
    end = HEADER.size + ENTRY.size * len(frames)
    table, body = b"", b""
    start_of_body = end
    for frame in frames:
        start = aligned(end)
        body += bytes(start - end) + frame
        table += ENTRY.pack(start, len(frame))
        end = start + len(frame)
    assert start_of_body + len(body) == end
    return HEADER.pack(b"TWBUNDLE", 1, len(frames), end) + table + body


def decode(bundle):
    magic, version, count, total = HEADER.unpack_from(bundle)
    assert (magic, version, total) == (b"TWBUNDLE", 1, len(bundle)), bundle[:24]
    frames = []
    for index in range(count):
        offset, length = ENTRY.unpack_from(bundle, HEADER.size + ENTRY.size * index)
        assert offset % 64 == 0 and offset + length <= total
        frames.append(bundle[offset : offset + length])
    return frames


def own():
    yield [b"metadata"]
    yield [b""]
    yield [b"", b"", b""]
    yield [b'{"tensor_descriptors":[]}', bytes(range(256)) * 40, b"", b"\xff" * 63, b"\x01" * 64, b"\x02" * 65]
    yield [bytes([index % 251]) * index for index in range(200)]
    yield [b"large", b"\x5a" * (3 << 20)]


def main():
    timeout, source, target, request = sys.argv[1:]
    options = {"recv_timeout": int(timeout), "send_timeout": int(timeout)}
    with pynng.Pull0(dial=source, **options) as pull, pynng.Push0(dial=target, **options) as push:
        with pynng.Req0(dial=request, **options) as req:
            for frames in own():
                push.send(encode(frames))
                req.send(encode(frames))
                assert decode(req.recv()) == frames[::-1]
        while True:
            bundle = pull.recv()
            frames = decode(bundle)
            again = encode(frames)
            assert again == bundle
            push.send(again)
            if frames == [b"stop"]:
                # The peer pulls this before it closes: nothing of ours is left then.
                assert decode(pull.recv()) == [b"stopped"]
                return


main()
