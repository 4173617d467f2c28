"""Tests docs/import.py with `cargo serve`: also imports that are killed and started again.

usage: pytest ci/tests/test_import.py
"""

import collections
import json
import os
import random
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

SCRIPT = Path(__file__).parents[2] / "docs/import.py"
TEAMS, MEMBERS = 40, 300


def rows():
    """Rows in a random order. Three team names give one id, two are told apart by digits, and two rows have the same team."""
    teams = [{"team": f"Team {number}", "project": "apollo", "description": "x"} for number in range(TEAMS)]
    teams += [{"team": name, "project": "apollo"} for name in ["C D", "C-D", "C_D", "C++", "C#"]]
    rows = [*teams, {"team": "Team 1 ", "project": "apollo", "description": "x"}]
    rows += [{"member": f"user-{number}", "team": f"Team {number % TEAMS}", "project": "apollo"} for number in range(MEMBERS)]
    rows += [{"member": "ada", "team": "C_D", "project": "apollo"}, {"member": "ada", "team": "Apollo", "project": "Apollo Program"}]
    rows += [{"model": f"m-{number}", "type": "chat", "id": -number} for number in range(20)]
    rows += [{"data_store": "Papers"}, {"data_store": "市场"}, {"data_store": "🎉"}]
    rows += [{"logging_instance": "Apollo", "project": "apollo"}, {"voice": "alloy", "bot": "bot-7", "enabled": True}]
    random.Random(7).shuffle(rows)
    return rows


@pytest.fixture
def service(serve):
    # A limit below the rate at which the import sends requests.
    return serve("--rate-limit", "200")


def start(service, file, *options):
    command = [sys.executable, *options, SCRIPT, service.url, "acme", file]
    environment = {**os.environ, "KEY": service.key}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def states(output):
    """How many rows have each state."""
    return collections.Counter(line.split()[0] for line in output.splitlines())


def run(service, folder, *rows):
    """Imports rows. Returns the state by line number, the output and the errors."""
    file = folder / "rows.jsonl"
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    file.write_bytes(b"".join(line + b"\n" for line in lines))
    process = start(service, file)
    output, errors = process.communicate()
    assert "Traceback" not in errors, errors
    words = [line.split(maxsplit=2) for line in output.splitlines()]
    found = {int(number): state for state, number, _ in words}
    assert process.returncode == int(bool(errors) or not {"conflict", "invalid"}.isdisjoint(found.values()))
    return found, output, errors


def test_an_import_that_is_killed_and_started_again_imports_each_row_once(service, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows()), encoding="utf-8")
    for lines in [5, 60, 200]:
        process = start(service, file)
        for _ in range(lines):
            assert process.stdout.readline()
        process.kill()
        process.communicate()

    output, errors = start(service, file).communicate()
    assert states(output) == {
        "existing": TEAMS + 3 + 2 + 1,
        "ok": MEMBERS + 20 + 1,
        "conflict": 2,
        "invalid": 4,
    }, (output, errors)
    assert len(service.records("teams")) == TEAMS + 3
    assert len(service.records("members")) == MEMBERS
    assert len(service.records("models")) == 20
    assert {store["data_store_name"] for store in service.records("data-stores")} == {"Papers", "市场"}


def test_the_first_import_creates_records_and_lists_the_rows_that_fail(service, tmp_path):
    created = [{"team": "C D", "project": "p"}, {"member": "ada", "team": "C D", "project": "p"}]
    failed = [{"team": "C_D", "project": "p"}, {"member": "ada", "team": "C_D", "project": "p"}, {"team": 7, "project": "p"}]
    found, output, _ = run(service, tmp_path, *created, *failed)
    assert found == {1: "created", 2: "ok", 3: "conflict", 4: "invalid", 5: "invalid"}, output
    assert 'a different name, "C D",' in output and "its team was not imported" in output, output
    assert run(service, tmp_path, *created)[0] == {1: "existing", 2: "ok"}


def test_a_second_row_for_one_record_is_refused_with_its_members(serve, tmp_path):
    service, apollo = serve(), {"project": "apollo"}
    found, output, _ = run(
        service,
        tmp_path,
        {"team": "Sales", **apollo},
        {"team": "Sales", **apollo},
        {"team": "Alpha", **apollo},
        {"team": "\ufeffAlpha ", **apollo},
        {"team": "C D", **apollo},
        {"team": "C_D", **apollo},
        {"team": "Sales", "project": "gemini"},
        {"data_store": "Papers"},
        {"data_store": " Papers"},
        {"voice": "alloy", "bot": "bot-7", "enabled": True},
        {"voice": "echo", "bot": "bot-7", "enabled": True},
        *({"member": "ada", "team": team, **apollo} for team in ["Sales", "Alpha", "\ufeffAlpha ", "C D", "C_D"]),
        {"member": "ada", "team": "Sales", "project": "gemini"},
    )
    assert found == {
        1: "created", 2: "invalid", 3: "created", 4: "invalid", 5: "created", 6: "conflict", 7: "created",
        8: "invalid", 9: "created", 10: "ok", 11: "invalid",
        12: "invalid", 13: "ok", 14: "invalid", 15: "ok", 16: "invalid", 17: "ok",
    }, output
    members = {(member["project_id"], member["team_id"]) for member in service.records("members")}
    assert members == {("apollo", "alpha"), ("apollo", "c-d"), ("gemini", "sales")}
    assert [voice["type"] for voice in service.records("voices")] == ["alloy"]


@pytest.fixture
def recorder():
    """A server that lists the paths and bodies. It accepts a request unless `rejections` has a status and a header."""
    received, rejections = [], []

    class Recorder(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"] or 0))
            received.append((self.path, json.loads(body or "null")))
            status, *headers = rejections.pop(0) if rejections else (204,)
            if status == 204 and "addUsers" not in self.path:
                headers = [("x-resource-state", "created"), ("x-resource-id", f"id-{len(received)}")]
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            if status != 204:
                self.wfile.write(b"<html>\x1b[31m\ncreated 1 team x")

        do_GET = do_POST

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", key="wsk_x", received=received, rejections=rejections)
    server.shutdown()


# Runs a program whose clock only moves when it sleeps. Prints how long it sleeps, instead of waiting.
WITHOUT_WAITING = """
import runpy, sys, time

now = 0

def sleep(seconds):
    global now
    now += seconds
    print(seconds, file=sys.stderr)

time.sleep, time.monotonic = sleep, lambda: now
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


def sleeps(service, folder, *rows):
    """Imports rows. Returns how long the script sleeps before each request, and after each failure."""
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    process = start(service, file, "-c", WITHOUT_WAITING)
    output, errors = process.communicate()
    assert process.returncode == 0, (output, errors)
    return [float(seconds) for seconds in errors.split()]


def test_at_most_500_rows_are_sent_per_second(recorder, tmp_path):
    rows = [{"team": "A", "project": "p"}, *({"member": f"user-{number}", "team": "A", "project": "p"} for number in range(250))]
    slept = sleeps(recorder, tmp_path, *rows, {"data_store": "Papers"})
    assert slept == pytest.approx([0, 1 / 500, 1 / 500, 100 / 500, 100 / 500])
    assert len(recorder.received) == len(slept)


def test_the_script_waits_at_least_as_long_as_retry_after_says(recorder, tmp_path):
    cases = [("1", 1), (None, 0), ("7", 7), ("86400", 60), ("9" * 5000, 0), ("0.5", 0), ("-1", 0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0)]
    for number, (value, _) in enumerate(cases):
        headers = [("retry-after", value)] if value else []
        recorder.rejections.append((429 if number % 3 == 1 else 503, *headers))
    slept = sleeps(recorder, tmp_path, {"team": "A", "project": "p"})
    after_failures = slept[1::2]
    assert len(after_failures) == len(cases)
    for attempt, ((value, least), seconds) in enumerate(zip(cases, after_failures)):
        assert least <= seconds <= least + 0.1 * 2**attempt, (value, seconds)


def test_members_of_a_team_are_sent_in_requests_of_up_to_100(recorder, tmp_path):
    rows = [{"team": team, "project": "p"} for team in ["A", "B"]]
    # Twice, so that the second row of each user is in the same request.
    rows += [{"member": f"user-{number:03}", "team": "A", "project": "p"} for number in range(125)] * 2
    rows += [{"member": "ada", "team": "B", "project": "p"}]
    found, output, _ = run(recorder, tmp_path, *rows)
    assert found == {1: "created", 2: "created", **{line: "ok" for line in range(3, 254)}}, output
    members = [(path, body["usersAddingToTeam"]) for path, body in recorder.received if "addUsers" in path]
    assert [(path.split("/")[-2], len(users)) for path, users in members] == [("id-1", 50), ("id-1", 50), ("id-1", 25), ("id-2", 1)]
    assert len({user["userid"] for _, users in members[:3] for user in users}) == 125


def test_an_invalid_member_does_not_keep_the_others_out(service, tmp_path):
    invalid = {7: "", 8: "a\nb", 60: "x" * 300, 150: None, 151: 7, 152: "\ud800"}
    rows = [{"team": "A", "project": "p"}]
    rows += [{"member": invalid.get(line, f"user-{line}"), "team": "A", "project": "p"} for line in range(2, 203)]
    found, output, _ = run(service, tmp_path, *rows)
    assert {line for line, state in found.items() if state == "invalid"} == set(invalid), output
    assert len(service.records("members")) == 201 - len(invalid)


def test_an_id_that_a_path_cannot_contain_is_invalid_before_anything_is_sent(recorder, tmp_path):
    rows = [{"data_store": "Papers"}, {"team": "A", "project": "a.b_c~d:e@f-1"}]
    for value in ["a b", "50%25", "a%2Fb", "a/b", "a?b", "a#b", "a\\b", "a+b", "é", "a\n", "", ".", "..", 7, None, []]:
        rows += [{kind: "A", "project": value} for kind in ["team", "logging_instance"]]
        rows += [{"member": "ada", "team": "A", "project": value}]
        rows += [{"model": "m", "type": value, "id": 1}, {"voice": "v", "bot": value, "enabled": True}]
    rows += [{kind: "A"} for kind in ["team", "logging_instance", "model", "voice", "member"]]
    found, output, _ = run(recorder, tmp_path, *rows)
    assert found == {1: "created", 2: "created", **{line: "invalid" for line in range(3, len(rows) + 1)}}, output
    assert [line.split()[1] for line in output.splitlines()[-2:]] == ["2", "1"]
    paths = ["/api/v1/project/acme/a.b_c~d:e@f-1/createNewTeamOnProject", "/api/v1/org/acme/dataStores/create"]
    assert [path for path, _ in recorder.received] == paths


def test_no_row_ends_in_a_traceback(serve, tmp_path):
    service = serve()
    deep = b'{"team": ' + b"[" * 300 + b"]" * 300 + b', "project": "apollo"}'
    for row in [b"x", b'"team"', b'["team"]', b"7", b"{}", b"\xff", b"[" * 100_000, b'{"team": ' + b"[" * 100_000]:
        found, output, errors = run(service, tmp_path, {"team": "New", "project": "p"}, row)
        assert (output, errors) == ("", "line 2 is not a row: nothing was sent\n"), row[:20]
    values = ["\ud800", 7, None, [], {}, 1e400, "x" * 300_000, "a/../b", "\u202e\x1b[31m"]
    rows = [{"team": "Ok", "project": "apollo"}, deep]
    for kind in ["team", "data_store", "logging_instance", "model", "voice", "member"]:
        rows += [{kind: value} for value in values]
        rows += [{kind: value, "project": value, "team": value, "type": value, "bot": value} for value in values]
    _, output, errors = run(service, tmp_path, *rows)
    assert output.replace("\n", "").isprintable(), output
    assert states(output)["created"] == 2 and output.count("\n") == len(rows), errors


def test_only_a_204_from_the_service_is_a_success(recorder, tmp_path):
    for rejection in [[200], [302, ("location", "/elsewhere")], [307, ("location", "/elsewhere")], [201], [404]]:
        recorder.rejections.append(rejection)
        found, output, errors = run(recorder, tmp_path, {"team": "Docs", "project": "apollo"})
        assert found == {} and errors.startswith("this is not the service: "), (rejection, output, errors)
        assert "\\u001b[31m\\u000acreated" in errors, errors
    assert {path for path, _ in recorder.received} == {"/api/v1/project/acme/apollo/createNewTeamOnProject"}


def test_wrong_arguments_get_the_usage(service, tmp_path):
    cases = [("wsk_a\nb", []), ("wsk_a\nb", [service.url, "acme", "rows.jsonl"])]
    for organization in ["ac me", "", "a/b", "a%2Fb", "a?b", "..", "é"]:
        cases.append((service.key, [service.url, organization, "rows.jsonl"]))
    for key, arguments in cases:
        command = [sys.executable, SCRIPT, *arguments]
        result = subprocess.run(command, env={**os.environ, "KEY": key}, capture_output=True, text=True)
        assert result.returncode == 1 and "usage: KEY=wsk_" in result.stderr, result
    output, errors = start(service, tmp_path / "absent.jsonl").communicate()
    assert output == "" and errors.startswith("cannot read the file: "), errors
