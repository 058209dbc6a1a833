"""The time that doors go by: the database's, without asking it each time."""

from datetime import UTC, datetime, timedelta

from decisions.services.clock import HEARD_SECONDS, NearClock

THEN = datetime(2026, 3, 1, 12, tzinfo=UTC)


class World:
    """A database's clock and this machine's monotonic one."""

    def __init__(self) -> None:
        self.passed, self.asked, self.ahead = 0.0, 0, timedelta()

    def database(self) -> datetime:
        self.asked += 1
        return THEN + self.ahead + timedelta(seconds=self.passed)

    def monotonic(self) -> float:
        return 1_000 + self.passed


def test_what_was_heard_goes_on_whatever_this_machines_clock_says() -> None:
    world = World()
    clock = NearClock(world.database, world.monotonic)
    clock.listen()
    world.passed = 7
    assert clock.now() == THEN + timedelta(seconds=7)


def test_the_database_is_asked_now_and_then() -> None:
    world = World()
    clock = NearClock(world.database, world.monotonic)
    for world.passed in (0, 3, HEARD_SECONDS + 1):
        clock.listen()
    assert world.asked == 2


def test_a_database_that_was_set_right_is_followed() -> None:
    world = World()
    clock = NearClock(world.database, world.monotonic)
    clock.listen()
    world.ahead, world.passed = timedelta(minutes=2), HEARD_SECONDS + 1
    clock.listen()
    assert clock.now() == world.database()


def test_before_it_was_heard_it_is_this_machines() -> None:
    clock = NearClock(World().database)
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=5)
