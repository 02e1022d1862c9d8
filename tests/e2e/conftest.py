"""One browser and one running stack for all tests that go through them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium import webdriver

from infra.local.state import Running
from tests.support.browser import chromium
from tests.support.running import running_stack


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_stack(tmp_path_factory.mktemp("stack")) as running:
        yield running
