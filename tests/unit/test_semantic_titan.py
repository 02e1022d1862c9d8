"""Titan is asked as its documentation says, several texts at a time and no more than that."""

from __future__ import annotations

import io
import json
import threading
import time
from typing import Any

import pytest
from botocore.response import StreamingBody
from botocore.stub import ANY, Stubber

from octopus.cloud.titan import TitanEmbedder
from octopus.errors import Unavailable


def answer(vector: list[float]) -> dict[str, Any]:
    body = json.dumps({"embedding": vector, "inputTextTokenCount": 1}).encode()
    return {"body": StreamingBody(io.BytesIO(body), len(body)), "contentType": "application/json"}


async def test_the_request_and_its_answer() -> None:
    embedder = TitanEmbedder()
    request = {
        "modelId": "amazon.titan-embed-text-v2:0",
        "body": '{"inputText": "tea", "dimensions": 1024, "normalize": true}',
        "accept": "application/json",
    }
    with Stubber(embedder._client) as stub:
        stub.add_response("invoke_model", answer([0.5] * 1024), request)
        assert await embedder.embed(["tea"]) == [[0.5] * 1024]
    assert await embedder.embed([]) == []


async def test_a_refusal_can_be_retried() -> None:
    embedder = TitanEmbedder()
    with Stubber(embedder._client) as stub:
        parameters = {"modelId": ANY, "body": ANY, "accept": ANY}
        stub.add_client_error("invoke_model", "ThrottlingException", http_status_code=400, expected_params=parameters)
        with pytest.raises(Unavailable):
            await embedder.embed(["tea"])


async def test_order_is_kept_and_concurrency_bounded() -> None:
    lock, running, most = threading.Lock(), 0, 0

    class Client:
        def invoke_model(self, *, body: str, **_: Any) -> dict[str, Any]:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            time.sleep(0.01)
            with lock:
                running -= 1
            return answer([float(json.loads(body)["inputText"])])

    embedder = TitanEmbedder()
    vars(embedder)["_client"] = Client()
    assert await embedder.embed([str(i) for i in range(40)]) == [[float(i)] for i in range(40)]
    assert 1 < most <= 8


def test_tokens_are_counted_on_the_high_side() -> None:
    text = "Refunds are granted within thirty days of purchase. " * 20
    assert TitanEmbedder().count_tokens(text) > len(text) / 4.7
