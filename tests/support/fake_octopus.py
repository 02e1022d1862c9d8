"""A stand-in for the stack behind the console: the wire contract with answers that a test can foresee.

What a message says decides how it is answered (`_answers`). It exists to bring the page into states that the real stack
cannot be asked for: an error in mid-answer, a stream that waits, a conflict. What it sends is made of the types that
the real stack sends, so that it cannot drift from them.
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from uuid import UUID, uuid4

import uvicorn
from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from octopus.conversations.sessions import Session
from octopus.conversations.types import Message, Role, text_block
from octopus.errors import InvalidInput, ModelUnavailable, NotFound, OctopusError, TurnInProgress, Unauthenticated
from octopus.paging import Page
from octopus.problem import CONTENT_TYPE, problem, problem_headers
from octopus.semantic.library import AnnouncedDocument
from octopus.semantic.types import Document, Upload
from octopus.turn_events import (
    MemoryAssembled,
    MemorySection,
    Token,
    ToolCalled,
    ToolResulted,
    TurnEnd,
    TurnError,
    TurnEvent,
    TurnStart,
)
from octopus.working.inspector import InspectedItem, InspectedSection, InspectedUsage, InspectorReport
from octopus.working.trace import StoreReport, Timings
from octopus.working.types import Budget, Pruning

CONSOLE = Path(__file__).parents[2] / "infra" / "console"
NOW = datetime(2026, 11, 2, 10, 15, tzinfo=UTC)
MARKDOWN = Path(__file__).with_name("answer.md").read_text()
ARIA = {"agent_id": "a0000000-0000-4000-8000-000000000001", "name": "aria"}
BRAM = {"agent_id": "a0000000-0000-4000-8000-000000000002", "name": "bram"}
EVERY_SECTION = {
    "tools": 58,
    "system_prompt": 310,
    "procedure": 185,
    "knowledge": 1240,
    "episodes": 260,
    "history": 3905,
    "message": 42,
}
BROKEN = TurnError(ModelUnavailable("The model provider does not answer; retry."))


class FakeOctopus:
    """The server, and what it was asked. One instance serves one test."""

    def __init__(self) -> None:
        self.url = ""
        self.chats: list[dict[str, Any]] = []
        self.logs: dict[UUID, list[Message]] = {}
        self.places: dict[str, UUID] = {}  # the conversation of each message
        self.ended: set[UUID] = set()
        self.documents: list[Document] = []
        self.uploads: list[bytes] = []
        self.release = threading.Event()  # lets an answer that was asked to "wait" go on
        self.abandoned = threading.Event()  # the browser has gone away in mid-answer
        self.app = Starlette(
            routes=[
                Route("/issuer/token", self._token, methods=["POST"]),
                Route("/v1/agents", self._agents),
                Route("/v1/chat", self._chat, methods=["POST"]),
                Route("/v1/conversations", self._conversations),
                Route("/v1/conversations/{id:uuid}/messages", self._messages),
                Route("/v1/conversations/{id:uuid}/close", self._close, methods=["POST"]),
                Route("/v1/conversations/{id:uuid}/turns/{turn:uuid}/context", self._context),
                Route("/v1/agents/{id}/documents", self._documents, methods=["GET", "POST"]),
                Route("/v1/agents/{id}/documents/{document:uuid}", self._delete_document, methods=["DELETE"]),
                Route("/v1/agents/{id}/documents/{document:uuid}/reindex", self._reindex, methods=["PATCH"]),
                Route("/bucket", self._store, methods=["POST"]),
                Mount("/", StaticFiles(directory=CONSOLE, html=True)),
            ]
        )

    async def _token(self, request: Request) -> Response:
        wanted = await request.json()
        if wanted["sub"] == "nobody":
            return JSONResponse({"error": "invalid_request", "error_description": "nobody is not a user"}, 400)
        return JSONResponse({"access_token": token(wanted["tenant_id"], wanted["sub"], wanted["groups"])})

    async def _agents(self, request: Request) -> Response:
        if request.headers["authorization"] == "Bearer expired":
            return _problem(Unauthenticated("The token has expired; get a new one."))
        return JSONResponse([ARIA, BRAM])

    async def _conversations(self, request: Request) -> Response:
        agent = UUID(request.query_params["agent_id"])
        sessions = [
            Session(
                conversation_id=conversation,
                agent_id=agent,
                user_id=request.query_params["user_id"],
                status="ended" if conversation in self.ended else "active",
                last_seq=len(messages),
                started_at=NOW,
                last_message_at=NOW,
                ended_at=None,
                end_reason=None,
                archived_at=None,
            )
            for conversation, messages in reversed(self.logs.items())
        ]
        return _answer(Page(sessions if str(agent) == ARIA["agent_id"] else []))

    async def _messages(self, request: Request) -> Response:
        log = self.logs.get(request.path_params["id"])
        if log is None:
            return _problem(NotFound("There is no such conversation."))
        seen = int(request.query_params.get("cursor", 0))
        shown = log[seen : seen + 2]  # small pages, so that the page has to follow the cursor
        return _answer(Page(shown, str(seen + 2) if seen + 2 < len(log) else None))

    async def _close(self, request: Request) -> Response:
        self.ended.add(request.path_params["id"])
        return JSONResponse({})

    async def _context(self, request: Request) -> Response:
        return _answer(report(int(request.path_params["turn"].hex[-12:])))

    async def _chat(self, request: Request) -> Response:
        asked = await request.json()
        self.chats.append(asked)
        if asked["message"] == "conflict":
            return _problem(TurnInProgress("Another turn of this conversation is being answered.", retry_after=2))
        first_try = asked["message_id"] not in self.places
        begun = UUID(asked["conversation_id"]) if "conversation_id" in asked else _id("c", len(self.logs))
        conversation = self.places.setdefault(asked["message_id"], begun)
        turn = self._turn(conversation, asked["message"], first_try)
        return StreamingResponse(turn, media_type="text/event-stream")

    async def _turn(self, conversation: UUID, message: str, first_try: bool) -> AsyncIterator[str]:
        log = self.logs.setdefault(conversation, [])
        if first_try:
            turn = _id("t", len({line.turn_id for line in log}) + 1)
            log.append(_message(turn, "user", message, len(log) + 1))
        turn = log[-1].turn_id
        yield ": keep-alive\n\n"
        if message == "again":
            yield _event(TurnStart(turn, uuid4(), continued_from=conversation))
        else:
            yield _event(TurnStart(turn, conversation))
        yield _event(memory(degraded="late" if message == "degraded" else None))
        spoken = ""
        try:
            async for event in self._answers(message, first_try):
                spoken += event.text if isinstance(event, Token) else ""
                yield _event(event)
        except asyncio.CancelledError:
            self.abandoned.set()
            raise
        if message in ("fail", "cut") and first_try:
            return
        answer = _message(turn, "assistant", spoken, len(log) + 1)
        log.append(answer)
        yield _event(TurnEnd(answer.message_id, "end_turn", {"input_tokens": 900, "output_tokens": 80}, 1234.5))

    async def _answers(self, message: str, first_try: bool) -> AsyncIterator[TurnEvent]:
        if message == "markdown":
            for piece in MARKDOWN.split(" "):
                yield Token(f"{piece} ")
        elif message == "wait":
            yield Token("First. ")
            await asyncio.to_thread(self.release.wait, 30)
            yield Token("Last.")
        elif message in ("fail", "cut") and first_try:
            yield Token("Half an ans")
            if message == "fail":
                yield BROKEN
        elif message == "tools":
            yield Token("Let me look. ")
            yield ToolCalled("1", "search_knowledge")
            yield ToolCalled("2", "vendor_lookup")
            yield ToolResulted("2", "vendor_lookup", True, 30_000.0)
            yield ToolResulted("1", "search_knowledge", False, 12.25)
            yield Token("Found it.")
        else:
            yield Token(f"You said: {message}")

    async def _documents(self, request: Request) -> Response:
        if request.method == "GET":
            listed = _answer(self.documents)
            self.documents = [_further(document) for document in self.documents]
            return listed
        asked = await request.json()
        if asked["size_bytes"] == 0:
            return _problem(InvalidInput("size_bytes: the file is empty."))
        document = Document(
            document_id=_id("d", len(self.documents)),
            agent_id=request.path_params["id"],
            file_name=asked["file_name"],
            object_key=f"acme/{asked['file_name']}",
            media_type="text/markdown",
            category=None,
            status="pending",
            failure_reason=None,
            size_bytes=asked["size_bytes"],
            chunk_count=0,
            token_count=0,
            created_by="ada",
            created_at=NOW,
            updated_at=NOW,
            indexed_at=None,
        )
        self.documents.append(document)
        upload = Upload(f"{self.url}/bucket", {"key": document.object_key, "policy": "p"})
        return _answer(AnnouncedDocument(document, upload), 201)

    async def _delete_document(self, request: Request) -> Response:
        self.documents = [d for d in self.documents if d.document_id != request.path_params["document"]]
        return Response(status_code=204)

    async def _reindex(self, request: Request) -> Response:
        asked = request.path_params["document"]
        self.documents = [replace(d, status="pending") if d.document_id == asked else d for d in self.documents]
        return JSONResponse({}, 202)

    async def _store(self, request: Request) -> Response:
        self.uploads.append(await request.body())
        return Response(status_code=204)


def _further(document: Document) -> Document:
    """A document as it is one look later."""
    if document.status == "pending":
        return replace(document, status="indexing")
    if document.status != "indexing":
        return document
    if document.file_name.endswith(".zip"):
        return replace(document, status="failed", failure_reason="ZIP archives are not read; upload the files in it.")
    return replace(document, status="indexed", chunk_count=12)


def token(tenant: str, user: str, groups: list[str]) -> str:
    """Shaped like a JWT; the console never checks the signature."""
    claims = json.dumps({"tenant_id": tenant, "sub": user, "cognito:groups": groups}, ensure_ascii=False)
    return f"e30.{base64.urlsafe_b64encode(claims.encode()).decode().rstrip('=')}.x"


def memory(degraded: Literal["late"] | None = None) -> MemoryAssembled:
    stores = {"procedure": 3.1, "knowledge": 41.2, "episodes": 12.0}
    sections = [
        MemorySection(name, tokens, 1, stores.get(name), degraded if name == "episodes" else None)
        for name, tokens in EVERY_SECTION.items()
    ]
    return MemoryAssembled(sections, 6_000, 145_904, 150_000, degraded is not None)


def report(turn: int) -> InspectorReport:
    """The inspector's account of turn `turn`; history grows with the turn."""
    tokens = {**EVERY_SECTION, "history": 1200 * (turn - 1)}
    items = {
        "procedure": [_item("onboard_vendor", 1, 185, rule="pattern")],
        "knowledge": [
            _item("hr-policy.md (Leave)", 1, 640, 0.62, 0.93, text="Annual leave entitlement is 25 days."),
            _item("handbook.pdf (page 12)", 2, 560, 0.55, 0.81, state="changed", text="Rewritten text."),
            _item("canteen.pdf (page 1)", 3, 300, 0.31, 0.42, left_out="below_min_score", text="Lunch from noon."),
        ],
        "episodes": [_item(None, 1, 260, 0.5, 0.74, state="erased")],
    }
    texts = {"system_prompt": "You are Aria.", "message": "user: one"}
    return InspectorReport(
        turn_id=_id("t", turn),
        conversation_id=_id("c", 0),
        agent_id=UUID(ARIA["agent_id"]),
        status="completed",
        started_at=NOW,
        model="claude-sonnet-4-6",
        layout="documented",
        stop_reason="end_turn",
        budget=Budget(150_000, 4_096, 145_904, sum(tokens.values())),
        used_percent=round(sum(tokens.values()) / 1500, 1),
        sections=[
            InspectedSection(name, n, round(n / 1500, 1), texts.get(name), "current", items.get(name, []))
            for name, n in tokens.items()
        ],
        procedure_matched="onboard_vendor",
        pruning=Pruning("fifo", turn - 1, 2, 5, 8),
        stores=[
            StoreReport("procedural", True, 3.1, 1),
            StoreReport("semantic", True, 41.2, 2),
            StoreReport("episodic", True, 2000.4, 0, "late"),
        ],
        degraded=True,
        usage=InspectedUsage(input_tokens=500, output_tokens=80, cache_read_tokens=400, cache_write_tokens=0),
        timings=Timings(4.0, 42.0, 1.0, 300.0, 1234.5),
        token_factor=1.2,
        tools=[],
    )


def _item(
    source: str | None,
    rank: int,
    tokens: int,
    cosine: float | None = None,
    relevance: float | None = None,
    *,
    state: Literal["current", "changed", "erased"] = "current",
    left_out: str | None = None,
    rule: str | None = None,
    text: str | None = None,
) -> InspectedItem:
    threshold = None if relevance is None else 0.7
    scores = (rank, cosine, relevance, threshold, rule)
    return InspectedItem(f"item-{rank}", source, text, state, tokens, *scores, left_out is None, left_out)


def _message(turn: UUID, role: Role, text: str, seq: int) -> Message:
    stop = "end_turn" if role == "assistant" else None
    return Message(seq, uuid4(), turn, role, [text_block(text)], 10, stop, NOW)


def _id(kind: str, number: int) -> UUID:
    """A readable id: the kind is its first letter, the number its end."""
    return UUID(f"{'c' if kind == 'c' else 'd'}0000000-0000-4000-8000-{number:012}")


def _event(event: TurnEvent) -> str:
    return f"event: {event.name}\r\ndata: {_json(event.data()).decode()}\r\n\r\n"


def _answer(value: object, status: int = 200) -> Response:
    return Response(_json(value), status, media_type="application/json")


def _json(value: object) -> bytes:
    """As the API encodes it."""
    return TypeAdapter(Any).dump_json(value)


def _problem(error: OctopusError) -> Response:
    return JSONResponse(problem(error), error.status, dict(problem_headers(error)), media_type=CONTENT_TYPE)


@contextmanager
def serving(fake: FakeOctopus) -> Iterator[FakeOctopus]:
    """`fake` on a free port of the loopback address."""
    server = uvicorn.Server(uvicorn.Config(fake.app, log_level="critical", ws="none", timeout_graceful_shutdown=1))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fake.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield fake
        finally:
            fake.release.set()
            server.should_exit = True
            thread.join()
