"""What moto does not have: the embedding model on Bedrock, an issuer of tokens, and an ear for custom
resources."""

from __future__ import annotations

import hashlib
import math
import re
import threading
from pathlib import Path
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from infra.local.issuer import Issuer, create_app
from infra.local.processes import LOOPBACK, free_port


class StandIns:
    """One small server, in a thread of this process. As a context manager it ends with the block."""

    def __init__(self, directory: Path) -> None:
        """The issuer's key is made in `directory`."""
        port = free_port()
        self.url = f"http://{LOOPBACK}:{port}"
        self.issuer = Issuer(f"{self.url}/issuer", directory / "issuer.pem")
        self.answers: list[dict[str, Any]] = []  # of custom resources, in the order of their arrival
        app = Starlette(
            routes=[
                Route("/model/{model}/invoke", self._embed, methods=["POST"]),
                Route("/custom-resource", self._answer, methods=["PUT"]),
                Mount("/issuer", create_app(self.issuer)),
            ]
        )
        self._server = uvicorn.Server(uvicorn.Config(app, LOOPBACK, port, log_level="warning"))
        self._thread = threading.Thread(target=self._server.run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()

    async def _embed(self, request: Request) -> Response:
        """As amazon.titan-embed-text-v2:0 answers: the closer two texts' words, the closer their vectors."""
        asked = await request.json()
        return JSONResponse({"embedding": vector(asked["inputText"], asked["dimensions"]), "inputTextTokenCount": 1})

    async def _answer(self, request: Request) -> Response:
        self.answers.append(await request.json())
        return Response()


def vector(text: str, dimensions: int) -> list[float]:
    """A vector of unit length that counts the text's words, each at a place of its own as far as there is
    room."""
    counts = [0.0] * dimensions
    for word in re.findall(r"\w+", text.lower()) or ["nothing"]:
        counts[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4]) % dimensions] += 1
    length = math.hypot(*counts)
    return [count / length for count in counts]
