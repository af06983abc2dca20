"""Reads and writes files of tensors with numpy and safetensors, for the tests of `tensorwire convert`.

files.py read FILE            prints what is in it as JSON
files.py write FOLDER         writes in.npy, in.npz, deflated.npz, fortran.npz, objects.npz, in.safetensors, raw.safetensors
"""

import json
import sys

import numpy as np


def loads(text):
    """As JSON, the tokens that are no JSON as strings."""
    return json.loads(text, parse_constant=str)


def read(path):
    if path.endswith(".npz"):
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        texts = {name: loads(arrays.pop(name).item()) for name in list(arrays) if name.startswith("tensorwire.")}
        tensors = [[name, str(a.dtype), list(a.shape), a.tobytes().hex()] for name, a in arrays.items()]
    else:
        import safetensors

        data = open(path, "rb").read()
        entries = safetensors.deserialize(data)
        tensors = [[name, t["dtype"], list(t["shape"]), bytes(t["data"]).hex()] for name, t in entries]
        with safetensors.safe_open(path, framework="np") as opened:
            texts = opened.metadata() or {}
            # What it has a type for, it reads as that.
            for name, dtype, shape, _ in tensors:
                if not dtype.startswith(("F8", "BF")):
                    array = opened.get_tensor(name)
                    assert list(array.shape) == shape, (name, array.shape)
    print(json.dumps({"tensors": tensors, "texts": texts}))


def write(folder):
    arrays = {
        "latents": np.arange(6, dtype=np.float32).reshape(2, 3),
        "a/../b": np.array([True, False]),
        "layers.0": np.array(7, dtype=np.int64),
        "empty": np.zeros((0, 4), dtype=np.complex128),
        "zeros": np.zeros(100000, dtype=np.uint16),
    }
    np.save(folder + "/in.npy", arrays["latents"])
    np.savez(folder + "/in.npz", **arrays)
    np.savez_compressed(folder + "/deflated.npz", **arrays)
    np.savez(folder + "/fortran.npz", latents=np.asfortranarray(arrays["latents"]), flat=np.ones((1, 3), order="F"))
    np.savez(folder + "/objects.npz", x=np.array([{}], dtype=object))
    import safetensors
    import safetensors.numpy

    fine = {name: array for name, array in arrays.items() if array.dtype != np.complex128}
    safetensors.numpy.save_file(fine, folder + "/in.safetensors", metadata={"format": "np", "é": "ü\n"})
    raw = {
        "b": ("bfloat16", [2], np.frombuffer(b"\x80\x3f\x00\x40", np.uint8)),
        "f": ("float8_e4m3fn", [3], np.frombuffer(b"\x01\x02\x03", np.uint8)),
    }
    specs = {
        name: safetensors.TensorSpec(dtype=dtype, shape=shape, data_ptr=data.ctypes.data, data_len=data.nbytes)
        for name, (dtype, shape, data) in raw.items()
    }
    safetensors.serialize_file(specs, folder + "/raw.safetensors")


{"read": read, "write": write}[sys.argv[1]](sys.argv[2])
