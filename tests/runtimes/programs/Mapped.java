/* Reads the file through a MappedByteBuffer, with the machine's own uses of SIGSEGV in between: implicit null checks,
 * safepoint polls, stack banging. */
import java.io.RandomAccessFile;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.util.zip.CRC32;

public class Mapped {
    static class Box {
        int value;
    }

    static int nulls(Box[] boxes) {
        int caught = 0;
        for (Box box : boxes) {
            try {
                caught += box.value;
            } catch (NullPointerException expected) {
                caught++;
            }
        }
        return caught;
    }

    static int recurse(int depth) {
        return recurse(depth + 1) + 1;
    }

    public static void main(String[] arguments) throws Exception {
        try (RandomAccessFile file = new RandomAccessFile(arguments[0], "r")) {
            MappedByteBuffer data = file.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, file.length());
            data.order(ByteOrder.LITTLE_ENDIAN);
            Box[] boxes = new Box[1000];
            for (int i = 0; i < 500; i++)
                boxes[i * 2] = new Box();
            int length = (int) file.length(), sum = 0, caught = 0;
            for (int from = 0; from < length; from += 1 << 20) {
                for (int at = from; at < from + (1 << 20); at += 4)
                    sum = sum * 31 + data.getInt(at);
                for (int i = 0; i < 20; i++)
                    caught += nulls(boxes);
                byte[][] garbage = new byte[64][];
                for (int i = 0; i < 64; i++)
                    garbage[i] = new byte[10000];
            }
            System.gc();
            CRC32 crc = new CRC32();
            crc.update(data);
            System.out.println(sum + " " + caught + " " + crc.getValue());
            Thread[] threads = new Thread[4];
            int[] sums = new int[4];
            for (int t = 0; t < 4; t++) {
                final int me = t;
                threads[t] = new Thread(() -> {
                    for (int at = me * (length / 4); at < (me + 1) * (length / 4); at += 64)
                        sums[me] = sums[me] * 31 + data.getInt(at);
                });
                threads[t].start();
            }
            for (Thread thread : threads)
                thread.join();
            System.out.println(sums[0] + " " + sums[1] + " " + sums[2] + " " + sums[3]);
            try {
                recurse(0);
            } catch (StackOverflowError expected) {
                System.out.println("overflow");
            }
        }
    }
}
