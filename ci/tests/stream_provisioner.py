"""Runs docs/records/provisioner.py, kills it at random, and receives what its command sends."""

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from stream_proxy import Server

PROGRAM = Path(__file__).parents[2] / "docs/records/provisioner.py"
COMMAND = 'curl -sf --output /dev/null --data-raw "$RECORD" --header "Idempotency-Key: $TOKEN" '

FAULTS = [
    "killed before the effect",
    "killed after the effect",
    "failed before the effect",
    "failed after the effect",
]


def identity(record):
    """What distinguishes a data store from all others, and from those with the same key."""
    names = ("org_id", "data_store_id", "created_at", "request_id")
    return tuple(record[name] for name in names)


class Provisioner:
    """The process, which is restarted whenever it ends, and the system that it calls."""

    def __init__(self, url, stream_arn, folder, seed):
        self.chance = random.Random(seed)
        self.lock = threading.Lock()
        # The resources that exist, by the token of the request that created them.
        self.resources = {}
        self.requests = Counter()
        self.faults = Counter()
        self.starts = 0
        self.inject = True
        self.plan = []
        self.stopping = False
        self.process = None
        server = Server(("127.0.0.1", 0), handler(self))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = COMMAND + f"http://127.0.0.1:{server.server_port}"
        ledger = str(Path(folder) / "ledger.sqlite")
        self.command = [sys.executable, str(PROGRAM), ledger, "sh", "-c", command]
        self.environment = os.environ | {
            "AWS_ENDPOINT_URL": url,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "DATA_STORES_TABLE": "DataStoresTable",
            "DATA_STORES_STREAM_ARN": stream_arn,
            "ORGANIZATIONS_TABLE": "OrganizationsTable",
        }
        self.log = open(Path(folder) / "provisioner.log", "w", encoding="utf-8")
        self.thread = threading.Thread(target=self.supervise)
        self.thread.start()

    def supervise(self):
        while not self.stopping:
            command = {"stderr": self.log, "env": self.environment}
            self.process = subprocess.Popen(self.command, **command)
            self.starts += 1
            end = time.monotonic() + self.chance.uniform(1, 8)
            while self.process.poll() is None and not self.stopping:
                time.sleep(0.02)
                if self.inject and time.monotonic() > end:
                    self.kill("killed at any time")
                    self.process.wait()
            self.process.kill()
            self.process.wait()

    def kill(self, when):
        self.faults[when] += 1
        self.process.kill()

    def create(self, token, record):
        """Creates a resource unless the token is known. Returns a status, sometimes of an error."""
        with self.lock:
            self.requests[token] += 1
            fault = self.next_fault() if self.inject else None
            if fault == "killed before the effect":
                self.kill(fault)
            if fault == "failed before the effect":
                self.faults[fault] += 1
                return 500
            self.resources.setdefault(token, record)
            if fault == "killed after the effect":
                self.kill(fault)
            if fault == "failed after the effect":
                self.faults[fault] += 1
                return 500
            return 204

    def next_fault(self):
        """Each fault once in every eight requests, in a random order."""
        if not self.plan:
            self.plan = [*FAULTS, *[None] * 4]
            self.chance.shuffle(self.plan)
        return self.plan.pop()

    def stop(self):
        self.stopping = True
        self.thread.join()
        self.log.close()


def handler(provisioner):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            record = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(provisioner.create(self.headers["idempotency-key"], record))
            self.end_headers()

        def log_message(self, *_):
            pass

    return Handler
