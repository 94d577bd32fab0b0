"""Sessions that outlive a run: what a v2 client is listed, what is written down, what is forgotten (bridge §4)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from acp_proxy.acp.shapes import conform
from acp_proxy.acp.version import Version
from acp_proxy.filters.translate.session_registry import Remembered, SessionRecord
from acp_proxy.relay.commands import Forget, Remember
from acp_proxy.relay.options import RelayOptions
from acp_proxy.relay.relay import Relay
from relay_driver import (
    EVERYTHING,
    V2_RESULT,
    Driver,
    Said,
    answer,
    bridged,
    call,
    failure,
    initialize_v2,
    message,
    story,
    update,
    v1_result,
)

LOAD = {"loadSession": True}
RESUME: dict[str, Any] = {"sessionCapabilities": {"resume": {}}}
BOTH = {"loadSession": True, "sessionCapabilities": {"resume": {}}}
NATIVE_CLOSE = {"loadSession": True, "sessionCapabilities": {"close": {}}}
DELETE = {"loadSession": True, "sessionCapabilities": {"delete": {}}}
DIRECTORIES = {"loadSession": True, "sessionCapabilities": {"additionalDirectories": {}}}
OLD = SessionRecord("agent", "old", "/p", ("/q",), "Old work", "c0", "u0")
OTHER = SessionRecord("agent", "other", "/elsewhere")


def run(
    *records: SessionRecord, agent: dict[str, Any] | None = None, session: bool = True, answered: Any = None
) -> Driver:
    """A bridged pair after `records`; the clock tells `t1`, `t2` … each time it is asked."""
    driver = Driver()
    ticks = itertools.count(1)
    remembered = Remembered(records, lambda: f"t{next(ticks)}")
    driver.relay = Relay(RelayOptions(), token=lambda: "tok", remembered=remembered)
    driver.client_sends(initialize_v2(0))
    driver.agent_sends(answer(0, answered or v1_result(**(LOAD if agent is None else agent))))
    if session:
        new(driver)
    return driver


def new(driver: Driver, session: str = "s1", request_id: Any = 1, **params: Any) -> Said:
    driver.client_sends(call(request_id, "session/new", {"cwd": "/p", **params}))
    return driver.answers("session/new", {"sessionId": session})


def listed(driver: Driver, **params: Any) -> list[dict[str, Any]]:
    """The entries of a list that the proxy makes itself."""
    said = driver.client_sends(call("list", "session/list", params))
    assert said.agent == []
    result = said.client[0]["result"]
    checked = conform(Version.V2, "ListSessionsResponse", result)
    assert (checked.problem, checked.value) == (None, result)
    assert result.keys() == {"sessions"}, "one page"
    entries: list[dict[str, Any]] = result["sessions"]
    return entries


def ids(driver: Driver, **params: Any) -> list[str]:
    return [entry["sessionId"] for entry in listed(driver, **params)]


def resume(driver: Driver, session: str = "old", cwd: str = "/p", **more: Any) -> Said:
    return driver.client_sends(call(5, "session/resume", {"sessionId": session, "cwd": cwd, **more}))


def written(said: Said) -> list[Any]:
    """What is to be written down, in order: a record, or the key of one to be forgotten."""
    return [
        command.record if isinstance(command, Remember) else (command.agent, command.session_id)
        for command in said.commands
        if isinstance(command, Remember | Forget)
    ]


# ---------------------------------------------------------------- listed


def test_the_sessions_of_earlier_runs_are_listed_before_those_of_this_one() -> None:
    driver = run(OLD, OTHER)
    assert listed(driver) == [
        {
            "sessionId": "old",
            "cwd": "/p",
            "additionalDirectories": ["/q"],
            "title": "Old work",
            "updatedAt": "u0",
        },
        {"sessionId": "other", "cwd": "/elsewhere"},
        {"sessionId": "s1", "cwd": "/p", "updatedAt": "t1"},
    ]


@pytest.mark.parametrize(
    ("cwd", "found"),
    [
        ("/p", ["old", "s1"]),
        ("/elsewhere", ["other"]),
        ("/p/", []),
        ("/", []),
        (None, ["old", "other", "s1"]),
    ],
)
def test_the_directory_must_match_to_the_letter(cwd: str | None, found: list[str]) -> None:
    assert ids(run(OLD, OTHER), cwd=cwd) == found


def test_before_the_first_session_there_may_be_some_already() -> None:
    assert ids(run(session=False)) == []
    assert ids(run(OLD, session=False)) == ["old"]


def test_sessions_of_another_agent_are_not_listed() -> None:
    records = [OLD, OLD.replaced(agent="stranger", session_id="a"), OLD.replaced(agent="", session_id="b")]
    assert ids(run(*records, session=False)) == ["old"]
    nameless = {**v1_result(**LOAD), "agentInfo": None}
    assert ids(run(*records, session=False, answered=nameless)) == ["b"]


@pytest.mark.parametrize("agent", [LOAD, RESUME, BOTH])
def test_whoever_can_open_a_session_again_is_listed_them(agent: Any) -> None:
    assert ids(run(OLD, agent=agent)) == ["old", "s1"]


@pytest.mark.parametrize("agent", [{}, {"loadSession": False, "sessionCapabilities": {"resume": None}}])
def test_what_nothing_can_open_again_is_not_listed_and_not_written(agent: Any) -> None:
    driver = run(OLD, agent=agent)
    assert ids(driver) == ["s1"]
    said = resume(driver)
    assert said.both == ["C error 5 -32002"]
    assert said.client[0]["error"]["data"] == {"sessionId": "old"}
    driver.agent_sends(update("session_info_update", title="T"))
    assert listed(driver) == [{"sessionId": "s1", "cwd": "/p", "title": "T", "updatedAt": "t2"}]
    assert written(driver.outputs) == []


def test_an_agent_that_lists_is_asked_itself() -> None:
    driver = run(OLD, agent=EVERYTHING)
    driver.client_sends(call(3, "session/list", {"cwd": "/p"}))
    assert driver.answers("session/list", {"sessions": []}).client == [answer(3, {"sessions": []})]
    assert [record.session_id for record in written(driver.outputs)] == ["s1"]


def test_an_agent_that_speaks_the_clients_version_is_left_alone() -> None:
    driver = run(OLD, session=False, answered=V2_RESULT)
    driver.client_sends(call(1, "session/new", {"cwd": "/p"}))
    driver.agent_sends(answer(1, {"sessionId": "s1"}))
    assert story(driver.client_sends(call(3, "session/list", {})).agent) == ["session/list #3"]
    assert written(driver.outputs) == []


def test_a_relay_without_a_registry_remembers_its_own() -> None:
    driver = bridged(agent=LOAD)
    assert listed(driver) == [{"sessionId": "s1", "cwd": "/p"}]
    assert written(driver.outputs) == [SessionRecord("agent", "s1", "/p")]


# ---------------------------------------------------------------- written


def test_a_new_session_is_written_down_with_its_answer() -> None:
    driver = run(agent=DIRECTORIES, session=False)
    said = new(driver, additionalDirectories=["/q", "/r"], _meta={"secret": 1}, mcpServers=[])
    assert story(said.client) == ["answer 1"]
    assert written(said) == [
        SessionRecord("agent", "s1", "/p", ("/q", "/r"), None, created="t1", updated="t1")
    ]


def test_a_session_that_was_not_made_is_not_written_down() -> None:
    driver = run(session=False)
    driver.client_sends(call(1, "session/new", {"cwd": "/p"}))
    driver.fails("session/new", -32000)
    driver.client_sends(call(2, "session/new", {"cwd": "/p"}))
    driver.answers("session/new", {"sessionId": None})
    assert written(driver.outputs) == []
    assert listed(driver) == []


@pytest.mark.parametrize(
    ("agent", "method", "more"),
    [
        (LOAD, "session/load", {}),
        (LOAD, "session/load", {"replayFrom": {"type": "start"}}),
        (RESUME, "session/resume", {}),
    ],
)
def test_a_session_of_an_earlier_run_is_resumed(agent: Any, method: str, more: Any) -> None:
    driver = run(OLD, agent=agent, session=False)
    assert [body["method"] for body in resume(driver, **more).agent] == [method]
    said = driver.answers(method, None)
    assert story(said.client) == ["idle", "answer 5"]
    assert written(said) == [OLD.replaced(directories=(), updated="t1")]


def test_a_resume_takes_the_directories_of_the_request() -> None:
    driver = run(OLD, agent=DIRECTORIES, session=False)
    resume(driver, cwd="/moved", additionalDirectories=["/x"])
    assert written(driver.answers("session/load", {})) == [
        OLD.replaced(cwd="/moved", directories=("/x",), updated="t1")
    ]
    assert ids(driver, cwd="/p") == []
    assert ids(driver, cwd="/moved") == ["old"]


def test_a_session_nobody_remembers_may_be_resumed_too() -> None:
    driver = run(session=False)
    resume(driver, "unheard")
    said = driver.answers("session/load", {})
    assert written(said) == [SessionRecord("agent", "unheard", "/p", created="t1", updated="t1")]


def test_a_failed_resume_changes_nothing() -> None:
    driver = run(OLD, session=False)
    resume(driver)
    assert written(driver.fails("session/load", -32002)) == []
    resume(driver, "unheard")
    assert written(driver.fails("session/load", -32603)) == []
    assert ids(driver) == ["old"], "an agent may have reasons that pass"


def test_an_id_that_comes_again_is_another_session() -> None:
    driver = run(OLD, session=False)
    assert written(new(driver, "old")) == [SessionRecord("agent", "old", "/p", created="t1", updated="t1")], (
        "not the old title, nor the old directories"
    )
    assert ids(driver) == ["old"]


def test_a_title_is_kept_and_taken_away() -> None:
    driver = run()
    said = driver.agent_sends(update("session_info_update", title="T", updatedAt="2026-01-01T00:00:00Z"))
    assert written(said) == [SessionRecord("agent", "s1", "/p", (), "T", created="t1", updated="t2")]
    assert listed(driver) == [{"sessionId": "s1", "cwd": "/p", "title": "T", "updatedAt": "t2"}]
    assert written(driver.agent_sends(update("session_info_update", title="T"))) == [], "told already"
    assert written(driver.agent_sends(update("session_info_update", updatedAt=None))) == []
    said = driver.agent_sends(update("session_info_update", title=None))
    assert written(said) == [SessionRecord("agent", "s1", "/p", created="t1", updated="t3")]


@pytest.mark.parametrize("title", [7, ["T"], {"a": 1}])
def test_a_title_that_is_none_is_none(title: Any) -> None:
    driver = run()
    driver.agent_sends(update("session_info_update", title=title))
    assert "title" not in listed(driver)[0]


def test_a_title_may_come_before_the_session() -> None:
    driver = run(OLD, session=False)
    driver.client_sends(call(1, "session/new", {"cwd": "/p"}))
    driver.agent_sends(update("session_info_update", title="Early"))
    said = driver.answers("session/new", {"sessionId": "s1"})
    assert [record.title for record in written(said)] == ["Early"]
    resume(driver)
    assert [
        record.title
        for record in written(driver.agent_sends(update("session_info_update", "old", title="N")))
    ] == ["N"]
    assert [record.title for record in written(driver.answers("session/load", {}))] == ["N"]


@pytest.mark.parametrize("fails", [False, True])
def test_a_turn_is_activity(fails: bool) -> None:
    driver = run()
    driver.prompt()
    assert written(driver.agent_sends(message())) == [], "not every message"
    said = driver.fails("session/prompt", -32603) if fails else driver.ends()
    assert written(said) == [SessionRecord("agent", "s1", "/p", created="t1", updated="t2")]


def test_every_change_is_told_once() -> None:
    driver = run()
    driver.agent_sends(update("session_info_update", title="T"))
    before = len(written(driver.outputs))
    driver.agent_sends(message(), update("usage_update", used=1, size=2))
    listed(driver)
    driver.advance(100)
    assert len(written(driver.outputs)) == before == 2


def test_changes_that_come_together_are_one() -> None:
    driver = run()
    said = driver.agent_sends(*(update("session_info_update", title=f"T{number}") for number in range(5)))
    assert [record.title for record in written(said)] == ["T4"]


# ---------------------------------------------------------------- closed, deleted


def close(driver: Driver, session: str = "s1") -> Said:
    said = driver.client_sends(call(6, "session/close", {"sessionId": session}))
    if said.agent:
        said = driver.answers("session/close", {})
    assert said.client[-1] == answer(6, {})
    return said


@pytest.mark.parametrize("agent", [LOAD, RESUME, NATIVE_CLOSE])
def test_a_closed_session_stays_where_it_can_be_opened_again(agent: Any) -> None:
    driver = run(agent=agent)
    assert written(close(driver)) == []
    assert ids(driver) == ["s1"]
    said = resume(driver, "s1")
    assert story(said.agent) == [f"{said.agent[0]['method']} #{said.agent[0]['id']}"]
    assert story(driver.answers(said.agent[0]["method"], {}).client)[-1] == "answer 5"
    driver.prompt()
    assert story(driver.agent_sends(message()).client) == ["user_message", "answer 7", "agent_message_chunk"]


@pytest.mark.parametrize("agent", [{}, {"sessionCapabilities": {"close": {}}}])
def test_a_closed_session_is_gone_where_it_cannot(agent: Any) -> None:
    driver = run(agent=agent)
    close(driver)
    assert ids(driver) == []
    assert resume(driver, "s1").both == ["C error 5 -32002"]


def test_closing_a_session_of_an_earlier_run_does_not_drop_it() -> None:
    driver = run(OLD)
    assert written(close(driver, "old")) == []
    assert ids(driver) == ["old", "s1"]


def test_a_close_in_the_middle_of_a_turn_keeps_the_session() -> None:
    driver = run()
    driver.prompt()
    driver.client_sends(call(6, "session/close", {"sessionId": "s1"}))
    driver.ends("cancelled")
    assert answer(6, {}) in driver.outputs.client
    assert ids(driver) == ["s1"]


@pytest.mark.parametrize("session", ["s1", "old", "unheard"])
@pytest.mark.parametrize("missing", [False, True])
def test_a_deleted_session_is_forgotten(session: str, missing: bool) -> None:
    driver = run(OLD, agent=DELETE)
    driver.client_sends(call(6, "session/delete", {"sessionId": session}))
    said = driver.fails("session/delete", -32002) if missing else driver.answers("session/delete", {})
    assert said.client == [answer(6, {})]
    assert written(said) == [("agent", session)], "another proxy may have written it down"
    assert ids(driver) == [name for name in ("old", "s1") if name != session]


def test_a_session_that_is_not_deleted_is_not_forgotten() -> None:
    driver = run(OLD, agent=DELETE)
    driver.client_sends(call(6, "session/delete", {"sessionId": "old"}))
    said = driver.fails("session/delete", -32603)
    assert said.client == [failure(6, -32603)]
    assert written(said) == []
    unable = run(OLD)
    assert unable.client_sends(call(6, "session/delete", {"sessionId": "old"})).both == ["C error 6 -32601"]
    assert ids(driver) == ids(unable) == ["old", "s1"]
