"""Ranks of a reader: processes that share its records."""

import subprocess
import sys


def add_options(parser):
    parser.add_argument("--pattern", choices=["contiguous", "skipping"], default="contiguous")
    parser.add_argument("--processes", type=int, default=1, metavar="N")
    parser.add_argument("--rank", type=int, metavar="R", help="be only this rank")


def spawn(processes):
    """Runs this program once per rank and prints the lines in the order of the ranks. Returns an exit status."""
    command = [sys.executable, *sys.argv]
    ranks = [subprocess.Popen([*command, "--rank", str(rank)], stdout=subprocess.PIPE) for rank in range(processes)]
    outputs = [rank.communicate()[0].decode() for rank in ranks]
    print("".join(outputs), end="")
    return max(abs(rank.returncode) for rank in ranks)


def share_of(rank, arguments, start, total):
    """The numbers of the records that a rank reads, of `total` from `start` on."""
    ranks = arguments.processes
    if arguments.pattern == "skipping":
        return range(start + rank, start + total, ranks)
    return range(start + total * rank // ranks, start + total * (rank + 1) // ranks)
