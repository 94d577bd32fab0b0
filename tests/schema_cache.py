"""The published schemas, fetched once into a cache outside the repository, as validators for tests.

The cache folder is `ACP_PROXY_TEST_CACHE`, else `acp-proxy-tests` in the user's cache folder. Without npm, or
without a network on the first run, tests that ask for the package are skipped, saying why; where `CI` is
`true` they fail.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from acp_proxy.acp.version import Role, Version

PACKAGE = "@agentclientprotocol/sdk@2.4.0"
TARBALL_SHA512 = "7qJ8nnyj7WesC5ve185ioTpB2/svQoeGV4HA4nLEhgDUrcmBe54/08VcXc/oL4p14tDbxxECZzdYmUYQ+4l+Wg=="
NPM_SECONDS = 50
SIDES = {Role.CLIENT: "client", Role.AGENT: "agent"}


@functools.cache
def package_dir() -> Path:
    """The unpacked package; fetched with `npm pack` and checked against `TARBALL_SHA512` when not cached yet.

    Several processes may race for it: each unpacks into a folder of its own, and the first rename wins.
    """
    cache = _cache_dir()
    wanted = cache / PACKAGE.replace("/", "-").lstrip("@")
    if wanted.is_dir():
        return wanted
    npm = shutil.which("npm")
    if npm is None:
        _unavailable("npm is not installed")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="unpacking-") as scratch:
        tarball = _download(npm, Path(scratch))
        with tarfile.open(tarball) as archive:
            archive.extractall(scratch, filter="data")
        try:
            (Path(scratch) / "package").rename(wanted)
        except OSError:
            if not wanted.is_dir():  # another process was faster only if its folder is there
                raise
    return wanted


def _cache_dir() -> Path:
    own = os.environ.get("ACP_PROXY_TEST_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "acp-proxy-tests"


def _download(npm: str, folder: Path) -> Path:
    try:
        subprocess.run(
            [npm, "pack", PACKAGE, "--ignore-scripts", "--pack-destination", str(folder)],
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=NPM_SECONDS,
        )
    except subprocess.TimeoutExpired:
        _unavailable("npm pack took too long")
    except subprocess.CalledProcessError as failure:
        _unavailable(f"npm pack failed with status {failure.returncode}")
    (tarball,) = folder.glob("*.tgz")
    digest = base64.b64encode(hashlib.sha512(tarball.read_bytes()).digest()).decode()
    if digest != TARBALL_SHA512:
        pytest.fail(f"the tarball of {PACKAGE} is not the pinned one (sha512 {digest})")
    return tarball


def _unavailable(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{PACKAGE} is needed: {reason}")
    pytest.skip(f"{PACKAGE} is needed: {reason}")


@functools.cache
def definitions(version: Version, unstable: bool = True) -> dict[str, Any]:
    """The `$defs` of a schema."""
    kind = ".unstable" if unstable else ""
    path = package_dir() / "schema" / f"v{version.value}" / f"schema{kind}.json"
    found: dict[str, Any] = json.loads(path.read_text())["$defs"]
    return found


@functools.cache
def validator(version: Version, name: str, unstable: bool = True) -> Draft202012Validator:
    """A validator of one definition; formats are not asserted, as the schemas mean them as hints."""
    return Draft202012Validator({"$defs": definitions(version, unstable), "$ref": f"#/$defs/{name}"})


def message_error(version: Version, message: object, *, sender: Role, unstable: bool = True) -> str | None:
    """What is wrong with a whole JSON-RPC request or notification from `sender`; None when nothing is.

    Methods that start with `_` are extensions: only their frame is checked. Absent and null params count as
    `{}`.
    """
    if not isinstance(message, dict):
        return "message: not an object"
    if message.get("jsonrpc") != "2.0":
        return "jsonrpc: not 2.0"
    method = message.get("method")
    if not isinstance(method, str):
        return "method: not a string"
    stray = sorted(set(message) - {"jsonrpc", "id", "method", "params"})
    if stray:
        return f"{stray[0]}: unexpected member"
    if "id" in message and (error := _error(version, "RequestId", message["id"], "id", unstable)):
        return error
    if method.startswith("_"):
        return None
    ending = "Request" if "id" in message else "Notification"
    name = _definition(version, method, SIDES[sender.other], ending, unstable)
    if name is None:
        return f"method: {method} is no {ending.lower()} that a {sender.value} may send in v{version.value}"
    params = message.get("params")
    return _error(version, name, {} if params is None else params, "params", unstable)


def response_error(
    version: Version, method: str, result: object, *, receiver_of_request: Role, unstable: bool = True
) -> str | None:
    """What is wrong with a result that `receiver_of_request` answered with; None when nothing is."""
    if method.startswith("_"):
        return None
    name = _definition(version, method, SIDES[receiver_of_request], "Response", unstable)
    if name is None:
        return (
            f"method: {method} is no request that a {receiver_of_request.value} answers in v{version.value}"
        )
    return _error(version, name, result, "result", unstable)


@functools.cache
def _definition(version: Version, method: str, side: str, ending: str, unstable: bool) -> str | None:
    for name, schema in definitions(version, unstable).items():
        sides = (side, "protocol")
        if schema.get("x-method") == method and schema.get("x-side") in sides and name.endswith(ending):
            return name
    return None


def _error(version: Version, name: str, value: object, path: str, unstable: bool) -> str | None:
    error = best_match(validator(version, name, unstable).iter_errors(value))
    if error is None:
        return None
    return f"{'/'.join([path, *map(str, error.absolute_path)])}: {error.message[:300]}"
