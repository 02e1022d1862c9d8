"""`make costs`: what the stack costs, from the prices and the traffic in infra/costs.toml, into infra/costs.md."""

from __future__ import annotations

import tomllib
from typing import Any

from infra.local.processes import CHECKOUT

INPUTS = CHECKOUT / "infra" / "costs.toml"
PAGE = CHECKOUT / "infra" / "costs.md"
BEGIN, END = "<!-- computed: begin -->", "<!-- computed: end -->"


def turns(price: dict[str, float], turn: dict[str, float]) -> dict[str, float]:
    """Dollars per 1,000 turns by component, with the episodes that they end in."""
    n, sessions = 1000, 1000 / turn["turns_per_session"]
    return {
        "Model, answers": n
        * (
            turn["input_tokens"] * price["input_token"]
            + turn["cache_write_tokens"] * price["cache_write_token"]
            + turn["cache_read_tokens"] * price["cache_read_token"]
            + turn["output_tokens"] * price["output_token"]
        ),
        "Model, episodes": sessions
        * (turn["episode_input_tokens"] * price["input_token"] + turn["episode_output_tokens"] * price["output_token"]),
        "Embeddings": (n * turn["embedding_tokens"] + sessions * turn["episode_embedding_tokens"])
        * price["embedding_token"],
        "Lambda, chat": n * (turn["seconds"] * turn["memory_gb"] * price["lambda_gb_second"] + price["lambda_request"]),
        "Lambda, episodes": sessions
        * (turn["episode_seconds"] * turn["episode_memory_gb"] * price["lambda_gb_second"] + price["lambda_request"]),
        "Database, I/O": n * turn["database_ios"] * price["database_io"],
        "Logs and traces": n * (turn["log_kb"] / 1e6 * price["log_gb"] + turn["traced"] * price["trace"]),
        "Events": sessions * price["event"],
    }


def idle(price: dict[str, float], idle: dict[str, Any], environment: str) -> dict[str, float]:
    """Dollars per month without a turn by component."""
    its, hours = idle[environment], idle["hours"]
    return {
        "Database, capacity": its["acu"] * its["instances"] * hours * price["acu_hour"],
        "Database, storage": idle["database_gb"] * price["database_gb_month"],
        "Interface endpoints": its["endpoints"] * its["zones"] * hours * price["endpoint_hour"],
        # A second for the sweep, a fifth for a look at whether there is something to embed anew.
        "Sweep": its["sweeps"]
        * (1.2 * 0.5 * price["lambda_gb_second"] + 2 * (price["lambda_request"] + price["event"])),
        "Metrics, alarms, dashboard": idle["metrics"] * price["metric_month"]
        + idle["alarms"] * price["alarm_month"]
        + idle["dashboards"] * price["dashboard_month"],
        "Secrets": idle["secrets"] * price["secret_month"],
    }


def options(price: dict[str, float], hours: float, memory_gb: float) -> dict[str, float]:
    """Dollars per month that a parameter adds."""
    return {
        "NAT gateway (ModelProvider=anthropic, own issuer, ToolHosts)": hours * price["nat_hour"],
        "RDS Proxy (DatabaseProxy=true)": hours * price["proxy_acu_hour"] * price["proxy_minimum_acu"],
        "Lambda endpoint, per zone (LambdaTools=true)": hours * price["endpoint_hour"],
        "Each environment kept started (ChatProvisionedConcurrency)": hours
        * 3600
        * memory_gb
        * price["provisioned_gb_second"],
    }


def table(head: str, *columns: dict[str, float]) -> list[str]:
    names = list(columns[0])
    lines = [f"| {head} |", "|---|" + "--:|" * len(columns)]
    lines += [f"| {name} | " + " | ".join(f"{column[name]:,.2f}" for column in columns) + " |" for name in names]
    lines.append("| **Sum** | " + " | ".join(f"**{sum(column.values()):,.2f}**" for column in columns) + " |")
    return lines


def computed() -> str:
    """The tables of the page."""
    inputs = tomllib.loads(INPUTS.read_text())
    price, each = inputs["prices"], turns(inputs["prices"], inputs["turn"])
    months = [idle(price, inputs["idle"], environment) for environment in ("dev", "prod")]
    extra = options(price, inputs["idle"]["hours"], inputs["turn"]["memory_gb"])
    lines = ["### 1,000 turns", "", *table("Component | US$", each), ""]
    lines += ["### A month without a turn", "", *table("Component | dev | prod", *months), ""]
    lines += ["### What a parameter adds to a month", "", *table("Parameter | US$", extra)[:-1]]
    return "\n".join(lines)


def page() -> str:
    """The page with its tables brought up to date."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    return f"{before}{BEGIN}\n\n{computed()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(computed())
