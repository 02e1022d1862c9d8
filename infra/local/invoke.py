"""`make invoke F=EndSession E=events/session-ended.json`: one built function, one event, on a workbench of its own.

Prints what the function answered and what it logged. ``${TOKEN}`` and ``${RESPONSE_URL}`` in the event become a token
that holds and an address that answers.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from string import Template

import psycopg

from infra.local.lambda_emulator import CHAT, Emulated, Function, NotBuilt
from infra.local.postgres import SUPERUSER
from infra.local.processes import CHECKOUT
from infra.local.web_adapter import forward
from infra.local.workbench import Workbench

ROWS = CHECKOUT / "events" / "rows.sql"


def main(name: str, event_file: Path) -> int:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)  # PostgreSQL may run as another user
        with Workbench(Path(directory)) as bench:
            if not name.startswith("Migrate"):
                bench.migrate()
                with psycopg.connect(bench.postgres.dsn(user=SUPERUSER)) as connection:
                    connection.execute(ROWS.read_bytes())
            known = {"TOKEN": bench.token(), "RESPONSE_URL": f"{bench.stand_ins.url}/custom-resource"}
            event = json.loads(Template(event_file.read_text()).safe_substitute(known))
            function = Function(f"{name.removesuffix('Function')}Function")
            with Emulated(function, bench.environment, Path(directory) / "function.log") as emulated:
                if function.name == CHAT:
                    with forward(event, emulated.url) as answer:
                        for part in answer.iter_text():
                            print(part, end="", flush=True)
                    return 0
                invocation = emulated.invoke(event)
            print(*invocation.log, sep="\n", file=sys.stderr)
            print(json.dumps(invocation.payload, indent=2))
    return 1 if isinstance(invocation.payload, dict) and "errorType" in invocation.payload else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("Say which function and which event: make invoke F=EndSession E=events/session-ended.json")
    try:
        sys.exit(main(sys.argv[1], Path(sys.argv[2])))
    except NotBuilt as error:
        sys.exit(str(error))
