"""The other half of lib.rs: numpy and torch read received tensors in place, and what they have is sent from there.

Usage: demo.py LIBRARY
"""

import ctypes
import gc
import importlib
import sys

library = ctypes.PyDLL(sys.argv[1])
library.tensorwire_receive.restype = ctypes.c_void_p
library.tensorwire_receive.argtypes = [ctypes.c_bool, ctypes.c_bool]
library.tensorwire_release.restype = None
library.tensorwire_release.argtypes = [ctypes.c_void_p, ctypes.c_bool]
library.tensorwire_send.restype = ctypes.c_void_p
library.tensorwire_send.argtypes = [ctypes.c_void_p, ctypes.c_bool]
library.tensorwire_lent.restype = ctypes.c_size_t


def capsule_api(name, result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


# A destructor is given the address of a capsule that is an object no longer: so these take addresses, as `id` tells them.
new_capsule = capsule_api("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
is_named = capsule_api("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
pointer_in = capsule_api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
rename = capsule_api("PyCapsule_SetName", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)

# Of the older kind and of DLPack 1, which says that a tensor is not to be written to. Capsules keep the address of their name.
NEW = ctypes.c_char_p(b"dltensor"), ctypes.c_char_p(b"dltensor_versioned")
USED = ctypes.c_char_p(b"used_dltensor"), ctypes.c_char_p(b"used_dltensor_versioned")
# Where each kind has the address of the elements.
DATA = 0, 32
HOST = 1, 0


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def release(capsule):
    """Gives back what is in a capsule that nobody took: whoever does renames it."""
    for versioned in (False, True):
        if is_named(capsule, NEW[versioned]):
            library.tensorwire_release(pointer_in(capsule, NEW[versioned]), versioned)


class Received:
    """What `from_dlpack` asks for: a tensor that is received when it is."""

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if stream is not None or dl_device not in (None, HOST):
            raise BufferError("the tensor is in the host's memory, and in order with nothing")
        self.versioned = max_version is not None and max_version[0] >= 1
        pointer = library.tensorwire_receive(self.versioned, copy is True)
        if pointer is None:
            raise BufferError("nothing was received")
        self.address = ctypes.c_void_p.from_address(pointer + DATA[self.versioned]).value
        return new_capsule(pointer, NEW[self.versioned], release)

    def __dlpack_device__(self):
        return HOST


def send(tensor):
    """Sends a tensor, and returns where its bytes lay when they arrived; None if it was refused."""
    try:
        capsule = tensor.__dlpack__(max_version=(1, 1))
    except TypeError:  # From before DLPack 1.
        capsule = tensor.__dlpack__()
    versioned = bool(is_named(id(capsule), NEW[True]))
    address = library.tensorwire_send(pointer_in(id(capsule), NEW[versioned]), versioned)
    if address is not None:
        rename(id(capsule), USED[versioned])
    return address


def show_protocol():
    for max_version in (None, (0, 8), (1, 0), (2, 3)):
        received = Received()
        capsule = received.__dlpack__(max_version=max_version)
        assert received.versioned == (max_version is not None and max_version >= (1, 0))
        assert library.tensorwire_lent() == 1
        # Nobody takes it.
        del capsule
        assert library.tensorwire_lent() == 0
        received.__dlpack__(max_version=max_version, copy=True)
        assert library.tensorwire_lent() == 0

    class Older(Received):
        def __dlpack__(self):
            return super().__dlpack__()

    for received, versioned in ((Older(), False), (Received(), True)):
        # Received and sent on from where it lies, without anybody between.
        assert send(received) == received.address and received.versioned == versioned
        assert library.tensorwire_lent() == 0
    for asked in ({"stream": 1}, {"dl_device": (2, 0)}):
        try:
            received.__dlpack__(**asked)
        except BufferError:
            continue
        raise AssertionError(asked)
    print("capsules: given back, taken or not")


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


def show_numpy_alone(numpy):
    """What numpy says of who may write, since it knows DLPack 1."""
    received = Received()
    in_place = numpy.from_dlpack(received)
    assert not in_place.flags.writeable
    if not received.versioned:
        return
    copied = numpy.from_dlpack(Received(), copy=True)
    assert library.tensorwire_lent() == 1 and copied.flags.writeable
    copied += in_place
    assert copied[3, 255] == 2046.0
    # A tensor that may not be written to can be sent.
    assert send(in_place) == in_place.ctypes.data
    print("numpy: who may write is known")


show_protocol()
show("numpy", lambda array: array.ctypes.data)
show("torch", lambda tensor: tensor.data_ptr())
if "numpy" in sys.modules:
    show_numpy_alone(sys.modules["numpy"])
