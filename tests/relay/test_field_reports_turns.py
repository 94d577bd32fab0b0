"""Field reports on turns: never ending, ending early, late and background updates (groups A and B)."""

from __future__ import annotations

from typing import Any

from acp_proxy.acp.version import Role
from relay_driver import (
    Driver,
    answer,
    ask,
    both_v1,
    bridged,
    call,
    cancel,
    failure,
    line,
    message,
    prompt,
    story,
    text_block,
    tool,
    tool_update,
    update,
    usage,
)

ACKNOWLEDGED = ["user_message", "answer 7"]


def states(driver: Driver) -> list[str]:
    """The states told so far."""
    words = ("idle", "running", "requires_action")
    return [told for told in story(driver.outputs.client) if told.split(" ")[0] in words]


# ---------------------------------------------------------------- A


def test_br01_complete_output_and_an_unanswered_prompt_stay_running() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(message("done"), usage())
    assert driver.advance(24 * 3600).lines == []
    assert states(driver) == ["running"]
    driver.client_sends(cancel())
    driver.ends("cancelled")
    assert states(driver) == ["running", "idle cancelled"]


def test_br01_the_stall_is_a_finding_where_a_limit_is_set() -> None:
    driver = bridged(stall_after=60.0)
    driver.prompt(7)
    driver.agent_sends(message("done"))
    assert driver.advance(59).rules == []
    said = driver.advance(2)
    assert (said.rules, said.lines) == (["V46"], [])
    assert said.findings[0].session == "s1"


def test_br02_a_prompt_absorbed_by_background_work_stays_running() -> None:
    driver = bridged(stall_after=60.0)
    assert story(driver.agent_sends(message("bg done")).client) == ["agent_message_chunk"]
    assert states(driver) == []
    driver.prompt(7)
    assert story(driver.agent_sends(message("answer"), usage()).client) == [
        *ACKNOWLEDGED,
        "agent_message_chunk",
        "usage_update",
    ]
    assert driver.advance(61).rules == ["V46"]
    assert states(driver) == ["running"]


def test_br04_an_error_after_the_acknowledgement_is_a_state_and_no_second_answer() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(message("a"))
    said = driver.fails("session/prompt", -32603, "quota")
    assert story(said.client) == ["idle error"]
    assert said.client[0]["params"]["update"]["error"] == {"code": -32603, "message": "quota"}
    assert story(driver.outputs.client).count("answer 7") == 1


def test_br04_an_error_before_the_acknowledgement_is_the_answer_too() -> None:
    driver = bridged()
    driver.prompt(7)
    assert story(driver.fails("session/prompt", -32603).client) == ["idle error", "error 7 -32603"]


def test_br05_an_agent_killed_mid_turn_leaves_nothing_hanging() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(message("wor"), ask(90, "k"))
    driver.client_sends(call(8, "session/list", {}), call(9, "_x/ask", {}))
    data = {"exitCode": 137, "stderr": "Killed"}
    said = driver.agent_exits("the agent was killed by signal 9", data)
    told = story(said.client)
    assert "withdraw 1" in told
    assert "idle error" in told
    assert "error 9 -32603" in told
    assert not [word for word in told if word.endswith(" 7") or word.startswith("error 7")]
    errors = [body["error"] for body in said.client if "error" in body]
    errors += [b["params"]["update"]["error"] for b in said.client if "error" in str(b.get("params", ""))]
    assert [error["data"] for error in errors] == [data, data]
    assert said.closed == [Role.CLIENT]


def test_br06_calls_behind_the_agents_end_fail_at_once_and_clearly() -> None:
    driver = bridged()
    driver.agent_exits("the agent exited with status 15", {"exitCode": 15})
    said = driver.client_sends(call(9, "session/new", {"cwd": "/p"}))
    assert said.client == [failure(9, -32603, "the agent exited with status 15", {"exitCode": 15})]


def test_br06_in_same_version_mode_as_well() -> None:
    driver = both_v1()
    driver.agent_exits("gone")
    assert driver.client_sends(prompt(9)).client == [failure(9, -32603, "gone")]


def test_br07_an_exit_with_nothing_pending_is_no_error() -> None:
    for driver in (bridged(), both_v1()):
        said = driver.agent_exits("the agent exited with status 0", {"exitCode": 0})
        assert (said.lines, said.rules, said.closed) == ([], [], [Role.CLIENT])


def test_br10_a_vendor_end_mark_is_forwarded_and_means_nothing_by_default() -> None:
    driver = bridged()
    driver.agent_sends(message("cron says"))
    mark: dict[str, Any] = message("")
    mark["params"]["_meta"] = {"endOfTurn": True}
    (body,) = driver.agent_sends(mark).client
    assert body["params"]["_meta"] == {"endOfTurn": True}
    assert body["params"]["update"]["content"] == text_block("")
    assert states(driver) == []


def test_br10_a_configured_end_mark_ends_inferred_work() -> None:
    driver = bridged(agent_initiated="infer", end_markers=("_meta.endOfTurn",))
    driver.agent_sends(message("cron says"))
    mark = message("")
    mark["params"]["_meta"] = {"endOfTurn": True}
    driver.agent_sends(mark)
    assert states(driver) == ["running", "idle"]


# ---------------------------------------------------------------- B


def test_br11_a_tail_behind_the_result_is_told_and_flips_nothing() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(message("a"))
    driver.ends()
    said = driver.agent_sends(message("b"), tool_update("k", "completed"))
    assert story(said.client) == ["agent_message_chunk", "tool_call_update"]
    assert states(driver) == ["running", "idle end_turn"]


def test_br11_with_a_settle_time_the_idle_comes_last() -> None:
    driver = bridged(settle=0.2)
    driver.prompt(7)
    driver.agent_sends(message("a"))
    said = [*driver.ends().client, *driver.agent_sends(message("b"), tool_update("k", "completed")).client]
    assert story(said) == ["agent_message_chunk", "tool_call_update"]
    assert story(driver.advance(0.3).client) == ["idle end_turn"]


def test_br13_updates_between_turns_are_told() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.ends()
    between = [
        update("available_commands_update", availableCommands=[{"name": "n", "description": "d"}]),
        update("session_info_update", title="t"),
        usage(),
        tool("k", "completed"),
    ]
    assert len(driver.agent_sends(*between).client) == 4
    assert states(driver)[-1] == "idle end_turn"


AGENT_INITIATED = [
    message("build done"),
    tool("k", "in_progress"),
    tool_update("k", "completed"),
]


def test_br14_work_the_agent_begins_itself_is_told_and_stays_idle() -> None:
    driver = bridged()
    said = driver.agent_sends(*AGENT_INITIATED)
    assert story(said.client) == ["agent_message_chunk", "tool_call_update", "tool_call_update"]
    assert driver.advance(3600).lines == []
    assert driver.client_sends(cancel()).both == ["A session/cancel"]


def test_br14_inferred_where_wanted() -> None:
    driver = bridged(agent_initiated="infer", quiet_time=30.0)
    driver.agent_sends(*AGENT_INITIATED[:2])
    driver.advance(60)
    assert states(driver) == ["running"], "never while a tool is open"
    driver.agent_sends(AGENT_INITIATED[2])
    driver.advance(31)
    assert states(driver) == ["running", "idle"]


def test_br14_a_cancel_ends_inferred_work() -> None:
    driver = bridged(agent_initiated="infer", quiet_time=30.0)
    driver.agent_sends(message("build done"))
    assert driver.client_sends(cancel()).both == ["A session/cancel"]
    driver.advance(31)
    assert states(driver)[0] == "running"
    assert states(driver)[-1].split(" ")[0] == "idle"


def test_br15_a_background_tool_outlives_its_turn_without_a_flip() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(tool("bg", "in_progress"))
    driver.ends()
    driver.advance(60)
    assert story(driver.agent_sends(tool_update("bg", "completed")).client) == ["tool_call_update"]
    assert states(driver) == ["running", "idle end_turn"]


def test_br16_a_background_tool_that_never_ends_keeps_nobody_busy() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(tool("bg", "in_progress"))
    driver.ends()
    driver.prompt(8)
    driver.agent_sends(ask(90, "fresh"))
    driver.ends()
    assert states(driver) == ["running", "idle end_turn", "running", "requires_action", "idle end_turn"]


def test_br17_a_tool_left_open_is_kept_and_a_later_update_wins() -> None:
    driver = bridged()
    driver.prompt(7)
    driver.agent_sends(tool("k", "in_progress"))
    assert story(driver.ends().client) == ["idle end_turn"], "nothing is made up about the tool"
    (late,) = driver.agent_sends(tool_update("k", "completed")).client
    assert late["params"]["update"]["status"] == "completed"


def test_br19_every_frame_leaves_with_the_event_that_brought_it() -> None:
    for driver in (bridged(), both_v1()):
        driver.prompt(7)
        driver.agent_sends(message("first"))
        for number in range(100):
            assert story(driver.agent_sends(message(str(number))).client) == ["agent_message_chunk"]
            driver.advance(0.02)
        together = driver.agent_sends(*(message(str(number)) for number in range(100)))
        assert story(together.client) == ["agent_message_chunk"] * 100


def test_br21_the_rule_of_acknowledgement() -> None:
    driver = bridged()
    driver.prompt(7)
    assert story(driver.advance(20).client) == ACKNOWLEDGED
    for code in (-32600, -32000):
        quick = bridged()
        quick.prompt(7)
        assert story(quick.fails("session/prompt", code).client)[-1] == f"error 7 {code}"


def test_br21_a_v1_client_is_not_acknowledged_anything() -> None:
    driver = both_v1()
    driver.prompt(7)
    assert driver.advance(20).lines == []
    raw = line(answer(7, {"stopReason": "end_turn"}))
    assert driver.lines(Role.AGENT, raw).lines == [(Role.CLIENT, raw)]
