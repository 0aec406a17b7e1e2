"""Random bits: the system's cannot be repeated, a seed's can, and the two streams of a seed are independent."""

import math
import os

import numpy as np
import pytest
from scipy import stats

from dpgm_core._util.randomness import SeededRandomness, SystemRandomness
from dpgm_core.errors import OptionError

ALARM = 1e-9


@pytest.mark.system_randomness
@pytest.mark.parametrize("source", [SystemRandomness(), SeededRandomness(1)])
@pytest.mark.parametrize("count", [0, 1, 65_535, 65_536, 65_537, 150_000])
def test_words_are_as_many_uint64_as_asked(source, count):
    words = source.words(count)
    assert words.shape == (count,) and words.dtype == np.uint64


@pytest.mark.system_randomness
@pytest.mark.parametrize("source", [SystemRandomness(), SeededRandomness(1)])
def test_every_bit_is_fair(source):
    """Each of 64 bits is balanced over 100,000 words (64 normal tests sharing ALARM; the system's takes no seed)."""
    bits = np.unpackbits(source.words(100_000).view(np.uint8).reshape(-1, 8), axis=1).mean(axis=0)
    assert np.abs(bits - 0.5).max() * 2 * math.sqrt(100_000) < stats.norm.isf(ALARM / 128)


@pytest.mark.system_randomness
def test_system_words_come_from_the_operating_system_and_never_repeat(monkeypatch):
    """Every byte is asked of os.urandom, in blocks; two draws of 128 bits differ (chance of a clash 3e-39)."""
    system, asked, real = SystemRandomness(), [], os.urandom
    assert system.words(2).tolist() != system.words(2).tolist()
    assert SystemRandomness().words(2).tolist() != system.words(2).tolist()
    monkeypatch.setattr(os, "urandom", lambda size: asked.append(size) or real(size))
    system.words(70_000)
    assert sum(asked) == 8 * 70_000 and max(asked) <= 8 * 65_536


def test_the_tests_of_one_process_draw_what_their_names_say(monkeypatch):
    """Unless a test is marked: nothing is asked of the system, no two draws are alike, and none may be written to."""
    monkeypatch.setattr(os, "urandom", None)
    system = SystemRandomness()
    drawn = [*system.words(2).tolist(), *system.words(2).tolist(), *SystemRandomness().words(2).tolist()]
    assert len(set(drawn)) == 6
    assert system.generator().random() != system.generator().random()
    assert not system.words(1).flags.writeable


def test_only_the_system_is_private():
    """What a seed touches is stamped private = false, and there is no way to make a private release repeatable."""
    assert SystemRandomness().private and not SeededRandomness(0).private
    with pytest.raises(TypeError):
        SystemRandomness(1)


def test_a_seed_repeats_and_seeds_differ():
    whole = SeededRandomness(7).words(10).tolist()
    parts = SeededRandomness(7)
    assert parts.words(3).tolist() + parts.words(7).tolist() == whole
    assert SeededRandomness(8).words(10).tolist() != whole
    assert whole[:2] == [892338168548979717, 15170909771414443098]


def test_the_generator_of_a_seed_does_not_move_its_words():
    """Post-processing and noise draw from separate streams, and the generator goes on rather than starting again."""
    seeded = SeededRandomness(7)
    first, second = seeded.generator().random(), seeded.generator().random()
    assert first != second
    assert seeded.words(10).tolist() == SeededRandomness(7).words(10).tolist()
    assert SeededRandomness(7).generator().random() == first


@pytest.mark.parametrize("seed", [-1, 1.0, True, "1", None, math.nan])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(OptionError, match="seed"):
        SeededRandomness(seed)


def test_reprs_show_the_seed_and_nothing_else():
    """A seed may be shown: it protects nothing."""
    assert repr(SystemRandomness()) == "SystemRandomness()"
    assert repr(SeededRandomness(np.int64(3))) == "SeededRandomness(3)"
