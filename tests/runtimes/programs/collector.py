import ctypes, faulthandler, mmap, sys, zlib

faulthandler.enable()
file = open(sys.argv[2], "rb")
data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
print(zlib.crc32(data[: 16 << 20]))
library = ctypes.CDLL(sys.argv[1])
print(library.Collect())
print(zlib.crc32(data))
again = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
print(zlib.crc32(again), library.Collect(), flush=True)
ctypes.string_at(0)
