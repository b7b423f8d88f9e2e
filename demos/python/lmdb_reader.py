#!/usr/bin/env python3
"""Reads an LMDB through py-lmdb the way MPI-Caffe does, and prints a checksum per process.

The options are those of the Rust program lmdb-reader; the checksum is a CRC-32.
"""

import argparse
import os
import random
import sys
import time
import zlib

import lmdb

import ranks


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("db", help="directory of the LMDB")
    ranks.add_options(parser)
    parser.add_argument("--test-db", metavar="DB", help="is read in turn with the first")
    parser.add_argument("--test-every", type=int, default=1, metavar="N", help="batches between two test phases")
    parser.add_argument("--test-records", type=int, default=32, metavar="M", help="records in a test phase")
    parser.add_argument("--epochs", type=int, default=1, metavar="E")
    parser.add_argument("--batch", type=int, default=32, metavar="N")
    parser.add_argument("--compute-ms", type=float, default=0, metavar="X", help="sleep after each batch")
    parser.add_argument("--start-record", type=int, default=0, metavar="K")
    parser.add_argument("--records", type=int, metavar="N")
    parser.add_argument("--random", action="store_true", help="read --count single records in random order")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--count", type=int, default=100, metavar="N")
    parser.add_argument("--no-lock", action="store_true")
    parser.add_argument("--time", action="store_true", help="print times on standard error")
    return parser.parse_args()


def key(record):
    return b"%08d" % record


def share_of(rank, arguments, available):
    """The record numbers that a rank reads."""
    start = min(arguments.start_record, available)
    total = available - start
    if arguments.records is not None:
        total = min(arguments.records, total)
    return ranks.share_of(rank, arguments, start, total)


def records_in_order(transaction, share):
    """Walks with one cursor; what lies between two records of the share is passed, not read."""
    if not share:
        return
    with transaction.cursor() as cursor:
        cursor.set_range(key(share.start))
        for number, _ in enumerate(share):
            if number > 0:
                for _ in range(share.step):
                    cursor.next()
            yield cursor.value()


def records_at_random(transaction, arguments, available, seed):
    order = random.Random(seed)
    for _ in range(arguments.count):
        yield transaction.get(key(order.randrange(available)))


def test_phases(arguments):
    """One phase at each step: it goes on where the last one ended, round and round."""
    environment = lmdb.open(arguments.test_db, readonly=True, lock=not arguments.no_lock, create=False)
    with environment.begin(buffers=True) as transaction, transaction.cursor() as cursor:
        checksum, records = 0, 0
        while True:
            for _ in range(arguments.test_records):
                cursor.next() or cursor.first()
                checksum, records = zlib.crc32(cursor.value(), checksum), records + 1
            yield f" test: records={records} checksum={checksum:08x}"


def main():
    arguments = parse_arguments()
    if arguments.rank is None and arguments.processes > 1:
        return ranks.spawn(arguments.processes)
    rank = arguments.rank or 0
    began, first = time.monotonic(), None
    environment = lmdb.open(arguments.db, readonly=True, lock=not arguments.no_lock, create=False)
    records, size, checksum = 0, 0, 0
    phases, tested = arguments.test_db and test_phases(arguments), ""
    # With buffers the values are views into the map: reading them is what touches the pages.
    with environment.begin(buffers=True) as transaction:
        available = environment.stat()["entries"]
        for epoch in range(arguments.epochs):
            if arguments.random:
                seed = arguments.seed + (rank << 32) + (epoch << 48)
                values = records_at_random(transaction, arguments, available, seed)
            else:
                values = records_in_order(transaction, share_of(rank, arguments, available))
            for value in values:
                checksum = zlib.crc32(value, checksum)
                records, size = records + 1, size + len(value)
                first = first or time.monotonic() - began
                if records % arguments.batch == 0:
                    time.sleep(arguments.compute_ms / 1000)
                    if phases and records // arguments.batch % arguments.test_every == 0:
                        tested = next(phases)
    print(f"rank {rank}: records={records} bytes={size} checksum={checksum:08x}{tested}")
    if arguments.time:
        total = time.monotonic() - began
        print(
            f'{{"rank": {rank}, "first_record_seconds": {first or 0:.6f}, "total_seconds": {total:.6f}}}',
            file=sys.stderr,
        )
    # Not through the interpreter's teardown: the map outlives the views that still point into it.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
