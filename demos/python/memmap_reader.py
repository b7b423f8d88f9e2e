#!/usr/bin/env python3
"""Sums the bytes of a file through numpy.memmap, from a start offset or in strided records."""

import argparse
import sys
import time

import numpy


def size(text):
    """A number of bytes such as 4096, 8M or 1.5G, in binary units."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    factor = units.get(text[-1:].upper(), 1)
    return int(float(text[:-1] if factor > 1 else text) * factor)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="any file; data.mdb will do")
    parser.add_argument("--start", type=size, default=0, metavar="OFFSET")
    parser.add_argument("--end", type=size, metavar="OFFSET")
    parser.add_argument("--record", type=size, default=1 << 20, metavar="BYTES", help="bytes summed at once")
    parser.add_argument("--stride", type=size, metavar="BYTES", help="distance between records")
    parser.add_argument("--epochs", type=int, default=1, metavar="E")
    parser.add_argument("--compute-us-per-mb", type=float, default=0, metavar="X")
    parser.add_argument("--time", action="store_true", help="print times on standard error")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    began, first = time.monotonic(), None
    data = numpy.memmap(arguments.file, dtype=numpy.uint8, mode="r")
    end = len(data) if arguments.end is None else min(arguments.end, len(data))
    total, count = 0, 0
    for _ in range(arguments.epochs):
        for start in range(arguments.start, end, arguments.stride or arguments.record):
            record = data[start : min(start + arguments.record, end)]
            whole = len(record) // 8 * 8
            # Wrapping sums of 64-bit words: eight times as fast as summing bytes.
            words = record[:whole].view(numpy.uint64).sum(dtype=numpy.uint64)
            total = (total * 31 + int(words) + int(record[whole:].sum())) % (1 << 64)
            count += len(record)
            first = first or time.monotonic() - began
            if arguments.compute_us_per_mb:
                time.sleep(arguments.compute_us_per_mb * len(record) / (1 << 20) / 1e6)
    print(f"bytes={count} checksum={total:016x}")
    if arguments.time:
        seconds = time.monotonic() - began
        print(f'{{"first_record_seconds": {first or 0:.6f}, "total_seconds": {seconds:.6f}}}', file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
