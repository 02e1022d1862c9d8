"""What relevance 0.7 means with the shipped embedder: a short question finds the paragraph that answers it."""

from __future__ import annotations

import pytest

from octopus.cloud.minilm import MiniLmEmbedder
from octopus.relevance import Calibration

LEAVE = (
    "Annual leave. Every full-time employee is entitled to 25 days of paid annual leave per calendar year, in addition "
    "to public holidays. Leave accrues monthly. Up to five unused days may be carried over to the following year."
)
EXPENSES = (
    "Expenses. Submit receipts within 30 days of purchase through the finance portal. Meals while travelling are "
    "reimbursed up to 40 EUR per day. Alcohol is not reimbursed."
)
VPN = (
    "To connect to the company VPN, install the client from the software center, sign in with your employee account "
    "and confirm the second factor on your phone. If the connection drops, restart the client."
)
RETURNS = (
    "Returns and refunds. Customers may return any unused item within 30 days of delivery for a full refund. The "
    "refund is paid to the original payment method within ten working days. Sale items can only be exchanged."
)


@pytest.fixture(scope="module")
def embedder() -> MiniLmEmbedder:
    return MiniLmEmbedder()


async def relevance(embedder: MiniLmEmbedder, question: str, paragraph: str) -> float:
    a, b = await embedder.embed([question, paragraph])
    return embedder.calibration.relevance(sum(x * y for x, y in zip(a, b, strict=True)))


@pytest.mark.parametrize(
    ("question", "paragraph"),
    [
        ("How many days of annual leave do I have?", LEAVE),
        ("how much vacation do I get", LEAVE),
        ("Can I carry over unused vacation days into next year?", LEAVE),
        ("What is the meal allowance when I travel?", EXPENSES),
        ("my vpn keeps disconnecting, what can I do?", VPN),
        ("How do I set up the VPN on my laptop?", VPN),
        ("How long does a refund take?", RETURNS),
        ("Can I return a sale item?", RETURNS),
    ],
)
async def test_the_paragraph_that_answers_is_relevant(embedder: MiniLmEmbedder, question: str, paragraph: str) -> None:
    assert await relevance(embedder, question, paragraph) >= 0.7


@pytest.mark.parametrize(
    ("question", "paragraph"),
    [
        ("How many days of annual leave do I have?", EXPENSES),
        ("How long is paternity leave?", RETURNS),
        ("How do I reset my password?", VPN),
        ("Can I bring my dog to the office?", LEAVE),
        ("How many days do I have to send the receipts?", VPN),
        ("What's the weather like today?", LEAVE),
        ("Thanks, that helps!", VPN),
        ("Who won the world cup in 2014?", EXPENSES),
    ],
)
async def test_another_paragraph_is_not(embedder: MiniLmEmbedder, question: str, paragraph: str) -> None:
    assert await relevance(embedder, question, paragraph) < 0.5


def test_a_minimum_relevance_becomes_the_cosine_that_has_it() -> None:
    calibration = MiniLmEmbedder.calibration
    for minimum in (0.6, 0.65, 0.7, 0.75, 0.8):
        assert calibration.relevance(calibration.cosine(minimum)) == pytest.approx(minimum)
    assert calibration.cosine(0.7) == pytest.approx(0.48, abs=0.005)


def test_relevance_never_falls_while_cosine_grows() -> None:
    values = [MiniLmEmbedder.calibration.relevance(c / 50) for c in range(-55, 56)]
    assert values == sorted(values)
    assert (values[0], values[-1]) == (0.0, 1.0)


@pytest.mark.parametrize("knots", [((0.0, 0.0), (1.0, 1.0)), ((-1.0, 0.0), (0.5, 0.4), (0.6, 0.4), (1.0, 1.0))])
def test_a_map_that_cannot_be_inverted_is_refused(knots: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(ValueError, match="calibration"):
        Calibration(knots)
