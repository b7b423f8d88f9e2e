/* Reads the file through a view of it, with Mono's own uses of signals in between: null checks that fault, and threads that are
 * stopped for the collector of garbage. */
using System;
using System.IO;
using System.IO.MemoryMappedFiles;
using System.Threading;

class Box
{
	public int Value = 0;
}

static unsafe class Mapped
{
	static int Nulls(Box[] boxes)
	{
		int caught = 0;
		foreach (Box box in boxes)
			try {
				caught += box.Value;
			} catch (NullReferenceException) {
				caught++;
			}
		return caught;
	}

	static int Sum(byte *data, long from, long to, int step)
	{
		int sum = 0;
		for (long at = from; at < to; at += step)
			sum = sum * 31 + *(int *)(data + at);
		return sum;
	}

	static void Main(string[] arguments)
	{
		long length = new FileInfo(arguments[0]).Length;
		using (var file = MemoryMappedFile.CreateFromFile(arguments[0], FileMode.Open, null, 0, MemoryMappedFileAccess.Read))
		using (var view = file.CreateViewAccessor(0, length, MemoryMappedFileAccess.Read)) {
			byte *data = null;
			view.SafeMemoryMappedViewHandle.AcquirePointer(ref data);
			var boxes = new Box[100];
			for (int i = 0; i < 50; i++)
				boxes[i * 2] = new Box();
			int sum = 0, caught = 0;
			for (long from = 0; from < length; from += 1 << 20) {
				sum = sum * 31 + Sum(data, from, from + (1 << 20), 4);
				caught += Nulls(boxes);
				var garbage = new byte[64][];
				for (int i = 0; i < 64; i++)
					garbage[i] = new byte[10000];
			}
			Console.WriteLine("{0} {1}", sum, caught);
			var sums = new int[4];
			var threads = new Thread[4];
			for (int t = 0; t < 4; t++) {
				int me = t;
				threads[t] = new Thread(() => sums[me] = Sum(data, me * (length / 4), (me + 1) * (length / 4), 64));
				threads[t].Start();
			}
			for (int i = 0; i < 20; i++)
				GC.Collect();
			foreach (var thread in threads)
				thread.Join();
			Console.WriteLine(string.Join(" ", sums));
			view.SafeMemoryMappedViewHandle.ReleasePointer();
		}
	}
}
