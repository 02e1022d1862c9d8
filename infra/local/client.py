"""A chat application's view of Octopus: tokens, JSON requests, uploads and the stream of a turn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self
from uuid import uuid4

import httpx2

TIMEOUT_S = 60.0


class ClientFailed(Exception):
    """A request was not answered as it should be; the message holds the problem's detail."""


@dataclass(frozen=True)
class Turn:
    """A turn as the client saw it, with the inspector's report of it."""

    conversation_id: str
    turn_id: str
    text: str
    pieces: int
    context: dict[str, Any]


def token(address: str, tenant: str, user: str, groups: Sequence[str] = ()) -> str:
    """A bearer token from the local issuer; `groups` give roles."""
    who = {"tenant_id": tenant, "sub": user, "groups": list(groups)}
    answer = httpx2.post(f"{address}/issuer/token", json=who, timeout=TIMEOUT_S, trust_env=False)
    signed: str = _checked(answer)["access_token"]
    return signed


class Client:
    """One user of one tenant, signed in at the local issuer. No proxy of the caller's environment is used."""

    def __init__(self, address: str, tenant: str, user: str, groups: Sequence[str] = ()) -> None:
        self.user = user
        headers = {"Authorization": f"Bearer {token(address, tenant, user, groups)}"}
        self._http = httpx2.Client(base_url=address, headers=headers, timeout=TIMEOUT_S, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    @property
    def authorization(self) -> str:
        """The header that carries the token."""
        return self._http.headers["Authorization"]

    def close(self) -> None:
        self._http.close()

    def get(self, path: str) -> Any:
        return _checked(self._http.get(path))

    def post(self, path: str, body: object) -> Any:
        return _checked(self._http.post(path, json=body))

    def patch(self, path: str, body: object) -> Any:
        return _checked(self._http.patch(path, json=body))

    def try_get(self, path: str) -> tuple[int, Any]:
        """Status and body, whatever they are."""
        answer = self._http.get(path)
        return answer.status_code, answer.json()

    def try_post(self, path: str, body: object) -> tuple[int, Any]:
        """Status and body, whatever they are."""
        answer = self._http.post(path, json=body)
        return answer.status_code, answer.json()

    def upload(self, agent_id: str, file_name: str, content: bytes, media_type: str) -> dict[str, Any]:
        """Announce a document and put it into the bucket with the presigned form."""
        announced = self.post(
            f"/v1/agents/{agent_id}/documents",
            {"file_name": file_name, "media_type": media_type, "size_bytes": len(content)},
        )
        form = announced["upload"]
        file = {"file": (file_name, content, media_type)}
        answer = httpx2.post(form["url"], data=form["fields"], files=file, timeout=TIMEOUT_S, trust_env=False)
        if answer.status_code >= 300:
            raise ClientFailed(f"The bucket refused {file_name} ({answer.status_code}): {answer.text[:200]}")
        document: dict[str, Any] = announced["document"]
        return document

    def chat(self, agent_id: str, message: str, conversation_id: str | None = None) -> Turn:
        """Take a turn, reading the stream to its end."""
        body = {"agent_id": agent_id, "message": message, "message_id": str(uuid4())}
        if conversation_id:
            body["conversation_id"] = conversation_id
        start: dict[str, Any] = {}
        pieces: list[str] = []
        with self._http.stream("POST", "/v1/chat", json=body, headers={"Accept": "text/event-stream"}) as answer:
            if answer.status_code != 200:
                answer.read()
                _checked(answer)
            for name, data in _events(answer.iter_lines()):
                if name == "turn_start":
                    start = data
                elif name == "token":
                    pieces.append(data["text"])
                elif name == "error":
                    raise ClientFailed(f"The turn failed: {data['detail']}")
        context = self.get(f"/v1/conversations/{start['conversation_id']}/turns/{start['turn_id']}/context")
        return Turn(start["conversation_id"], start["turn_id"], "".join(pieces), len(pieces), context)


def _events(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and data of each server-sent event; ours have one line of data each."""
    name = ""
    for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


def _checked(answer: httpx2.Response) -> Any:
    if answer.status_code >= 400:
        try:
            detail = answer.json()["detail"]
        except (ValueError, KeyError):
            detail = answer.text[:200]
        raise ClientFailed(f"{answer.request.method} {answer.request.url.path} → {answer.status_code}: {detail}")
    return answer.json() if answer.content else None
