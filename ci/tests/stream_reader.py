"""A reader of the change streams that keeps a copy of every table, as docs/records.md describes."""

import threading
import time
from collections import Counter

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

KEYS = {
    "OrganizationsTable": ("org_id",),
    "ModelsTable": ("org_id", "model"),
    "TeamsTable": ("project", "team_id"),
    "TeamMembersTable": ("team", "user_id"),
    "BotVoicesTable": ("org_id", "bot_id"),
    "DataStoresTable": ("org_id", "data_store_id"),
    "LoggingInstancesTable": ("org_id", "project_id"),
}


def client(service, url):
    config = Config(
        retries={"mode": "standard", "max_attempts": 2}, connect_timeout=5, read_timeout=5
    )
    credentials = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
    return boto3.client(
        service, endpoint_url=url, region_name="us-east-1", config=config, **credentials
    )


def scan(dynamodb, table):
    """The records of a table by their keys."""
    pages = dynamodb.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    items = [item for page in pages for item in page["Items"]]
    return {tuple(item[name]["S"] for name in KEYS[table]): item for item in items}


def plain(item):
    return {name: next(iter(value.values())) for name, value in item.items()}


class Copy:
    """A copy of a table, and the position in its stream."""

    def __init__(self, dynamodb, streams, table):
        self.dynamodb, self.streams, self.table = dynamodb, streams, table
        self.arn = dynamodb.describe_table(TableName=table)["Table"]["LatestStreamArn"]
        self.records = {}
        # A second copy, made of the images in the events.
        self.images = {}
        self.events = Counter()
        # The records in the events INSERT, with attributes as text.
        self.created = []
        # The events whose images are equal.
        self.unchanged = 0
        self.joins = 0
        self.scanned = 0
        # The iterator of each shard. None if the shard was read to its end.
        self.positions = {}
        self.polls = 0
        # The last sequence number that was read from each shard.
        self.last = {}

    def shards(self):
        """All shards, by their ids."""
        shards, start = {}, {}
        while start is not None:
            page = self.streams.describe_stream(StreamArn=self.arn, **start)["StreamDescription"]
            shards |= {shard["ShardId"]: shard for shard in page["Shards"]}
            last = page.get("LastEvaluatedShardId")
            start = {"ExclusiveStartShardId": last} if last else None
        return shards

    def iterator(self, shard, kind, **position):
        request = {"StreamArn": self.arn, "ShardId": shard, "ShardIteratorType": kind}
        return self.streams.get_shard_iterator(**request, **position)["ShardIterator"]

    def join(self):
        """Notes the positions, and then scans the table. The stream has the later changes."""
        self.positions = {shard: self.iterator(shard, "LATEST") for shard in self.shards()}
        self.last = {}
        # The scan of a large table takes a while.
        time.sleep(0.5)
        self.records = scan(self.dynamodb, self.table)
        self.images = dict(self.records)
        self.joins += 1
        self.scanned += len(self.records)

    def discover(self):
        """Starts to read new shards, each after its parent."""
        shards = self.shards()
        for shard, description in shards.items():
            parent = description.get("ParentShardId")
            # The description of a parent can be gone, because all its events are too old.
            is_next = parent not in shards or self.positions.get(parent, "unread") is None
            if shard not in self.positions and is_next:
                self.positions[shard] = self.iterator(shard, "TRIM_HORIZON")

    def poll(self):
        """Reads each shard once. Returns the number of events."""
        if self.polls % 10 == 0:
            self.discover()
        self.polls += 1
        count = 0
        for shard, iterator in list(self.positions.items()):
            if iterator is None:
                continue
            try:
                page = self.streams.get_records(ShardIterator=iterator)
            except (
                self.streams.exceptions.ExpiredIteratorException,
                self.streams.exceptions.TrimmedDataAccessException,
            ) as error:
                self.recover(shard, error)
                return 1
            self.apply(page["Records"])
            if page["Records"]:
                self.last[shard] = page["Records"][-1]["dynamodb"]["SequenceNumber"]
            self.positions[shard] = page.get("NextShardIterator")
            count += len(page["Records"])
        return count

    def recover(self, shard, error):
        """Gets another iterator for the same position, or joins again if that is not possible."""
        is_expired = isinstance(error, self.streams.exceptions.ExpiredIteratorException)
        if is_expired and shard in self.last:
            position = {"SequenceNumber": self.last[shard]}
            self.positions[shard] = self.iterator(shard, "AFTER_SEQUENCE_NUMBER", **position)
        elif self.joins == 0 and shard not in self.last:
            # Nothing was read from this shard. DynamoDB Local reports an iterator of an empty shard
            # as trimmed as soon as the shard has an event.
            self.positions[shard] = self.iterator(shard, "TRIM_HORIZON")
        else:
            self.join()

    def apply(self, events):
        images = [event["dynamodb"] for event in events]
        keys = [tuple(image["Keys"][name]["S"] for name in KEYS[self.table]) for image in images]
        # The event is a hint, and the record is the truth. Each record is read once for all events.
        for key in dict.fromkeys(keys):
            self.read(key)
        for key, image, event in zip(keys, images, events, strict=True):
            self.unchanged += image.get("OldImage") == image.get("NewImage")
            if "NewImage" in image:
                self.images[key] = image["NewImage"]
            else:
                self.images.pop(key, None)
            if event["eventName"] == "INSERT":
                self.created.append(plain(image["NewImage"]))
            self.events[event["eventName"]] += 1

    def read(self, key):
        names = {name: {"S": text} for name, text in zip(KEYS[self.table], key, strict=True)}
        request = {"TableName": self.table, "Key": names, "ConsistentRead": True}
        response = self.dynamodb.get_item(**request)
        if "Item" in response:
            self.records[key] = response["Item"]
        else:
            self.records.pop(key, None)


class Reader:
    """Follows each stream in a thread. Unless it is late, it begins at the oldest event."""

    def __init__(self, url, late=False):
        dynamodb, streams = client("dynamodb", url), client("dynamodbstreams", url)
        self.copies = {table: Copy(dynamodb, streams, table) for table in KEYS}
        self.late = late
        self.stopping = threading.Event()
        self.failures = []
        self.threads = [
            threading.Thread(target=self.follow, args=(copy,), daemon=True)
            for copy in self.copies.values()
        ]

    def start(self):
        for thread in self.threads:
            thread.start()

    def follow(self, copy):
        """Reads a stream until nothing is left after `finish`."""
        idle = 0
        while idle < 2:
            idle = idle + 1 if self.stopping.is_set() else 0
            try:
                if self.late and copy.joins == 0:
                    copy.join()
                if copy.poll():
                    idle = 0
            except (BotoCoreError, ClientError):
                idle = 0  # reads from the same position again
            except Exception as error:  # noqa: BLE001
                self.failures.append(repr(error))
                return
            self.stopping.wait(0.1)

    def finish(self):
        """Reads everything that is left."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(30)
        assert not self.failures, self.failures
        assert not any(thread.is_alive() for thread in self.threads), "a stream has no end"

    def events(self):
        return sum((copy.events for copy in self.copies.values()), Counter())
