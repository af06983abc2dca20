"""The other half of lib.rs: numpy and torch read received tensors in place, and what they have is sent from there.

Usage: demo.py LIBRARY
"""

import ctypes
import gc
import importlib
import sys

library = ctypes.PyDLL(sys.argv[1])
library.tensorwire_receive.restype = ctypes.c_void_p
library.tensorwire_send.restype = ctypes.c_void_p
library.tensorwire_send.argtypes = [ctypes.c_void_p]
library.tensorwire_lent.restype = ctypes.c_size_t

api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]

# Capsules keep the address of their name.
NEW, USED = ctypes.c_char_p(b"dltensor"), ctypes.c_char_p(b"used_dltensor")


class Received:
    """What `from_dlpack` asks for. The pointer is its consumer's after the first call."""

    def __init__(self):
        self.pointer = library.tensorwire_receive()
        assert self.pointer
        # The first field of the structure.
        self.address = ctypes.c_void_p.from_address(self.pointer).value

    def __dlpack__(self, **_):
        return api.PyCapsule_New(self.pointer, NEW, None)

    def __dlpack_device__(self):
        return (1, 0)


def send(tensor):
    """Sends a tensor, and returns where its bytes lay when they arrived; None if it was refused."""
    capsule = tensor.__dlpack__()
    address = library.tensorwire_send(api.PyCapsule_GetPointer(capsule, NEW))
    if address is not None:
        api.PyCapsule_SetName(capsule, USED)
    return address


def show(name, address_of):
    try:
        module = importlib.import_module(name)
    except ImportError:
        print(f"{name}: not installed")
        return
    received = Received()
    x = module.from_dlpack(received)
    assert address_of(x) == received.address, "a copy"
    assert tuple(x.shape) == (4, 256) and float(x[3, 255]) == 1023.0 and float(x.sum()) == 523776.0
    row = x[2]
    del x
    gc.collect()
    # A slice keeps the frame, and nothing but it.
    assert library.tensorwire_lent() == 1 and float(row[0]) == 512.0
    del row
    gc.collect()
    assert library.tensorwire_lent() == 0

    y = module.arange(24).reshape(2, 3, 4)
    # Sent from where it lies; and it lives on.
    assert send(y) == address_of(y)
    assert int(y.sum()) == 276
    assert send(y.swapaxes(0, 2)) is None, "refused: not contiguous"
    print(f"{name}: no copy in, no copy out")


show("numpy", lambda array: array.ctypes.data)
show("torch", lambda tensor: tensor.data_ptr())
