"""A table in an Arrow file: arrow_file.py make|read FILE"""
import sys, tempfile, zlib
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc

ROWS, BATCHES = 1 << 17, 32


def make(path):
    schema = pa.schema([("place", pa.int64()), ("name", pa.string())])
    names = pa.array([f"row {i % 97}" for i in range(ROWS)])
    with ipc.new_file(path, schema) as file:
        for batch in range(BATCHES):
            places = pa.array(range(batch * ROWS, (batch + 1) * ROWS), pa.int64())
            file.write(pa.record_batch([places, names], schema))


def read(path):
    pa.set_cpu_count(1)
    file = ipc.open_file(pa.memory_map(path))
    # Written from where it is mapped, which nobody has read so far.
    with tempfile.NamedTemporaryFile() as copy:
        with pa.OSFile(copy.name, "wb") as out, ipc.new_stream(out, file.schema) as stream:
            for batch in range(10, 14):
                stream.write_batch(file.get_batch(batch))
        print(zlib.crc32(copy.read()))
    table = file.read_all()
    print(table.num_rows, pc.sum(table["place"]), pc.count_distinct(table["name"]))
    print(table.take([3_000_000, 3, 4_000_001]).to_pylist())


{"make": make, "read": read}[sys.argv[1]](sys.argv[2])
