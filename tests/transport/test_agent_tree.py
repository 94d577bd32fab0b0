"""How a tree of processes is started when its start goes wrong; the rest is seen through `AgentProcess`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import trio

from acp_proxy.errors import AgentStartError
from acp_proxy.transport import agent_tree
from acp_proxy.transport.agent_process import start_agent
from acp_proxy.transport.agent_tree import StatusLines
from child_processes import ECHO, eventually, is_running, python_agent


async def test_reports_are_read_a_line_at_a_time_however_they_arrive() -> None:
    reader, writer = os.pipe()
    lines = StatusLines(reader)
    os.write(writer, b"started 12\nexi")
    assert await lines.receive() == ["started", "12"]
    os.write(writer, b"ted 0\nkilled 9\nlost")
    os.close(writer)
    assert await lines.receive() == ["exited", "0"]
    assert await lines.receive() == ["killed", "9"]
    assert await lines.receive() == []
    lines.close()


async def test_a_missing_interpreter_is_not_blamed_on_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    async with trio.open_nursery() as nursery:
        with pytest.raises(
            AgentStartError, match=r"its supervisor cannot be started \(No such file"
        ) as caught:
            await start_agent(python_agent(ECHO), nursery=nursery)
    assert caught.value.exit_status == 126


async def test_a_start_cancelled_before_the_shims_word_is_taken_back_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "lifeline.py"
    fake.write_text(f"""
import os, sys
open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
open({str(tmp_path / "order")!r}, "wb").write(os.read(int(sys.argv[2]), 9))
""")
    monkeypatch.setattr(agent_tree, "LIFELINE", str(fake))
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(eventually_cancel, scope, tmp_path / "pid")
            await start_agent(python_agent(ECHO), nursery=nursery)
        assert scope.cancelled_caught
        assert (tmp_path / "order").read_bytes() == b"K"
        assert not is_running(int((tmp_path / "pid").read_text()))


async def eventually_cancel(scope: trio.CancelScope, sign: Path) -> None:
    await eventually(lambda: sign.exists() and sign.read_text() != "")
    scope.cancel()


async def test_a_shim_that_fails_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_tree, "LIFELINE", "/no/such/lifeline.py")
    async with trio.open_nursery() as nursery:
        with pytest.raises(AgentStartError, match="its supervisor did not start"):
            await start_agent(python_agent(ECHO), nursery=nursery)
