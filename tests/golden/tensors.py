"""Reads tensors from safetensors and PyTorch files with nothing but Python's standard library."""

import collections
import json
import math
import pickle
import struct
import zipfile

Tensor = collections.namedtuple("Tensor", "dtype shape values")  # values: a flat list in row-major order

ITEMS = {"F64": "d", "F32": "f", "F16": "e", "I64": "q"}
STORAGES = {"DoubleStorage": "F64", "FloatStorage": "F32", "HalfStorage": "F16", "LongStorage": "I64"}


def unpack(dtype, data):
    return list(struct.unpack(f"<{len(data) // struct.calcsize(ITEMS[dtype])}{ITEMS[dtype]}", data))


def read_safetensors(path):
    """The tensors of a file by name, and its metadata."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        start, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = Tensor(entry["dtype"], tuple(entry["shape"]), unpack(entry["dtype"], data[start:end]))
        assert len(tensors[name].values) == math.prod(entry["shape"]), (path.name, name)
    return tensors, metadata


class TensorUnpickler(pickle.Unpickler):
    """Knows tensors and plain values; a pickle that asks for anything else is refused."""

    def __init__(self, archive):
        self.archive = archive
        (pickled,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
        self.folder = pickled.removesuffix("data.pkl")
        super().__init__(archive.open(pickled))

    def persistent_load(self, identifier):
        kind, dtype, key, _, _ = identifier
        assert kind == "storage", kind
        return dtype, unpack(dtype, self.archive.read(f"{self.folder}data/{key}"))

    def find_class(self, module, name):
        if module == "torch" and name in STORAGES:
            return STORAGES[name]
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return rebuild
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        raise pickle.UnpicklingError(f"{module}.{name}")


def rebuild(storage, offset, shape, strides, *_):
    dtype, values = storage
    contiguous = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    assert tuple(strides) == contiguous, (shape, strides)
    return Tensor(dtype, tuple(shape), values[offset : offset + math.prod(shape)])


def read_pt(path):
    """What `torch.save` wrote: a dictionary of tensors, or of dictionaries."""
    with zipfile.ZipFile(path) as archive:
        return TensorUnpickler(archive).load()
