// Answers each request with the sum of what it allocates for it; for the recipe in docs/recipes.md.
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;

public class Server {
    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(System.getenv("PORT"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/", exchange -> {
            int total = ByteBuffer.allocateDirect(1 << 20).capacity();
            for (int i = 0; i < 10000; i++) total += String.valueOf(i).length();
            byte[] answer = ("sum " + total).getBytes();
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
    }
}
