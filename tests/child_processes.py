"""Real child processes for the tests: tiny Python programs, and what became of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import trio

from acp_proxy.transport.agent_command import AgentCommand

PYTHON = (sys.executable, "-S", "-E", "-u", "-c")

ECHO = """
import os
while data := os.read(0, 65536):
    while data:
        data = data[os.write(1, data):]
"""

SLEEP = "import time; time.sleep(600)"

# Says on stderr when it is ready not to be ended.
TERM_IMMUNE = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(2, b"!")
time.sleep(600)
"""

# Ignores SIGTERM and the end of stdin, as do its two descendants, which hold all its pipes: one in its group,
# one in a session of its own whose parent has ended. Says all pids, its own and its parent's last.
STUBBORN_FAMILY = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
reader, writer = os.pipe()
def stay():
    os.write(writer, b"%d " % os.getpid())
    time.sleep(600)
    os._exit(0)
if os.fork() == 0:
    stay()
middle = os.fork()
if middle == 0:
    os.setsid()
    if os.fork() == 0:
        stay()
    os._exit(0)
os.waitpid(middle, 0)
said = b""
while said.count(b" ") < 2:
    said += os.read(reader, 100)
os.write(1, said + b"%d %d\\n" % (os.getpid(), os.getppid()))
time.sleep(600)
"""


def python_agent(code: str, *arguments: str) -> AgentCommand:
    """The command of an agent that runs `code`."""
    return AgentCommand([*PYTHON, code, *arguments])


def is_running(pid: int) -> bool:
    """Whether a process exists and is more than a zombie that nobody has collected yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        if sys.platform == "linux":
            return False
        found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], stdout=subprocess.PIPE, check=False)
        return found.stdout.strip()[:1] not in (b"", b"Z")
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until something outside of our process has become true; fail after half a minute."""
    for _ in range(3000):
        if condition():
            return
        await trio.sleep(0.01)
    raise AssertionError("it did not come true")
