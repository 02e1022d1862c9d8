"""What is connected to what: the one place where ports meet adapters.

One module for each room, and one for everything outside. Nothing connects at import; each part is made when first asked
for and lives as long as the execution environment.
"""

from __future__ import annotations

from functools import cache

from octopus.cloud.wiring.turns import Turns
from octopus.settings import settings


class Services(Turns):
    """Everything that an entry point may call."""


@cache
def services() -> Services:
    """The services of this execution environment."""
    return Services(settings())
