"""Campus-like traces of where people are, simulated: the default data of the mobility case study.

A day has 144 slots of ten minutes, cut into 24 segments of an hour. A slot holds a building or "absent" (off campus,
outdoors, or a device that is off). People live in a hall or commute; they have a department with its buildings, classes
at fixed hours of the week, a dining hall and places they like. How long they stay is drawn from skewed distributions,
they skip classes, and many days they are not there at all. Nobody's records were used; the numbers were chosen by hand,
to have the shape of such data and not their content.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

ABSENT, SLOTS, MINUTES = 0, 144, 10
HALLS, CLASSES = 4, 6
BUILDINGS = (
    "absent",
    *(f"hall {name}" for name in "ABCD"[:HALLS]),
    *(f"class {name}" for name in "ABCDEF"[:CLASSES]),
    "dining north",
    "dining south",
    "library",
    "union",
    "gym",
)
DINING, LIBRARY, UNION, GYM = (11, 12), 13, 14, 15


@frozen(kw_only=True)
class Person:
    """One person's habits.

    home: a hall, or ABSENT for people who commute. week: (weekday, start, end, building) of each class, minutes of the
    day. dining: a dining hall. tastes: how likely library, union, gym, home and off campus are between classes.
    present: probability of coming at all on a weekday. off: probability that the device is off at night.
    """

    home: int
    week: tuple[tuple[int, int, int, int], ...]
    dining: int
    tastes: np.ndarray
    present: float
    off: float

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Person:
        """Somebody new."""
        resident = rng.random() < 0.6
        # a department: one building of its own, and another one shared with others
        own = 1 + HALLS + int(rng.integers(CLASSES))
        other = 1 + HALLS + int(rng.integers(CLASSES))
        week = []
        for _ in range(int(rng.integers(3, 6))):
            start = 60 * int(rng.integers(8, 17)) + 30 * int(rng.integers(2))
            place = own if rng.random() < 0.7 else other
            days, length = ((0, 2, 4), 50) if rng.random() < 0.6 else ((1, 3), 75)
            week += [(day, start, start + length, place) for day in days]
        return cls(
            home=1 + int(rng.integers(HALLS)) if resident else ABSENT,
            week=tuple(sorted(week)),
            dining=DINING[int(rng.random() < 0.4)],
            tastes=rng.dirichlet([1.5, 1.0, 0.3, 1.5 if resident else 0.2, 1.0]),
            present=0.93 if resident else 0.7,
            off=float(rng.beta(1, 3)),
        )


def a_day(person: Person, weekday: int, rng: np.random.Generator) -> np.ndarray:
    """Where a person is in each slot of one day, (144,) codes of BUILDINGS. weekday: 0 is Monday, 6 Sunday."""
    slots = np.full(SLOTS, ABSENT, np.uint8)
    weekend = weekday >= 5
    if rng.random() > person.present * (0.6 if weekend else 1.0):
        return slots
    minute = np.clip(rng.normal(630 if weekend else 500, 60), 300, 900)  # of getting up, or of arriving
    if person.home != ABSENT and rng.random() > person.off:
        _stay(slots, 0, minute, person.home)
    classes = [entry[1:] for entry in person.week if entry[0] == weekday and rng.random() < 0.85]
    evening = rng.normal(1290 if person.home != ABSENT else 1080, 80)
    eaten = 0
    while minute < evening:
        upcoming = next(((start, end, at) for start, end, at in classes if end > minute + 20), None)
        if upcoming is not None and minute + 15 >= upcoming[0]:
            minute = _stay(slots, minute, upcoming[1], upcoming[2])
            classes.remove(upcoming)
            minute += rng.integers(2, 12)  # on the way: absent
            continue
        meal = (690 < minute < 840 and eaten == 0) or (1020 < minute < 1170 and eaten <= 1)
        if meal and rng.random() < 0.7:
            place, dwell, eaten = person.dining, rng.lognormal(np.log(35), 0.4), 2 if minute > 1000 else 1
        else:
            eaten = max(eaten, int(meal and minute < 1000))
            place = (LIBRARY, UNION, GYM, person.home, ABSENT)[rng.choice(5, p=person.tastes)]
            dwell = rng.lognormal(np.log({LIBRARY: 80, UNION: 30, GYM: 60}.get(place, 60)), 0.6)
        end = minute + dwell
        if upcoming is not None:
            end = min(end, upcoming[0])
        minute = _stay(slots, minute, end, place) + rng.integers(0, 10)
    if person.home != ABSENT and rng.random() > person.off:
        _stay(slots, minute, 1440, person.home)
    slots[rng.random(SLOTS) < 0.015] = ABSENT  # a device that lost its connection
    return slots


def _stay(slots: np.ndarray, start: float, end: float, place: int) -> float:
    # A slot belongs to where its middle is spent.
    slots[round(start / MINUTES) : round(min(end, 1440) / MINUTES)] = place
    return end


def traces(persons: int, days: int, seed: int) -> np.ndarray:
    """(persons * days, 144) codes of BUILDINGS; the days of one person stand together.

    >>> traces(2, 3, seed=1).shape
    (6, 144)
    """
    rng = np.random.default_rng(seed)
    found = [
        [a_day(person, day % 7, rng) for day in range(days)] for person in (Person.draw(rng) for _ in range(persons))
    ]
    return np.array(found, np.uint8).reshape(persons * days, SLOTS)


def segments(slots: np.ndarray, length: int = 6) -> np.ndarray:
    """(person-days, segments, length): each day cut into segments; slots that are left over at its end are dropped.

    >>> segments(np.zeros((2, 144), np.uint8)).shape
    (2, 24, 6)
    """
    whole = slots.shape[1] // length
    return slots[:, : whole * length].reshape(len(slots), whole, length)
