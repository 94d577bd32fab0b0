"""The official SDKs on both sides of `acp-proxy wrap`: real clients, real agents, one proxy between them.

The text of a prompt, or the name of a scenario, says what happens; see the scripts in `peers/`.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from peer_conversation import Conversation, Stage
from peer_installs import node_peers, node_tools, python_peers
from wire_log import acknowledgement_errors, overlapping_prompts, raw_frames, schema_errors, story

import schema_cache
from acp_proxy.acp.version import Role, Version

pytestmark = pytest.mark.peers

OPENED = ["session/new", "running", "user_message", "session/prompt"]
GREETS = ["agent_thought_chunk", "agent_message_chunk", "agent_message_chunk", "plan_update", "idle end_turn"]
ASKS = ["tool pending", "session/request_permission", "requires_action"]
EDITS = [*ASKS, "running", "tool in_progress", "tool completed", "agent_message_chunk", "idle end_turn"]
WAITS = ["agent_message_chunk"]

# What a v2 client is told by the v1 agent of the TypeScript SDK, up to the session/list that ends every scenario.
STORIES = {
    "text": [*OPENED, *GREETS],
    "allowed": [*OPENED, *EDITS],
    "rejected": [*OPENED, *ASKS, "running", "tool failed", "agent_message_chunk", "idle end_turn"],
    "parallel": [*OPENED, *EDITS, *OPENED[1:], *GREETS],
    "cancel": [*OPENED, *WAITS, "agent_message_chunk", "idle cancelled"],
    "cancelHeld": [*OPENED, *WAITS, "session/prompt -32800", "agent_message_chunk", "idle cancelled"],
    "cancelAsked": [*OPENED, *ASKS, "$/cancel_request", "idle cancelled"],
    "error": [*OPENED, "agent_message_chunk", "idle error"],
    "refused": ["session/new", "running", "idle error", "session/prompt -32051"],
    "close": [*OPENED, *WAITS, "agent_message_chunk", "idle cancelled", "session/close"],
    "mode": ["session/new", "session/set_config_option"],
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """Where the conversations take place; the first one ever waits for the installs."""
    node, npm = node_tools()
    with pytest.MonkeyPatch.context() as patch:
        # The schemas are fetched with the npm on PATH, and there may be none but the one from PyPI.
        patch.setenv("PATH", os.pathsep.join((str(npm.parent), str(node.parent), os.environ["PATH"])))
        schema_cache.package_dir()
    return Stage(tmp_path_factory.mktemp("peers"), node_peers(), python_peers())


def bridged(stage: Stage, scenario: str, agent: list[str], **kwargs: Any) -> Conversation:
    """A conversation of the v2 client with a v1 agent, after everything has been checked that always holds."""
    conversation = stage.converse([*stage.script("client_v2.mjs"), scenario], agent, **kwargs)
    assert schema_errors(conversation.client_wire, Version.V2, Role.CLIENT, unstable=True) == []
    assert schema_errors(conversation.agent_wire, Version.V1, Role.AGENT, unstable=False) == []
    assert acknowledgement_errors(conversation.client_wire) == []
    assert overlapping_prompts(conversation.agent_wire) == []
    assert conversation.complaints == ""
    wired = [
        frame.update for frame in conversation.client_wire if frame.toward is Role.CLIENT and frame.update
    ]
    assert [event["update"] for event in conversation.named("update")] == wired
    assert conversation.only("initialized")["result"]["protocolVersion"] == 2
    assert conversation.only("exit")["status"] == 0
    assert story(conversation.client_wire)[-1] == "session/list"
    return conversation


def told(conversation: Conversation) -> list[str]:
    """The story without the request that ends it."""
    return story(conversation.client_wire)[:-1]


def offers(conversation: Conversation) -> list[dict[str, Any]]:
    """The params of every `initialize` that the agent got."""
    messages = [frame.message for frame in conversation.agent_wire if frame.toward is Role.AGENT]
    return [message["params"] for message in messages if message.get("method") == "initialize"]


def states(conversation: Conversation) -> list[dict[str, Any]]:
    """Every state that the client's SDK was told."""
    updates = [event["update"] for event in conversation.named("update")]
    return [update for update in updates if update["sessionUpdate"] == "state_update"]


# ---------------------------------------------------------------- a v2 client, v1 agents


def test_v2_client_drives_the_python_example_agent(stage: Stage) -> None:
    conversation = bridged(stage, "text", stage.example("agent.py"))
    assert told(conversation) == [*OPENED, "agent_message_chunk", "agent_message_chunk", "idle end_turn"]
    assert conversation.only("read")["text"] == "Client sent:text"
    assert conversation.only("initialized")["result"]["info"]["name"] == "example-agent"
    assert conversation.stderr.count("Received initialize request") == 1
    assert [offer["protocolVersion"] for offer in offers(conversation)] == [2]
    assert conversation.findings == []


def test_python_example_agent_gets_two_prompts_one_after_the_other(stage: Stage) -> None:
    conversation = bridged(stage, "burst", stage.example("agent.py"))
    turn = [*OPENED[1:], "agent_message_chunk", "agent_message_chunk", "idle end_turn"]
    assert told(conversation) == [OPENED[0], *turn, *turn]
    inserted = conversation.named("inserted")
    assert [event["text"] for event in inserted] == ["first", "second"]
    assert len({event["messageId"] for event in inserted}) == 2
    assert conversation.findings == []


def test_agent_that_echoes_the_version_number_is_bridged(stage: Stage) -> None:
    conversation = bridged(stage, "text", stage.example("echo_agent.py"))
    answer = conversation.agent_wire[1].message["result"]
    assert answer["protocolVersion"] == 2
    assert conversation.only("initialized")["result"]["info"] == {"name": "unknown", "version": "unknown"}
    assert told(conversation) == [*OPENED, "agent_message_chunk", "idle end_turn"]
    assert conversation.only("read")["text"] == "text"
    assert [(finding["rule"], finding["action"]) for finding in conversation.findings] == [
        ("V50", "repaired")
    ]


def test_agent_that_refuses_version_2_is_started_again_with_version_1(stage: Stage) -> None:
    conversation = bridged(stage, "allowed", stage.script("strict_agent.py"))
    first, second = offers(conversation)
    assert first["protocolVersion"] == 2
    assert {"info", "capabilities", "clientInfo", "clientCapabilities"} <= set(first)
    assert second["protocolVersion"] == 1
    assert not {"info", "capabilities"} & set(second)
    assert told(conversation) == [
        *(*OPENED, *ASKS),
        *("running", "tool completed", "agent_message_chunk", "idle end_turn"),
    ]


def test_agent_without_memory_refuses_a_replay_but_not_the_connection(stage: Stage) -> None:
    conversation = bridged(stage, "replay", stage.example("agent.py"), session="0")
    assert told(conversation) == ["session/resume -32602"]
    assert conversation.only("refused")["code"] == -32602


@pytest.mark.parametrize("scenario", STORIES)
def test_v2_client_drives_the_typescript_v1_agent(stage: Stage, scenario: str) -> None:
    conversation = bridged(stage, scenario, stage.script("agent_v1.mjs"))
    assert told(conversation) == STORIES[scenario]
    # The agent leaves the tool of a cancelled question open, which a client is to expect (LC-45).
    left_open = ["V41"] if scenario == "cancelAsked" else []
    assert [finding["rule"] for finding in conversation.findings] == left_open
    assert [line.split("rule=")[1][:3] for line in conversation.stderr.splitlines()] == left_open


def test_permission_arrives_with_its_subject_and_its_diff(stage: Stage) -> None:
    conversation = bridged(stage, "allowed", stage.script("agent_v1.mjs"))
    request = conversation.only("permission")["request"]
    assert request["title"] == "Overwrite the greeting?"
    assert request["subject"]["toolCall"]["toolCallId"] == "edit-1"
    assert [option["kind"] for option in request["options"]] == ["allow_once", "reject_once"]
    (diff,) = next(each["update"]["content"] for each in conversation.named("update") if _opens_tool(each))
    assert diff["changes"] == [{"operation": "modify", "path": "/tmp/greeting.txt", "fileType": "text"}]
    assert diff["patch"]["format"] == "git_patch"
    assert diff["patch"]["text"].endswith("@@ -1 +1 @@\n-Hello\n+Good morning\n")


def _opens_tool(event: dict[str, Any]) -> bool:
    return event["update"]["sessionUpdate"] == "tool_call_update" and "content" in event["update"]


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ("error", {"code": -32050, "message": "the model is unavailable", "data": {"retry": False}}),
        ("refused", {"code": -32051, "message": "no such wish"}),
    ],
)
def test_failed_turn_ends_with_the_agents_error(
    stage: Stage, scenario: str, expected: dict[str, Any]
) -> None:
    conversation = bridged(stage, scenario, stage.script("agent_v1.mjs"))
    assert states(conversation)[-1]["error"] == expected


@pytest.mark.parametrize(
    ("scenario", "replayed"),
    [
        ("resume", []),
        ("replay", ["user_message_chunk", *GREETS[:-1]]),
    ],
)
def test_session_of_an_earlier_connection_goes_on(stage: Stage, scenario: str, replayed: list[str]) -> None:
    agent = stage.script("agent_v1.mjs")
    live = bridged(stage, "text", agent)
    session = live.only("session")["session"]["sessionId"]
    later = bridged(stage, scenario, agent, session=session, store=live.store)
    assert told(later) == [*replayed, "idle", "session/resume"]
    assert [option["configId"] for option in later.only("resumed")["result"]["configOptions"]] == ["mode"]
    assert later.findings == []


def test_replayed_messages_have_the_ids_that_they_had_live(stage: Stage) -> None:
    agent = stage.script("agent_v1.mjs")
    live = bridged(stage, "text", agent)
    session = live.only("session")["session"]["sessionId"]
    later = bridged(stage, "replay", agent, session=session, store=live.store)
    assert _message_ids(later) == _message_ids(live)


def _message_ids(conversation: Conversation) -> list[str]:
    updates = [event["update"] for event in conversation.named("update")]
    return [update["messageId"] for update in updates if "messageId" in update]


# ---------------------------------------------------------------- the same version on both sides


def assert_bytes_unchanged(conversation: Conversation, *, frames: int) -> None:
    """Every line arrived as it was sent, and there were at least `frames` of them."""
    for toward in Role:
        assert raw_frames(conversation.client_wire, toward) == raw_frames(conversation.agent_wire, toward)
    assert len(conversation.client_wire) >= frames
    assert conversation.findings == []


@pytest.mark.parametrize(("scenario", "frames"), [("turns", 30), ("cancel", 9)])
def test_typescript_v1_client_and_agent_see_each_others_bytes(
    stage: Stage, scenario: str, frames: int
) -> None:
    conversation = stage.converse([*stage.script("client_v1.mjs"), scenario], stage.script("agent_v1.mjs"))
    assert_bytes_unchanged(conversation, frames=frames)
    assert conversation.complaints == ""
    assert conversation.stderr == ""
    assert conversation.only("exit")["status"] == 0


def test_python_example_client_and_agent_see_each_others_bytes(stage: Stage) -> None:
    conversation = stage.converse(
        stage.example("client.py"), stage.example("agent.py"), typed="hello\nworld\n"
    )
    assert_bytes_unchanged(conversation, frames=12)
    said = [line.removeprefix("> ") for line in conversation.output.splitlines() if "| Agent: " in line]
    assert said == ["| Agent: Client sent:", "| Agent: hello", "| Agent: Client sent:", "| Agent: world"]


def test_python_example_client_and_typescript_agent_see_each_others_bytes(stage: Stage) -> None:
    conversation = stage.converse(
        stage.example("client.py"), stage.script("agent_v1.mjs"), typed="text\nedit\nfail\n"
    )
    assert_bytes_unchanged(conversation, frames=20)
    # The example client knows no permissions, and says so with an error.
    assert "Nobody to ask: -32601." in conversation.output
    assert "Prompt failed: the model is unavailable" in conversation.complaints


def test_proxy_that_its_client_ends_does_not_call_that_an_error(stage: Stage) -> None:
    # The example client ends the command it has started with SIGTERM.
    conversation = stage.converse(stage.example("client.py"), stage.example("echo_agent.py"), typed="hello\n")
    assert "acp-proxy error" not in conversation.complaints


def test_acp_client_and_typescript_agent_see_each_others_bytes(stage: Stage) -> None:
    conversation = stage.converse(stage.script("client_acp.py"), stage.script("agent_v1.mjs"))
    assert_bytes_unchanged(conversation, frames=30)
    assert [event["answer"] for event in conversation.named("answered")] == ["Hello, world.", "Done."]
    assert len(conversation.named("permission")) == 1
    assert conversation.named("replayed")
    assert conversation.only("loaded")["session"] == "session-1"


def test_typescript_v2_client_and_agent_see_each_others_bytes_after_the_offer(stage: Stage) -> None:
    conversation = stage.converse([*stage.script("client_v2.mjs"), "allowed"], stage.script("agent_v2.mjs"))
    sent, received = conversation.client_wire, conversation.agent_wire
    # The offer alone is the proxy's, in both shapes; nobody knows yet that the agent speaks version 2.
    (offer,) = offers(conversation)
    assert {"info", "capabilities", "clientInfo", "clientCapabilities"} <= set(offer)
    assert raw_frames(sent, Role.AGENT)[1:] == raw_frames(received, Role.AGENT)[1:]
    assert raw_frames(sent, Role.CLIENT) == raw_frames(received, Role.CLIENT)
    assert schema_errors(received, Version.V2, Role.AGENT, unstable=True) == []
    assert schema_errors(sent, Version.V2, Role.CLIENT, unstable=True) == []
    assert [state["state"] for state in states(conversation)] == [
        *("running", "requires_action", "running", "idle"),
    ]
    assert conversation.findings == []
    assert conversation.complaints == ""
    assert conversation.stderr == ""
