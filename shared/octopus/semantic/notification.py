"""What S3 says in an SQS message: which objects came or went.

Accepts AWS's form and that of local emulators, which leave out the sequencer; and, on the same queue, what Octopus puts
there itself: ``{"ingest": key, "anew": false}`` and ``{"lane": {…}}``.
Source: "Event message structure" in the Amazon S3 user guide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote_plus

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from octopus.errors import InvalidInput
from octopus.semantic.types import Lane

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


class _Ingest(BaseModel):
    ingest: str
    anew: bool


class _Lane(BaseModel):
    lane: Lane


class _Test(BaseModel):
    event: Literal["s3:TestEvent"] = Field(alias="Event")


_MESSAGE: TypeAdapter[_Notification | _Ingest | _Lane | _Test] = TypeAdapter(_Notification | _Ingest | _Lane | _Test)


def read_message(body: str) -> list[ObjectEvent] | Lane:
    """The events of one message, or the lane that it is; no event in the test message that S3 sends to a new queue.

    Raises `InvalidInput` for anything else, without repeating it.
    """
    try:
        message = _MESSAGE.validate_json(body)
    except ValidationError as exc:
        raise InvalidInput("The message is not an S3 event notification.") from exc
    match message:
        case _Notification(records=records):
            return [event for record in records if (event := _event(record))]
        case _Ingest(ingest=key, anew=anew):
            return [ObjectEvent("created", key, anew=anew)]
        case _Lane(lane=lane):
            return lane
        case _:
            return []


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
