"""A proxy in front of DynamoDB that delays requests, fails them or drops their responses."""

import json
import random
import socket
import sys
import threading
import time
from collections import Counter
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The share of requests that each fault affects: those of callers and operators, those of readers,
# and among the latter those that read a stream.
FAULTS = {"delay": 0.05, "failure": 0.05, "throttle": 0.05, "lost": 0.05}
READER_FAULTS = {"delay": 0.05, "failure": 0.01, "throttle": 0.01, "lost": 0.01}
STREAM_FAULTS = {"delay": 0.05, "failure": 0.02, "lost": 0.02, "expired": 0.05}

ERRORS = {
    "failure": (500, "InternalServerError"),
    "throttle": (400, "ThrottlingException"),
    "expired": (400, "ExpiredIteratorException"),
    "trimmed": (400, "TrimmedDataAccessException"),
}


class Server(ThreadingHTTPServer):
    """An HTTP server whose clients can be killed."""

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Proxy:
    """Listens on a free port. It forwards everything until `inject` is set."""

    def __init__(self, engine, seed, faults=FAULTS, stream_faults=None, outages=False):
        self.engine = engine.removeprefix("http://")
        self.random = random.Random(seed)
        self.faults, self.stream_faults = faults, stream_faults
        self.outages, self.outage_end = outages, 0
        self.requests = 0
        self.inject = False
        self.counts = Counter()
        self.in_progress = 0
        self.lock = threading.Lock()
        server = Server(("127.0.0.1", 0), handler(self))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_port}"

    def choose(self, action):
        """The fault for a request, or None."""
        faults = self.stream_faults if action == "GetRecords" else self.faults
        with self.lock:
            number = self.random.random()
            if not self.inject:
                return None
            self.requests += 1
            # All requests fail for a second, so that retries do not help.
            if self.outages and self.requests % 500 == 0:
                self.outage_end = time.monotonic() + 1
                self.counts["outage"] += 1
            if time.monotonic() < self.outage_end:
                return "failure"
            for fault, share in faults.items():
                number -= share
                if number < 0:
                    self.counts[fault] += 1
                    return fault
        return None

    def stop(self):
        """Injects no more faults, and waits until DynamoDB has executed every request."""
        self.inject = False
        while self.in_progress:
            time.sleep(0.05)


def handler(proxy):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self):
            super().setup()
            self.upstream = HTTPConnection(proxy.engine)

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            with proxy.lock:
                proxy.in_progress += 1
            try:
                self.forward(body)
            except OSError:  # the client has gone
                self.close_connection = True
            finally:
                with proxy.lock:
                    proxy.in_progress -= 1

        def forward(self, body):
            fault = proxy.choose(self.headers["x-amz-target"].split(".")[-1])
            if fault in ERRORS:
                status, name = ERRORS[fault]
                error = {
                    "__type": f"com.amazonaws.dynamodb.v20120810#{name}",
                    "message": "injected",
                }
                return self.respond(status, json.dumps(error).encode())
            if fault == "delay":
                time.sleep(0.05)
            self.upstream.request("POST", self.path, body, dict(self.headers))
            response = self.upstream.getresponse()
            body = response.read()
            if fault == "lost":
                self.close_connection = True
                return self.connection.shutdown(socket.SHUT_RDWR)
            return self.respond(response.status, body)

        def respond(self, status, body):
            head = f"HTTP/1.1 {status} {status}\r\ncontent-length: {len(body)}\r\n"
            head += "content-type: application/x-amz-json-1.0\r\n\r\n"
            self.wfile.write(head.encode() + body)

        def log_message(self, *_):
            pass

    return Handler
