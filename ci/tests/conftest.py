"""Fixtures: the operations, `cargo serve` and Chromium."""

import json
import os
import shutil
import subprocess
import urllib.request
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def operations():
    """The names of the operations, each of which has an event. env.json has variables instead."""
    return {file.stem for file in (Path(__file__).parents[2] / "events").glob("*.json")} - {"env"}


class Service:
    """`cargo serve` on free ports."""

    def __init__(self, *options):
        command = ["cargo", "serve", "--port", "0", "--dynamodb-port", "0", "--json", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        addresses = json.loads(self.process.stdout.readline())
        self.url, self.dynamodb, self.key = (addresses[name] for name in ("url", "dynamodb", "key"))

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def send(self, path, body):
        headers = {"authorization": f"Bearer {self.key}"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request) as response:
            assert response.status == 204

    def create_team(self, project, name, description=""):
        path = f"/api/v1/project/acme/{project}/createNewTeamOnProject"
        self.send(path, {"teamName": name, "teamDescription": description})

    def records(self, kind):
        with urllib.request.urlopen(f"{self.url}/stored/{kind}") as response:
            return json.load(response)["records"]

    def workspacectl(self, *arguments):
        environment = {**os.environ, "AWS_ENDPOINT_URL_DYNAMODB": self.dynamodb}
        subprocess.run(["cargo", "ctl", *arguments], env=environment, check=True)


@pytest.fixture(scope="session")
def serve():
    """A function that starts a service. The services stop after the last test."""
    services = []

    def start(*options):
        services.append(Service(*options))
        return services[-1]

    yield start
    for service in services:
        service.stop()


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    chromium = shutil.which("chromium") or pytest.exit("Install Chromium.", returncode=1)
    return {"executable_path": chromium, "args": ["--no-sandbox"], **browser_type_launch_args}
