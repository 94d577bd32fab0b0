"""Known values, and what a misspelling means."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_proxy.acp.version import Version
from acp_proxy.acp.vocabulary import _CONSENT, _SYNONYMS, TABLES, canonical, known_values, snake_case

V1, V2 = Version.V1, Version.V2


def vocabularies() -> list[tuple[Version, str]]:
    """Every enum and union."""
    found = []
    for version, table in TABLES.items():
        for name in table:
            try:
                known_values(version, name)
            except KeyError:
                continue
            found.append((version, name))
    return found


VOCABULARIES = vocabularies()


@pytest.mark.parametrize(
    ("version", "name", "values"),
    [
        (V1, "ToolCallStatus", "pending in_progress completed failed"),
        (V2, "ToolCallStatus", "pending in_progress paused completed failed cancelled"),
        (V2, "Role", "assistant user"),
        (V1, "McpServer", "http sse acp"),
        (V2, "McpServer", "stdio http acp"),
        (V2, "StateUpdate", "running idle requires_action unknown"),
        (V2, "IdleStateUpdate", "end_turn max_tokens max_turn_requests refusal cancelled error"),
        (V1, "StopReason", "end_turn max_tokens max_turn_requests refusal cancelled"),
        (V2, "MultiSelectItems", "string"),
        (V1, "SetSessionConfigOptionRequest", "boolean"),
        (V2, "StringFormat", "email uri date date-time"),
    ],
)
def test_known_values(version: Version, name: str, values: str) -> None:
    assert known_values(version, name) == set(values.split())


def test_v1_knows_updates_that_v2_does_not() -> None:
    gone = {"tool_call", "plan", "current_mode_update"}
    assert known_values(V1, "SessionUpdate") - known_values(V2, "SessionUpdate") == gone


@pytest.mark.parametrize("name", ["TextContent", "SessionId", "RequestId", "ErrorCode", "NoSuchType"])
def test_a_name_without_values_is_our_mistake(name: str) -> None:
    with pytest.raises(KeyError):
        known_values(V2, name)


@pytest.mark.parametrize(
    ("version", "name", "value", "meant"),
    [
        (V1, "ToolCallStatus", "inProgress", "in_progress"),
        (V1, "ToolCallStatus", "In-Progress", "in_progress"),
        (V1, "ToolCallStatus", "IN PROGRESS", "in_progress"),
        (V1, "ToolCallStatus", " completed\n", "completed"),
        (V1, "ToolCallStatus", "paused", "paused"),
        (V1, "ToolKind", "switchMode", "switch_mode"),
        (V2, "StringFormat", "dateTime", "date-time"),
        (V2, "StringFormat", "date_time", "date-time"),
        (V2, "StringFormat", "Date-Time", "date-time"),
        (V2, "DiffPatchFormat", "gitPatch", "git_patch"),
        (V2, "SessionUpdate", "agentMessageChunk", "agent_message_chunk"),
        (V2, "ContentBlock", "resourceLink", "resource_link"),
        (V2, "ToolCallStatus", "_in_progress", "_in_progress"),
        (V2, "ToolCallStatus", "_inProgress", "_inProgress"),
        (V2, "ToolCallStatus", "", ""),
        (V2, "ToolCallStatus", "in_progress" + " " * 100, "in_progress" + " " * 100),
        (V2, "PermissionOptionKind", "rejectOnce", "reject_once"),
        (V2, "PermissionOptionKind", "Reject-Always", "reject_always"),
    ],
)
def test_spelling(version: Version, name: str, value: str, meant: str) -> None:
    assert canonical(version, name, value) == meant
    assert canonical(version, name, value, synonyms=True) == meant


# Bridge §10, the last column of both tables, as written there.
WRITTEN_SYNONYMS = """
ToolKind: write/modify→edit, bash/shell/run→execute, remove→delete, rename→move, grep/find→search, web→fetch
ToolKind: reasoning→think
ToolCallStatus: running/executing→in_progress, queued→pending, done/success→completed, error→failed
ToolCallStatus: canceled/aborted→cancelled
PlanEntryStatus: todo→pending, active→in_progress, done→completed, canceled/skipped→cancelled
PlanEntryPriority: normal→medium, critical/urgent→high
Role: agent/model→assistant, human→user
SessionConfigOptionCategory: reasoning_effort→thought_level
NoticeSeverity: warn→warning
CompactionStatus: running/executing→in_progress, done/success→completed, error→failed
CompactionStatus: canceled/aborted→cancelled
SessionUpdate: status_update→state_update
StateUpdate: busy/working/active/thinking→running, waiting/blocked/input_required→requires_action
StateUpdate: done/ready/stopped→idle
IdleStateUpdate: stop/complete/done→end_turn, length→max_tokens, max_turns→max_turn_requests
IdleStateUpdate: refused/content_filter→refusal, canceled/aborted/interrupted→cancelled, failed→error
ContentBlock: embedded_resource→resource
DiffChange: create→add, remove→delete, update/edit→modify, rename→move
RequestPermissionOutcome: canceled/dismissed/rejected→cancelled
McpServer: streamable_http→http
SessionConfigOption: enum/dropdown→select, bool/toggle→boolean
CreateElicitationResponse: declined/rejected→decline, canceled/dismissed→cancel
"""


def written_synonyms() -> list[tuple[str, str, str]]:
    found = []
    for line in WRITTEN_SYNONYMS.strip().splitlines():
        name, _, rules = line.partition(": ")
        for rule in rules.split(", "):
            words, _, meant = rule.partition("→")
            found += [(name, word, meant) for word in words.split("/")]
    return found


@pytest.mark.parametrize(("name", "word", "meant"), written_synonyms())
def test_synonyms_only_when_asked_for(name: str, word: str, meant: str) -> None:
    assert canonical(V2, name, word) == word
    assert canonical(V2, name, word, synonyms=True) == meant
    assert canonical(V2, name, word.title().replace("_", " "), synonyms=True) == meant


def test_no_other_synonyms_apply_in_v2() -> None:
    known = {
        (name, word, meant)
        for name, words in _SYNONYMS.items()
        if name in TABLES[V2]
        for word, meant in words.items()
        if meant in known_values(V2, name)
    }
    assert known == set(written_synonyms())


def test_a_synonym_of_a_value_this_version_lacks_does_nothing() -> None:
    assert canonical(V1, "ToolCallStatus", "canceled", synonyms=True) == "canceled"
    assert canonical(V1, "StopReason", "failed", synonyms=True) == "failed"
    assert canonical(V1, "StopReason", "length", synonyms=True) == "max_tokens"
    assert canonical(V1, "SessionUpdate", "status_update", synonyms=True) == "status_update"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PermissionOptionKind", "allowOnce"),
        ("PermissionOptionKind", "ALLOW_ALWAYS"),
        ("PermissionOptionKind", " allow_once"),
        ("PermissionOptionKind", "allow"),
        ("PermissionOptionKind", "reject"),
        ("RequestPermissionOutcome", "Selected"),
        ("CreateElicitationResponse", "Accept"),
        ("CreateElicitationResponse", "accepted"),
    ],
)
@pytest.mark.parametrize("version", list(Version))
@pytest.mark.parametrize("synonyms", [False, True])
def test_nothing_is_read_as_consent(version: Version, name: str, value: str, synonyms: bool) -> None:
    assert canonical(version, name, value, synonyms=synonyms) == value


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(
    st.sampled_from(VOCABULARIES),
    st.one_of(st.text(max_size=20), st.text("_- \taAbBoOlLnNwWcCeE", max_size=16)),
    st.booleans(),
)
def test_any_word_stays_or_becomes_a_known_one(where: tuple[Version, str], word: str, synonyms: bool) -> None:
    version, name = where
    meant = canonical(version, name, word, synonyms=synonyms)
    if meant != word:
        assert meant in known_values(version, name)
        assert meant not in _CONSENT.get(name, ())
        assert not word.startswith("_")
    assert canonical(version, name, meant, synonyms=synonyms) == meant


@pytest.mark.parametrize(("version", "name"), VOCABULARIES)
def test_known_values_stay_and_their_spellings_differ(version: Version, name: str) -> None:
    known = known_values(version, name)
    assert {canonical(version, name, value, synonyms=True) for value in known} == known
    assert len({snake_case(value) for value in known}) == len(known)
