"""Settings from the environment."""

from __future__ import annotations

import pytest

from octopus.settings import Settings


def test_an_empty_variable_is_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    unset = Settings()
    for field in Settings.model_fields:
        monkeypatch.setenv(f"OCTOPUS_{field.upper()}", "")
    assert Settings() == unset


def test_a_setting_out_of_range_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTOPUS_RECALL_DEADLINE_MS", "0")
    with pytest.raises(ValueError, match="recall_deadline_ms"):
        Settings()
