"""Runs a command for each data store: an example of a reader of the change streams.

usage: [TRUST_ANONYMOUS=1] provisioner.py LEDGER COMMAND [ARGUMENT...], where LEDGER is a file.
The command gets the record as JSON in the variable RECORD, and a token for it in TOKEN. The program
ends after an hour or an error: start it again. docs/records.md says what it guarantees."""

import json
import os
import sqlite3
import subprocess
import sys
import time

import boto3

dynamodb, streams = boto3.client("dynamodb"), boto3.client("dynamodbstreams")
stores, orgs = os.environ["DATA_STORES_TABLE"], os.environ["ORGANIZATIONS_TABLE"]
ledger = sqlite3.connect(sys.argv[1], isolation_level=None)
ledger.execute("CREATE TABLE IF NOT EXISTS done (token TEXT PRIMARY KEY)")


def provision(key):
    """Runs the command if it is needed. Returns whether it failed and has to run again."""
    store = dynamodb.get_item(TableName=stores, Key=key, ConsistentRead=True).get("Item", {})
    org = dynamodb.get_item(TableName=orgs, Key={"org_id": key["org_id"]}, ConsistentRead=True)
    # The records of a disabled organization are not in effect. A later scan finds them again.
    enabled = "Item" in org and not org["Item"].keys() & {"disabled_at", "erasing_id"}
    store = {name: next(iter(value.values())) for name, value in store.items()}
    trusted = store.get("created_by") != "anonymous" or os.environ.get("TRUST_ANONYMOUS")
    # A data store that was removed and created again has the same key, but another token.
    token = json.dumps([key, store.get("created_at"), store.get("request_id")], sort_keys=True)
    done = ledger.execute("SELECT 1 FROM done WHERE token = ?", [token]).fetchone()
    if not (store and enabled and trusted) or done:
        return False
    environment = os.environ | {"RECORD": json.dumps(store), "TOKEN": token}
    if subprocess.run(sys.argv[2:], check=False, env=environment).returncode != 0:
        return True
    # If the process is killed before this line, the command runs again, with the same token.
    ledger.execute("INSERT INTO done VALUES (?)", [token])
    return False


# The stream is read from its oldest event, so no change is between the scan and the stream.
stream = {"StreamArn": os.environ["DATA_STORES_STREAM_ARN"]}
keys = {"ProjectionExpression": "org_id, data_store_id", "ConsistentRead": True}
pages = dynamodb.get_paginator("scan").paginate(TableName=stores, **keys)
todo, positions, after = [key for page in pages for key in page["Items"]], {}, {}
for _ in range(3600):
    todo = [key for key in todo if provision(key)]
    time.sleep(1)
    page = streams.describe_stream(**stream, **after)["StreamDescription"]
    after = {"ExclusiveStartShardId": last} if (last := page.get("LastEvaluatedShardId")) else {}
    for shard in (shard["ShardId"] for shard in page["Shards"]):
        if shard not in positions:
            start = {"ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
            positions[shard] = streams.get_shard_iterator(**stream, **start)["ShardIterator"]
        if positions[shard]:
            events = streams.get_records(ShardIterator=positions[shard])
            todo += [event["dynamodb"]["Keys"] for event in events["Records"]]
            positions[shard] = events.get("NextShardIterator")
