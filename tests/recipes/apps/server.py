# Answers each request with the sum of what it allocates for it; for the recipe in docs/recipes.md.
import http.server
import os


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        total = sum(len(str(i)) for i in range(10000)) + len(bytearray(1 << 20))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"sum {total}".encode())

    def log_message(self, *_):
        pass


http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
