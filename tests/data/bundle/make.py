"""Writes the bundles of this folder, from the module docs of src/bundle and nothing else.

    python3 tests/data/bundle/make.py
"""

import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent


def bundle(frames):
    places, end = [], 24 + 16 * len(frames)
    for frame in frames:
        start = (end + 63) // 64 * 64
        places.append((start, len(frame)))
        end = start + len(frame)
    out = bytearray(end)
    struct.pack_into("<8sIIQ", out, 0, b"TWBUNDLE", 1, len(frames), end)
    for index, (frame, (start, length)) in enumerate(zip(frames, places)):
        struct.pack_into("<QQ", out, 24 + 16 * index, start, length)
        out[start : start + length] = frame
    return bytes(out)


def recorded(name):
    for line in (HERE.parent / "tensors.jsonl").read_text().splitlines():
        message = json.loads(line)
        if message["name"] == name:
            return [bytes.fromhex(frame) for frame in message["frames_hex"]]
    raise KeyError(name)


for name, frames in {
    "empty-frame": [b""],
    "three-frames": [b"metadata", b"", bytes(range(70))],
    "last-frame-empty": [b"x", b""],
    "table-full": [bytes([count] * count) for count in range(10)],
    "error-reply": recorded("error-reply"),
    "mixed": recorded("mixed"),
}.items():
    (HERE / f"{name}.bundle").write_bytes(bundle(frames))
