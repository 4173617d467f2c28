"""Imports rows with docs/import.py into `cargo serve`, and kills the import several times.

usage: WORKSPACECTL=FILE pytest ci/tests/test_import.py, where FILE is the compiled program.
"""

import collections
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs/import.py"
TEAMS, MEMBERS = 40, 300


def rows():
    """Rows in a random order. Three teams have one id, and two have the same name."""
    teams = [{"team": f"Team {number}", "project": "apollo", "description": "x"} for number in range(TEAMS)]
    teams += [{"team": name, "project": "apollo"} for name in ["C", "C++", "C#"]]
    rows = [*teams, {"team": "Team 1 ", "project": "apollo", "description": "x"}]
    rows += [{"member": f"user-{number}", "team": f"Team {number % TEAMS}", "project": "apollo"} for number in range(MEMBERS)]
    rows += [{"member": "ada", "team": "C#", "project": "apollo"}, {"member": "ada", "team": "Apollo", "project": "Apollo Program"}]
    rows += [{"model": f"m-{number}", "type": "chat", "id": -number} for number in range(20)]
    rows += [{"data_store": "Papers"}, {"data_store": "市场"}, {"data_store": "🎉"}]
    rows += [{"logging_instance": "Apollo", "project": "apollo"}, {"voice": "alloy", "bot": "bot-7", "enabled": True}]
    random.Random(7).shuffle(rows)
    return rows


@pytest.fixture
def service(serve):
    # Fewer requests than the import sends.
    return serve("--rate-limit", "200")


def start(service, file):
    command = [sys.executable, SCRIPT, service.url, "acme", file]
    environment = {**os.environ, "KEY": service.key}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def states(output):
    return collections.Counter(line.split()[0] for line in output.splitlines())


def test_an_import_that_is_killed_and_repeated_imports_each_row_once(service, tmp_path):
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
        "existing": TEAMS + 1 + 2 + 1,
        "ok": MEMBERS + 20 + 1,
        "conflict": 2,
        "invalid": 4,
    }, (output, errors)
    assert len(service.stored("teams")) == TEAMS + 1
    assert len(service.stored("members")) == MEMBERS
    assert len(service.stored("models")) == 20
    assert {store["data_store_name"] for store in service.stored("data-stores")} == {"Papers", "市场"}


def test_the_first_import_creates_and_says_what_it_could_not_do(service, tmp_path):
    file = tmp_path / "rows.jsonl"
    created = [{"team": "C", "project": "p"}, {"member": "ada", "team": "C", "project": "p"}]
    failed = [{"team": "C#", "project": "p"}, {"member": "ada", "team": "C#", "project": "p"}, {"team": 7, "project": "p"}]
    file.write_text("".join(json.dumps(row) + "\n" for row in created + failed), encoding="utf-8")
    process = start(service, file)
    output, _ = process.communicate()
    assert process.returncode == 1
    lines = dict(reversed(line.split(maxsplit=1)) for line in output.splitlines())
    assert sorted(lines.values()) == ["conflict", "created", "invalid", "invalid", "ok"], output
    assert 'a different name, "C",' in output and "its team was not imported" in output, output

    file.write_text("".join(json.dumps(row) + "\n" for row in created), encoding="utf-8")
    process = start(service, file)
    assert states(process.communicate()[0]) == {"existing": 1, "ok": 1}
    assert process.returncode == 0
    file.write_text('{"team": "New", "project": "p"}\nnonsense\n', encoding="utf-8")
    output, errors = start(service, file).communicate()
    assert (output, errors) == ("", "line 2 is not a row: nothing was sent\n")
