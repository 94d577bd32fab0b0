"""Plays the captures in `data/` to a relay: the agent's lines as they were, the client's by what they ask.

The captures are real traffic, without the lists that say nothing here. Times are those of the capture.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from acp_proxy.store.profile_files import FileChoice
from relay_driver import (
    Driver,
    answer,
    call,
    cancel,
    initialize_v1,
    initialize_v2,
    prompt,
    story,
)

DATA = Path(__file__).with_name("data")
STATES = ("running", "requires_action", "idle", "unknown")
ASKS = "session/request_permission"
STATE_NOTE = "_acp-proxy/state_update"
WANTS_STATES = {"clientCapabilities": {"_meta": {"acp-proxy": {"stateUpdates": True}}}}


def choice(wanted: str, *explicit: str) -> FileChoice:
    """The shipped profiles, and the keys that were configured."""
    return FileChoice(wanted, None, frozenset(explicit))


def played(
    capture: str,
    *,
    v1_client: bool = False,
    profile: str = "auto",
    explicit: tuple[str, ...] = (),
    **options: Any,
) -> Driver:
    """A capture from beginning to end."""
    driver = Driver(profile=choice(profile, *explicit), **options)
    start = driver.at
    for text in (DATA / f"{capture}.jsonl").read_text().splitlines():
        entry = json.loads(text)
        driver.advance(max(0.0, start + entry["t"] - driver.at))
        body = json.loads(entry["line"])
        if entry["dir"] == "c2a":
            _client_says(driver, body, v1_client)
        elif "method" not in body and not v1_client and driver.relay.negotiation.answered:
            driver.agent_sends({**body, "id": driver.agent_id(_asked(capture, body["id"]))})
        else:
            driver.agent_sends(body)
    return driver


def _client_says(driver: Driver, body: Any, v1_client: bool) -> None:
    method = body.get("method")
    if method == "initialize":
        driver.client_sends(
            initialize_v1(body["id"], **WANTS_STATES) if v1_client else initialize_v2(body["id"])
        )
    elif method == "session/new":
        driver.client_sends(call(body["id"], method, body["params"]))
    elif method == "session/prompt":
        driver.client_sends(prompt(body["id"]))
    elif method == "session/cancel":
        driver.client_sends(cancel())
    else:
        driver.client_sends(answer(driver.client_id(ASKS), body["result"]))


def _asked(capture: str, token: Any) -> str:
    for text in (DATA / f"{capture}.jsonl").read_text().splitlines():
        body = json.loads(json.loads(text)["line"])
        if body.get("id") == token and "method" in body and json.loads(text)["dir"] == "c2a":
            return str(body["method"])
    raise AssertionError(token)


def states(driver: Driver) -> list[str]:
    """What a v2 client was told of the state, and where it was asked."""
    told = (words for words in story(driver.outputs.client))
    return [words.split(" #")[0] for words in told if words.startswith((*STATES, ASKS))]


def extension_states(driver: Driver) -> list[str]:
    """The same for a v1 client that asked for the extension notification."""
    found: list[str] = []
    for body in driver.outputs.client:
        if body.get("method") == ASKS:
            found.append(ASKS)
        elif body.get("method") == STATE_NOTE:
            update = body["params"]["update"]
            found.append(" ".join(update[key] for key in ("state", "stopReason") if key in update))
    return found
