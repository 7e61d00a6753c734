"""Around which changes, and for how long, traces count as possibly split."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.clock import ManualClock
from collector.cluster.peer_set import FLAP_SECONDS, LOOKUP_SECONDS, PeerSet

INTERVAL = 5.0
START_UNIX_NANO = 1_800_000_000_000_000_000
TWO = frozenset({"a", "b"})
THREE = frozenset({"a", "b", "c"})


class Watched:
    """A set of peers under a manual clock, and the times in which traces may be split, in seconds from 0."""

    def __init__(self, interval: float = INTERVAL) -> None:
        self.clock = ManualClock(unix_nano=START_UNIX_NANO)
        self.windows: list[tuple[float, float]] = []
        self.peers = PeerSet(interval, self._note, self.clock)

    def _note(self, start_unix_nano: int, seconds: float) -> None:
        start = (start_unix_nano - START_UNIX_NANO) / 1e9
        self.windows.append((round(start, 6), round(self.clock.monotonic() + seconds, 6)))

    def see(self, peers: frozenset[str], at: float, *, took: float = 0.0) -> str | None:
        self.clock.advance(at - self.clock.monotonic())
        return self.peers.see(peers, at - took)

    def is_interrupted(self, at: float) -> bool:
        return any(start <= at <= end for start, end in self.windows)


def test_the_start_is_a_change_of_the_peers() -> None:
    watched = Watched()

    assert [(0.0, INTERVAL + LOOKUP_SECONDS)] == watched.windows


def test_the_first_answer_is_as_uncertain_as_the_start_was_however_late_it_comes() -> None:
    watched = Watched()

    assert None is watched.see(TWO, 30.0)

    assert (0.0, 30.0 + INTERVAL + LOOKUP_SECONDS) == watched.windows[-1]
    assert None is watched.see(TWO, 31.0)
    assert 2 == len(watched.windows)


def test_a_change_reaches_from_an_interval_before_the_old_set_was_asked_for_to_one_after_the_new_came() -> (
    None
):
    watched = Watched()
    watched.see(TWO, 99.0)
    watched.see(TWO, 100.5, took=0.5)

    assert "change" == watched.see(THREE, 101.5, took=0.5)

    assert (100.0 - INTERVAL, 101.5 + INTERVAL + LOOKUP_SECONDS) == watched.windows[-1]
    assert THREE == watched.peers.peers


def test_while_nothing_was_seen_a_change_may_have_taken_place_at_any_time() -> None:
    watched = Watched()
    watched.see(TWO, 100.0)

    watched.see(THREE, 160.0)

    assert (100.0 - INTERVAL, 160.0 + INTERVAL + LOOKUP_SECONDS) == watched.windows[-1]


def test_addresses_that_come_and_go_do_not_silence_all_verdicts() -> None:
    watched = Watched()
    kinds = [watched.see(THREE if second % 6 < 3 else TWO, float(second)) for second in range(3600)]

    assert "change" in kinds
    assert "flap" in kinds
    interrupted = sum(watched.is_interrupted(second + 0.5) for second in range(3600)) / 3600
    assert 0.3 < interrupted < 0.6


def test_a_new_address_interrupts_also_while_others_come_and_go() -> None:
    watched = Watched()
    for second in range(1200):
        kind = watched.see(THREE if second % 6 < 3 else TWO, float(second))
    while kind != "flap":
        second += 1
        kind = watched.see(THREE if second % 6 < 3 else TWO, float(second))

    assert "change" == watched.see(THREE | {"d"}, second + 1.0)


def test_an_address_that_was_steady_since_interrupts_again() -> None:
    watched = Watched()
    for second in range(1200):
        watched.see(THREE if second % 6 < 3 else TWO, float(second))
    watched.see(TWO, 1200.0)

    assert "change" == watched.see(THREE, 1200.0 + FLAP_SECONDS + 1)


@dataclass(frozen=True)
class Scene:
    """One change as the name's server, a balancer and this replica see it; TTL and intervals in seconds."""

    ttl: float
    balancer_interval: float
    changed_at: float
    balancer_phase: float
    cached_for_us: float
    cached_for_balancer: float
    pause: float


scenes = st.builds(
    lambda ttl, balancer_interval, changed_at, phase, ours, theirs, pause: Scene(
        ttl=ttl,
        balancer_interval=balancer_interval,
        changed_at=changed_at,
        balancer_phase=phase * balancer_interval,
        cached_for_us=ours * ttl,
        cached_for_balancer=theirs * ttl,
        pause=pause,
    ),
    st.floats(0, 30),
    st.floats(1, 30),
    st.floats(100, 200),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0.2, 1),
)


@given(scenes)
@settings(max_examples=300, deadline=None)
def test_no_balancer_changes_its_routes_outside_of_the_interrupted_time(scene: Scene) -> None:
    interval = scene.ttl + scene.balancer_interval
    watched = Watched(interval)
    at = 0.0
    while at < scene.changed_at + interval:
        # A cache gives the old answer for a while: only what was asked after that can be new.
        watched.see(THREE if at >= scene.changed_at + scene.cached_for_us else TWO, at)
        at += scene.pause
    asks_at = scene.balancer_phase
    while asks_at < scene.changed_at + scene.cached_for_balancer:
        asks_at += scene.balancer_interval

    for routes_change_at in (asks_at, asks_at + LOOKUP_SECONDS):
        assert watched.is_interrupted(routes_change_at)
    # Known here before a verdict on what came until then could be given.
    noticed_at = watched.windows[-1][1] - interval - LOOKUP_SECONDS
    assert noticed_at <= asks_at + scene.ttl + scene.pause
