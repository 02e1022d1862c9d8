"""Which AWS actions a function may call, read off its code.

Starts from what the entry point asks of `services()`, follows the wiring to the classes behind it and their code to the
calls of AWS clients. A method counts when its name is used anywhere in code that counts: rather too much than too
little, so that an action that is missing from a role cannot hide.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from infra.local.processes import CHECKOUT

WIRING = "octopus.cloud.wiring"

# What a call needs, where that is not the operation's own name. Without s3:ListBucket, S3 answers 403 instead of 404
# for an object that is not there.
NEEDS = {
    "s3.generate_presigned_post": {"s3:PutObject"},
    "s3.get_object": {"s3:GetObject", "s3:ListBucket"},
    "s3.head_object": {"s3:GetObject", "s3:ListBucket"},
    "sqs.send_message_batch": {"sqs:SendMessage"},
    "lambda.invoke": {"lambda:InvokeFunction"},
    "bedrock-runtime.invoke_model": {"bedrock:InvokeModel"},
    "messages.create": {"bedrock:InvokeModel"},
    "messages.stream": {"bedrock:InvokeModelWithResponseStream"},
    "messages.count_tokens": set(),  # the SDK refuses it on Bedrock
}
SETTINGS = {
    "database_url": {"rds-db:connect"},
    "sweep_database_url": {"rds-db:connect"},
}


@dataclass
class Reached:
    """Code that counts: nodes by module and name, and the attribute names that they use."""

    nodes: set[tuple[str, str]] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    members: set[str] = field(default_factory=set)  # of Services


def actions(function: str) -> set[str]:
    """The actions that the code of `functions/<function>` may call."""
    reached = Reached()
    for path in sorted((CHECKOUT / "functions" / function).glob("*.py")):
        module = f"functions.{function}.{path.stem}"
        for name in [*definitions(module), "<module>"]:
            visit(reached, module, name)
    while True:
        before = len(reached.nodes), len(reached.attributes), len(reached.members)
        for module, name in sorted(reached.nodes):
            visit(reached, module, name)
        for member in sorted(reached.members):
            scan(reached, *services_members()[member])
        if before == (len(reached.nodes), len(reached.attributes), len(reached.members)):
            break
    found = set[str]()
    for module, name in reached.nodes:
        for body in live(reached, definitions(module).get(name)):
            found |= set(called(module, body))
    for member in reached.members:
        for node in ast.walk(services_members()[member][1]):
            if isinstance(node, ast.Attribute):
                found |= SETTINGS.get(node.attr, set())
    return found


def visit(reached: Reached, module: str, name: str) -> None:
    reached.nodes.add((module, name))
    for body in live(reached, definitions(module).get(name)):
        scan(reached, module, body)


def live(reached: Reached, node: ast.AST | None) -> Iterator[ast.AST]:
    """A function, or of a class the methods that are used."""
    methods = ast.FunctionDef | ast.AsyncFunctionDef
    if isinstance(node, ast.ClassDef):
        for part in node.body:
            unused = isinstance(part, methods) and part.name not in reached.attributes
            if not unused or getattr(part, "name", "").startswith("__"):
                yield part
    elif node is not None:
        yield node


def scan(reached: Reached, module: str, body: ast.AST) -> None:
    """Note what `body` uses: attributes, members of Services, and definitions by name."""
    names = imports(module) | {name: (module, name) for name in definitions(module)}
    for node in ast.walk(body):
        match node:
            case ast.Attribute(ast.Call(ast.Name("services")), attribute) if attribute in services_members():
                reached.members.add(attribute)
            case ast.Attribute(ast.Name("self"), attribute) if is_wiring(module) and attribute in services_members():
                reached.members.add(attribute)
        if isinstance(node, ast.Attribute):
            reached.attributes.add(node.attr)
        if isinstance(node, ast.Name):
            target = names.get(node.id, ("", ""))
            if not is_wiring(target[0]) and target[1] in definitions(target[0]):
                reached.nodes.add(target)


def called(module: str, body: ast.AST) -> Iterator[str]:
    """The actions behind the client calls in `body`."""
    services = {c.args[0].value for c in ast.walk(tree(module)) if is_client(c)}  # type: ignore[attr-defined]
    for node in ast.walk(body):
        if not isinstance(node, ast.Attribute):
            continue
        owner = node.value.attr if isinstance(node.value, ast.Attribute) else ""
        if owner == "messages":
            yield from NEEDS.get(f"messages.{node.attr}", ())
        for service in services:
            if node.attr in operations(service):
                yield from NEEDS.get(f"{service}.{node.attr}", {f"{service}:{pascal(node.attr)}"})


def is_client(node: ast.AST) -> bool:
    match node:
        case ast.Call(ast.Attribute(ast.Name("boto3"), "client"), [ast.Constant(str())]):
            return True
    return False


@cache
def operations(service: str) -> frozenset[str]:
    """The methods of boto3's client."""
    import boto3

    client = boto3.client(service, region_name="us-east-1")
    return frozenset(name for name in dir(client) if not name.startswith("_")) - {"exceptions", "meta", "close"}


def pascal(operation: str) -> str:
    return "".join(word.capitalize() for word in operation.split("_"))


@cache
def tree(module: str) -> ast.Module:
    if not module:
        return ast.Module([], [])
    base = CHECKOUT / "shared" if module.startswith("octopus") else CHECKOUT
    path = Path(base, *module.split("."))
    file = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
    return ast.parse(file.read_text() if file.exists() else "")


@cache
def definitions(module: str) -> dict[str, ast.AST]:
    """Classes and functions by name; what runs at import is ``<module>``."""
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found: dict[str, ast.AST] = {node.name: node for node in tree(module).body if isinstance(node, kinds)}
    rest = [node for node in tree(module).body if not isinstance(node, kinds)]
    return {**found, "<module>": ast.Module(rest, [])}


@cache
def imports(module: str) -> dict[str, tuple[str, str]]:
    """What each imported name stands for."""
    found = {}
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(("octopus", "functions")):
            for alias in node.names:
                found[alias.asname or alias.name] = (node.module, alias.name)
    return found


def is_wiring(module: str) -> bool:
    return module == WIRING or module.startswith(f"{WIRING}.")


@cache
def services_members() -> dict[str, tuple[str, ast.AST]]:
    """What can be asked of `services()`: the methods of the wiring's classes, each with its module."""
    found: dict[str, tuple[str, ast.AST]] = {}
    for path in sorted((CHECKOUT / "shared" / "octopus" / "cloud" / "wiring").glob("*.py")):
        module = f"{WIRING}.{path.stem}".removesuffix(".__init__")
        for node in definitions(module).values():
            for part in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                    found[part.name] = (module, part)
    return found
