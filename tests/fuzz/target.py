"""What a target of the fuzzing machine is."""

import random
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

Spoil = Callable[[random.Random, bytes, bytes], tuple[bytes, list[str]]]


class Broken(Exception):
    """A promise about what is read does not hold."""


@frozen(kw_only=True)
class Target:
    """One kind of file.

    seeds: sound files, name -> content. read: gets the path of a spoiled one and the sound one it was made of.
    errors: that may come out, besides their children. labels: whether a few letters may declare many labels.
    """

    seeds: Callable[[], dict[str, bytes]]
    spoil: Spoil
    read: Callable[[Path, bytes], str]
    errors: tuple[type[Exception], ...]
    labels: bool = False
