#!/usr/bin/env python3
"""Sums the bytes of a file through numpy.memmap: in records one after the other, strided, or divided among processes."""

import argparse
import sys
import time

import numpy

import ranks


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
    ranks.add_options(parser)
    parser.add_argument("--test-file", metavar="FILE", help="is read in turn with the first")
    parser.add_argument("--test-every", type=int, default=8, metavar="N", help="records between two test phases")
    parser.add_argument("--test-records", type=int, default=8, metavar="M", help="records in a test phase")
    parser.add_argument("--epochs", type=int, default=1, metavar="E")
    parser.add_argument("--compute-us-per-mb", type=float, default=0, metavar="X")
    parser.add_argument("--time", action="store_true", help="print times on standard error")
    return parser.parse_args()


def add(total, record):
    """The checksum of a record after others."""
    whole = len(record) // 8 * 8
    # Wrapping sums of 64-bit words: eight times as fast as summing bytes.
    words = record[:whole].view(numpy.uint64).sum(dtype=numpy.uint64)
    return (total * 31 + int(words) + int(record[whole:].sum())) % (1 << 64)


def records_of(data, arguments, rank):
    """The records of a rank, one view into the map after the other."""
    end = len(data) if arguments.end is None else min(arguments.end, len(data))
    starts = range(arguments.start, end, arguments.stride or arguments.record)
    for number in ranks.share_of(rank, arguments, 0, len(starts)):
        yield data[starts[number] : min(starts[number] + arguments.record, end)]


def test_phases(arguments):
    """One phase at each step: it goes on where the last one ended, round and round."""
    data = numpy.memmap(arguments.test_file, dtype=numpy.uint8, mode="r")
    total, at = 0, 0
    while True:
        for _ in range(arguments.test_records):
            total, at = add(total, data[at : at + arguments.record]), at + arguments.record
            at = at if at < len(data) else 0
        yield f" test: checksum={total:016x}"


def main():
    arguments = parse_arguments()
    if arguments.rank is None and arguments.processes > 1:
        return ranks.spawn(arguments.processes)
    rank = arguments.rank or 0
    began, first = time.monotonic(), None
    data = numpy.memmap(arguments.file, dtype=numpy.uint8, mode="r")
    total, size, records = 0, 0, 0
    phases, tested = arguments.test_file and test_phases(arguments), ""
    for _ in range(arguments.epochs):
        for record in records_of(data, arguments, rank):
            total = add(total, record)
            size, records = size + len(record), records + 1
            first = first or time.monotonic() - began
            if arguments.compute_us_per_mb:
                time.sleep(arguments.compute_us_per_mb * len(record) / (1 << 20) / 1e6)
            if phases and records % arguments.test_every == 0:
                tested = next(phases)
    print(f"rank {rank}: bytes={size} checksum={total:016x}{tested}")
    if arguments.time:
        seconds = time.monotonic() - began
        print(f'{{"first_record_seconds": {first or 0:.6f}, "total_seconds": {seconds:.6f}}}', file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
