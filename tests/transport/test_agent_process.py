"""Agents as real processes: below the shim and as our own child, unless only one of them can do it."""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from child_processes import ECHO, STUBBORN_FAMILY, eventually, is_running, python_agent
from transport_contract import Peer, check_transport

from acp_proxy.errors import AgentStartError, PeerGoneError
from acp_proxy.transport import agent_tree
from acp_proxy.transport.agent_process import AgentCommand, AgentProcess, ExitStatus, start_agent
from acp_proxy.transport.base import Transport

GRACE = 0.2

needs_lifeline = pytest.mark.skipif(sys.platform != "linux", reason="the shim is for Linux")


@pytest.fixture(params=["shim", "group"])
def _keeper(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "group":
        monkeypatch.setattr(agent_tree, "HAVE_LIFELINE", False)


with_and_without_lifeline = pytest.mark.usefixtures("_keeper")
