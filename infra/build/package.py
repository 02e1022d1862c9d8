"""Lay out one Lambda artifact: what `sam build` calls, through the Makefiles beside this file.

SAM's own Python builder takes the host's wheels, checks no hashes, keeps 25 MB of botocore's service descriptions and
leaves the bytecode to a file system that Lambda mounts read-only. This one takes the target's wheels by the hashes of
shared/requirements.txt, keeps what the functions use, and compiles everything: an import costs a third less time.
"""

from __future__ import annotations

import argparse
import compileall
import py_compile
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
LOCK = REPOSITORY / "shared" / "requirements.txt"
PYTHON = "3.13"
GLIBC = range(34, 16, -1)  # Amazon Linux 2023 has glibc 2.34

# Packages that one function alone needs; they go with it and not into the layer.
OWN_PACKAGES = {"ingest_document": {"lxml", "pypdfium2", "python-calamine"}}
OWN_FILES = {
    "migrate": {"infra/migrations": "migrations"},
    "chat": {"functions/chat/run.sh": "run.sh"},
    "api": {f"functions/chat/{file}": f"functions/chat/{file}" for file in ("__init__.py", "request.py")},
}

# Services whose descriptions stay in botocore; tests/infra compares this with the clients that the code makes.
SERVICES = {"bedrock-runtime", "events", "lambda", "s3", "secretsmanager", "sqs"}
UNUSED = (
    "bin",
    "**/*.pyi",
    "**/tests",
    "aws_lambda_powertools/event_handler/openapi/swagger_ui/*.min.*",
    "boto3/data",  # of resources; only clients are used
    "boto3/examples",
    "octopus/cloud/minilm",  # the embedded default's
    "stdnum/imsi.dat",
    "stdnum/oui.dat",
    "wrapt-stubs",
)


def layer(into: Path, platform: str) -> None:
    """The runtime's packages and `octopus`, under `python/`, which Lambda puts on the path as /opt/python."""
    python = into / "python"
    own = set[str]().union(*OWN_PACKAGES.values())
    install(python, platform, lambda package: package not in own)
    shutil.copytree(REPOSITORY / "shared" / "octopus", python / "octopus", ignore=_not_run)
    prune(python)
    compile_all(python, "/opt/python")


def function(name: str, into: Path, platform: str) -> None:
    """`functions.NAME` under its own import name, and what it alone needs."""
    package = into / "functions"
    package.mkdir(parents=True)
    shutil.copy(REPOSITORY / "functions" / "__init__.py", package)
    shutil.copytree(REPOSITORY / "functions" / name, package / name, ignore=_not_run)
    for source, target in OWN_FILES.get(name, {}).items():
        (into / target).parent.mkdir(exist_ok=True)
        copy = shutil.copytree if (REPOSITORY / source).is_dir() else shutil.copy
        copy(REPOSITORY / source, into / target)
    if own := OWN_PACKAGES.get(name):
        install(into, platform, own.__contains__)
        prune(into)
    compile_all(into, "/var/task")


def install(into: Path, platform: str, wanted: Callable[[str], bool], locked: Path = LOCK) -> None:
    """Install the wanted packages of the lock for Lambda's platform, by hash, from wheels only."""
    entries = re.split(r"^(?=[a-z0-9])", locked.read_text(), flags=re.MULTILINE)
    chosen = [entry for entry in entries if not entry.startswith("#") and wanted(entry.partition("==")[0])]
    tags = [f"manylinux_2_{minor}_{platform}" for minor in GLIBC] + [f"manylinux2014_{platform}"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as lock:
        lock.write("".join(chosen))
        lock.flush()
        command = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        command += ["--root-user-action=ignore", "--target", str(into), "--no-deps", "--no-compile"]
        command += ["--require-hashes", "--only-binary=:all:", "--implementation=cp", f"--python-version={PYTHON}"]
        command += [f"--platform={tag}" for tag in tags]
        subprocess.run([*command, "--requirement", lock.name], check=True)  # noqa: S603


def prune(python: Path) -> None:
    """Drop what no function reads."""
    for pattern in UNUSED:
        for path in list(python.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in (python / "botocore" / "data").glob("*/"):
        if path.name not in SERVICES:
            shutil.rmtree(path)


def compile_all(directory: Path, mounted: str) -> None:
    """Bytecode that is valid whatever the time stamps in the zip file, and names the files as Lambda has them."""
    if not compileall.compile_dir(
        directory,
        quiet=1,
        workers=0,
        stripdir=str(directory),
        prependdir=mounted,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    ):
        raise SystemExit(f"{directory} does not compile")


def _not_run(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name in ("__pycache__", "openapi.json")]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--platform", required=True, choices=("aarch64", "x86_64"))
    arguments.add_argument("--into", required=True, type=Path)
    arguments.add_argument("kind", choices=("layer", "function"))
    arguments.add_argument("name", nargs="?")
    given = arguments.parse_args()
    if sys.version_info[:2] != tuple(map(int, PYTHON.split("."))):
        raise SystemExit(f"Lambda runs Python {PYTHON}; this is {sys.version.split()[0]}.")
    if given.kind == "layer":
        layer(given.into, given.platform)
    else:
        function(given.name, given.into, given.platform)


if __name__ == "__main__":
    main()
