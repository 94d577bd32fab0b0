"""Processes for the tests of the host, and what became of them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import trio

# Ignores SIGTERM, as do its two descendants: one in its group, one in a session of its own whose parent has
# ended. Says all pids, its own last.
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
os.write(1, said + b"%d\\n" % os.getpid())
time.sleep(600)
"""


def is_running(pid: int) -> bool:
    """Whether a process exists and is more than a zombie that nobody has collected yet."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], stdout=subprocess.PIPE, check=False).stdout
    return state.strip()[:1] not in (b"", b"Z")


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until something outside of our process has become true; fail after half a minute."""
    for _ in range(3000):
        if condition():
            return
        await trio.sleep(0.01)
    raise AssertionError("it did not come true")
