"""What is put into an outbox arrives once and in order, however little the peer takes at a time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy import outbox
from acp_proxy.errors import PeerGoneError
from acp_proxy.outbox import Outbox
from acp_proxy.transport.base import Transport


class Slow(Transport):
    """Takes at once what `takes` says, one number a call, then nothing; later takes all."""

    def __init__(self, takes: Sequence[int] = ()) -> None:
        self.takes = list(takes)
        self.got = b""
        self.pieces: list[int] = []
        self.at_end = False
        self.gone = False
        self.stuck: trio.Event | None = None

    async def receive_some(self) -> bytes:
        raise AssertionError("an outbox does not read")

    async def send_all(self, data: bytes | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        if self.stuck is not None:
            await self.stuck.wait()
        if self.gone:
            raise PeerGoneError("the peer is gone")
        self.pieces.append(len(data))
        self.got += data

    def send_now(self, data: bytes | memoryview) -> int:
        count = min(len(data), self.takes.pop(0)) if self.takes and not self.gone else 0
        self.got += data[:count]
        return count

    async def send_eof(self) -> None:
        self.at_end = True

    async def aclose(self) -> None:
        raise AssertionError("an outbox closes nothing but its side")


frames = st.lists(st.binary(max_size=12).filter(lambda frame: b"\n" not in frame), max_size=6)


@given(st.lists(st.tuples(frames, st.booleans()), max_size=6), st.lists(st.integers(0, 30), max_size=20))
def test_every_frame_arrives_once_with_its_line_feed(
    batches: list[tuple[list[bytes], bool]], takes: list[int]
) -> None:
    async def main() -> None:
        box, peer = Outbox(), Slow(takes)
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(box.serve, peer)
                for batch, rest in batches:
                    if rest:
                        await trio.testing.wait_all_tasks_blocked()
                    box.put(batch)
                    box.flush()
                box.close()
        assert peer.got == b"".join(frame + b"\n" for batch, _ in batches for frame in batch)
        assert (box.size, peer.at_end, box.done.is_set()) == (0, True, True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outbox, "PIECE", 8)
        trio.run(main)


async def test_small_frames_leave_together_and_large_ones_uncopied() -> None:
    box, peer = Outbox(), Slow()
    large = bytes(outbox.PIECE)
    box.put([b"a", b"b", large, b"c", large, large])
    box.close()
    await box.serve(peer)
    size = outbox.PIECE
    assert peer.pieces == [4, size, 3, size, 1, size, 1]


@pytest.mark.parametrize("take", [0, 1, 5])
async def test_what_was_not_taken_at_once_stays_counted(take: int) -> None:
    box, peer = Outbox(), Slow([take])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(box.serve, peer)
        await trio.testing.wait_all_tasks_blocked()
        peer.stuck = trio.Event()
        box.put([b"frame"])
        box.flush()
        assert box.size == 6 - take
        peer.stuck.set()
        await trio.testing.wait_all_tasks_blocked()
        assert (box.size, peer.got) == (0, b"frame\n")
        box.close()


async def test_room_is_made_by_the_peer_and_by_its_end() -> None:
    for gone in (False, True):
        box, peer = Outbox(), Slow()
        peer.stuck, peer.gone = trio.Event(), gone
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(box.serve, peer)
                box.put([bytes(outbox.HIGH_WATER)])
                box.flush()
                await trio.testing.wait_all_tasks_blocked()
                waited = trio.Event()

                async def wait(box: Outbox = box, waited: trio.Event = waited) -> None:
                    await box.room()
                    waited.set()

                nursery.start_soon(wait)
                await trio.testing.wait_all_tasks_blocked()
                assert not waited.is_set()
                peer.stuck.set()
                await waited.wait()
                box.close()
        assert box.failed is gone


async def test_all_who_wait_for_room_get_it() -> None:
    box, peer = Outbox(), Slow()
    peer.stuck = trio.Event()
    through: list[int] = []

    async def wait(number: int) -> None:
        await box.room()
        through.append(number)

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(box.serve, peer)
            box.put([bytes(outbox.HIGH_WATER)])
            box.flush()
            for number in range(3):
                nursery.start_soon(wait, number)
                await trio.testing.wait_all_tasks_blocked()
            peer.stuck.set()
            box.close()
    assert sorted(through) == [0, 1, 2]


async def test_nothing_is_put_for_a_peer_that_is_gone_or_after_the_end() -> None:
    box, peer = Outbox(), Slow()
    peer.gone = True
    box.put([b"lost"])
    await box.serve(peer)
    box.put([b"late"])
    assert (box.failed, box.size, peer.got, peer.at_end) == (True, 0, b"", False)
    closed = Outbox()
    closed.close()
    closed.put([b"late"])
    assert closed.size == 0
