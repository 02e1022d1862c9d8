"""The console in a real browser, against a stand-in whose answers the tests choose."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from tests.support.accessibility import poor_contrast, roles, too_wide, unnamed_controls
from tests.support.browser import Console, needs_chromium
from tests.support.fake_octopus import ARIA, BRAM, CONSOLE, EVERY_SECTION, FakeOctopus, report, serving, token

pytestmark = needs_chromium

VIEWS = ("chat", "knowledge")
WIDTHS = (360, 390, 720, 721, 1000, 1001, 1280, 1920)  # either side of where the page changes its shape
PAGE_WEIGHT_LIMIT = 150_000  # bytes of everything that a visit loads, uncompressed


@pytest.fixture
def fake() -> Iterator[FakeOctopus]:
    with serving(FakeOctopus()) as server:
        yield server


@pytest.fixture
def page(driver: webdriver.Chrome, fake: FakeOctopus) -> Console:
    """The console with nobody signed in."""
    page = Console(driver, fake.url)
    page.open()
    return page


@pytest.fixture
def console(driver: webdriver.Chrome, fake: FakeOctopus) -> Console:
    """The console with ada signed in, who has both roles."""
    console = Console(driver, fake.url)
    console.open(f"#token={token('demo', 'ada', ['OctopusAdmin', 'OctopusDebug'])}")
    console.until(lambda: console.text("#log"))
    return console


class TestSession:
    def test_signs_in_with_the_local_issuer_and_out_again(self, page: Console) -> None:
        page.sign_in(roles=("OctopusDebug",), user="ünal")
        assert page.text("#who") == "ünal at demo"
        assert page.texts("#roles .badge") == ["Debug"]
        assert page.run("return sessionStorage.length") == 1

        page.click("#sign-out")
        page.until(lambda: page.find("#sign-in").is_displayed())
        assert not page.find("#app").is_displayed()
        assert page.run("return sessionStorage.length") == 0

    def test_shows_why_the_issuer_refuses(self, page: Console) -> None:
        page.find("#user").clear()
        page.find("#user").send_keys("nobody", Keys.ENTER)
        page.until(lambda: page.text("#sign-in-error") == "nobody is not a user")

    def test_takes_a_pasted_token(self, page: Console) -> None:
        page.click("#sign-in summary")
        page.find("#token").send_keys(f"Bearer {token('other', 'bob', [])}")
        page.click("#token-form button")
        page.until(lambda: page.text("#who") == "bob at other")

    @pytest.mark.parametrize("already_open", [False, True])
    def test_takes_a_token_from_the_address_and_removes_it(self, page: Console, already_open: bool) -> None:
        if not already_open:
            page.driver.get("about:blank")
        page.driver.get(f"{page.url}/#view=knowledge&token={token('acme', 'eve', [])}")
        page.until(lambda: page.text("#who") == "eve at acme")
        assert "token" not in page.driver.current_url
        assert page.find("#view-knowledge").is_displayed()

    def test_leaves_nothing_of_one_user_to_the_next(self, console: Console) -> None:
        console.ask("my secret")
        console.click("#sign-out")
        console.until(lambda: console.find("#sign-in").is_displayed())
        assert "my secret" not in console.run("return document.documentElement.outerHTML")
        assert "#" not in console.driver.current_url

    def test_returns_to_sign_in_when_the_token_has_expired(self, page: Console) -> None:
        page.open("#token=expired")
        page.until(lambda: page.text("#sign-in-error") == "The token has expired; get a new one.")
        assert not page.find("#app").is_displayed()


class TestChat:
    def test_shows_an_answer_while_it_arrives(self, console: Console, fake: FakeOctopus) -> None:
        console.say("wait")
        console.until(lambda: console.text(".answer") == "First.")
        assert console.find(".answer").get_attribute("aria-busy") == "true"
        assert console.text("#chat-status") == "Answering…"
        assert console.find("#log").get_attribute("aria-live") == "polite"

        fake.release.set()
        console.until(lambda: console.text(".answer") == "First. Last.")
        console.until(lambda: console.find(".answer").get_attribute("aria-busy") is None)
        assert "4 % of the budget" in console.text(".turn footer")
        assert "answered in 1.2 s" in console.text(".turn footer")

    def test_goes_on_in_the_conversation_that_the_first_turn_began(self, console: Console, fake: FakeOctopus) -> None:
        console.ask("one")
        console.ask("two")
        first, second = fake.chats
        assert first.keys() == {"agent_id", "message", "message_id"}
        assert first["agent_id"] == ARIA["agent_id"]
        assert UUID(first["message_id"]) != UUID(second["message_id"])
        assert UUID(second["conversation_id"]) in fake.logs

    def test_enter_sends_and_shift_enter_begins_a_line(self, console: Console, fake: FakeOctopus) -> None:
        message = console.find("#message")
        message.send_keys("one", Keys.SHIFT, Keys.ENTER, Keys.SHIFT, "two")
        assert fake.chats == []
        message.send_keys(Keys.ENTER)
        console.until(lambda: fake.chats)
        assert fake.chats[0]["message"] == "one\ntwo"
        assert message.get_attribute("value") == ""

    def test_sends_nothing_for_an_empty_message(self, console: Console, fake: FakeOctopus) -> None:
        console.find("#message").send_keys("  ", Keys.ENTER)
        console.click("#send")
        assert console.all(".turn") == []
        assert fake.chats == []

    def test_escape_stops_the_answer_and_keeps_what_was_said(self, console: Console, fake: FakeOctopus) -> None:
        console.say("wait")
        console.until(lambda: console.text(".answer") == "First.")
        console.press(Keys.ESCAPE)
        console.until(lambda: console.text(".turn .notice") == "Stopped.")
        assert console.text(".answer") == "First."
        assert fake.abandoned.wait(5), "the server was not told that nobody listens"

    @pytest.mark.parametrize(
        ("message", "notice"),
        [
            ("fail", "The model provider does not answer; retry."),
            ("cut", "The connection closed before the answer was complete."),
        ],
    )
    def test_retries_a_broken_answer_as_the_same_request(
        self, console: Console, fake: FakeOctopus, message: str, notice: str
    ) -> None:
        console.ask(message)
        assert console.text(".turn .notice.error") == notice
        assert console.text(".answer") == "Half an ans"

        console.click(".retry")
        console.until(lambda: console.text(".answer") == f"You said: {message}")
        assert fake.chats[0] == fake.chats[1]
        assert console.all(".retry") == []
        assert not console.find(".turn .notice").is_displayed()

    def test_shows_a_problem_with_its_detail(self, console: Console) -> None:
        console.ask("conflict")
        assert console.text(".turn .notice") == "Another turn of this conversation is being answered. Retry in 2 s."
        assert console.find(".retry").is_displayed()

    def test_says_when_the_server_is_gone(self, driver: webdriver.Chrome) -> None:
        with serving(FakeOctopus()) as short_lived:
            console = Console(driver, short_lived.url)
            console.open()
            console.sign_in()
        console.ask("anyone?")
        assert console.text(".turn .notice") == "The server does not answer. Is it running?"
        assert console.find(".retry").is_displayed()

    def test_shows_tool_calls_between_the_parts_of_the_answer(self, console: Console) -> None:
        console.ask("tools")
        assert console.texts(".answer > *") == [
            "Let me look.",
            "search_knowledge done · 12 ms",
            "vendor_lookup failed · 30 s",
            "Found it.",
        ]

    def test_says_which_memory_was_degraded(self, console: Console) -> None:
        console.ask("degraded")
        assert console.texts(".turn .badge") == ["Episodes late"]

    def test_follows_the_answer_until_the_reader_scrolls_up(self, console: Console, fake: FakeOctopus) -> None:
        console.resize(1280, 420)
        for _ in range(3):
            console.ask("a question")
        bottom = (
            "const {scrollHeight, scrollTop, clientHeight} = log; return scrollHeight - scrollTop - clientHeight < 2"
        )
        assert console.run(bottom)
        console.say("wait")
        console.until(lambda: console.texts(".answer")[-1] == "First.")
        assert console.run(bottom)
        console.run("log.scrollTop = 0")
        console.until(lambda: not console.run(bottom))
        fake.release.set()
        console.until(lambda: console.find("#send").is_displayed())
        assert console.run("return log.scrollTop") == 0


class TestConversations:
    def test_survives_a_reload(self, console: Console) -> None:
        for message in ("one", "two", "three"):
            console.ask(message)
        console.driver.refresh()
        console.until(lambda: console.texts(".question") == ["one", "two", "three"])
        assert console.texts(".answer") == ["You said: one", "You said: two", "You said: three"]

    def test_lists_begins_and_goes_back_to_conversations(self, console: Console) -> None:
        console.ask("one")
        console.click("#new-conversation")
        assert console.driver.switch_to.active_element == console.find("#message")
        assert "A new conversation" in console.text("#log")
        console.ask("two")
        console.until(lambda: len(console.all("#conversation-list button")) == 2)
        newest, oldest = console.all("#conversation-list button")
        assert newest.get_attribute("aria-current") == "true"
        oldest.click()
        console.until(lambda: console.texts(".question") == ["one"])
        console.driver.back()
        console.until(lambda: console.texts(".question") == ["two"])

    def test_ends_a_session(self, console: Console, fake: FakeOctopus) -> None:
        console.ask("bye")
        console.until(lambda: console.find("#end-session").is_displayed())
        console.click("#end-session")
        console.until(lambda: "ended" in console.text("#conversation-list"))
        assert len(fake.ended) == 1
        assert not console.find("#end-session").is_displayed()

    def test_says_when_a_message_began_a_new_session(self, console: Console) -> None:
        console.ask("one")
        console.ask("again")
        assert console.text(".divider") == "That session had ended; this is a new one."
        console.all("[aria-label^='Inspect']")[0].click()
        console.until(lambda: console.texts(".report h3") == ["Turn 1"])

    def test_shows_a_conversation_that_does_not_exist_as_a_problem(self, console: Console) -> None:
        console.run("location.hash += '&conversation=c0000000-0000-4000-8000-000000000009'")
        console.until(lambda: console.text("#log") == "There is no such conversation.")

    def test_another_agent_is_another_conversation(self, console: Console, fake: FakeOctopus) -> None:
        console.ask("one")
        Select(console.find("#agent")).select_by_visible_text("bram")
        console.until(lambda: console.text("#conversation-list") == "No conversations yet.")
        console.ask("two")
        assert fake.chats[1]["agent_id"] == BRAM["agent_id"]
        assert "conversation_id" not in fake.chats[1]


class TestMarkdown:
    ALLOWED = frozenset(
        ["p", "h4", "h5", "h6", "ul", "ol", "li", "pre", "code", "strong", "em", "a", "blockquote", "hr"]
    )

    def test_renders_the_subset(self, console: Console) -> None:
        console.ask("markdown")
        answer = console.find(".answer")
        assert console.texts(".answer h5") == ["Annual leave"]
        assert console.texts(".answer ol li") == [
            "Ask your manager.",
            "File the request with leave request\nat least two weeks ahead.",
        ]
        assert console.texts(".answer ul li")[1] == "snake_case_words and 2 * 3 * 4 stay as they are"
        assert console.text(".answer pre") == "def days(year: int) -> int:\n    return 25  # <b>not bold</b>"
        assert console.text(".answer blockquote") == "Unused leave expires.\nIt cannot be paid out."
        assert "[this](javascript:alert(1)) or <img src=x onerror=alert(1)>." in answer.text
        assert [link.get_attribute("href") for link in console.all(".answer a")] == ["https://example.com/policy"]

    def test_never_makes_anything_but_the_allowed_elements(self, page: Console) -> None:
        """Random text from hostile fragments: only allowed elements, only http(s) links, no other attribute."""
        marks = list('**__`[]()#>-+~!|1. \n\n"=/&;ax\0\u202e')
        addresses = ["javascript:x", "https://e.org/", "HTTPS://e.org", "data:text/html,x", "//e.org", "https:evil"]
        links = [f"[a]({address})" for address in addresses]
        tags = ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "&lt;", "```\n", "](", "# ", "> "]
        fragments = ["**", *marks, *addresses, *links, *tags]
        rng = random.Random(20261102)
        texts = ["".join(rng.choices(fragments, k=rng.randint(1, 30))) for _ in range(3000)]
        found = page.run_module(
            """
            const { markdown } = await import("/markdown.js");
            const found = new Set();
            for (const text of args[0]) {
              const box = document.createElement("div");
              box.append(...markdown(text));
              for (const node of box.querySelectorAll("*")) {
                const attributes = [...node.attributes].map(({ name, value }) =>
                  name === "href" ? `href=${new URL(value, location).protocol}` : name);
                found.add([node.localName, ...attributes].join(" "));
              }
            }
            return [...found];
            """,
            texts,
        )
        kinds = {entry.split(" ")[0]: entry for entry in found}
        assert kinds.keys() <= self.ALLOWED
        assert {"strong", "em", "a", "pre", "li"} <= kinds.keys(), "the corpus is too tame"
        assert {entry for entry in found if " " in entry} <= {
            "a href=https: rel target",
            "pre tabindex",
            "ol start",
        }


class TestEventStream:
    STREAM = (
        ': hi\r\n\r\nevent: token\r\ndata: {"text":\r\ndata: "ü"}\r\n\r\nevent: end\ndata: {}\n\nevent: cut\ndata: {}'
    )

    def test_is_read_whatever_the_network_cuts_it_into(self, page: Console) -> None:
        """Also within a character of two bytes. An event without its empty line is not complete (WHATWG)."""
        read = page.run_module(
            """
            const { events } = await import("/sse.js");
            const bytes = new TextEncoder().encode(args[0]);
            const read = [];
            for (let size = 1; size <= bytes.length; size += 1) {
              const body = new ReadableStream({ start(out) {
                for (let at = 0; at < bytes.length; at += size) out.enqueue(bytes.slice(at, at + size));
                out.close();
              }});
              const seen = [];
              for await (const event of events(body)) seen.push(event);
              read.push(seen);
            }
            return read;
            """,
            self.STREAM,
        )
        assert len(read) == len(self.STREAM.encode())
        expected = [{"name": "token", "data": {"text": "ü"}}, {"name": "end", "data": {}}]
        assert all(events == expected for events in read)


class TestInspector:
    def test_accounts_for_every_section(self, console: Console) -> None:
        console.ask("one")
        console.ask("two")
        console.all("[aria-label^='Inspect']")[1].click()
        console.until(lambda: console.all(".report"))
        assert console.driver.switch_to.active_element == console.find("#inspector-title")

        expected = report(2)
        tokens = {section.name: section.tokens for section in expected.sections}
        rows = [row.text.splitlines() for row in console.all(".sections tbody tr")]
        cells = [row.find_elements("css selector", "td")[0].text for row in console.all(".sections tbody tr")]
        free = expected.budget.available - sum(tokens.values())
        assert cells == [f"{n:,}" for n in [*tokens.values(), expected.budget.output_reserve_tokens, free]]
        assert any("late" in " ".join(row) for row in rows)
        assert "3,295 of 150,000 tokens, 2.2 % of the budget" in console.text(".report")

        enlarged = console.all(".report .bar")[1]
        widths = [segment.rect["width"] for segment in enlarged.find_elements("css selector", ".segment")]
        drawn = dict(zip(EVERY_SECTION, widths, strict=True))
        assert drawn["knowledge"] / drawn["episodes"] == pytest.approx(1240 / 260, rel=0.1)
        assert "Knowledge 1,240" in (enlarged.get_attribute("aria-label") or "")

    def test_shows_items_near_misses_and_what_has_changed_since(self, console: Console) -> None:
        console.ask("one")
        console.click("[aria-label^='Inspect']")
        console.until(lambda: console.all(".items"))
        assert console.texts(".items .left-out") == [
            "canteen.pdf (page 1)\n0.42 · left out: below the minimum relevance"
        ]
        console.run("document.querySelectorAll('.items details').forEach(node => node.open = true)")
        items = console.text("#reports")
        assert "Rank\n1\nRelevance\n0.93\nThreshold\n0.70\nCosine\n0.62" in items
        assert "Annual leave entitlement is 25 days." in items
        assert "handbook.pdf (page 12)\nchanged since" in items
        assert "This is the text of now; it was another one in that turn." in items
        assert "Erased\nerased since" in items
        facts = console.text(".facts")
        assert "900: 400 read from cache, 0 written to it, 500 uncached" in facts
        assert "fifo: 0 turns kept, 2 dropped" in facts

    def test_puts_two_turns_side_by_side(self, console: Console) -> None:
        console.ask("one")
        console.ask("two")
        console.all("[aria-label^='Inspect']")[1].click()
        console.until(lambda: console.all(".report"))
        Select(console.find("#compare")).select_by_visible_text("turn 1")
        console.until(lambda: console.texts(".report h3") == ["Turn 2", "Turn 1"])
        left, right = (element.rect for element in console.all(".report"))
        assert left["y"] == right["y"]
        assert left["x"] + left["width"] < right["x"]

    def test_escape_closes_it_and_gives_the_focus_back(self, console: Console) -> None:
        console.ask("one")
        button = console.find("[aria-label^='Inspect']")
        button.click()
        console.press(Keys.ESCAPE)
        assert not console.find("#inspector").is_displayed()
        assert console.driver.switch_to.active_element == button

    def test_follows_the_newest_turn(self, console: Console) -> None:
        console.ask("one")
        console.click("[aria-label^='Inspect']")
        console.ask("two")
        console.until(lambda: console.texts(".report h3") == ["Turn 2"])

    def test_is_not_offered_without_the_role(self, page: Console) -> None:
        page.sign_in(roles=())
        page.ask("one")
        assert page.all("[aria-label^='Inspect']") == []


class TestKnowledge:
    @pytest.fixture
    def console(self, console: Console) -> Console:
        console.click("#to-knowledge")
        console.until(lambda: console.text("#documents") == "No documents yet.")
        return console

    def test_uploads_and_watches_until_indexed(self, console: Console, fake: FakeOctopus, tmp_path: Path) -> None:
        (tmp_path / "hr.md").write_text("# Leave\n25 days")
        (tmp_path / "old.zip").write_bytes(b"PK")
        console.find("#files").send_keys(f"{tmp_path / 'hr.md'}\n{tmp_path / 'old.zip'}")
        console.until(lambda: console.texts("#documents .badge") == ["Indexed", "Failed"])
        assert "ZIP archives are not read; upload the files in it." in console.text("#documents")
        upload = fake.uploads[0]
        assert upload.index(b'name="key"') < upload.index(b'name="policy"') < upload.index(b'name="file"')
        assert b"# Leave\n25 days" in upload

    def test_shows_why_a_document_is_refused(self, console: Console, fake: FakeOctopus, tmp_path: Path) -> None:
        (tmp_path / "empty.md").touch()
        console.find("#files").send_keys(str(tmp_path / "empty.md"))
        console.until(lambda: console.text("#knowledge-status") == "size_bytes: the file is empty.")
        assert fake.uploads == []

    def test_reindexes_and_deletes_after_asking(self, console: Console, fake: FakeOctopus, tmp_path: Path) -> None:
        (tmp_path / "hr.md").write_text("25 days")
        console.find("#files").send_keys(str(tmp_path / "hr.md"))
        console.until(lambda: console.texts("#documents .badge") == ["Indexed"])
        console.click("[aria-label='Reindex hr.md']")
        console.until(lambda: console.text("#knowledge-status") == "hr.md will be indexed again.")
        console.until(lambda: console.texts("#documents .badge") == ["Indexed"])

        console.click("[aria-label='Delete hr.md']")
        console.press(Keys.ESCAPE)
        assert not console.find("#confirm").is_displayed()
        assert len(fake.documents) == 1
        console.click("[aria-label='Delete hr.md']")
        console.click("#confirm-go")
        console.until(lambda: console.text("#documents") == "No documents yet.")
        assert fake.documents == []

    @pytest.mark.parametrize("view", ["knowledge", "skills", "agent"])
    def test_says_which_role_is_missing(self, page: Console, view: str) -> None:
        page.sign_in(roles=())
        page.click(f"#to-{view}")
        assert "role OctopusAdmin" in page.text(f"#view-{view} .notice.warning")
        assert not page.find(f"#view-{view} [data-for=OctopusAdmin]").is_displayed()


class TestEverybodyCanUseIt:
    """Keyboard, screen reader, small screens, both color schemes."""

    def test_the_tab_key_reaches_everything_in_order_and_the_focus_is_seen(self, console: Console) -> None:
        console.ask("one")
        console.until(lambda: console.all("#conversation-list button"))
        console.driver.refresh()
        console.until(lambda: console.all(".turn") and console.find("#end-session").is_displayed())
        links = [f"to-{view}" for view in ("chat", "knowledge", "skills", "episodes", "agent")]
        header = ["skip", *links, "agent", "sign-out"]
        aside = ["new-conversation", "Conversations", "Nov 2, 2026, 10:152 messages"]
        expected = [*header, *aside, "log", "Inspect", "message", "end-session", "send"]
        reached = []
        for _ in expected:
            ActionChains(console.driver).send_keys(Keys.TAB).perform()
            reached.append(
                console.run("const {id, textContent} = document.activeElement; return id || textContent.trim()")
            )
            outline = "const s = getComputedStyle(document.activeElement); return s.outlineStyle + s.outlineWidth"
            assert console.run(outline) == "solid2px", reached[-1]
        assert reached == expected

    def test_a_list_that_is_drawn_again_keeps_the_focus(self, console: Console, tmp_path: Path) -> None:
        console.ask("one")
        console.click("#new-conversation")
        console.ask("two")
        console.until(lambda: len(console.all("#conversation-list button")) == 2)
        console.run("document.querySelectorAll('#conversation-list button')[1].focus()")
        console.press(Keys.ENTER)
        focused = "return document.activeElement.matches('#conversation-list li:nth-child(2) [aria-current]')"
        console.until(lambda: console.run(focused))

        console.click("#to-knowledge")
        (tmp_path / "hr.md").write_text("25 days")
        console.find("#files").send_keys(str(tmp_path / "hr.md"))
        console.until(
            lambda: console.run("const b = document.querySelector('#documents button'); b?.focus(); return b")
        )
        console.until(lambda: console.texts("#documents .badge") == ["Indexed"])
        assert console.driver.switch_to.active_element == console.find("#documents button")

    @pytest.mark.parametrize("view", VIEWS)
    def test_everything_has_a_name(self, console: Console, view: str) -> None:
        console.ask("tools")
        console.click("[aria-label^='Inspect']")
        console.click(f"#to-{view}")
        assert unnamed_controls(console) == []
        assert {"banner", "main", "navigation", "heading"} <= roles(console)

    def test_no_width_needs_scrolling_sideways(self, console: Console) -> None:
        console.ask("markdown")
        for width in WIDTHS:
            console.resize(width, 800)
            assert too_wide(console) == [], width
        console.click("[aria-label^='Inspect']")
        console.until(lambda: console.all(".report"))
        for width in WIDTHS:
            console.resize(width, 800)
            assert too_wide(console) == [], width
        console.click("#inspector-close")
        console.click("#to-knowledge")
        for width in WIDTHS:
            console.resize(width, 800)
            assert too_wide(console) == [], width

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_text_has_enough_contrast(self, console: Console, scheme: str, tmp_path: Path) -> None:
        """WCAG 2.2 §1.4.3: at least 4.5 for text, at least 3 (§1.4.11) for the segments of a bar."""
        console.prefer(scheme)
        for message in ("markdown", "tools", "degraded", "fail"):
            console.ask(message)
        console.click("[aria-label^='Inspect']")
        console.until(lambda: console.all(".report"))
        console.run("document.querySelectorAll('.items details').forEach(node => node.open = true)")
        assert poor_contrast(console) == []
        console.click("#to-knowledge")
        for name in ("a.zip", "b.md"):
            (tmp_path / name).write_text("x")
            console.find("#files").send_keys(str(tmp_path / name))
        console.until(lambda: console.texts("#documents .badge") == ["Failed", "Indexed"])
        assert poor_contrast(console) == []
        console.click("#sign-out")
        console.until(lambda: console.find("#sign-in").is_displayed())
        assert poor_contrast(console) == []


class TestThePageItself:
    def test_stays_within_its_policy_and_its_origin(self, console: Console, fake: FakeOctopus) -> None:
        """No inline script or style, nothing from elsewhere, no error that nobody caught."""
        console.ask("markdown")
        console.click("[aria-label^='Inspect']")
        console.until(lambda: console.all(".report"))
        console.click("#to-knowledge")
        assert console.complaints() == []
        loaded = console.run("return performance.getEntriesByType('resource').map(({name}) => name)")
        assert {address.removeprefix(fake.url)[0] for address in loaded} == {"/"}

    def test_the_policy_forbids_markup_and_inline_script(self, page: Console) -> None:
        refused = page.run(
            """
            const refused = [];
            try { document.body.innerHTML = "<b>x</b>"; } catch (error) { refused.push(error.name); }
            const node = document.createElement("div");
            document.body.append(node);
            node.setAttribute("style", "color: rgb(1, 2, 3)");
            if (getComputedStyle(node).color !== "rgb(1, 2, 3)") refused.push("style");
            return refused;
            """
        )
        assert refused == ["TypeError", "style"]

    def test_is_light(self, page: Console) -> None:
        files = [file for file in CONSOLE.iterdir() if file.suffix != ".png"]
        sizes = page.run(
            "return performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))"
            ".map(({name, decodedBodySize}) => [name, decodedBodySize])"
        )
        print(json.dumps({"requests": len(sizes), "bytes": sum(size for _, size in sizes)}))
        assert len({name for name, _ in sizes}) <= len(files)
        assert sum(size for _, size in sizes) < PAGE_WEIGHT_LIMIT
