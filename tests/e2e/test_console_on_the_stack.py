"""The console on the whole local stack: what a user, an administrator and a reviewer do, with nothing canned."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from infra.local.client import token
from infra.local.demo import SAMPLES, TRIP, TRIP_GOES_ON
from infra.local.processes import CHECKOUT
from infra.local.seed import GROUPS, TENANT
from infra.local.state import Running, State
from tests.support.accessibility import poor_contrast, too_wide, unnamed_controls
from tests.support.browser import Console, needs_chromium

pytestmark = needs_chromium

STARTING_SECONDS = 120
LEAVE = "How many days of annual leave do full-time employees have?"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The stack on a free port, with a directory of its own."""
    state = State(tmp_path_factory.mktemp("stack") / ".octopus")
    environment = {**os.environ, "OCTOPUS_STATE": str(state.directory), "OCTOPUS_PORT": "0"}
    command = [sys.executable, "-m", "infra.local", "run"]
    with subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + STARTING_SECONDS
            while not (running := state.running()):
                assert process.poll() is None, "the stack has ended"
                assert time.monotonic() < deadline, "the stack has not started in time"
                time.sleep(0.1)
            yield running
        finally:
            process.send_signal(signal.SIGTERM)


@pytest.fixture
def user(request: pytest.FixtureRequest) -> str:
    """A user for each test: nobody has memories of another test."""
    return f"user-{request.node.name[:40]}"


@pytest.fixture
def bearer(stack: Running, user: str) -> str:
    return token(stack.address, TENANT, user, GROUPS)


@pytest.fixture
def api(stack: Running, bearer: str) -> Iterator[httpx2.Client]:
    """The same user, over HTTP."""
    headers = {"Authorization": f"Bearer {bearer}"}
    with httpx2.Client(base_url=f"{stack.address}/v1", headers=headers, timeout=30, trust_env=False) as client:
        yield client


@pytest.fixture
def console(driver: webdriver.Chrome, stack: Running, bearer: str) -> Console:
    console = Console(driver, stack.address)
    console.open(f"#token={bearer}")
    console.until(lambda: console.text("#agent") and console.text("#log"))
    return console


def tokens(console: Console, section: str) -> int:
    """The tokens of a section in the inspector's table."""
    for row in console.all(".sections tbody tr"):
        name, *_ = row.text.split("\n")
        if name.startswith(section):
            return int(row.find_element("css selector", "td").text.replace(",", ""))
    raise AssertionError(f"the table has no row {section}")


def inspect(console: Console) -> None:
    """Open the inspector on the last turn."""
    turn = len(console.all(".turn"))
    console.all("[aria-label^='Inspect']")[-1].click()
    console.until(lambda: console.texts(".report h3") == [f"Turn {turn}"])


def test_all_four_memories_show_in_the_inspector(console: Console, api: httpx2.Client, user: str) -> None:
    console.ask(LEAVE)
    assert "25 working days" in console.text(".answer")
    inspect(console)
    assert tokens(console, "Knowledge") > 0
    assert "hr-policy.md" in console.text("#reports")
    assert tokens(console, "Procedure") == tokens(console, "Episodes") == tokens(console, "History") == 0

    console.ask("I want to onboard a vendor")
    console.until(lambda: console.texts(".report h3") == ["Turn 2"])
    assert tokens(console, "Procedure") > 0
    assert tokens(console, "History") > 0

    console.click("#end-session")
    console.until(lambda: "ended" in console.text("#conversation-list"))
    console.until(lambda: api.get("/episodes", params={"user_id": user}).json()["items"])
    console.click("#to-episodes")
    console.until(lambda: "onboard a vendor" in console.text("#episodes"))

    console.click("#to-chat")
    console.click("#new-conversation")
    console.ask(LEAVE)
    inspect(console)
    assert tokens(console, "Episodes") > 0
    assert console.complaints() == []


def test_a_stored_conversation_looks_as_it_did(console: Console) -> None:
    console.ask(LEAVE)
    before = console.text(".answer")
    console.driver.refresh()
    console.until(lambda: console.text(".answer") == before)
    assert console.text(".question") == LEAVE


def test_a_document_is_uploaded_indexed_answered_from_and_deleted(console: Console, tmp_path: Path) -> None:
    (tmp_path / "canteen.md").write_text("# Canteen\n\nThe canteen serves lunch from 11:45 to 14:00 on working days.\n")
    console.click("#to-knowledge")
    console.find("#files").send_keys(str(tmp_path / "canteen.md"))
    console.until(lambda: "canteen.md Indexed" in console.text("#documents"))
    console.find("#knowledge-query").send_keys("When is lunch?", Keys.ENTER)
    console.until(lambda: "canteen.md" in console.text("#found"))
    console.click("#to-chat")
    console.ask("When does the canteen serve lunch?")
    assert "11:45" in console.text(".answer")

    console.click("#to-knowledge")
    console.click("[aria-label='Delete canteen.md']")
    console.click("#confirm-go")
    console.until(lambda: "canteen.md" not in console.text("#documents"))
    assert console.complaints() == []


def test_a_procedure_is_written_refused_tested_changed_and_rolled_back(console: Console, api: httpx2.Client) -> None:
    console.click("#to-skills")
    console.click("#new-procedure")
    console.find("[name=name]").send_keys("reset_password")
    console.find("[name=description]").send_keys("Reset a forgotten password.")
    Select(console.find("[name=trigger_kind]")).select_by_value("regex")
    console.find("[name=trigger_pattern]").send_keys("reset.*(password")
    console.find("[name=instruction]").send_keys("Ask for the user name.")
    console.click("#procedure form [type=submit]")
    console.until(lambda: console.text("#procedure form [role=status]"))
    pattern = console.find("[name=trigger_pattern]")
    assert pattern.get_attribute("aria-invalid") == "true"
    assert console.driver.switch_to.active_element == pattern

    pattern.send_keys(")")
    console.press(Keys.TAB)
    next(button for button in console.all("#procedure button") if button.text == "Add a step").click()
    console.press("Send a link.")
    console.all("[name=is_optional]")[1].click()
    console.all("[aria-label='Move up this step']")[1].click()
    console.click("#procedure form [type=submit]")
    console.until(lambda: console.text("#procedure [role=status]") == "Created.")
    procedure = next(p for p in api.get("/procedures").json()["items"] if p["name"] == "reset_password")
    assert [(step["instruction"], step["is_optional"]) for step in procedure["steps"]] == [
        ("Send a link.", True),
        ("Ask for the user name.", False),
    ]

    console.find("[name=priority]").send_keys(Keys.END, "7")
    console.click("#procedure form [type=submit]")
    console.until(lambda: console.text("#procedure [role=status]") == "Saved.")
    console.until(lambda: console.text(".versions").startswith("Version 2 edited by"))
    console.click("[aria-label='Roll back to version 1']")
    console.until(lambda: console.text("#procedure [role=status]") == "As in version 1 again.")
    assert console.find("[name=priority]").get_attribute("value") == "0"

    console.click("#procedure button.link")
    console.find("#trial-message").send_keys("please reset my password", Keys.ENTER)
    console.until(lambda: "would be followed" in console.text("#trial"))
    assert console.text("#trial mark") == "reset my password"


def test_two_editors_do_not_overwrite_each_other(console: Console, api: httpx2.Client) -> None:
    draft = {"agent_id": None, "name": "two_editors", "description": "x", "trigger_pattern": "two editors"}
    procedure = api.post("/procedures", json={**draft, "steps": [{"instruction": "x"}]}).json()
    console.driver.get(f"{console.url}/#view=skills&procedure={procedure['procedure_id']}")
    console.until(lambda: console.all(".versions li"))
    api.patch(f"/procedures/{procedure['procedure_id']}", json={"priority": 3}).raise_for_status()
    console.find("[name=name]").send_keys("_mine")
    console.click("#procedure form [type=submit]")
    console.until(lambda: console.find("#procedure [role=status]").get_attribute("class") == "error")
    assert api.get(f"/procedures/{procedure['procedure_id']}").json()["name"] == "two_editors"


def test_a_procedure_is_learned_from_tools_and_reviewed_beside_its_conversation(
    console: Console, api: httpx2.Client
) -> None:
    config = {"procedural_learning": True, "semantic_min_score": 0.1}
    nora = api.post("/agents", json={"name": "nora", "system_prompt": "You are Nora.", "memory_config": config}).json()
    console.driver.get(f"{console.url}/#agent={nora['agent_id']}&view=knowledge")
    console.driver.refresh()
    console.until(lambda: Select(console.find("#agent")).first_selected_option.text == "nora")
    console.find("#files").send_keys(str(SAMPLES / "travel-handbook.pdf"))
    console.until(lambda: "travel-handbook.pdf Indexed" in console.text("#documents"))
    console.find("#knowledge-query").send_keys("limit of a hotel night", Keys.ENTER)
    console.until(lambda: "travel-handbook.pdf" in console.text("#found"))

    console.click("#to-chat")
    for message in (TRIP, *TRIP_GOES_ON):
        console.ask(message)
    assert len(console.all(".tool")) >= 3
    console.driver.refresh()
    console.until(lambda: len(console.all(".turn")) == 4)
    console.find(".tool summary").click()
    assert "query" in console.text(".tool pre")
    console.click("#end-session")
    console.until(lambda: api.get("/procedures", params={"status": "pending"}).json()["items"])

    console.click("#to-skills")
    console.until(lambda: "1 procedure learned from conversations waits for a review" in console.text("#queue"))
    Select(console.find("[name=status]")).select_by_visible_text("pending")
    console.until(lambda: len(console.all("#procedures th button")) == 1)
    console.click("#queue button")
    console.until(lambda: TRIP in console.text(".transcript"))
    assert console.text(".transcript .marked") in console.text(".aside figure")
    steps, transcript = console.find("#procedure form").rect, console.find(".transcript").rect
    assert steps["x"] + steps["width"] < transcript["x"]
    assert poor_contrast(console) == []

    console.click("[value=reject]")  # a reason is wanted
    console.until(lambda: console.find("[aria-label=Review] [role=status]").get_attribute("class") == "error")
    console.find("[name=note]").send_keys("Well observed.")
    console.click("[value=approve]")
    console.until(lambda: console.text("#procedure form [role=status]") == "Approved.")
    console.until(lambda: "Well observed." in console.text(".versions"))

    console.click("#to-chat")
    console.click("#new-conversation")
    console.ask(TRIP)
    inspect(console)
    assert tokens(console, "Procedure") > 0
    api.delete(f"/agents/{nora['agent_id']}")


def test_an_episode_is_found_and_deleted(console: Console, api: httpx2.Client, user: str) -> None:
    console.ask("I prefer to travel by train")
    console.click("#end-session")
    console.until(lambda: api.get("/episodes", params={"user_id": user}).json()["items"])
    console.click("#to-episodes")
    console.find("#episode-query").send_keys("travel by train", Keys.ENTER)
    console.until(lambda: "would be recalled" in console.text("#episode-status"))
    console.find("#episode-query").send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.BACKSPACE)
    console.until(lambda: console.all("[aria-label^='Delete the episode']"))
    console.click("[aria-label^='Delete the episode']")
    console.click("#confirm-go")
    console.until(lambda: console.text("#episode-status") == "The episode is deleted.")
    assert api.get("/episodes", params={"user_id": user}).json()["items"] == []


def test_an_agent_is_made_and_its_memory_configured(console: Console, api: httpx2.Client) -> None:
    console.click("#to-agent")
    console.until(lambda: console.all("#agent-body [name=name]"))
    console.click("#new-agent")
    console.find("[name=name]").send_keys("bram")
    console.find("[name=system_prompt]").send_keys("You are Bram.")
    console.click("#agent-body [type=submit]")
    console.until(lambda: Select(console.find("#agent")).first_selected_option.text == "bram")
    console.until(lambda: console.all("[name=semantic_top_k]"))

    budget = console.find("[name=output_reserve_tokens]")
    budget.send_keys(Keys.CONTROL, "a", Keys.NULL, "128000")
    console.find("[name=max_working_memory_tokens]").send_keys(Keys.CONTROL, "a", Keys.NULL, "50000")
    console.all("#agent-body [type=submit]")[1].click()
    status = "form[aria-label=Memory] [role=status]"
    console.until(lambda: "must be below" in console.text(status))
    budget.send_keys(Keys.CONTROL, "a", Keys.NULL, "8000")
    console.click("[name=episodic_enabled]")
    console.all("#agent-body [type=submit]")[1].click()
    console.until(lambda: console.text(status) == "Saved.")
    agent = next(agent for agent in api.get("/agents").json() if agent["name"] == "bram")
    chosen = {"max_working_memory_tokens": 50_000, "output_reserve_tokens": 8_000, "episodic_enabled": False}
    assert chosen.items() <= agent["memory_config"].items()
    api.delete(f"/agents/{agent['agent_id']}")


def test_a_new_tenant_begins_with_an_agent(console: Console, stack: Running) -> None:
    console.open(f"#view=agent&token={token(stack.address, 'newcomers', 'eve', GROUPS)}")
    console.until(lambda: "There is no agent yet" in console.text("#page-error"))
    console.find("[name=name]").send_keys("eva")
    console.find("[name=system_prompt]").send_keys("You are Eva.")
    console.click("#agent-body [type=submit]")
    console.until(lambda: not console.text("#page-error") and console.text("#agent") == "eva")
    console.click("#to-chat")
    console.ask("Hello")
    assert console.text(".answer")


@pytest.mark.parametrize("view", ["skills", "episodes", "agent"])
def test_everybody_can_use_every_view(console: Console, view: str) -> None:
    console.click(f"#to-{view}")
    console.until(lambda: console.all("#procedures button, #episode-status:not(:empty), [name=semantic_top_k]"))
    for detail in (False, True):
        if detail and view == "skills":
            console.click("#procedures button")
            console.until(lambda: console.all(".versions li"))
        assert unnamed_controls(console) == []
        for width in (360, 720, 1000, 1920):
            console.resize(width, 800)
            assert too_wide(console) == [], width
        for scheme in ("light", "dark"):
            console.prefer(scheme)
            assert poor_contrast(console) == [], scheme
    assert console.complaints() == []
