"""A server that speaks Anthropic's Messages API and answers by quoting the memory it was given.

It has no knowledge and does no reasoning, and says so at the start of every answer. It exists so that the
product's whole path to a model (the SDK, streaming, tools, structured output, prompt caching, errors) runs on
a machine that has no network and no key. The same request gets the same answer.

* `request`: what the API refuses
* `answer`: which blocks to answer with; `memory` finds what to quote, `structured` fills a JSON schema
* `prompt_cache`: what the usage counters say
* `app`: HTTP, server-sent events, and failures on demand for tests
"""

from infra.local.offline_model.app import create_app

__all__ = ["create_app"]
