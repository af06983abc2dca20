#!/usr/bin/env python3
"""A denoiser in plain Python, for a head node of ours: control messages by the release's protocol.py, tensors in shared memory.

    shared_memory_worker.py --work ENDPOINT --result ENDPOINT --segments FOLDER [--prealloc N] PROTOCOL

PROTOCOL is the release's protocol.py. What lies where in shared memory is written down in the docs of
`tensorwire::plane::shared`, and this goes by them alone. It takes work at one endpoint and sends results to the other,
says READY once it does, and ends, with its files, on SIGTERM. It computes latents as 2 x + 1 of prompt_embeds.

One thing it cannot do: enter a window by compare-and-swap. It is the only one here to write to the decoder.
"""

import argparse
import fcntl
import importlib.util
import mmap
import os
import pathlib
import secrets
import signal
import struct
import sys

import numpy
import zmq

MIB = 1 << 20
POOL = 32 * MIB
# Every slot is one block, of which a payload fits into one.
BLOCK = 2 * MIB
WRITER = 1 << 63


def hold(path, length):
    """Makes a file that is locked for as long as this process lives."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    if length:
        os.posix_fallocate(descriptor, 0, length)
    return descriptor


class Segment:
    """A mapped segment, of ours or of a peer."""

    def __init__(self, descriptor):
        self.map = mmap.mmap(descriptor, 0)
        header = struct.unpack("=8s7Q", self.map[:64])
        magic, version, self.base, self.pool_len, self.min_block, self.windows, self.pool, total = header
        assert (magic, version, total) == (b"TWSHMSEG", 1, len(self.map))

    def window(self, offset):
        return self.windows + offset // self.min_block * 64

    def words(self, offset):
        return struct.unpack_from("=2Q", self.map, self.window(offset))

    def set_state(self, offset, state):
        struct.pack_into("=Q", self.map, self.window(offset), state)

    def open_window(self, offset, length, generation):
        struct.pack_into("=Q", self.map, self.window(offset) + 8, length)
        self.set_state(offset, generation)

    def close_window(self, offset):
        assert self.words(offset)[0] < WRITER, "somebody still writes"
        struct.pack_into("=2Q", self.map, self.window(offset), 0, 0)

    def array(self, offset, dtype, shape):
        dtype = numpy.dtype(dtype)
        count = int(numpy.prod(shape, dtype=numpy.int64))
        return numpy.frombuffer(self.map, dtype, count, self.pool + offset).reshape(shape)


class Plane:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        session = secrets.randbits(127) | 1 << 127
        self.digits = f"{session:032x}"
        self.session_id = f"shm-1-{self.digits}"
        self.writer = session >> 64
        number = ((session & 0xFFFF) << 3) + 1
        self.plane_file = self.folder / f"tensorwire-1-plane-{self.writer:016x}"
        self.segment_file = self.folder / f"tensorwire-1-{self.digits}-{number:08x}"
        hold(self.plane_file, 0)
        windows_end = 4096 + POOL // MIB * 64
        pool = -(-windows_end // (2 * MIB)) * 2 * MIB
        descriptor = hold(self.segment_file, pool + POOL)
        header = struct.pack("=8s7Q", b"TWSHMSEG", 1, number << 44, POOL, MIB, 4096, pool, pool + POOL)
        os.pwrite(descriptor, header, 0)
        self.own = Segment(descriptor)
        self.generation = 0
        self.peers = {}

    def open_window(self, offset):
        self.generation += 1
        self.own.open_window(offset, BLOCK, self.generation)

    def push(self, offset, length, session_id, address):
        number = address >> 44
        digits = session_id.removeprefix("shm-1-")
        name = self.folder / f"tensorwire-1-{digits}-{number:08x}"
        if name not in self.peers:
            self.peers[name] = Segment(os.open(name, os.O_RDWR))
        peer = self.peers[name]
        there = address - peer.base
        generation, room = peer.words(there)
        assert 0 < generation < WRITER and length <= room, "no open window"
        peer.set_state(there, self.writer)
        source = self.own.pool + offset
        peer.map[peer.pool + there : peer.pool + there + length] = self.own.map[source : source + length]
        peer.set_state(there, generation)

    def end(self):
        self.segment_file.unlink()
        self.plane_file.unlink()


class Denoiser:
    def __init__(self, protocol, plane, results):
        self.protocol, self.plane, self.results = protocol, plane, results
        self.free = list(range(0, POOL, BLOCK))
        self.preallocated = {}
        self.staged = {}

    def say(self, message):
        self.results.send_multipart(self.protocol.encode_transfer_msg(message))

    def register(self, endpoint, count):
        base = self.plane.own.base
        for slot_id in range(count):
            self.preallocated[slot_id] = self.free.pop()
            self.plane.open_window(self.preallocated[slot_id])
        slots = [
            {"offset": offset, "size": BLOCK, "slot_id": slot_id, "addr": base + offset}
            for slot_id, offset in self.preallocated.items()
        ]
        self.say(
            self.protocol.TransferRegisterMsg(
                role="denoiser",
                session_id=self.plane.session_id,
                pool_ptr=base,
                pool_size=POOL,
                work_endpoint=endpoint,
                preallocated_slots=slots,
            )
        )

    def handle(self, message):
        kind, request_id = message["msg_type"], message.get("request_id")
        if kind == "transfer_alloc":
            assert message["data_size"] <= BLOCK
            offset = self.free.pop()
            self.plane.open_window(offset)
            place = {"session_id": self.plane.session_id, "pool_ptr": self.plane.own.base, "slot_offset": offset}
            self.say(self.protocol.TransferAllocatedMsg(request_id=request_id, slot_size=BLOCK, **place))
        elif kind == "transfer_ready":
            self.work(request_id, message["slot_offset"], message["manifest"], message["scalar_fields"])
        elif kind == "transfer_push":
            offset, used = self.staged.pop(request_id)
            length = min(used, message["transfer_size"])
            self.plane.push(offset, length, message["dest_session_id"], message["dest_addr"])
            self.free.append(offset)
            self.say(self.protocol.TransferPushedMsg(request_id=request_id))

    def work(self, request_id, offset, manifest, scalars):
        own = self.plane.own
        slot_id = scalars.pop("_prealloc_slot_id", None)
        own.close_window(offset)
        [entry] = manifest["prompt_embeds"]
        embeds = own.array(offset + entry["offset"], entry["dtype"], entry["shape"])
        out = self.free.pop()
        own.array(out, entry["dtype"], entry["shape"])[:] = 2 * embeds + 1
        self.staged[request_id] = (out, embeds.nbytes)
        if slot_id is None:
            self.free.append(offset)
        else:
            assert self.preallocated[slot_id] == offset
            self.plane.open_window(offset)
        self.say(
            {
                "msg_type": "transfer_done",
                "request_id": request_id,
                "staged_for_decoder": True,
                "session_id": self.plane.session_id,
                "pool_ptr": own.base,
                "slot_offset": out,
                "data_size": BLOCK,
                "manifest": {"latents": [{**entry, "offset": 0}]},
                "scalar_fields": scalars,
            }
        )


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--work", required=True)
    parser.add_argument("--result", required=True)
    parser.add_argument("--segments", required=True)
    parser.add_argument("--prealloc", type=int, default=0)
    parser.add_argument("protocol")
    arguments = parser.parse_args()
    spec = importlib.util.spec_from_file_location("protocol", arguments.protocol)
    protocol = importlib.util.module_from_spec(spec)
    sys.modules["protocol"] = protocol
    spec.loader.exec_module(protocol)

    context = zmq.Context()
    work, results = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    results.setsockopt(zmq.LINGER, 1000)
    work.bind(arguments.work)
    results.connect(arguments.result)
    plane = Plane(arguments.segments)
    denoiser = Denoiser(protocol, plane, results)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        denoiser.register(arguments.work, arguments.prealloc)
        print("READY", arguments.work, flush=True)
        while True:
            frames = work.recv_multipart()
            if protocol.is_transfer_message(frames):
                denoiser.handle(protocol.decode_transfer_msg(frames))
    finally:
        plane.end()


if __name__ == "__main__":
    sys.exit(main())
