"""Bridge §7.1, from a v1 agent to a v2 client: same blocks, stricter values."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from acp_proxy.filters.translate.content import content_block, content_list, file_uri

TEXT = {"type": "text", "text": "x", "_meta": {"k": None}, "extra": [1]}
LINK = {"type": "resource_link", "name": "n", "uri": "file:///n"}


@pytest.mark.parametrize(
    "block",
    [
        TEXT,
        {"type": "image", "data": "QQ==", "mimeType": "image/png"},
        {"type": "image", "data": "QQ==", "mimeType": "image/png", "uri": None},
        {"type": "audio", "data": "QQ==", "mimeType": "audio/wav", "uri": "/kept"},
        LINK,
        {**LINK, "uri": "relative/path"},
        {**LINK, "uri": "https://x/ y"},
        {**LINK, "size": 0},
        {**LINK, "size": None},
        {**LINK, "size": "-1"},
        {"type": "resource", "resource": {"uri": "file:///r", "text": ""}},
        {"type": "resource", "resource": ["/r"]},
        {"type": "text", "text": "x", "annotations": {"priority": 0.5, "audience": ["user", "stranger"]}},
        {"type": "text", "text": "x", "annotations": {"priority": True}},
        {"type": "text", "text": "x", "annotations": {"priority": "9"}},
        {"type": "text", "text": "x", "annotations": [9]},
        {"type": "_scene", "uri": "/untouched", "annotations": {"priority": 9}},
        {"type": 7, "uri": "/untouched"},
        {"type": ["text"]},
        {},
        "bare",
        None,
        3,
        [],
    ],
)
def test_a_block_without_need_of_change_is_the_same_object(block: Any) -> None:
    assert content_block(block) is block


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({**LINK, "uri": "/p/a"}, {**LINK, "uri": "file:///p/a"}),
        (
            {"type": "image", "uri": "/p/a.png", "data": "", "mimeType": "image/png"},
            {"type": "image", "uri": "file:///p/a.png", "data": "", "mimeType": "image/png"},
        ),
        (
            {"type": "resource", "resource": {"uri": "/p/a", "text": "t", "_meta": {"m": 1}}, "z": 1},
            {"type": "resource", "resource": {"uri": "file:///p/a", "text": "t", "_meta": {"m": 1}}, "z": 1},
        ),
        ({**LINK, "size": -1}, LINK),
        ({**LINK, "size": -1.0}, LINK),
        ({**LINK, "size": -1, "uri": "/p/a"}, {**LINK, "uri": "file:///p/a"}),
        (
            {"type": "text", "text": "x", "annotations": {"priority": -0.1, "audience": ["user"]}},
            {"type": "text", "text": "x", "annotations": {"priority": 0, "audience": ["user"]}},
        ),
        (
            {**LINK, "uri": "/p", "annotations": {"priority": 7}},
            {**LINK, "uri": "file:///p", "annotations": {"priority": 1}},
        ),
    ],
)
def test_changed(block: dict[str, Any], expected: dict[str, Any]) -> None:
    before = copy.deepcopy(block)
    translated = content_block(block)
    assert translated == expected
    assert list(translated) == [key for key in block if key in expected]
    assert block == before


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("/p/a-b_c.d~e", "file:///p/a-b_c.d~e"),
        ("/p/a b", "file:///p/a%20b"),
        ("/p/100%", "file:///p/100%25"),
        ("/p/a?b#c", "file:///p/a%3Fb%23c"),
        ("/p/[id].ts", "file:///p/%5Bid%5D.ts"),
        ("/p/é\n", "file:///p/%C3%A9%0A"),
        ("/p/\ud83d", "file:///p/%ED%A0%BD"),
        ("C:\\p\\a b", "file:///C:/p/a%20b"),
        ("\\\\server\\share\\a", "file://server/share/a"),
    ],
)
def test_file_uri(path: str, uri: str) -> None:
    assert file_uri(path) == uri


def test_a_list_is_translated_item_by_item() -> None:
    blocks = [TEXT, {**LINK, "uri": "/p"}, "odd"]
    translated = content_list(blocks)
    assert translated == [TEXT, {**LINK, "uri": "file:///p"}, "odd"]
    assert translated[0] is TEXT


@pytest.mark.parametrize("blocks", [[], [TEXT, LINK, None], None, "x", {"type": "text"}])
def test_a_list_without_need_of_change_is_the_same_object(blocks: Any) -> None:
    assert content_list(blocks) is blocks
