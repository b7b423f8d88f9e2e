"""A DataLoader's workers read a mapped file, or an LMDB: loader.py FILE fork|spawn memmap|lmdb [ITEM TO DIE AT]"""
import os, re, signal, sys, threading, zlib
import lmdb, numpy, torch
from torch.utils.data import DataLoader, Dataset


class Mapped(Dataset):
    def __init__(self, path, kind, die_at):
        self.path, self.kind, self.die_at, self.data = path, kind, die_at, None

    def __len__(self):
        return 64

    def open(self):
        if self.data is None and self.kind == "memmap":
            self.data = numpy.memmap(self.path, dtype=numpy.uint8, mode="r")
        elif self.data is None:
            self.data = lmdb.open(self.path, readonly=True, lock=False).begin(buffers=True)

    def part(self, i):
        if self.kind == "memmap":
            return self.data[i << 20 : (i + 1) << 20]
        cursor = self.data.cursor()
        for _, value in zip(range(i + 1), cursor.iternext(keys=False)):
            pass
        return value

    def __getitem__(self, i):
        self.open()
        if i == self.die_at:
            os.kill(os.getpid(), signal.SIGSEGV)
        return torch.tensor([zlib.crc32(self.part(i))])


if __name__ == "__main__":
    torch.set_num_threads(1)
    path, context, kind = sys.argv[1:4]
    dataset = Mapped(path, kind, int(sys.argv[4]) if len(sys.argv) > 4 else -1)
    if context == "fork" and kind == "memmap":
        dataset[0]
    try:
        for epoch in range(2 if context == "fork" else 1):
            total = torch.zeros(1, dtype=torch.int64)
            # A worker that dies while it hands over a tensor sometimes leaves a traceback of PyTorch's, and sometimes not.
            collate = str if dataset.die_at >= 0 else None
            loader = DataLoader(dataset, 4, num_workers=2, multiprocessing_context=context, collate_fn=collate)
            for batch in loader:
                total = total * 31 + (0 if collate else batch.sum(0))
            print(total)
            # Python itself may end one of these between its giving back a semaphore and its saying so, and then tells of a leak.
            for thread in threading.enumerate():
                if thread is not threading.current_thread():
                    thread.join()
    except RuntimeError as error:
        # The first of the chain: whether PyTorch wraps a worker's death depends on where the loop is when it hears of it.
        while error.__cause__:
            error = error.__cause__
        print(re.sub(r"\d+", "N", str(error)), flush=True)
        sys.exit(1)
