"""The pipe to the child process."""

from __future__ import annotations

import sys

import pytest

from acp_proxy.demo.link import ChildLink, DemoError


def python(source: str) -> list[str]:
    return [sys.executable, "-c", source]


ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


def test_messages_go_there_and_back() -> None:
    link = ChildLink(python(ECHO))
    link.send({"id": 1, "method": "x"})
    assert link.receive(10) == {"jsonrpc": "2.0", "id": 1, "method": "x"}
    assert link.close(10) == 0


def test_silence_is_none() -> None:
    link = ChildLink(python(ECHO))
    assert link.receive(0.01) is None
    assert link.receive(-1) is None
    assert link.close(10) == 0


@pytest.mark.parametrize("line", ["Welcome!", "[1]"])
def test_a_line_that_is_no_message_is_quoted(line: str) -> None:
    link = ChildLink(python(f"print({line!r})"))
    with pytest.raises(DemoError, match="no JSON object") as caught:
        link.receive(10)
    link.close(10)
    assert line in str(caught.value)


def test_an_early_end_is_told_with_its_status_and_last_words() -> None:
    source = "import sys\nfor n in range(9): print('line', n, file=sys.stderr)\nsys.exit(4)"
    link = ChildLink(python(source))
    with pytest.raises(DemoError, match=r"closed its output \(exit status 4\)"):
        link.receive(10)
    assert link.close(10) == 4
    assert link.last_words().splitlines() == [f"line {n}" for n in range(4, 9)]


def test_sending_to_a_child_that_is_gone() -> None:
    link = ChildLink(python("import sys; sys.exit(5)"))
    with pytest.raises(DemoError, match="exit status 5"):
        link.receive(10)
    with pytest.raises(DemoError, match="exit status 5"):
        link.send({"method": "x"})
    assert link.close(10) == 5


def test_a_child_that_does_not_end_is_killed() -> None:
    link = ChildLink(python("import time; print('{}', flush=True); time.sleep(60)"))
    assert link.receive(10) == {}
    assert link.close(0.05) is None


def test_a_command_that_is_not_there() -> None:
    with pytest.raises(DemoError, match="cannot start no-such-program-here: No such file"):
        ChildLink(["no-such-program-here"])
