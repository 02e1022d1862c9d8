"""`make demo`: one user's way through all four memories, as a chat application would go it, over HTTP only.

Exits with 1 if any of the memories did not do its part, or if one was seen by somebody whose it is not.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from infra.local.client import Client, ClientFailed, Turn

SAMPLES = Path(__file__).parent / "samples"
ADMIN = ("OctopusAdmin", "OctopusDebug")
PATIENCE_S = 60.0

PROCEDURE = {
    "name": "onboard_vendor",
    "description": "Takes a new vendor from first contact to the first order.",
    "trigger_kind": "regex",
    "trigger_pattern": "onboard.*vendor",
    "steps": [
        {"order": 1, "instruction": "Ask for the vendor's name and country."},
        {
            "order": 2,
            "instruction": "Search the knowledge base for the rules that hold.",
            "tool_name": "search_knowledge",
        },
        {"order": 3, "instruction": "Ask for a tax number.", "condition": "the vendor is outside the EU"},
        {"order": 4, "instruction": "Propose a date for the first order.", "is_optional": True},
    ],
}

TRIP = "Use search_knowledge for the limit of a hotel night on a business trip."
TRIP_GOES_ON = [
    "And use search_knowledge for the daily allowance for meals.",
    "Then use search_knowledge for who approves a business trip.",
    "Perfect, that is exactly what I needed for the trip.",
]


def main(address: str) -> int:
    """Run the demo against the stack at `address`; the exit code."""
    try:
        return Demo(address).run()
    except ClientFailed as error:
        print(f"\n✗ {error}")
        return 1


class Demo:
    """The account, scene by scene. Each run has a tenant of its own, so it may be run again and again."""

    def __init__(self, address: str) -> None:
        run = uuid4().hex[:8]
        self._failed: list[str] = []
        self._ada = Client(address, f"demo-{run}", "ada", ADMIN)
        self._bob = Client(address, f"demo-{run}", "bob", ADMIN)
        self._eve = Client(address, f"elsewhere-{run}", "ada", ADMIN)
        print(f"Octopus at {address}, tenant demo-{run}")

    def run(self) -> int:
        agent_id = self._prepare()
        self._knowledge(agent_id)
        self._procedure(agent_id)
        self._episode(agent_id)
        self._learning()
        self._isolation(agent_id)
        if self._failed:
            print("\n✗ The demo failed:\n" + "\n".join(f"  - {what}" for what in self._failed))
            return 1
        print("\n✓ All four memories did their part, and nobody saw another's.")
        return 0

    def _prepare(self) -> str:
        _scene("An agent, a procedure and two documents")
        agent = self._ada.post(
            "/v1/agents",
            {"name": "Aria", "system_prompt": "You are Aria, the assistant of the people team. Answer briefly."},
        )
        agent_id: str = agent["agent_id"]
        print(f"  agent Aria {agent_id}")
        procedure = self._ada.post("/v1/procedures", {**PROCEDURE, "agent_id": agent_id})
        self._check(procedure["status"] == "approved", f"procedure {procedure['name']} approved on creation")
        for name, media_type in [("leave-policy.md", "text/markdown"), ("travel-handbook.pdf", "application/pdf")]:
            self._upload(agent_id, SAMPLES / name, media_type)
        return agent_id

    def _upload(self, agent_id: str, file: Path, media_type: str) -> None:
        began = time.monotonic()
        document = self._ada.upload(agent_id, file.name, file.read_bytes(), media_type)
        path = f"/v1/agents/{agent_id}/documents/{document['document_id']}"
        while document["status"] in ("pending", "indexing"):
            if time.monotonic() - began > PATIENCE_S:
                break
            time.sleep(0.2)
            document = self._ada.get(path)
        took = time.monotonic() - began
        self._check(
            document["status"] == "indexed",
            f"{file.name}: {document['status']}, {document['chunk_count']} chunks, {took:.1f} s after the upload"
            + (f" ({document['failure_reason']})" if document["failure_reason"] else ""),
        )

    def _knowledge(self, agent_id: str) -> None:
        _scene("Semantic memory: questions that the documents answer")
        for question, fact, file in [
            ("How many days of annual leave do I have?", "28 days", "leave-policy.md"),
            ("What is the limit for a hotel night?", "140 euros", "travel-handbook.pdf"),
        ]:
            turn = self._ask(self._ada, agent_id, question)
            knowledge = _section(turn.context, "knowledge")
            sources = [item["source"] for item in knowledge["items"] if item["included"]]
            self._check(any(file in source for source in sources), f"a chunk of {file} is in the prompt")
            self._check(fact in turn.text, f"the answer, streamed in {turn.pieces} pieces, says “{fact}”")

    def _procedure(self, agent_id: str) -> None:
        _scene("Procedural memory: a message that triggers a procedure")
        turn = self._ask(self._ada, agent_id, "Please help me onboard the vendor TechCorp.")
        procedure = _section(turn.context, "procedure")
        included = [item for item in procedure["items"] if item["included"]]
        self._check(bool(included), "the procedure's steps are in the prompt")
        self._check(
            bool(included) and included[0]["rule"] == "pattern" and "Step 1:" in included[0]["text"],
            "it was matched by its pattern",
        )

    def _episode(self, agent_id: str) -> None:
        _scene("Episodic memory: a session ends, and a later one remembers it")
        first = self._ask(self._ada, agent_id, "I am planning a hiking trip to Norway in June with my sister Freya.")
        self._ask(self._ada, agent_id, "We want to take the night train from Oslo to Bergen.", first.conversation_id)
        self._ada.post(f"/v1/conversations/{first.conversation_id}/close", None)
        episode = self._episode_of(first.conversation_id)
        self._check(episode is not None, "closing the session made an episode")
        if episode is None:
            return
        print(f"  summary ({episode['summary_source']}): {episode['summary']}")
        for fact in episode["key_facts"]:
            print(f"  fact: {fact}")
        self._check(bool(episode["key_facts"]), "the episode has key facts")
        later = self._ask(self._ada, agent_id, "Where did I plan to go hiking with my sister?")
        self._check(later.conversation_id != first.conversation_id, "this is a new conversation")
        recalled = [item for item in _section(later.context, "episodes")["items"] if item["included"]]
        self._check(bool(recalled), "the episode is in the prompt")
        self._check("Norway" in later.text, "the answer remembers Norway")

    def _episode_of(self, conversation_id: str) -> dict[str, Any] | None:
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE_S:
            for episode in self._ada.get("/v1/episodes")["items"]:
                if episode["conversation_id"] == conversation_id:
                    found: dict[str, Any] = episode
                    return found
            time.sleep(0.2)
        return None

    def _learning(self) -> None:
        _scene("Learning: a session that ended well becomes a procedure, once it has been approved")
        prompt = "You are Nora, who prepares business trips. Answer briefly."
        # The offline model looks for the user's whole message, in which the name of the tool is beside the point.
        config = {"procedural_learning": True, "semantic_min_score": 0.1}
        agent_id = self._ada.post("/v1/agents", {"name": "Nora", "system_prompt": prompt, "memory_config": config})[
            "agent_id"
        ]
        self._upload(agent_id, SAMPLES / "travel-handbook.pdf", "application/pdf")
        first = self._ask(self._ada, agent_id, TRIP)
        for further in TRIP_GOES_ON:
            self._ask(self._ada, agent_id, further, first.conversation_id)
        self._ada.post(f"/v1/conversations/{first.conversation_id}/close", None)
        candidate = self._candidate(agent_id)
        self._check(candidate is not None, "closing the session left a candidate for review")
        if candidate is None:
            return
        print(f"  candidate {candidate['name']}, trigger ({candidate['trigger_kind']}): {candidate['trigger_pattern']}")
        for step in candidate["steps"]:
            print(f"  step {step['order']}: {step['instruction']} → {step['tool_name']}")
        path = f"/v1/procedures/{candidate['procedure_id']}"
        review = self._ada.get(f"{path}/review")
        self._check(bool(review["conversation"]), "the reviewer sees the conversation beside the steps")
        print(f"  evidence: “{review['evidence'][0]['quote']}”")
        before = self._ask(self._ada, agent_id, TRIP)
        self._check(not _included(before.context, "procedure"), "what nobody has approved is not followed")
        self._ada.patch(f"{path}/approve", {"review_note": "As we do it.", "version": candidate["version"]})
        after = self._ask(self._ada, agent_id, TRIP)
        followed = [item["item_id"].partition(":")[0] for item in _included(after.context, "procedure")]
        self._check(followed == [candidate["procedure_id"]], "approved, it is followed in the next conversation")

    def _candidate(self, agent_id: str) -> dict[str, Any] | None:
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE_S:
            for found in self._ada.get(f"/v1/procedures?status=pending&agent_id={agent_id}")["items"]:
                candidate: dict[str, Any] = found
                return candidate
            time.sleep(0.2)
        return None

    def _isolation(self, agent_id: str) -> None:
        _scene("Isolation: another user, another tenant")
        question = "Where did I plan to go hiking with my sister?"
        bob = self._ask(self._bob, agent_id, question)
        self._check(not _section(bob.context, "episodes")["items"], "Bob of the same tenant recalls no episode")
        self._check("Norway" not in bob.text, "Bob is not told of Norway")
        status, _ = self._eve.try_post("/v1/chat", {"agent_id": agent_id, "message": question})
        self._check(status == 404, f"another tenant's agent is not there (status {status})")
        own = self._eve.post("/v1/agents", {"name": "Aria", "system_prompt": "You are another Aria."})
        eve = self._ask(self._eve, own["agent_id"], question)
        recalled = [section for section in eve.context["sections"] if section["items"]]
        self._check(not recalled, "Ada of another tenant recalls nothing, not even a near miss")

    def _ask(self, client: Client, agent_id: str, message: str, conversation_id: str | None = None) -> Turn:
        print(f"\n  {client.user}: {message}")
        turn = client.chat(agent_id, message, conversation_id)
        print(f"  aria: {' '.join(turn.text.split())}")
        _account(turn.context)
        return turn

    def _check(self, holds: bool, what: str) -> None:
        print(f"  {'✓' if holds else '✗'} {what}")
        if not holds:
            self._failed.append(what)


def _scene(title: str) -> None:
    print(f"\n── {title} " + "─" * max(0, 84 - len(title)))


def _account(context: dict[str, Any]) -> None:
    """What each memory contributed to a turn, from the inspector."""
    stores = {store["name"]: store for store in context["stores"]}
    rows = [("procedure", "procedural"), ("knowledge", "semantic"), ("episodes", "episodic")]
    print(f"    {'memory':<12}{'tokens':>7}{'items':>7}{'near':>6}{'ms':>8}")
    for name, store in rows:
        section = _section(context, name)
        included = sum(item["included"] for item in section["items"])
        near = len(section["items"]) - included
        print(f"    {name:<12}{section['tokens']:>7}{included:>7}{near:>6}{stores[store]['ms']:>8.1f}")
    kept = context["pruning"]["turns_kept"]
    print(f"    {'history':<12}{_section(context, 'history')['tokens']:>7}{kept:>7}")
    budget = context["budget"]
    print(f"    {'whole':<12}{budget['used']:>7} of {budget['available']} tokens ({context['used_percent']} %)")


def _included(context: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [item for item in _section(context, name)["items"] if item["included"]]


def _section(context: dict[str, Any], name: str) -> dict[str, Any]:
    return next(section for section in context["sections"] if section["name"] == name)
