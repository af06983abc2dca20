#!/usr/bin/env python3
"""The Python end of the test interop_protocol: the control messages of an sglang release.

    protocol_peer.py TIMEOUT PROTOCOL IN OUT SEED N

PROTOCOL is transport/protocol.py of the release, found by path, run alone and left as it is. IN and OUT are endpoints
to connect to, as PULL and as PUSH.

First it sends N messages of its own, made of random values by SEED: as its dataclasses write them, and as the scheduler
writes the dictionaries that have no dataclass. Each has a third frame, which readers ignore: the account of what is in it.

Then it reads what comes, by `decode_transfer_msg`, and answers each with three frames: the account of what it read, the
payload that it writes for the dictionary, and the one that it writes for the dataclass of the type (empty if the keys
are not just those of the class). What is no control message is answered with one frame, `not control`; `[b"stop"]` with
`stopped`, and it ends.

An account is a JSON object of what is under each key, exact for every reader: a string is the list of its code points,
an integer is its decimal digits in a string, an object is {"json": its text}, a list of slots is a list of lists, the
other values are themselves.
"""

import importlib.util
import json
import random
import sys

import zmq


def load(path):
    spec = importlib.util.spec_from_file_location("protocol", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["protocol"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def dumps(value):
    return json.dumps(value, separators=(",", ":"))


def account(message):
    def of(value):
        if isinstance(value, str):
            return [ord(char) for char in value]
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int):
            return str(value)
        if isinstance(value, dict):
            return {"json": dumps(value)}
        return [[str(slot[key]) for key in ("offset", "size", "slot_id", "addr")] for slot in value]

    return dumps({key: of(value) for key, value in message.items()}).encode()


class Maker:
    """Random values, the same for one seed."""

    def __init__(self, protocol, seed):
        self.protocol = protocol
        self.random = random.Random(seed)

    def number(self):
        return self.random.choice([0, 1, 512, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, self.random.getrandbits(64)])

    def text(self):
        def char():
            low, high = self.random.choice([(0x20, 0x7E), (0, 0x7F), (0x80, 0x7FF), (0xD800, 0xDFFF), (0xE000, 0x10FFFF)])
            return chr(self.random.randint(low, high))

        known = ["", "wan-test-001", "é😀", "\ud800", "a\udc00b", 'q"\\/\n', "\x00\x7f\u2028", "transfer_push"]
        if self.random.random() < 0.4:
            return self.random.choice(known)
        return "".join(char() for _ in range(self.random.randrange(12)))

    def value(self, depth):
        leaves = [
            None,
            True,
            False,
            float("nan"),
            float("inf"),
            float("-inf"),
            -0.0,
            1e16,
            1e-05,
            5e-324,
            self.random.uniform(-1e6, 1e6),
            -self.random.getrandbits(80),
            10**60,
            self.number(),
            self.text(),
        ]
        kind = self.random.randrange(10)
        if depth and kind == 0:
            return [self.value(depth - 1) for _ in range(self.random.randrange(4))]
        if depth and kind == 1:
            return {self.text(): self.value(depth - 1) for _ in range(self.random.randrange(4))}
        return self.random.choice(leaves)

    def scalars(self):
        scalars = {self.text(): self.value(3) for _ in range(self.random.randrange(6))}
        if self.random.random() < 0.3:
            scalars["_prealloc_slot_id"] = self.random.choice([0, 7, 2**64 - 1, 2**64, -1, None, "x", 1.0])
        return scalars

    def manifest(self):
        def entry():
            shape = [self.random.randrange(9) for _ in range(self.random.randrange(5))]
            entry = {"offset": self.random.randrange(64) * 512, "shape": shape, "dtype": "bfloat16"}
            if self.random.random() < 0.5:
                entry["list_index"] = self.random.randrange(4)
            return entry

        return {self.text(): [entry() for _ in range(self.random.randrange(3))] for _ in range(self.random.randrange(4))}

    def slots(self):
        keys = ("offset", "size", "slot_id", "addr")
        return [{key: self.number() for key in keys} for _ in range(self.random.randrange(4))]

    def result(self, msg_type, for_decoder):
        """As `_disagg_forward_and_stage` of the scheduler writes it, without a dataclass."""
        return {
            "msg_type": msg_type,
            "request_id": self.text(),
            "staged_for_decoder": for_decoder,
            "session_id": self.text(),
            "pool_ptr": self.number(),
            "slot_offset": self.number(),
            "data_size": self.number(),
            "manifest": self.manifest(),
            "scalar_fields": self.scalars(),
        }

    def message(self, kind):
        p, text, number = self.protocol, self.text, self.number
        at = {"session_id": text(), "pool_ptr": number(), "slot_offset": number()}
        match kind % 13:
            case 0:
                return p.TransferRegisterMsg(
                    role=text(),
                    session_id=text(),
                    pool_ptr=number(),
                    pool_size=number(),
                    work_endpoint=text(),
                    preallocated_slots=self.slots(),
                )
            case 1:
                return p.TransferStagedMsg(
                    request_id=text(), data_size=number(), manifest=self.manifest(), scalar_fields=self.scalars(), **at
                )
            case 2:
                return p.TransferAllocMsg(request_id=text(), data_size=number(), source_role=text())
            case 3:
                return p.TransferAllocatedMsg(request_id=text(), slot_size=number(), **at)
            case 4:
                return p.TransferPushMsg(
                    request_id=text(), dest_session_id=text(), dest_addr=number(), transfer_size=number()
                )
            case 5:
                return p.TransferPushedMsg(request_id=text())
            case 6:
                return p.TransferReadyMsg(
                    request_id=text(), manifest=self.manifest(), slot_offset=number(), scalar_fields=self.scalars()
                )
            case 7:
                return p.TransferReadyMsg(request_id=text())
            case 8:
                return p.TransferDoneMsg(request_id=text(), error=self.random.choice([None, text()]))
            case 9:
                return self.result("transfer_done", True)
            case 10:
                return self.result("transfer_staged", False)
            case 11:
                # Of a newer peer: keys that 0.5.23 does not know, and a type.
                push = {"msg_type": "transfer_push", "request_id": text(), "dest_session_id": text(), "dest_addr": number()}
                return {**push, "transfer_size": number(), "edge_id": text(), "fanout_total": number()}
            case 12:
                return {"msg_type": "transfer_abort", "request_id": text(), "transfer_id": text(), "reason": text()}


def classes(protocol):
    """The dataclasses by the type of their messages."""
    found = {}
    for value in vars(protocol).values():
        fields = getattr(value, "__dataclass_fields__", None)
        if fields:
            found[fields["msg_type"].default] = value
    return found


def main():
    timeout, path, source, target, seed, count = sys.argv[1:]
    protocol = load(path)
    known = classes(protocol)
    assert len(known) == 8, sorted(known)
    context = zmq.Context()
    sockets = [context.socket(zmq.PULL), context.socket(zmq.PUSH)]
    for socket, endpoint in zip(sockets, (source, target)):
        socket.rcvtimeo = socket.sndtimeo = socket.linger = int(timeout)
        socket.connect(endpoint)
    pull, push = sockets

    maker = Maker(protocol, int(seed))
    for index in range(int(count)):
        frames = protocol.encode_transfer_msg(maker.message(index))
        message = protocol.decode_transfer_msg(frames)
        push.send_multipart([*frames, account(message)])

    while True:
        frames = pull.recv_multipart()
        if frames == [b"stop"]:
            push.send(b"stopped")
            break
        if not protocol.is_transfer_message(frames):
            push.send(b"not control")
            continue
        message = protocol.decode_transfer_msg(frames)
        cls = known.get(message["msg_type"])
        of_class = cls is not None and set(cls.__dataclass_fields__) == set(message)
        written = [protocol.encode_transfer_msg(message), protocol.encode_transfer_msg(cls(**message)) if of_class else [b"", b""]]
        push.send_multipart([account(message), *(frames[1] for frames in written)])
    for socket in sockets:
        socket.close()
    context.term()


main()
