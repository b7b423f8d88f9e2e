# Expected: where recursion through C overflows Python's stack, it dies by the signal that it dies by natively, with the traceback of
# its fault handler or without, on its main thread and on another, after data was read through checkpoints.
# @not-killed it overflows in processes of their own, and there is no half-way
# @counter active_readers 4
import re, subprocess, sys

CODE = """
import mmap, sys, threading, zlib
with open(sys.argv[1], 'rb') as file:
    data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
print(zlib.crc32(memoryview(data)[: len(data) // 2]), flush=True)
sys.setrecursionlimit(10**9)
def deep(unused):
    return max((1,), key=deep)
if sys.argv[2] == 'thread':
    thread = threading.Thread(target=deep, args=(1,))
    thread.start()
    thread.join()
else:
    deep(1)
"""

for options in [], ["-X", "faulthandler"]:
    for where in "main", "thread":
        words = [sys.executable, *options, "-c", CODE, sys.argv[1], where]
        left = subprocess.run(words, capture_output=True, text=True)
        print(f"{options} {where}: {left.returncode}\n{left.stdout}{re.sub('0x[0-9a-f]+', '0x', left.stderr)}")
