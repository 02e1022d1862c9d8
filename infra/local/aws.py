"""AWS on this machine: moto's server, the resources of the stack in it, and the objects of earlier runs.

`python -m infra.local.aws` makes the resources at the address and with the credentials that its environment
gives; it is a process of its own so that no AWS client ever runs in one that sees the user's environment.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import boto3

from infra.local.environment import BUCKET, EVENT_BUS, INGEST, MODEL_SECRET, REMOVE, SESSION_ENDED
from infra.local.mirror import Mirror

EVENT_SOURCE = "octopus"
RECEIVES = 3  # of a message before it goes to the dead-letter queue
VISIBILITY_SECONDS = 120  # in which the worker must finish a message


def create_resources(*, model_key: str, origin: str) -> None:
    """Make bucket, queues, bus, rule and secret. A page served at `origin` may post to the bucket."""
    sqs = boto3.client("sqs")
    queues = {name: _queue_with_dead_letters(sqs, name) for name in (INGEST, REMOVE, SESSION_ENDED)}
    _bucket(boto3.client("s3"), queues, origin)
    _session_ended_rule(boto3.client("events"), queues[SESSION_ENDED])
    boto3.client("secretsmanager").create_secret(Name=MODEL_SECRET, SecretString=model_key)


def _queue_with_dead_letters(sqs: Any, name: str) -> str:
    """The queue's ARN."""
    redrive = {"deadLetterTargetArn": _queue(sqs, f"{name}-dlq"), "maxReceiveCount": RECEIVES}
    return _queue(sqs, name, VisibilityTimeout=str(VISIBILITY_SECONDS), RedrivePolicy=json.dumps(redrive))


def _queue(sqs: Any, name: str, **attributes: str) -> str:
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    arn: str = found["Attributes"]["QueueArn"]
    return arn


def _bucket(s3: Any, queues: dict[str, str], origin: str) -> None:
    """The bucket has no versions: moto sends no event for a delete in a versioned one."""
    s3.create_bucket(Bucket=BUCKET)
    rule = {"AllowedOrigins": [origin], "AllowedMethods": ["POST", "PUT", "GET"], "AllowedHeaders": ["*"]}
    s3.put_bucket_cors(Bucket=BUCKET, CORSConfiguration={"CORSRules": [rule]})
    notifications = [
        {"QueueArn": queues[INGEST], "Events": ["s3:ObjectCreated:*"]},
        {"QueueArn": queues[REMOVE], "Events": ["s3:ObjectRemoved:*"]},
    ]
    s3.put_bucket_notification_configuration(
        Bucket=BUCKET, NotificationConfiguration={"QueueConfigurations": notifications}
    )


def _session_ended_rule(events: Any, queue: str) -> None:
    pattern = {"source": [EVENT_SOURCE], "detail-type": ["SessionEnded"]}
    events.create_event_bus(Name=EVENT_BUS)
    events.put_rule(Name=SESSION_ENDED, EventBusName=EVENT_BUS, EventPattern=json.dumps(pattern))
    events.put_targets(Rule=SESSION_ENDED, EventBusName=EVENT_BUS, Targets=[{"Id": "queue", "Arn": queue}])


if __name__ == "__main__":
    create_resources(model_key=os.environ["ANTHROPIC_API_KEY"], origin=os.environ["OCTOPUS_LOCAL_ADDRESS"])
    Mirror(Path(os.environ["OCTOPUS_LOCAL_STATE"])).restore()
