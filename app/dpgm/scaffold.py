"""New plugins from templates: a folder that installs, is listed and passes the conformance kit unchanged."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from importlib import metadata, resources
from pathlib import Path
from string import Template

from dpgm_core._util.version import __version__
from dpgm_core.components.registry import Registry, default_registry, version_bounds
from dpgm_core.errors import OptionError, did_you_mean
from dpgm_core.plugin import KINDS

__all__ = ["files_of", "scaffold"]

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
# What users may call a kind besides its name.
_ALIASES = {"engine": "inference"}

_TODO = {
    "mechanism": """\
1. Replace the noise. Every member is needed: `cost`, `event`, `variance`, `dual`, `draw`, `logpdf` and `score`.
2. Replace the claim: the theorem, every shift within the sensitivity, exact arithmetic, the cost, what files can claim.
   The head of the module says what each must bring. Do not publish a mechanism without it.
3. Run the kit with `--dpgm-profile thorough`.""",
    "inference": """\
1. Replace the enumeration. Do structure work in `compile`; refuse there, with sizes, what cannot fit.
2. Say truthfully whether the engine is `exact`, and set `converged`: learners and users rely on both.
3. Declare `maximize` and `sample` if you can offer them.""",
    "collective": """\
1. Replace the fixed point. Any engine and any noise may come: refuse by `noise.support` and `noise.log_concave`
   what you cannot serve; `noise.dual` offers closed forms where there are some.
2. Prove a duality gap if you can: it tells users how far the answer is from the best one.""",
    "learner": """\
1. Replace the model. `inference.compile(structure)` gives marginals and log Z for gradients; what `check` refuses costs
   nothing.
2. Say `converged`, and put into `notes` what users should know.
3. Choose every setting without looking at the truth: what needs the true records has no place in a learner.""",
    "selector": """\
1. Replace the steps. Stay within `session.remaining`, name candidates of the workload only, and stop after a number of
   rounds that is known before.
2. Put into the structure a clique for every table measured; `fitting` compares tables with a model, where you need one.
3. Refuse in `plan` what `select` could not do: then nothing is charged for it.""",
    "source": """\
1. Replace the reading, and in `conformance.py` how a table of records gets into your format.
2. Keep the three rules at the head of the module: they are privacy, not style.""",
}


def files_of(kind: str, name: str) -> Mapping[str, str]:
    """Return the files of a new plugin: relative path -> content. Raises OptionError for a wrong kind or name.

    kind: mechanism, inference (or engine), collective, learner, selector or source. name: kebab-case, what users will
    type.

    >>> sorted(files_of("learner", "my-own"))[:3]
    ['LICENSE', 'README.md', 'dpgm_my_own/__init__.py']
    """
    kind = _ALIASES.get(kind, kind)
    if kind not in KINDS:
        raise OptionError(f"there is no kind of plugin {kind!r}{did_you_mean(kind, [*KINDS, *_ALIASES])}")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise OptionError(
            f"a {kind} cannot be called {name!r}: use small letters, digits and single hyphens, a letter first, "
            "such as 'my-noise'"
        )
    if name == "dpgm" or name.startswith("dpgm-"):
        raise OptionError(f"leave 'dpgm-' out of {name!r}: users type the name, and the distribution gets the prefix")
    package = "dpgm_" + name.replace("-", "_")
    words = {
        "kind": kind,
        "Kind": kind.capitalize(),
        "name": name,
        "distribution": f"dpgm-{name}",
        "package": package,
        "module": kind,
        "Class": "".join(part.capitalize() for part in name.split("-")),
        "core": version_bounds(__version__),
        "todo": _TODO[kind],
        "records": "",
        "row": "",
    }
    conformance = "test_conformance_source.py" if kind == "source" else "test_conformance.py"
    templates = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        "LICENSE": "LICENSE",
        f"{package}/__init__.py": "init.py",
        f"{package}/{kind}.py": f"{kind}.py",
        "tests/test_conformance.py": conformance,
    }
    if kind == "source":
        templates[f"{package}/conformance.py"] = "conformance_source.py"
        words["records"] = f'        records="{package}.conformance:holding",\n'
        words["row"] = f"| `{package}/conformance.py` | how the conformance kit gives the source its records |\n"
    folder = resources.files("dpgm") / "templates"
    files = {
        path: Template((folder / f"{template}.txt").read_text("utf-8")).substitute(words)
        for path, template in templates.items()
    }
    return {**files, f"{package}/py.typed": ""}


def scaffold(kind: str, name: str, parent: Path, *, registry: Registry | None = None) -> Path:
    """Write the folder `parent`/dpgm-NAME whole, or not at all, and return it.

    Raises OptionError for a wrong kind or name, for a name that is taken, and where the folder exists or cannot be
    written.
    """
    files = files_of(kind, name)
    _refuse_taken(_ALIASES.get(kind, kind), name, registry or default_registry())
    target = parent / f"dpgm-{name}"
    if target.exists() or target.is_symlink():
        raise OptionError(f"cannot make {target}: it exists already; choose another name or --folder, or remove it")
    draft: Path | None = None
    try:
        draft = Path(tempfile.mkdtemp(prefix=f".dpgm-{name}-", dir=parent))
        for path, content in files.items():
            file = draft / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
        draft.chmod(0o755)  # mkdtemp's folders are for their owner only
        draft.rename(target)
    except OSError as error:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)
        raise OptionError(
            f"cannot make {target}: {error.strerror or type(error).__name__}; nothing was written"
        ) from None
    return target


def _refuse_taken(kind: str, name: str, registry: Registry) -> None:
    """A name offered twice is refused when it is used, so it is refused here first."""
    for offer in registry:
        if (offer.component.kind, offer.component.name) == (kind, name):
            raise OptionError(f"there is a {kind} {name!r} already, offered by {offer}; choose another name")
    try:
        version = metadata.version(f"dpgm-{name}")
    except metadata.PackageNotFoundError:
        return
    raise OptionError(f"a distribution dpgm-{name} {version} is installed already; choose another name")
