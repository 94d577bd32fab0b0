"""A v1 client on the `acp-client` package. Usage: `client_acp.py COMMAND [ARG ...]`.

Two connections, the second of which carries on the session of the first; one line of JSON for each observation.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from acp_client import Agent


def tell(event: str, **fields: Any) -> None:
    """One line of JSON on stdout; `event` says what was observed."""
    print(json.dumps({"event": event, **fields}), flush=True)


async def allow(request: dict[str, Any]) -> str:
    """Answer every question with its first option."""
    tell("permission", request=request)
    option: str = request["options"][0]["optionId"]
    return option


async def main(command: list[str]) -> None:
    """Ask two questions, then hear them again in a new process."""
    first = Agent(command, Path.cwd(), permission=allow)
    for text in ("text", "edit"):
        tell("answered", text=text, answer=await first.ask(text))
    session = first.session
    await first.stop()
    second = Agent(command, Path.cwd(), session=session)
    await second.start(lambda update: tell("replayed", update=update))
    tell("loaded", session=second.session)
    await second.stop()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
