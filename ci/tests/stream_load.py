"""Callers of the API and operators with `workspacectl`, who write all kinds of records."""

import http.client
import itertools
import json
import os
import random
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

DEMO_KEY = "wsk_acmeDemoKey1_PublicDemoKeyOfAcmeOnOneMachineNotASecret0002hGfAJ"
PROJECTS = ("apollo", "gemini", "mercury")
USERS = [f"user-{number}" for number in range(10)]


class Service:
    """The API, and the keys with which to call it."""

    def __init__(self, url):
        self.address = url.removeprefix("http://")
        self.keys = {"acme": DEMO_KEY}
        # How often each operation responded with each status.
        self.statuses = Counter()

    def post(self, org, operation, path, body, anonymous=False):
        """Sends a request, and repeats it after a 503 as docs/api.md says. Returns the status."""
        headers = {} if anonymous else {"authorization": f"Bearer {self.keys[org]}"}
        for _ in range(5):
            connection = http.client.HTTPConnection(self.address, timeout=15)
            try:
                connection.request("POST", f"/api/v1/{path}", json.dumps(body), headers)
                response = connection.getresponse()
                response.read()
            finally:
                connection.close()
            self.statuses[operation, response.status] += 1
            if response.status != 503:
                break
            time.sleep(int(response.getheader("retry-after")))
        return response.status

    def create_team(self, org, project, name, description=""):
        body = {"teamName": name, "teamDescription": description}
        path = f"project/{org}/{project}/createNewTeamOnProject"
        return self.post(org, "create_team", path, body)

    def add_team_users(self, org, project, team, users):
        body = {"usersAddingToTeam": [{"userid": user} for user in users]}
        path = f"project/{org}/{project}/{team}/addUsersToTheTeam"
        return self.post(org, "add_team_users", path, body)

    def add_models(self, org, models, anonymous=False):
        body = {"aIModelsSelectedToAddToOrg": [{"id": id, "modelid": m} for m, id in models]}
        return self.post(org, "add_models", f"org/{org}/addModelsToOrg/chat", body, anonymous)

    def set_bot_voice(self, org, bot, voice, enabled=True):
        body = {"type": voice, "enabled": enabled}
        return self.post(org, "set_bot_voice", f"bot/playground/{bot}/voice", body)

    def create_data_store(self, org, name, description="", anonymous=False):
        body = {"dataStoreName": name, "dataStoreDescription": description}
        path = f"org/{org}/dataStores/create"
        return self.post(org, "create_data_store", path, body, anonymous)

    def create_logging_instance(self, org, project, name):
        path = f"project/{org}/{project}/createLoggingInstance"
        return self.post(org, "create_logging_instance", path, {"projectName": name})


class Operator:
    """Runs `workspacectl` on the DynamoDB at a URL."""

    def __init__(self, program, url, folder):
        self.program, self.folder = program, Path(folder)
        self.environment = os.environ | {"AWS_ENDPOINT_URL_DYNAMODB": url, "WORKSPACECTL_WAIT": "0"}
        # How often each command succeeded.
        self.successes = Counter()
        self.files = itertools.count()
        self.last_error = ""

    def run(self, name, *arguments):
        """Runs the command `name` once. Returns what it printed, or None if it failed."""
        command = [self.program, *name.split(), *arguments]
        options = {"capture_output": True, "text": True, "check": False}
        run = subprocess.run(command, env=self.environment, **options)
        if run.returncode != 0:
            self.last_error = f"{command}: {run.stderr}"
            return None
        self.successes[name] += 1
        return run.stdout.strip()

    def complete(self, name, *arguments):
        """Runs a command until it succeeds, as the runbook says."""
        for _ in range(10):
            output = self.run(name, *arguments)
            if output is not None:
                return output
        raise AssertionError(f"failed 10 times: {self.last_error}")

    def register(self, org):
        """Creates an organization if there is none. Returns a new key."""
        self.complete("orgs create", org, "--if-absent")
        return self.new_key(org)

    def new_key(self, org):
        return self.complete("keys create", "--org", org, "--label", "load")

    def erase(self, org):
        """Erases an organization. Returns the exports: one, unless the command was repeated."""
        self.complete("orgs disable", org)
        files = []
        for _ in range(10):
            files.append(self.folder / f"{org}-{next(self.files)}.jsonl")
            if self.run("orgs erase", org, "--export", str(files[-1]), "--yes") is not None:
                break
            if "there is no organization" in self.last_error:
                break  # the previous run failed after it had deleted everything
        return [file for file in files if file.exists()]

    def restore(self, org, files):
        for file in files:
            self.complete("restore", "--from", str(file))
        self.complete("orgs enable", org)


def call(service, chance, org):
    """Sends a random request, and often repeats it, or one with the same id and other content."""
    project, text = chance.choice(PROJECTS), chance.choice(["", "", "", "other"])
    # Some records are written only once, so that no later event corrects a reader's mistake.
    number = chance.choice([chance.randrange(4), chance.randrange(4), chance.randrange(10**6)])
    team, bot, voice = (
        f"team-{chance.randrange(4)}",
        f"bot-{number}",
        chance.choice(["alloy", "echo"]),
    )
    users = [*chance.sample(USERS, chance.randint(1, 4)), f"user-{number}"]
    models = [(f"model-{n}", n + len(text)) for n in range(number, number + 3)]
    anonymous = chance.random() < 0.3
    requests = [
        lambda: service.create_team(org, project, f"Team {number}", text),
        lambda: service.add_team_users(org, project, team, users),
        lambda: service.add_models(org, models, anonymous),
        lambda: service.set_bot_voice(org, bot, voice),
        lambda: service.create_data_store(org, f"Store {number}", text, anonymous),
        lambda: service.create_logging_instance(org, project, f"Project {text}"),
    ]
    request = chance.choice(requests)
    for _ in range(chance.choice([1, 1, 2])):
        request()


def remove(operator, chance, org):
    """Removes a record, which often does not exist."""
    project, number = chance.choice(PROJECTS), chance.randrange(4)
    at = ("--org", org, "--project", project)
    user, team = chance.choice(USERS), f"team-{number}"
    commands = [
        ("remove model", "--org", org, "--type", "chat", f"model-{number}"),
        ("remove data-store", "--org", org, f"store-{number}"),
        ("remove voice", "--org", org, f"bot-{number}"),
        ("remove logging-instance", *at),
        ("remove member", *at, "--team", team, user),
        ("remove member", "--org", org, "--all-teams", user, "--yes"),
        ("remove team", *at, team, "--yes"),
    ]
    operator.run(*chance.choice(commands))


class Load:
    """Threads that write until `stop`."""

    def __init__(self, service, operator, seed):
        self.service, self.operator, self.seed = service, operator, seed
        self.stopping = threading.Event()
        self.failures = []
        self.threads = []

    def start(self, callers=10, removers=4):
        for org in ("globex", "initech"):
            self.service.keys[org] = self.operator.register(org)
        orgs = ("acme", "globex", "initech")

        def caller(chance):
            call(self.service, chance, chance.choice(orgs))

        def remover(chance):
            remove(self.operator, chance, chance.choice(orgs))

        def disable(chance):
            self.operator.complete("orgs disable", "globex")
            time.sleep(chance.random())
            self.operator.complete("orgs enable", "globex")
            time.sleep(chance.random())

        def erase(chance):
            files = self.operator.erase("initech")
            time.sleep(chance.random())
            self.operator.restore("initech", files)
            self.service.keys["initech"] = self.operator.new_key("initech")
            self.operator.register(f"org-{chance.randrange(1000)}")
            time.sleep(2 * chance.random())

        for action in [caller] * callers + [remover] * removers + [disable, erase]:
            name = f"{self.seed} {len(self.threads)}"
            thread = threading.Thread(
                target=self.repeat, args=(action, random.Random(name)), daemon=True
            )
            self.threads.append(thread)
            thread.start()

    def repeat(self, action, chance):
        while not self.stopping.is_set():
            try:
                action(chance)
            except Exception as error:  # noqa: BLE001
                self.failures.append(repr(error))
                return

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)
        if any(thread.is_alive() for thread in self.threads):
            self.failures.append("a caller or operator does not end")
