"""``pytest --dpgm-plugin DIST``: every check on everything a distribution offers, from any folder, no code written.

``pytest --dpgm-engine NAME`` runs tests of learners and bootstraps through another engine. pytest loads this module in
every run once dpgm-core is installed, so it imports pytest only; the rest loads on use.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dpgm_core.components.registry import Offer
    from dpgm_testing.check import Check
    from dpgm_testing.subjects import Subject

__all__ = [
    "pytest_addoption",
    "pytest_collection",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_report_header",
    "pytest_runtest_call",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the kit."""
    group = parser.getgroup("dpgm", "dpgm conformance kit")
    group.addoption(
        "--dpgm-plugin", action="append", default=[], metavar="DIST",
        help="hold everything this installed distribution offers to the conformance checks; repeatable",
    )  # fmt: skip
    group.addoption(
        "--dpgm-profile", default="default", choices=("quick", "default", "thorough"), help="how far the checks go"
    )
    group.addoption(
        "--dpgm-engine", metavar="NAME",
        help="run the tests with this installed inference engine wherever they name junction-tree; tests of what it "
        "cannot hold are skipped",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what is not there before anything runs; pytest-xdist would swallow the words of its workers."""
    names, engine = config.getoption("--dpgm-plugin"), config.getoption("--dpgm-engine")
    if engine is not None:
        _use_engine(engine)
    if not names:
        return
    from dpgm_core.components.registry import default_registry
    from dpgm_core.errors import DpgmError
    from dpgm_testing.runner import offers_of

    for name in names:
        try:
            offers_of(name, default_registry())
        except DpgmError as error:
            raise pytest.UsageError(f"--dpgm-plugin {name}: {error}") from None


def _use_engine(name: str) -> None:
    """Offer another engine under the name junction-tree, for the rest of the process."""
    from dpgm_core.components.registry import default_registry
    from dpgm_core.errors import DpgmError
    from dpgm_testing.curators import use_engine

    try:
        use_engine(default_registry(), name)
    except DpgmError as error:
        raise pytest.UsageError(f"--dpgm-engine {name}: {error}") from None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """With --dpgm-engine, skip a test of a structure that the engine refuses as too large."""
    engine = item.config.getoption("--dpgm-engine")
    if engine is None:
        return (yield)
    from dpgm_core.errors import TooLarge

    try:
        return (yield)
    except TooLarge as error:
        pytest.skip(f"{engine} refuses what the test needs: {error}")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """What is tested: distribution, versions, profile; and the engine that tests are run through."""
    names, engine = config.getoption("--dpgm-plugin"), config.getoption("--dpgm-engine")
    through = [] if engine is None else [f"dpgm engine: {engine} in the place of junction-tree"]
    if not names:
        return through
    from dpgm_core._util.version import __version__
    from dpgm_core.components.registry import default_registry
    from dpgm_testing.runner import offers_of

    lines = []
    for name in names:
        offers = offers_of(name, default_registry())
        targets = ", ".join(f"{one.component.kind} {one.component.name}" for one in offers)
        profile = config.getoption("--dpgm-profile")
        lines.append(f"dpgm conformance: {offers[0]}; dpgm-core {__version__}; profile {profile}; {targets}")
    return lines + through


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """With --dpgm-plugin and no path on the command line, only the checks are collected."""
    config = session.config
    names = config.getoption("--dpgm-plugin")
    # pytest puts the current folder (or testpaths) where nothing was named: those tests are somebody else's.
    config.stash[_ALONE] = bool(names) and config.args_source is not pytest.Config.ArgsSource.ARGS
    return (yield)


_ALONE = pytest.StashKey[bool]()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Nothing of the current folder, unless it was named."""
    return True if config.stash.get(_ALONE, False) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """One item per component and check."""
    names = config.getoption("--dpgm-plugin")
    if not names:
        return
    from dpgm_core.components.registry import default_registry
    from dpgm_testing.runner import offers_of

    if config.stash[_ALONE]:
        items.clear()
    count = len(items)
    for name in names:
        for offer in offers_of(name, default_registry()):
            node = _Component.of(session, offer)
            report = config.hook.pytest_make_collect_report(collector=node)
            config.hook.pytest_collectreport(report=report)  # so that pytest counts them
            items += report.result
    if len(items) == count:
        raise pytest.UsageError(f"--dpgm-plugin {', '.join(names)}: there is nothing to check")


class _Component(pytest.Collector):
    """One component; its subject is made on first use."""

    offer: Offer
    _subject: Subject | None = None

    @classmethod
    def of(cls, session: pytest.Session, offer: Offer) -> _Component:
        """The collector of an installed component's checks."""
        name = f"{offer.component.kind} {offer.component.name}"
        node: _Component = cls.from_parent(session, name=name, nodeid=f"{offer.distribution}::{name}")
        node.offer = offer
        return node

    def collect(self) -> list[pytest.Item]:
        from dpgm_testing.runner import checks_of

        return [_Item.from_parent(self, name=check.name, check=check) for check in checks_of(self.offer.component.kind)]

    @property
    def subject(self) -> Subject:
        if self._subject is None:
            from dpgm_testing.runner import subject_of

            one = self.offer.component
            self._subject = subject_of(one.name, one.kind, profile=self.config.getoption("--dpgm-profile"))[0]
        return self._subject


class _Item(pytest.Item):
    """One check of one component."""

    def __init__(self, *, check: Check, **more: Any) -> None:
        super().__init__(**more)
        self.check = check

    def runtest(self) -> None:
        from dpgm_testing.runner import run_check

        assert isinstance(self.parent, _Component)
        skipped = run_check(self.check, self.parent.subject)
        if skipped is not None:
            pytest.skip(skipped)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        from dpgm_testing.runner import explain

        shown = explain(excinfo.value)
        limit = f"\nThis check cannot show: {self.check.limit}" if self.check.limit else ""
        return f"{self.check.name}: {self.check.claim}\n\n{shown}\n{limit}"

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.nodeid
