"""Follows the change streams of DynamoDB Local under load, and compares copies with the tables.

usage: DYNAMODB_URL=URL TARGET=FOLDER pytest ci/tests/test_streams.py
FOLDER contains the compiled `workspacectl` and `examples/api`. The engine must be empty.
STREAMS_SEED repeats the choice of faults. The order of concurrent requests differs in each run.
"""

import os
import re
import subprocess
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from stream_load import Load, Operator, Service
from stream_provisioner import Provisioner, identity
from stream_proxy import FAULTS, READER_FAULTS, STREAM_FAULTS, Proxy
from stream_reader import KEYS, Copy, Reader, client, plain, scan

ENGINE, TARGET = os.environ["DYNAMODB_URL"], Path(os.environ["TARGET"])
SEED = int(os.environ.get("STREAMS_SEED") or time.time_ns() % 1_000_000)
SECONDS = 40
DOCUMENT = Path(__file__).parents[2] / "docs/records.md"


def wait_for(condition, seconds, failure):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, failure()
        time.sleep(0.1)


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    """The API and the operators behind a proxy."""
    print(f"\nSTREAMS_SEED={SEED}")
    proxy = Proxy(ENGINE, f"{SEED} writers", outages=True)
    api = subprocess.Popen([TARGET / "examples/api", proxy.url], stdout=subprocess.PIPE, text=True)
    service = Service(api.stdout.readline().split()[-1])
    folder = tmp_path_factory.mktemp("streams")
    yield SimpleNamespace(
        proxy=proxy,
        service=service,
        operator=Operator(str(TARGET / "workspacectl"), proxy.url, folder),
        folder=folder,
    )
    api.kill()
    api.wait()


def documented_events():
    """The rows of the table in the document: the events of each table for each cause."""
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = text.split("| cause | events |\n|---|---|\n")[1].split("\n\n")[0]
    events = {}
    for cause, cell in re.findall(r"^\| (.+) \| (.+) \|$", rows, re.MULTILINE):
        events[cause] = set()
        for part in cell.split(";"):
            tables = re.findall(r"\w+Table", part)
            if "all tables" in part or "other tables" in part:
                others = {table for table, _ in events[cause]}
                tables = [table for table in KEYS if table not in others]
            names = re.findall("INSERT|MODIFY|REMOVE", part)
            events[cause] |= {(table, name) for table in tables for name in names}
    return events


def test_each_cause_has_the_documented_events(system):
    service, operator = system.service, system.operator
    dynamodb, streams = client("dynamodb", ENGINE), client("dynamodbstreams", ENGINE)
    copies = [Copy(dynamodb, streams, table) for table in KEYS]
    org, at = "events", ("--org", "events", "--project", "p")

    def events_of(action):
        before = {copy.table: Counter(copy.events) for copy in copies}
        action()
        while sum(copy.poll() for copy in copies):
            pass
        return {(copy.table, name) for copy in copies for name in copy.events - before[copy.table]}

    def accept(*statuses):
        assert set(statuses) == {204}

    def requests():
        accept(
            service.create_team(org, "p", "Team"),
            service.add_team_users(org, "p", "team", ["ada", "grace", "alan"]),
            service.add_models(org, [("a", 1), ("b", 2)]),
            service.set_bot_voice(org, "bot", "echo"),
            service.create_data_store(org, "Store"),
            service.create_logging_instance(org, "p", "Project"),
        )

    def repeated_and_rejected_requests():
        requests()
        assert service.create_team(org, "p", "TEAM") == 409
        assert service.add_models(org, [("a", 3), ("c", 3)]) == 409
        assert service.create_data_store(org, "Store", "other") == 409
        assert service.add_team_users(org, "p", "other", ["ada"]) == 404

    def other_commands():
        service.keys[org] = operator.new_key(org)
        run("keys list")
        run("list members", "--org", org)
        run("orgs export", org, "--out", str(system.folder / "export.jsonl"))
        assert operator.run("orgs create", org) is None

    def remove_members():
        run("remove member", *at, "--team", "team", "alan")
        run("remove member", "--org", org, "--all-teams", "grace", "--yes")

    files, run = [], operator.complete
    users = ["ada", "grace", "alan"]
    # Each step needs what those before it have stored. The steps without a name are not documented.
    steps = [
        ("`orgs create`", lambda: run("orgs create", org)),
        ("`keys`, `list`, `orgs export` and other commands", other_commands),
        ("`create_team`", lambda: accept(service.create_team(org, "p", "Team"))),
        ("`add_team_users`", lambda: accept(service.add_team_users(org, "p", "team", users))),
        ("`add_models`", lambda: accept(service.add_models(org, [("a", 1), ("b", 2)]))),
        (
            "`set_bot_voice`, first voice",
            lambda: accept(service.set_bot_voice(org, "bot", "alloy")),
        ),
        ("`set_bot_voice`, other voice", lambda: accept(service.set_bot_voice(org, "bot", "echo"))),
        ("`create_data_store`", lambda: accept(service.create_data_store(org, "Store"))),
        (
            "`create_logging_instance`",
            lambda: accept(service.create_logging_instance(org, "p", "Project")),
        ),
        ("a repeated or rejected request", repeated_and_rejected_requests),
        ("`remove member`", remove_members),
        ("`remove team`", lambda: run("remove team", *at, "team", "--yes")),
        ("`remove model`", lambda: run("remove model", "--org", org, "--type", "chat", "a")),
        ("`remove voice`", lambda: run("remove voice", "--org", org, "bot")),
        ("`remove data-store`", lambda: run("remove data-store", "--org", org, "store")),
        ("`remove logging-instance`", lambda: run("remove logging-instance", *at)),
        ("", requests),
        ("`orgs disable`", lambda: run("orgs disable", org)),
        ("`orgs enable`", lambda: run("orgs enable", org)),
        ("", lambda: run("orgs disable", org)),
        ("`orgs erase`", lambda: files.extend(operator.erase(org))),
        ("`restore`", lambda: run("restore", "--from", str(files[0]))),
    ]
    seen = {cause: events_of(action) for cause, action in steps}
    del seen[""]
    assert seen == documented_events()


class SplitStream:
    """The stream of a table whose shard has split, with an event for each change of one record."""

    exceptions = SimpleNamespace(ExpiredIteratorException=(), TrimmedDataAccessException=())

    def __init__(self):
        self.events = {"parent": ["1", "2"], "child": ["3"], "grandchild": ["4"]}
        self.parents = {"child": "parent", "grandchild": "child", "parent": "too old"}

    def describe_stream(self, StreamArn, ExclusiveStartShardId=None):
        # The children first, and one shard on each page.
        shards = ["grandchild", "child", "parent"]
        index = shards.index(ExclusiveStartShardId) + 1 if ExclusiveStartShardId else 0
        shard = {"ShardId": shards[index], "ParentShardId": self.parents[shards[index]]}
        page = {"Shards": [shard]} | ({"LastEvaluatedShardId": shards[index]} if index < 2 else {})
        return {"StreamDescription": page}

    def get_shard_iterator(self, StreamArn, ShardId, ShardIteratorType):
        return {"ShardIterator": f"{ShardId} 0"}

    def get_records(self, ShardIterator):
        shard, index = ShardIterator.split()[0], int(ShardIterator.split()[1])
        number = self.events[shard][index]
        image = {"org_id": {"S": "acme"}, "number": {"N": number}}
        change = {"Keys": {"org_id": {"S": "acme"}}, "NewImage": image, "SequenceNumber": number}
        page = {"Records": [{"eventName": "MODIFY", "dynamodb": change}]}
        if index + 1 < len(self.events[shard]):
            page["NextShardIterator"] = f"{shard} {index + 1}"
        return page

    def describe_table(self, TableName):
        return {"Table": {"LatestStreamArn": "arn"}}

    def get_item(self, **request):
        return {}


def test_a_shard_is_read_after_its_parent():
    stream = SplitStream()
    copy = Copy(stream, stream, "OrganizationsTable")
    numbers = []
    for _ in range(100):
        if copy.poll():
            numbers.append(copy.images[("acme",)]["number"]["N"])
    assert numbers == ["1", "2", "3", "4"]


@pytest.fixture(scope="module")
def load(system):
    """Readers and the provisioner, after a load with faults has ended and they have caught up."""
    first_proxy = Proxy(ENGINE, f"{SEED} first", READER_FAULTS, STREAM_FAULTS)
    late_proxy = Proxy(ENGINE, f"{SEED} late", READER_FAULTS, STREAM_FAULTS | {"trimmed": 0.03})
    proxies = [system.proxy, first_proxy, late_proxy]
    first, late = Reader(first_proxy.url), Reader(late_proxy.url, late=True)
    stores = client("dynamodb", ENGINE).describe_table(TableName="DataStoresTable")["Table"]
    seed = f"{SEED} provisioner"
    provisioner = Provisioner(late_proxy.url, stores["LatestStreamArn"], system.folder, seed)
    load = Load(system.service, system.operator, SEED)
    try:
        first.start()
        for proxy in proxies:
            proxy.inject = True
        load.start()
        time.sleep(SECONDS / 2)
        late.start()
        time.sleep(SECONDS / 2)
        load.stop()
        assert not load.failures, load.failures
        for proxy in proxies:
            proxy.inject = False
        system.proxy.stop()
        first.finish()
        late.finish()
        tables = {table: scan(client("dynamodb", ENGINE), table) for table in KEYS}
        yield SimpleNamespace(
            first=first, late=late, provisioner=provisioner, proxies=proxies, tables=tables
        )
    finally:
        provisioner.stop()


def test_the_load_contains_every_kind_of_write_and_fault(system, load):
    events = load.first.events()
    faults = sum((proxy.counts for proxy in load.proxies), Counter())
    print(f"\nevents: {events}\nlate reader: {load.late.events()}\nfaults: {faults}")
    print(f"commands: {system.operator.successes}\nresponses: {system.service.statuses}")
    assert events["INSERT"] >= 200
    assert events["MODIFY"] >= 40
    assert events["REMOVE"] >= 100
    for fault in (*FAULTS, *STREAM_FAULTS, "trimmed"):
        assert faults[fault] >= 3, fault
    assert system.proxy.counts.total() >= 100
    assert system.proxy.counts["outage"] >= 1
    for command in (
        "remove model",
        "remove data-store",
        "remove voice",
        "remove logging-instance",
        "remove member",
        "remove team",
        "orgs create",
        "orgs disable",
        "orgs enable",
        "orgs erase",
        "restore",
        "keys create",
    ):
        assert system.operator.successes[command] >= 2, command
    operations = {operation for operation, status in system.service.statuses if status == 204}
    assert len(operations) == 6
    assert {409, 403, 503} <= {status for _, status in system.service.statuses}


def differences(copy, table):
    return [key for key in copy.keys() | table.keys() if copy.get(key) != table.get(key)]


@pytest.mark.parametrize("name", ["first", "late"])
def test_a_copy_that_reads_the_record_after_each_event_equals_the_table(load, name):
    for table, copy in getattr(load, name).copies.items():
        assert differences(copy.records, load.tables[table]) == [], table
        assert load.tables[table], f"{table} is empty"


@pytest.mark.parametrize("name", ["first", "late"])
def test_a_copy_that_stores_the_images_in_their_order_equals_the_table(load, name):
    for table, copy in getattr(load, name).copies.items():
        assert differences(copy.images, load.tables[table]) == [], table


def test_the_first_reader_scanned_no_table_and_the_late_one_joined_in_the_middle(load):
    assert all(copy.joins == 0 for copy in load.first.copies.values())
    for table, copy in load.late.copies.items():
        assert copy.joins >= 1
        assert copy.scanned > 0, table
        assert copy.events.total() > 0, table
    assert load.late.events().total() >= 100
    assert load.late.events().total() < load.first.events().total()


def test_no_event_has_equal_images(load):
    assert sum(copy.unchanged for copy in load.first.copies.values()) == 0


def expected_resources(tables):
    """The data stores of authenticated callers, in organizations that are enabled."""
    organizations = {
        org for (org,), item in tables["OrganizationsTable"].items() if "disabled_at" not in item
    }
    records = [
        plain(item)
        for (org, _), item in tables["DataStoresTable"].items()
        if org in organizations and item["created_by"] != {"S": "anonymous"}
    ]
    return {identity(record) for record in records}


def test_the_provisioner_neither_misses_nor_repeats_a_data_store(system, load):
    provisioner = load.provisioner
    created = {identity(record) for record in load.first.copies["DataStoresTable"].created}
    expected = expected_resources(load.tables)

    def provisioned():
        return [identity(record) for record in provisioner.resources.values()]

    def missing():
        return f"missing: {expected - set(provisioned())}"

    provisioner.inject = False
    wait_for(lambda: expected <= set(provisioned()), 30, missing)

    # What is created now is found in the stream, without a restart.
    starts = provisioner.starts
    for number in range(5):
        assert system.service.create_data_store("acme", f"Last {number}") == 204
    expected = expected_resources({t: scan(client("dynamodb", ENGINE), t) for t in KEYS})
    wait_for(lambda: expected <= set(provisioned()), 30, missing)
    assert provisioner.starts == starts

    count, kinds = Counter(provisioned()), provisioner.faults
    repetitions = provisioner.requests.total() - len(provisioner.resources)
    print(f"\nresources: {len(count)}, starts: {starts}, repetitions: {repetitions}, {kinds}")
    assert max(count.values()) == 1, "two resources for one data store"
    assert all(record["created_by"] != "anonymous" for record in provisioner.resources.values())
    assert created | expected >= count.keys()
    # Each repetition has a cause. Without the ledger, there would be more at each start.
    assert 0 < repetitions <= kinds.total()
    assert len(count) >= 20
    assert len(kinds) == 5, f"not every fault happened: {kinds}"
