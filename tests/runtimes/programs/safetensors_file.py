"""Weights in a safetensors file: safetensors_file.py make|read FILE"""
import sys, zlib
import numpy
from safetensors import safe_open
from safetensors.numpy import load_file, save_file


def make(path):
    random = numpy.random.default_rng(1)
    save_file({f"layer.{i}": random.standard_normal((1024, 2048), numpy.float32) for i in range(10)}, path)


def read(path):
    with safe_open(path, framework="np") as file:
        for name in sorted(file.keys()):
            print(name, zlib.crc32(file.get_tensor(name)), file.get_slice(name)[512:514, ::700].sum())
    print(sum(float(tensor[0, 0]) for tensor in load_file(path).values()))


{"make": make, "read": read}[sys.argv[1]](sys.argv[2])
