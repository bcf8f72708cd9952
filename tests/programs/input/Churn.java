// Churn.java - a Java program of many objects on several threads. The heap of a JVM is its own,
// but its compiler, class loading, threads, zlib and direct buffers live on malloc.
// usage: java Churn.java COUNT

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

public class Churn {
    record Item(int id, String name, double value) {}

    static List<Item> make(int count, long seed) {
        Random random = new Random(seed);
        return IntStream.range(0, count)
                .mapToObj(i -> new Item(
                        i, Long.toString(random.nextLong(), 36), random.nextDouble()))
                .collect(Collectors.toList());
    }

    static String group(List<Item> items) {
        Map<String, List<Item>> groups = new HashMap<>();
        for (Item item : items)
            groups.computeIfAbsent(item.name().substring(0, 2), k -> new ArrayList<>()).add(item);
        StringBuilder text = new StringBuilder();
        new TreeMap<>(groups).forEach((key, list) -> text.append(key).append(list.size())
                .append(list.stream().mapToDouble(Item::value).sum()).append('\n'));
        return Pattern.compile("([a-m])(\\d)").matcher(text).replaceAll("$2$1");
    }

    // zlib allocates its state with malloc, direct buffers their bytes.
    static byte[] throughNativeMemory(byte[] data) throws Exception {
        ArrayDeque<ByteBuffer> buffers = new ArrayDeque<>();
        Deflater deflater = new Deflater(6);
        deflater.setInput(data);
        deflater.finish();
        while (!deflater.finished()) {
            ByteBuffer buffer = ByteBuffer.allocateDirect(1000 + buffers.size() % 5000);
            deflater.deflate(buffer);
            buffers.add(buffer.flip());
        }
        deflater.end();
        Inflater inflater = new Inflater();
        byte[] back = new byte[data.length];
        int at = 0;
        while (!inflater.finished()) {
            if (inflater.needsInput())
                inflater.setInput(buffers.remove());
            at += inflater.inflate(back, at, back.length - at);
        }
        inflater.end();
        if (at != data.length)
            throw new IllegalStateException("inflated " + at + " of " + data.length);
        return back;
    }

    static String digest(byte[] data) throws Exception {
        StringBuilder text = new StringBuilder();
        for (byte b : MessageDigest.getInstance("SHA-256").digest(data))
            text.append(String.format("%02x", b));
        return text.toString();
    }

    static String work(int count, long seed) throws Exception {
        String text = group(make(count, seed));
        byte[] data = text.repeat(8).getBytes(StandardCharsets.UTF_8);
        return seed + " " + data.length + " " + digest(throughNativeMemory(data));
    }

    static int manyThreads(int threads) throws Exception {
        ConcurrentSkipListMap<Integer, String> shared = new ConcurrentSkipListMap<>();
        for (int round = 0; round < threads; round += 20) {
            List<Thread> started = new ArrayList<>();
            for (int i = round; i < round + 20; i++) {
                int id = i;
                started.add(new Thread(() -> shared.put(id, "thread " + id * 7)));
            }
            started.forEach(Thread::start);
            for (Thread thread : started)
                thread.join();
        }
        return shared.toString().hashCode();
    }

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[0]);
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<String>> results = new ArrayList<>();
        for (int i = 0; i < 24; i++) {
            long seed = i;
            results.add(pool.submit(() -> work(count, seed)));
        }
        for (Future<String> result : results)
            System.out.println(result.get());
        pool.shutdown();
        System.out.println(manyThreads(200));
    }
}
