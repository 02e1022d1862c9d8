"""Everything that a built function talks to, thrown away afterwards: PostgreSQL, moto, the offline model,
stand-ins."""

from __future__ import annotations

import asyncio
import os
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from infra.local import processes
from infra.local.environment import MIGRATIONS, OFFLINE_KEY, Places, child_environment
from infra.local.postgres import Postgres, with_server
from infra.local.processes import LOOPBACK, free_port, start_module, wait_for
from infra.local.stand_ins import StandIns

ADMIN = "OctopusAdmin"


class Workbench:
    """As a context manager it starts all of it, and ends all of it with the block."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.stand_ins = StandIns(directory)
        self.environment: dict[str, str] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.postgres: Postgres = self._stack.enter_context(with_server(self.directory / "postgres"))
        self._stack.enter_context(self.stand_ins)
        moto, model = free_port(), free_port()
        places = Places(
            address=self.stand_ins.url,
            aws=f"http://{LOOPBACK}:{moto}",
            offline_model=f"http://{LOOPBACK}:{model}",
            state=self.directory,
            owner_dsn=self.postgres.dsn(user="octopus_owner"),
            application_dsn=self.postgres.dsn(user="octopus_app"),
            sweep_dsn=self.postgres.dsn(user="octopus_sweep"),
        )
        self.environment = child_environment(places, {}) | {
            "OCTOPUS_EMBEDDINGS": "titan",
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": self.stand_ins.url,
            "OCTOPUS_MIGRATIONS_DIR": "/var/task/migrations",
        }
        self._serve("moto", f"{places.aws}/moto-api/", "moto.server", "-H", LOOPBACK, "-p", str(moto))
        self._serve("model", f"{places.offline_model}/healthz", "infra.local.offline_model", str(model))
        environment = {**self.environment, "ANTHROPIC_API_KEY": OFFLINE_KEY, "PATH": os.environ["PATH"]}
        maker = start_module("infra.local.aws", log=self.directory / "aws.log", environment=environment)
        if maker.wait() != 0:
            raise processes.ProcessFailed(f"The AWS resources could not be made; see {self.directory / 'aws.log'}.")
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def migrate(self) -> None:
        """Bring the schema up to date, as the migrate function would."""
        from octopus.cloud.migrations import migrate  # psycopg takes a while to import

        asyncio.run(migrate(self.postgres.dsn(), MIGRATIONS))

    def token(self, tenant: str = "acme", user: str = "ada", groups: tuple[str, ...] = (ADMIN,)) -> str:
        """A bearer token that the functions accept."""
        return self.stand_ins.issuer.token(tenant, user, groups)

    def _serve(self, name: str, url: str, module: str, *arguments: str) -> None:
        log = self.directory / f"{name}.log"
        environment = {"PATH": os.environ["PATH"], **self.environment}
        child: subprocess.Popen[bytes] = start_module(module, *arguments, log=log, environment=environment)
        self._stack.callback(processes.stop, child)
        wait_for(url, child, log)
