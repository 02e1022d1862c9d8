"""What a new stack begins with: tenant `demo` with an agent, a document and a procedure. Runs at every
start."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from infra.local.client import Client

TENANT, USER = "demo", "alex"
GROUPS = ("OctopusAdmin", "OctopusDebug")
SEEDS = Path(__file__).with_name("seeds")
DOCUMENT = "hr-policy.md"
INDEXING_SECONDS = 60.0


class SeedFailed(Exception):
    """The demo data could not be made; the message says why."""


def seed(address: str, *, meanwhile: Callable[[], None]) -> None:
    """Make what is missing, and wait until the document is indexed; calls `meanwhile` now and then."""
    with Client(address, TENANT, USER, GROUPS) as client:
        agent = _agent(client)
        _procedure(client)
        _document(client, agent["agent_id"], meanwhile)


def _agent(client: Client) -> dict[str, Any]:
    wanted = json.loads((SEEDS / "agent.json").read_text())
    found = [agent for agent in client.get("/v1/agents") if agent["name"] == wanted["name"]]
    made: dict[str, Any] = found[0] if found else client.post("/v1/agents", wanted)
    return made


def _procedure(client: Client) -> None:
    wanted = json.loads((SEEDS / "procedure.json").read_text())
    if not any(found["name"] == wanted["name"] for found in client.get("/v1/procedures")["items"]):
        client.post("/v1/procedures", wanted)


def _document(client: Client, agent_id: str, meanwhile: Callable[[], None]) -> None:
    path = f"/v1/agents/{agent_id}/documents"
    found = [document for document in client.get(path) if document["file_name"] == DOCUMENT]
    content = (SEEDS / DOCUMENT).read_bytes()
    document = found[0] if found else client.upload(agent_id, DOCUMENT, content, "text/markdown")
    deadline = time.monotonic() + INDEXING_SECONDS
    while document["status"] != "indexed":
        if document["status"] == "failed" or time.monotonic() > deadline:
            reason = document["failure_reason"] or f"it is {document['status']} after {INDEXING_SECONDS:.0f} s"
            raise SeedFailed(f"The document {DOCUMENT} is not indexed: {reason}.")
        meanwhile()
        time.sleep(0.05)
        document = client.get(f"{path}/{document['document_id']}")
