"""Layers, read from the imports; what the public packages promise; and that each module has tests."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from attrs import frozen

import dpgm
import dpgm_core
from dpgm_core._util.lazy import FACES

ROOT = Path(__file__).resolve().parents[1]
CORE = sorted((ROOT / "dpgm_core").rglob("*.py"))
#: The folders that hold our packages besides core: the application and the conformance kit.
OTHERS = {ROOT / "app": "dpgm", ROOT / "plugins/dpgm-testing": "dpgm_testing"}
PLUGINS = sorted(
    path for path in (ROOT / "plugins").iterdir() if (path / "pyproject.toml").exists() and path not in OTHERS
)
PACKAGES = {plugin: plugin.name.replace("-", "_") for plugin in PLUGINS}
ALL_FACES = (*FACES, *(f"dpgm.{name}" for name in dpgm.PACKAGES), "dpgm_testing")
HEAVY = ("numpy", "scipy", "pyarrow", "rich", "pandas", "numba", "threadpoolctl")


@frozen
class Import:
    """One import statement's name: `module`, the name taken from it, if any, and when it happens."""

    module: str
    name: str | None
    typing_only: bool  # under `if TYPE_CHECKING`
    deferred: bool  # inside a function


@cache
def text_of(path: Path) -> str:
    """The text of a file."""
    return path.read_text(encoding="utf-8")


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(text_of(path))


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """Every import in a file, wherever it stands."""

    def walk(node: ast.AST, typing_only: bool, deferred: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, None, typing_only, deferred)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where things come from"
            for alias in node.names:
                yield Import(node.module or "", alias.name, typing_only, deferred)
        elif isinstance(node, ast.If):
            for_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            for child in node.body:
                yield from walk(child, typing_only or for_types, deferred)
            for child in node.orelse:
                yield from walk(child, typing_only, deferred)
        else:
            inside = deferred or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, ast.expr):  # no import stands inside an expression
                    yield from walk(child, typing_only, inside)

    return tuple(walk(parsed(path), False, False))


def module_name(path: Path, root: Path = ROOT) -> str:
    """dpgm_core/sources/arrow.py -> dpgm_core.sources.arrow"""
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


#: Modules of core, and of all our packages without plugins.
CORE_MODULES = {module_name(path): path for path in CORE}
MODULES = CORE_MODULES | {
    module_name(path, root): path for root, package in OTHERS.items() for path in sorted((root / package).rglob("*.py"))
}


def run_python(code: str) -> str:
    """Output of a new interpreter, which has loaded nothing yet."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout


# --- walls --------------------------------------------------------------------------------------------------------


def test_core_imports_no_plugin():
    """Nothing in core knows a plugin package by name, whenever the import happens."""
    packages = set(PACKAGES.values())
    assert not [
        (str(path), one.module) for path in CORE for one in imports(path) if one.module.split(".")[0] in packages
    ]


def test_core_declares_only_its_own_components():
    """The targets of the built-in components are modules of core."""
    targets = [one.target for one in importlib.import_module("dpgm_core.components.builtins").dpgm_components()]
    assert targets and all(target.partition(":")[0] in CORE_MODULES for target in targets)


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda path: path.name)
def test_plugins_import_only_the_public_face(plugin):
    """A plugin package takes names of the public faces, nothing else of core, and nothing of another plugin."""
    files = sorted((plugin / PACKAGES[plugin]).rglob("*.py"))
    assert files
    others = set(PACKAGES.values()) - {PACKAGES[plugin]}
    for path in files:
        for statement in imports(path):
            package = statement.module.split(".")[0]
            assert package not in others, f"{path.name} imports another plugin, {statement.module}"
            if package == "dpgm_core":
                allowed = statement.module in FACES and (
                    statement.name is None or statement.name in importlib.import_module(statement.module).__all__
                )
                assert allowed, f"{path.name} imports {statement.module} {statement.name or ''}"


def lint_imports(config: Path) -> tuple[int, str]:
    """import-linter's exit code and report for the contracts of a file."""
    code = f"from importlinter.cli import lint_imports; exit(lint_imports({str(config)!r}, no_cache=True))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    return done.returncode, done.stdout + done.stderr


def test_the_layers_hold():
    """The contracts of pyproject.toml hold; imports inside functions and for types count."""
    code, report = lint_imports(ROOT / "pyproject.toml")
    assert code == 0, report
    assert "4 kept, 0 broken" in report


@pytest.mark.landing
def test_the_layers_can_break(tmp_path):
    """The check above can fail: it sees an import inside a function, and one through another module."""
    for name, (source, forbidden) in {
        "inside a function": ("dpgm.cli", "dpgm_core.pipeline.run"),
        "through others": ("dpgm_core.pipeline.run", "dpgm_core.domain.attribute"),
    }.items():
        config = tmp_path / "pyproject.toml"
        config.write_text(
            '[tool.importlinter]\nroot_packages = ["dpgm_core", "dpgm"]\n[[tool.importlinter.contracts]]\n'
            f'name = "{name}"\ntype = "forbidden"\nsource_modules = ["{source}"]\n'
            f'forbidden_modules = ["{forbidden}"]\n'
        )
        code, report = lint_imports(config)
        assert code == 1 and "BROKEN" in report


def test_imports_stand_at_the_top():
    """Imports of our own inside functions or for types hide circles; only the faces may have them."""
    checked = {
        module: path
        for module, path in MODULES.items()
        # The application loads what a command needs: whoever only reads a spec does not wait for learners.
        if module not in ALL_FACES
        and module != "dpgm"
        and not module.startswith(("dpgm.cli", "dpgm_testing", "dpgm.spec"))
    }
    assert not [
        (module, one.module)
        for module, path in checked.items()
        for one in imports(path)
        if one.module.startswith("dpgm") and (one.deferred or one.typing_only)
    ]


# --- loading ------------------------------------------------------------------------------------------------------


def test_import_is_light():
    """Importing the faces loads none of the heavy libraries, and no core module that would."""
    loaded = run_python(f"import sys, {', '.join(ALL_FACES)}; print([name for name in {HEAVY} if name in sys.modules])")
    assert loaded.strip() == "[]"


def test_inference_is_light():
    """Compiling and asking the exact engine, and loading a learner that descends by itself, take no scipy library."""
    loaded = run_python(
        "import sys, numpy as np; from dpgm_core.domain.domain import Domain\n"
        "from dpgm_core.structure import Structure; from dpgm_core.structure.tables import Tables\n"
        "from dpgm_core.inference.junction_tree.engine import JunctionTree\n"
        "structure = Structure.chain(Domain.from_sizes(dict.fromkeys('abc', 2)))\n"
        "JunctionTree(executor='numpy').compile(structure).infer(Tables.zeros(structure))\n"  # numba takes scipy along
        "first = [name for name in sys.modules if name.split('.')[0] in ('scipy', 'pyarrow', 'pandas')]\n"
        "import dpgm_core.learning; dpgm_core.learning.__all__; import dpgm_core.learning.likelihood\n"
        "print(first, 'scipy.optimize' in sys.modules)"
    )
    assert loaded.strip() == "[] False"


def test_help_is_light():
    """`dpgm --help` loads none of the heavy libraries."""
    code = f"""
import sys
sys.argv = ["dpgm", "--help"]
from dpgm.cli import main
try:
    main()
except SystemExit as done:
    assert not done.code, done.code
print([name for name in {HEAVY} if name in sys.modules])
"""
    *shown, loaded = run_python(code).strip().splitlines()
    assert "fit" in "\n".join(shown)
    assert loaded == "[]"


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda path: path.name)
def test_plugin_declarations_are_light(plugin):
    """Importing a plugin's entry point, as discovery does, loads none of the heavy libraries."""
    entry_points = tomllib.loads((plugin / "pyproject.toml").read_text())["project"]["entry-points"]["dpgm"]
    assert list(entry_points) == [plugin.name]
    code = f"import sys; sys.path.append({str(plugin)!r}); import {entry_points[plugin.name]}"
    code += f"; print([name for name in {HEAVY} if name in sys.modules])"
    assert run_python(code).strip() == "[]"


# --- the public faces ---------------------------------------------------------------------------------------------

LAZY = [face for face in ALL_FACES if face != "dpgm_core.plugin"]
#: (face, name) of what is promised; the kit's names are tools, documented with it
PUBLIC = [(face, name) for face in LAZY for name in importlib.import_module(face).__all__ if face != "dpgm_testing"]
#: Names that a face defines itself, besides those that it lends.
OWN = {"dpgm_core": {"__version__"}, "dpgm_core.sources": {"SourceRefused", "Url", "as_source"}}


@pytest.mark.parametrize("face", LAZY)
def test_the_lazy_faces_agree_with_themselves(face):
    """`__all__`, what `__getattr__` can load, and what type checkers see are one list; a name stands in one face."""
    package = importlib.import_module(face)
    stated = [one for one in imports(MODULES[face]) if one.module.startswith("dpgm") and one.typing_only]
    typed = {(one.module, one.name) for one in stated if one.name in package.__all__}
    lazy = {(home(face, module), name) for module, names in package._LAZY.items() for name in names}
    assert lazy == typed
    assert sorted(package.__all__) == sorted([name for _, name in lazy] + list(OWN.get(face, ())))
    assert set(package.__all__) == set(dir(package))
    for module, name in lazy:
        assert name in importlib.import_module(module).__all__, f"{module} does not list {name}"
    others = {name for other in LAZY if other != face for name in importlib.import_module(other).__all__}
    assert not others & set(package.__all__)


def test_the_main_face_stays_small():
    """What most people need, near 110 names; what one kind of plugin needs goes to the face of its station."""
    assert len(dpgm_core.__all__) <= 110


def test_public_names_are_documented():
    """Every public name loads and has a docstring; so has every public method and property of a public class."""
    undocumented = []
    for face, name in PUBLIC:
        thing = getattr(importlib.import_module(face), name)
        if not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue  # a constant or a type alias: documented where it stands
        undocumented += [] if inspect.getdoc(thing) else [name]
        ours = [base for base in getattr(thing, "__mro__", ()) if base.__module__.startswith("dpgm")]
        for member, value in (item for base in ours for item in vars(base).items()):
            value = getattr(value, "__func__", value)
            if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                undocumented += [] if inspect.getdoc(value) else [f"{name}.{member}"]
    assert not undocumented


def test_unknown_public_names_are_refused():
    """`__getattr__` raises AttributeError, so hasattr and star imports behave."""
    with pytest.raises(AttributeError, match="'dpgm_core' has no attribute 'no_such_name'"):
        dpgm_core.no_such_name


def test_modules_say_what_they_offer():
    """Every core module has a docstring and an `__all__`, and defines every name in it."""
    faults = []
    for name, path in MODULES.items():
        tree = parsed(path)
        faults += [] if ast.get_docstring(tree) else [f"{name} has no docstring"]
        if len(tree.body) == 1:
            continue  # a package that only says what is in it
        module = importlib.import_module(name)
        faults += [] if isinstance(getattr(module, "__all__", None), list) else [f"{name} has no __all__"]
        faults += [f"{name} lacks {one}" for one in getattr(module, "__all__", ()) if not hasattr(module, one)]
    assert not faults


# --- contracts ----------------------------------------------------------------------------------------------------


# What may be asked of a thing by a literal name, because it is no component: errors, the operating system, other
# libraries' tables and values. Of components two things are left: which kind a test was given, and the kit's own hook.
ASKED = {
    "strerror", "sqlite_errorcode", "release", "__notes__", "__name__", "O_DIRECTORY",
    "__arrow_c_stream__", "__arrow_c_array__", "__array_interface__", "to_arrow_reader", "iloc", "columns",
    "categories", "cat", "storage", "kind", "tzinfo", "to_datetime64", "to_timedelta64",
    "compile", "for_conformance", "kernel",
}  # fmt: skip


def asked_by_name(tree: ast.AST) -> Iterator[str]:
    """The literal names in calls of getattr and hasattr."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            name = node.args[1]
            if isinstance(name, ast.Constant):
                yield str(name.value)


def test_components_are_asked_for_what_their_contract_says():
    """No getattr or hasattr with a literal name on a component: such a member belongs into a `contract.py`."""
    assert not [
        (module, name)
        for module, path in MODULES.items()
        if re.search(r"\b(get|has)attr\(", text_of(path))
        for name in asked_by_name(parsed(path))
        if name not in ASKED
    ]


def test_a_question_outside_of_the_contract_is_seen():
    """The check above can fail."""
    tree = ast.parse("if x: y = getattr(noise, 'unsafe', None) or hasattr(a.b, 'cost')")
    assert list(asked_by_name(tree)) == ["unsafe", "cost"]


def annotations(node: ast.AST) -> Iterator[ast.expr]:
    """What the public part of a function or class is annotated with."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg)
        yield from (one.annotation for one in arguments if one is not None and one.annotation is not None)
        if node.returns is not None:
            yield node.returns
    elif isinstance(node, ast.ClassDef):
        for member in node.body:
            name = member.target if isinstance(member, ast.AnnAssign) else member
            shown = getattr(name, "name", None) or getattr(name, "id", "_")
            if shown == "__init__" or not shown.startswith("_"):
                yield from [member.annotation] if isinstance(member, ast.AnnAssign) else annotations(member)


def home(face: str, module: str) -> str:
    """The whole name of a module that lends a face names: its own, or another package's."""
    return module if module.startswith("dpgm_core.") else f"{face}.{module}"


@cache
def names_in(module: str, tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Name -> (module, name) of what a module defines or imports."""
    known = {node.name: (module, node.name) for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            known[node.target.id] = (module, node.target.id)  # an alias
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            known |= {alias.asname or alias.name: (node.module or "", alias.name) for alias in node.names}
    return known


def types_named(module: str, tree: ast.Module, name: str) -> set[tuple[str, str]]:
    """(module, name) of each type of core that the annotations of a top-level function or class name."""
    known, found = names_in(module, tree), set()
    for node in tree.body:
        if getattr(node, "name", None) == name:
            for annotation in annotations(node):
                for part in ast.walk(annotation):
                    if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                        package, inside = known.get(part.value.id, ("", ""))
                        found.add((f"{package}.{inside}", part.attr))
                    elif isinstance(part, ast.Name):
                        found.add(known.get(part.id, ("", "")))
    return {(place, one) for place, one in found if place in MODULES and f"{place}.{one}" not in MODULES}


def is_class(place: str, name: str) -> bool:
    """Whether a name is a class; an alias such as `Amount` is spelled out wherever a signature is shown."""
    return inspect.isclass(getattr(importlib.import_module(place), name))


def test_a_type_that_a_public_signature_names_is_public():
    """Whoever is handed a type, or must hand one over, can import and read about it."""
    public = {one for _, one in PUBLIC} | set(importlib.import_module("dpgm_core.plugin").__all__)
    homes = set()
    for face, name in PUBLIC:
        package = importlib.import_module(face)
        lent = {(home(face, module), name) for module, names in package._LAZY.items() if name in names}
        homes |= lent or ({(face, name)} - {("dpgm_core", "__version__")})
        for base in getattr(getattr(package, name), "__mro__", ()):  # what is inherited is public too
            homes |= {(base.__module__, base.__name__)} & {(module, base.__name__) for module in MODULES}
    assert not {
        f"{module}.{name}: {place}.{one}"
        for module, name in homes
        for place, one in types_named(module, parsed(MODULES[module]), name)
        if one not in public and is_class(place, one)
    }


def test_types_are_seen_wherever_they_are_named():
    """Fields, arguments, results, strings of modules: the check above can fail."""
    tree = ast.parse(
        "from dpgm_core.structure import graphs\nfrom dpgm_core.structure.tables import Tables\n"
        "from dpgm_core._util.exact_numbers import Amount\n"
        "class Mine:\n  x: list[Tables]\n  _y: Amount\n  def f(self, z: Other) -> graphs.Elimination: ...\n"
        "class Other: ...\n"
    )
    assert types_named("dpgm_core.domain.domain", tree, "Mine") == {
        ("dpgm_core.structure.tables", "Tables"),
        ("dpgm_core.domain.domain", "Other"),
        ("dpgm_core.structure.graphs", "Elimination"),
    }


# --- tests mirror the tree ----------------------------------------------------------------------------------------

#: Modules without a test in the folder of their package, and what holds them instead.
HELD_ELSEWHERE = {
    "dpgm_core._util.arrays": "types alone",
    "dpgm_core._util.version": "tests/test_release.py",
}


def test_tests_mirror_the_tree():
    """The tests of a package import each of its modules, have its name, or name what it offers."""
    lacking = []
    for name, path in MODULES.items():
        if path.name in ("__init__.py", "contract.py") or name.startswith("dpgm_testing"):
            continue
        parent, _, leaf = name.rpartition(".")
        folder = ROOT / ("tests" if name.startswith("dpgm_core.") else "app/tests")
        own = folder / name.split(".")[1]
        files = sorted((own if own.is_dir() else folder).rglob("*.py"))
        offered = "|".join(getattr(importlib.import_module(name), "__all__", ()))
        said = re.compile(rf"{name}\b|from {parent} import {leaf}\b|\b(?:{offered})\b")
        if not any(file.name == f"test_{leaf}.py" or said.search(text_of(file)) for file in files):
            lacking.append(name)
    assert lacking == sorted(HELD_ELSEWHERE)


def test_the_page_on_architecture_has_every_layer():
    """Its table names what import-linter holds, from the top to the bottom."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (one for one in contracts if one["name"] == "layers")
    stated = [set(layer.split(" | ")) for layer in layers["layers"]]
    table = (ROOT / "docs/architecture.md").read_text(encoding="utf-8").split("\n## Layers")[1].split("\n## ")[0]
    rows = [set(re.findall(r"`(\w+)/?`", row)) for row in re.findall(r"^\| \d+ \| ([^|]*) \|", table, re.MULTILINE)]
    assert rows == stated
