"""A stand-in for the stack behind the console: the wire contract with answers that a test can foresee.

What a message says decides how it is answered (`_answers`). It exists to bring the page into states that the real stack
cannot be asked for: an error in mid-answer, a stream that waits, a conflict.
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

CONSOLE = Path(__file__).parents[2] / "infra" / "console"
NOW = "2026-11-02T10:15:00Z"
MARKDOWN = (Path(__file__).parent / "answer.md").read_text()
ARIA = {"agent_id": "a0000000-0000-4000-8000-000000000001", "name": "aria"}
BRAM = {"agent_id": "a0000000-0000-4000-8000-000000000002", "name": "bram"}
EVERY_SECTION = {
    "system_prompt": 310,
    "procedure": 185,
    "knowledge": 1240,
    "episodes": 260,
    "history": 3905,
    "message": 42,
}


class FakeOctopus:
    """The server, and what it was asked. One instance serves one test."""

    def __init__(self) -> None:
        self.url = ""
        self.chats: list[dict[str, Any]] = []
        self.logs: dict[str, list[dict[str, Any]]] = {}
        self.places: dict[str, str] = {}  # the conversation of each message
        self.ended: set[str] = set()
        self.documents: list[dict[str, Any]] = []
        self.uploads: list[bytes] = []
        self.release = threading.Event()  # lets an answer that was asked to "wait" go on
        self.abandoned = threading.Event()  # the browser has gone away in mid-answer
        self.app = Starlette(
            routes=[
                Route("/issuer/token", self._token, methods=["POST"]),
                Route("/v1/agents", self._agents),
                Route("/v1/chat", self._chat, methods=["POST"]),
                Route("/v1/conversations", self._conversations),
                Route("/v1/conversations/{id}/messages", self._messages),
                Route("/v1/conversations/{id}/close", self._close, methods=["POST"]),
                Route("/v1/conversations/{id}/turns/{turn}/context", self._context),
                Route("/v1/agents/{id}/documents", self._documents, methods=["GET", "POST"]),
                Route("/v1/agents/{id}/documents/{document}", self._delete_document, methods=["DELETE"]),
                Route("/v1/agents/{id}/documents/{document}/reindex", self._reindex, methods=["PATCH"]),
                Route("/bucket", self._store, methods=["POST"]),
                Mount("/", StaticFiles(directory=CONSOLE, html=True)),
            ]
        )

    async def _token(self, request: Request) -> Response:
        wanted = await request.json()
        if wanted["sub"] == "nobody":
            return JSONResponse({"error_description": "nobody is not a user"}, 400)
        return JSONResponse({"access_token": token(wanted["tenant_id"], wanted["sub"], wanted["groups"])})

    async def _agents(self, request: Request) -> Response:
        if request.headers["authorization"] == "Bearer expired":
            return _problem(401, "The token has expired; get a new one.")
        return JSONResponse([ARIA, BRAM])

    async def _conversations(self, request: Request) -> Response:
        mine = request.query_params["agent_id"] == ARIA["agent_id"]
        sessions = [
            {
                "conversation_id": conversation,
                "status": "ended" if conversation in self.ended else "active",
                "last_seq": len(messages),
                "last_message_at": messages[-1]["created_at"],
            }
            for conversation, messages in self.logs.items()
        ]
        return JSONResponse({"items": sessions[::-1] if mine else [], "next_cursor": None})

    async def _messages(self, request: Request) -> Response:
        log = self.logs.get(request.path_params["id"])
        if log is None:
            return _problem(404, "There is no such conversation.")
        seen = int(request.query_params.get("cursor", 0))
        page = log[seen : seen + 2]  # small pages, so that the page has to follow the cursor
        more = seen + 2 < len(log)
        return JSONResponse({"items": page, "next_cursor": str(seen + 2) if more else None})

    async def _close(self, request: Request) -> Response:
        self.ended.add(request.path_params["id"])
        return JSONResponse({"conversation_id": request.path_params["id"], "status": "ended"})

    async def _context(self, request: Request) -> Response:
        return JSONResponse(report(int(request.path_params["turn"][-3:])))

    async def _chat(self, request: Request) -> Response:
        asked = await request.json()
        self.chats.append(asked)
        if asked["message"] == "conflict":
            return _problem(409, "Another turn of this conversation is being answered.", retryable=True, retry_after=2)
        first_try = asked["message_id"] not in self.places
        begun = asked.get("conversation_id") or f"c0000000-0000-4000-8000-{len(self.logs):012}"
        conversation = self.places.setdefault(asked["message_id"], begun)
        return StreamingResponse(self._turn(conversation, asked["message"], first_try), media_type="text/event-stream")

    async def _turn(self, conversation: str, message: str, first_try: bool) -> AsyncIterator[str]:
        log = self.logs.setdefault(conversation, [])
        if first_try:
            turn = f"t0000000-0000-4000-8000-{len({line['turn_id'] for line in log}) + 1:012}"
            log.append(_message(turn, "user", message, len(log) + 1))
        turn = log[-1]["turn_id"]
        yield ": keep-alive\n\n"
        start: dict[str, Any] = {"turn_id": turn, "conversation_id": conversation}
        if message == "again":
            start |= {"conversation_id": "c9", "continued_from": conversation}
        yield _event("turn_start", **start)
        yield _event("memory", **memory(degraded="late" if message == "degraded" else None))
        spoken = ""
        try:
            async for name, data in self._answers(message, first_try):
                spoken += data.get("text", "")
                yield _event(name, **data)
                if name == "error" or name == "close":
                    return
        except asyncio.CancelledError:
            self.abandoned.set()
            raise
        log.append(_message(turn, "assistant", spoken, len(log) + 1))
        usage = {"input_tokens": 900, "output_tokens": 80}
        yield _event("turn_end", message_id="m", stop_reason="end_turn", usage=usage, elapsed_ms=1234.5)

    async def _answers(self, message: str, first_try: bool) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        if message == "markdown":
            for piece in MARKDOWN.split(" "):
                yield "token", {"text": f"{piece} "}
        elif message == "wait":
            yield "token", {"text": "First. "}
            await asyncio.to_thread(self.release.wait, 30)
            yield "token", {"text": "Last."}
        elif message == "fail" and first_try:
            yield "token", {"text": "Half an ans"}
            yield (
                "error",
                {
                    "type": "urn:octopus:problem:model-unavailable",
                    "detail": "The model provider does not answer; retry.",
                    "retryable": True,
                },
            )
        elif message == "cut" and first_try:
            yield "token", {"text": "Half an ans"}
            yield "close", {}
        elif message == "tools":
            yield "token", {"text": "Let me look. "}
            yield "tool_call", {"tool_call_id": "1", "tool_name": "search_knowledge"}
            yield "tool_call", {"tool_call_id": "2", "tool_name": "vendor_lookup"}
            yield "tool_result", _result("2", "vendor_lookup", True, 30_000.0)
            yield "tool_result", _result("1", "search_knowledge", False, 12.25)
            yield "token", {"text": "Found it."}
        else:
            yield "token", {"text": f"You said: {message}"}

    async def _documents(self, request: Request) -> Response:
        if request.method == "GET":
            listed = JSONResponse({"items": self.documents, "next_cursor": None})
            for document in self.documents:
                if document["status"] == "pending":
                    document["status"] = "indexing"
                elif document["status"] == "indexing":
                    failed = document["file_name"].endswith(".zip")
                    document["status"] = "failed" if failed else "indexed"
                    document["failure_reason"] = (
                        "ZIP archives are not read; upload the files in it." if failed else None
                    )
                    document["chunk_count"] = 0 if failed else 12
            return listed
        asked = await request.json()
        if asked["size_bytes"] == 0:
            return _problem(422, "size_bytes: the file is empty.")
        document = {
            "document_id": f"d{len(self.documents)}",
            "file_name": asked["file_name"],
            "size_bytes": asked["size_bytes"],
            "status": "pending",
            "failure_reason": None,
            "chunk_count": 0,
            "updated_at": NOW,
        }
        self.documents.append(document)
        upload = {"url": f"{self.url}/bucket", "fields": {"key": f"acme/{asked['file_name']}", "policy": "p"}}
        return JSONResponse({"document": document, "upload": upload}, 201)

    async def _delete_document(self, request: Request) -> Response:
        self.documents = [d for d in self.documents if d["document_id"] != request.path_params["document"]]
        return Response(status_code=204)

    async def _reindex(self, request: Request) -> Response:
        for document in self.documents:
            if document["document_id"] == request.path_params["document"]:
                document["status"] = "pending"
        return JSONResponse({}, 202)

    async def _store(self, request: Request) -> Response:
        self.uploads.append(await request.body())
        return Response(status_code=204)


def token(tenant: str, user: str, groups: list[str]) -> str:
    """Shaped like a JWT; the console never checks the signature."""
    claims = json.dumps({"tenant_id": tenant, "sub": user, "cognito:groups": groups}, ensure_ascii=False)
    return f"e30.{base64.urlsafe_b64encode(claims.encode()).decode().rstrip('=')}.x"


def memory(degraded: str | None = None) -> dict[str, Any]:
    sections = [
        {"name": name, "tokens": tokens, "count": 1, "ms": 41.2 if name == "knowledge" else None, "degraded": None}
        for name, tokens in EVERY_SECTION.items()
    ]
    sections[3]["degraded"] = degraded
    return {
        "sections": sections,
        "used_tokens": 5942,
        "available_tokens": 145_904,
        "max_working_memory_tokens": 150_000,
    }


def report(turn: int) -> dict[str, Any]:
    """The inspector's account of turn `turn`; history grows with the turn."""
    tokens = {**EVERY_SECTION, "history": 1200 * (turn - 1)}
    items = {
        "procedure": [_item("onboard_vendor", 1, None, None, 185, rule="pattern")],
        "knowledge": [
            _item("hr-policy.md (Leave)", 1, 0.62, 0.93, 640, content="Annual leave entitlement is 25 days."),
            _item("handbook.pdf (page 12)", 2, 0.55, 0.81, 560, state="changed", content="Rewritten text."),
            _item("canteen.pdf (page 1)", 3, 0.31, 0.42, 300, left_out="below_min_score", content="Lunch from noon."),
        ],
        "episodes": [_item("2026-10-20 Asked about leave", 1, 0.5, 0.74, 260, state="erased")],
    }
    sections = [{"name": name, "tokens": n, "items": items.get(name, [])} for name, n in tokens.items()]
    stores = [
        {"name": "procedural", "enabled": True, "ms": 3.1, "count": 1, "degraded": None},
        {"name": "semantic", "enabled": True, "ms": 41.2, "count": 2, "degraded": None},
        {"name": "episodic", "enabled": True, "ms": 2000.4, "count": 1, "degraded": "late"},
    ]
    return {
        "turn_id": f"t{turn}",
        "model": "claude-sonnet-4-6",
        "layout": "documented",
        "stop_reason": "end_turn",
        "budget": {
            "max_working_memory_tokens": 150_000,
            "output_reserve_tokens": 4096,
            "available": 145_904,
            "used": sum(tokens.values()),
        },
        "sections": sections,
        "pruning": {"strategy": "fifo", "turns_kept": turn - 1, "turns_dropped": 2, "first_seq": 5, "last_seq": 8},
        "stores": stores,
        "usage": {"input_tokens": 500, "output_tokens": 80, "cache_read_tokens": 400, "cache_write_tokens": 0},
        "timings": {
            "loaded_ms": 4.0,
            "read_ms": 42.0,
            "assemble_ms": 1.0,
            "first_token_ms": 300.0,
            "elapsed_ms": 1234.5,
        },
    }


def _item(
    source: str, rank: int, cosine: float | None, relevance: float | None, tokens: int, **more: Any
) -> dict[str, Any]:
    return {
        "item_id": source,
        "source": source,
        "tokens": tokens,
        "score": {"rank": rank, "cosine": cosine, "relevance": relevance},
        "threshold": None if relevance is None else 0.7,
        "left_out": None,
        "rule": None,
        "state": "current",
        "content": None,
        **more,
    }


def _message(turn: str, role: str, text: str, seq: int) -> dict[str, Any]:
    stop = "end_turn" if role == "assistant" else None
    content = [{"type": "text", "text": text}]
    return {"seq": seq, "turn_id": turn, "role": role, "content": content, "stop_reason": stop, "created_at": NOW}


def _result(call: str, name: str, is_error: bool, ms: float) -> dict[str, Any]:
    return {"tool_call_id": call, "tool_name": name, "is_error": is_error, "elapsed_ms": ms}


def _event(name: str, **data: Any) -> str:
    return f"event: {name}\r\ndata: {json.dumps(data)}\r\n\r\n" if name != "close" else ""


def _problem(status: int, detail: str, *, retryable: bool = False, retry_after: int | None = None) -> Response:
    headers = {"Retry-After": str(retry_after)} if retry_after else {}
    body = {
        "type": "urn:octopus:problem:x",
        "title": "Problem",
        "status": status,
        "detail": detail,
        "retryable": retryable,
    }
    return JSONResponse(body, status, headers, media_type="application/problem+json")


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
