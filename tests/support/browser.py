"""A headless Chromium, and the console as somebody at the keyboard uses it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import (
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

CHROMIUM = shutil.which("chromium")
CHROMEDRIVER = shutil.which("chromedriver")
needs_chromium = pytest.mark.skipif(
    not (CHROMIUM and CHROMEDRIVER),
    reason="needs chromium and chromedriver on PATH (Debian: chromium and chromium-driver)",
)
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE = (1280, 800)
PATIENCE_S = 10


@contextmanager
def chromium(profile: Path) -> Iterator[webdriver.Chrome]:
    """A browser of its own, with `profile` as its empty user data directory."""
    assert CHROMIUM
    assert CHROMEDRIVER
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(CHROMEDRIVER))
    try:
        yield driver
    finally:
        driver.quit()


class Console:
    """The page of one test. Elements are named by CSS selector."""

    def __init__(self, driver: webdriver.Chrome, url: str) -> None:
        self.driver = driver
        self.url = url
        not_yet = (NoSuchElementException, StaleElementReferenceException, ElementNotInteractableException)
        self._wait = WebDriverWait(driver, PATIENCE_S, 0.02, not_yet)

    def open(self, hash_: str = "") -> None:
        """A fresh tab at a size of `WIDE`, in light colors and UTC, with nobody signed in."""
        self.resize(*WIDE)
        self.prefer("light")
        self.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "UTC"})
        if self.driver.current_url.startswith(self.url):
            self.run("sessionStorage.clear()")
        self.driver.get("about:blank")  # to another hash alone the browser would not load the page again
        self.complaints()  # forget an earlier test's
        self.driver.get(f"{self.url}/{hash_}")

    def sign_in(self, *, roles: tuple[str, ...] = ("OctopusAdmin", "OctopusDebug"), user: str = "ada") -> None:
        field = self.find("#user")
        field.clear()
        field.send_keys(user)
        for box in self.all("[name=role]"):
            if box.is_selected() != (box.get_attribute("value") in roles):
                box.click()
        self.find("#sign-in-form button").click()
        self.until(lambda: self.find("#app").is_displayed() and Select(self.find("#agent")).options)

    def say(self, text: str) -> None:
        self.find("#message").send_keys(text, Keys.ENTER)

    def ask(self, text: str) -> None:
        """Say something and wait for the end of the turn."""
        turns = len(self.all(".turn"))
        self.say(text)
        self.until(lambda: len(self.all(".turn")) == turns + 1 and self.find("#send").is_displayed())

    def click(self, selector: str) -> None:
        """Click it, once it is there and stands still."""

        def clicked() -> bool:
            self.find(selector).click()
            return True

        self.until(clicked)

    def press(self, *keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(*keys)

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return self.find(selector).text

    def texts(self, selector: str) -> list[str]:
        return [element.text for element in self.all(selector)]

    def until(self, condition: Callable[[], Any]) -> None:
        """Wait for what the page does on its own time."""
        self._wait.until(lambda _: condition())

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def run_module(self, body: str, *arguments: Any) -> Any:
        """The value of an async function body that may `import()` the console's modules."""
        script = (
            f"const done = arguments[arguments.length - 1]; (async (...args) => {{ {body} }})(...arguments).then(done)"
        )
        return self.driver.execute_async_script(script, *arguments)

    def resize(self, width: int, height: int) -> None:
        """Below 500 px a window cannot go; the emulated screen can."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def complaints(self) -> list[str]:
        """What the browser has logged: refused by policy, uncaught, not found."""
        return [entry["message"] for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]
