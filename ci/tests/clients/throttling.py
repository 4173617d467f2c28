"""A service that accepts every third request, to test how clients retry. Prints its URL.

The first request gets a 503 of the service. A retry before the time in `Retry-After` gets a 425, and a
later one a 429 of API Gateway, which has no `Retry-After`.
"""

import time
from http.server import BaseHTTPRequestHandler, HTTPServer

SECONDS = 1


class Throttling(BaseHTTPRequestHandler):
    answers = [503, 429, 204]
    earliest = 0.0

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        if time.monotonic() < Throttling.earliest:
            return self.send(425)
        status = Throttling.answers[0]
        Throttling.answers = [*Throttling.answers[1:], status]
        if status == 503:
            Throttling.earliest = time.monotonic() + SECONDS
            return self.send(status, ("retry-after", str(SECONDS)))
        self.send(status)

    def send(self, status, *headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            body = b'{"message": "Rejected"}'
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if status != 204:
            self.wfile.write(body)


server = HTTPServer(("127.0.0.1", 0), Throttling)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
