"""Who may import whom, and what has one place only: the architecture, enforced."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
MEMORIES = ("working", "episodic", "semantic", "procedural")
SQL = re.compile(
    r"\b(SELECT\b.*\bFROM|INSERT INTO|UPDATE\b.*\bSET|DELETE FROM)\b"
    r"|\A\s*(select\b.*\bfrom|insert into|update\b.*\bset|delete from)\b",
    re.DOTALL,
)


def forbidden(module: str, imported: str) -> str | None:
    """Why `module` may not import `imported`; None if it may. Both are dotted names."""
    cloud = within(module, "octopus.cloud")
    store = within(module, "octopus") and module.endswith("store")
    mine, theirs = memory(module), memory(imported)
    if imported.startswith("."):
        return "imports are absolute"
    if within(imported, "infra") or (within(imported, "functions") and within(module, "octopus")):
        return "the product knows neither its entry points nor its infrastructure"
    if within(imported, "boto3", "botocore", "anthropic") and not cloud:
        return "only octopus.cloud talks to AWS and to the model"
    if within(imported, "psycopg", "psycopg_pool", "pgvector") and not (cloud or store):
        return "only octopus.cloud and the stores talk to PostgreSQL"
    database = store and within(
        imported, "octopus.cloud.database", "octopus.cloud.embedding_space", "octopus.cloud.queries"
    )
    if within(imported, "octopus.cloud") and within(module, "octopus") and not (cloud or database):
        return "adapters know the product, not the product its adapters"
    types = mine == "working" and within(imported, f"octopus.{theirs}.types")
    if mine and theirs and mine != theirs and not types:
        return "a memory does not know another; working memory knows the others' types"
    return None


def within(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def memory(name: str) -> str | None:
    return next((room for room in MEMORIES if within(name, f"octopus.{room}")), None)


def violations(repository: Path) -> Iterator[str]:
    """One line for each place in `shared/octopus` and `functions` that breaks a rule."""
    for base, package in ((repository / "shared", "octopus"), (repository, "functions")):
        for path in sorted((base / package).rglob("*.py")):
            module = ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__")
            for line, reason in faults(module, ast.parse(path.read_text())):
                yield f"{path.relative_to(repository)}:{line}: {reason}"


def faults(module: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        for imported in imports(node):
            if reason := forbidden(module, imported):
                yield node.lineno, f"imports {imported}: {reason}"
            if within(imported, "os.environ", "os.getenv") and module != "octopus.settings":
                yield node.lineno, "the environment is read in octopus.settings only"
        match node:
            case ast.Attribute(ast.Name("os"), "environ" | "getenv") if module != "octopus.settings":
                yield node.lineno, "the environment is read in octopus.settings only"
            case ast.Constant(str(text)) if id(node) not in docstrings and SQL.search(text):
                yield node.lineno, "SQL is in .sql files only"


def imports(node: ast.AST) -> list[str]:
    """Full names, so that `from octopus import cloud` is `octopus.cloud`."""
    match node:
        case ast.Import(names):
            return [alias.name for alias in names]
        case ast.ImportFrom(package, names, level):
            return [f"{'.' * (level or 0)}{package or ''}.{alias.name}" for alias in names]
    return []


def test_the_code_keeps_the_rules() -> None:
    assert len(list((REPOSITORY / "shared" / "octopus").rglob("*.py"))) > 10
    assert list(violations(REPOSITORY)) == []


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("shared/octopus/turn.py", "import functions.chat.app"),
        ("shared/octopus/turn.py", "from infra import local"),
        ("shared/octopus/turn.py", "from .working import layout"),
        ("shared/octopus/turn.py", "import boto3"),
        ("functions/api/handler.py", "from botocore.config import Config"),
        ("functions/chat/app.py", "def late():\n    import anthropic"),
        ("shared/octopus/semantic/recall.py", "from psycopg.rows import dict_row"),
        ("functions/sweep/handler.py", "import psycopg_pool"),
        ("shared/octopus/turn.py", "from octopus.cloud import database"),
        ("shared/octopus/semantic/store.py", "from octopus.cloud.model import stream"),
        ("shared/octopus/semantic/recall.py", "from octopus.episodic.types import Episode"),
        ("shared/octopus/episodic/__init__.py", "import octopus.working"),
        ("shared/octopus/working/assembly.py", "from octopus.semantic.recall import recall"),
        ("shared/octopus/cloud/database.py", "import os\nURL = os.environ['URL']"),
        ("functions/api/handler.py", "from os import getenv"),
        ("shared/octopus/agents/store.py", "QUERY = 'SELECT id\\nFROM agents'"),
        ("shared/octopus/agents/store.py", "def f(table):\n    return f'delete from {table}'"),
        ("shared/octopus/cloud/database.py", "QUERY = '''\n    update agents set name = null'''"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, path: str, code: str) -> None:
    planted = tmp_path / path
    planted.parent.mkdir(parents=True)
    planted.write_text(code)
    (found,) = violations(tmp_path)
    assert found.startswith(f"{path}:")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("shared/octopus/settings.py", "import os\nURL = os.environ['URL']"),
        ("shared/octopus/cloud/model.py", "import anthropic, boto3, psycopg, octopus.working.layout"),
        ("shared/octopus/semantic/store.py", "import pgvector\nfrom octopus.cloud.database import Database"),
        ("shared/octopus/working/assembly.py", "from octopus.episodic.types import Episode"),
        (
            "shared/octopus/turn.py",
            "import octopus.working, octopus.semantic\nHINT = 'Then select one from the list.'",
        ),
        ("functions/api/handler.py", "from octopus.cloud.wiring import services"),
        ("shared/octopus/semantic/recall.py", "'''Runs SELECT id FROM chunks.'''"),
    ],
)
def test_what_is_allowed_passes(tmp_path: Path, path: str, code: str) -> None:
    allowed = tmp_path / path
    allowed.parent.mkdir(parents=True)
    allowed.write_text(code)
    assert list(violations(tmp_path)) == []
