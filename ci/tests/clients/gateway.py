"""Forwards requests to the local service, except for two that it responds to itself.

A project named `gateway-503` gets a 503 as API Gateway sends it. A project named `new-reason` gets
a 409 with a reason and a member that the contract does not list.

Usage: gateway.py URL. Prints its own URL.
"""

import http.client
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

SERVICE = urlsplit(sys.argv[1]).netloc

CONFLICT = {
    "type": "urn:workspace-management:problem:name_taken",
    "title": "Name taken",
    "status": 409,
    "detail": "A team with this name already exists on another planet.",
    "code": "name_taken",
    "request_id": "JKJaXmPLvHcESHA=",
    "reason": "other_planet",
    "planet": "Mars",
}


class Gateway(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if "/gateway-503/" in self.path:
            self.respond(503, "application/json", {"message": "Service Unavailable"})
        elif "/new-reason/" in self.path:
            self.respond(409, "application/problem+json", CONFLICT)
        else:
            self.forward(body)

    def forward(self, body: bytes) -> None:
        connection = http.client.HTTPConnection(SERVICE)
        names = ["authorization", "content-type", "prefer"]
        headers = {name: self.headers[name] for name in names if self.headers[name]}
        connection.request("POST", self.path, body, headers)
        response = connection.getresponse()
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name not in ("date", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(response.read())
        connection.close()

    def respond(self, status: int, content_type: str, content: dict[str, object]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
