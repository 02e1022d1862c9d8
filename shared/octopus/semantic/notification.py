"""What S3 says in an SQS message: which objects came or went.

Accepts AWS's form and that of local emulators, which leave out the sequencer; and, on the same queue, our own
``{"ingest": key, "anew": false}``.
Source: "Event message structure" in the Amazon S3 user guide.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote_plus

from pydantic import BaseModel, Field, ValidationError

from octopus.errors import InvalidInput

_SEQUENCER_DIGITS = 64


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """An object came or went. Sequencers of one key compare as strings; None when the sender has none.

    `anew`: index it even if its content is unchanged.
    """

    kind: Literal["created", "removed"]
    key: str
    sequencer: str | None = None
    anew: bool = False


class _Object(BaseModel):
    key: str
    sequencer: str | None = None


class _S3(BaseModel):
    object: _Object


class _Record(BaseModel):
    event_name: str = Field(alias="eventName")
    s3: _S3


class _Notification(BaseModel):
    records: list[_Record] = Field(alias="Records")


def object_events(body: str) -> list[ObjectEvent]:
    """The events of one message; none in the test message that S3 sends when a bucket is connected.

    Raises `InvalidInput` for anything else, without repeating it.
    """
    try:
        message = json.loads(body)
        if isinstance(message, dict) and message.get("Event") == "s3:TestEvent":
            return []
        if isinstance(message, dict) and isinstance(message.get("ingest"), str):
            return [ObjectEvent("created", message["ingest"], anew=message.get("anew") is True)]
        records = _Notification.model_validate(message).records
    except (json.JSONDecodeError, ValidationError) as exc:
        raise InvalidInput("The message is not an S3 event notification.") from exc
    return [event for record in records if (event := _event(record))]


def _event(record: _Record) -> ObjectEvent | None:
    kind: Literal["created", "removed"]
    match record.event_name.split(":")[0]:
        case "ObjectCreated":
            kind = "created"
        case "ObjectRemoved" | "LifecycleExpiration":
            kind = "removed"
        case _:
            return None
    found = record.s3.object
    # Keys arrive encoded as in a form. A shorter sequencer counts as padded on the right with zeros.
    sequencer = found.sequencer and found.sequencer.lower().ljust(_SEQUENCER_DIGITS, "0")
    return ObjectEvent(kind, unquote_plus(found.key), sequencer)
