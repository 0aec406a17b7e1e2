"""What is said on the side is heard, and not shown."""

import logging
import os
import subprocess
import sys
import warnings

from dpgm_testing.curators import overhearing


def test_every_way_of_saying_something_is_heard(capfd):
    """Printed, written to the descriptors, by a process that starts meanwhile, warned of, logged; then as before."""
    with overhearing() as heard:
        sys.stdout.write("one ")
        sys.stderr.write("two ")
        os.write(1, b"three ")
        os.write(2, b"four ")
        subprocess.run([sys.executable, "-c", "print('five')"], check=True)
        warnings.warn("six", stacklevel=1)
        logging.getLogger("somewhere.else").warning("seven %s", "eight")
    assert set(heard.text.split()) == {"one", "two", "three", "four", "five", "six", "seven", "eight"}
    assert "five" not in repr(heard)
    os.write(1, b"after")
    assert capfd.readouterr() == ("after", "")


def test_what_is_raised_comes_through():
    """And what was said before it is there."""
    heard = None
    try:
        with overhearing() as heard:
            sys.stdout.write("before")
            raise KeyError
    except KeyError:
        pass
    assert heard.text == "before"
