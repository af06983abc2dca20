#!/usr/bin/env python3
"""Times decode_transfer_msg and encode_transfer_msg of an sglang release, found by path and left as they are.

    protocol.py PROTOCOL

Standard input: lines of a number and a payload, which are JSON; those of one number are timed together. Standard
output: one JSON list, for each number from 0 [nanoseconds to decode a message, nanoseconds to encode it], medians.
Encoded is the message's dataclass if the release has one for it with just these fields, as its workers do, else a dict.
"""

import importlib.util
import json
import statistics
import sys
import time

BUDGET = 0.4


def load(path):
    spec = importlib.util.spec_from_file_location("protocol", path)
    protocol = importlib.util.module_from_spec(spec)
    sys.modules["protocol"] = protocol  # dataclasses look their module up
    spec.loader.exec_module(protocol)
    return protocol


def as_sent(protocol, message):
    for kind in vars(protocol).values():
        fields = getattr(kind, "__dataclass_fields__", {})
        if fields.keys() == message.keys() and fields["msg_type"].default == message["msg_type"]:
            return kind(**message)
    return message


def median_ns(call, arguments):
    samples = []
    deadline = time.monotonic() + BUDGET
    while not samples or time.monotonic() < deadline:
        start = time.perf_counter_ns()
        for argument in arguments:
            call(argument)
        samples.append((time.perf_counter_ns() - start) / len(arguments))
    return statistics.median_low(samples)


def main():
    protocol = load(sys.argv[1])
    groups = {}
    for line in sys.stdin.buffer:
        number, payload = line.split(b" ", 1)
        groups.setdefault(int(number), []).append([protocol.TRANSFER_MAGIC, payload.rstrip(b"\n")])
    times = []
    for _, messages in sorted(groups.items()):
        sent = [as_sent(protocol, protocol.decode_transfer_msg(frames)) for frames in messages]
        decode = median_ns(protocol.decode_transfer_msg, messages)
        times.append([decode, median_ns(protocol.encode_transfer_msg, sent)])
    print(json.dumps(times))


if __name__ == "__main__":
    main()
