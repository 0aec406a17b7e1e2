"""Options of components: declaration, validation and conversion."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import attrs
import cattrs
from cattrs.strategies import use_class_methods

from dpgm_core._util.exact_numbers import amount
from dpgm_core._util.locations import Place, Url, place
from dpgm_core.errors import BudgetError, DpgmError, IncompatiblePlugin, OptionError, did_you_mean

__all__ = [
    "OptionInfo",
    "at_least_zero",
    "build",
    "with_options",
    "component_option",
    "converter",
    "describe",
    "flag",
    "option",
    "plain_options",
    "positive",
    "share",
    "known_options",
    "whole",
]

# Nothing is coerced that a careful reader would not accept: a bool is no number, a text is no number, NaN is refused
# everywhere.

T = TypeVar("T")

# Resolves a component-valued option: (kind, name or table or instance) -> instance
Resolve = Callable[[str, object], object]


def option(
    default: T,
    *,
    help: str,
    unit: str | None = None,
    validator: Any = None,
    replaces: tuple[str, ...] = (),
    holds: type | None = None,
) -> T:
    """Return an attrs field that is an option of a component.

    Parameters
    ----------
    default
        The default value.
    help : str
        What the option does.
    unit : str, optional
        The unit of its value.
    validator : callable or list of callables, optional
        (instance, attribute, value), as in attrs; may raise ValueError or any DpgmError. Not called for texts that the
        type lists, such as "auto" of `float | Literal["auto"]`.
    replaces : tuple of str
        Options of older versions that this one stands for. They are refused by this one's name; where a model's file
        has one, it is left out and this one has its default.
    holds : type, optional
        A class whose objects are taken as they are. A file records only that there was one, so whoever makes the
        component again from the file must give the object.

    Examples
    --------
    >>> @attrs.frozen(kw_only=True)
    ... class Mine:
    ...     strength: float = option(0.5, help="how much", unit="nats", validator=attrs.validators.ge(0))
    >>> build(Mine, {"strength": 2}, what="learner 'mine'")
    Mine(strength=2.0)
    """
    more = {"unit": unit, "replaces": replaces, "holds": holds}
    metadata = {"help": help} | {name: value for name, value in more.items() if value}
    own = list(validator) if isinstance(validator, (list, tuple)) else [] if validator is None else [validator]

    def check(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
        # A validator, so that it also holds where the class is made without `build`, which converts.
        if not _is_one_of_its_texts(type(instance), attribute, value):
            for one in own:
                one(instance, attribute, value)

    made: T = attrs.field(default=default, metadata=metadata, validator=check)
    return made


def _is_one_of_its_texts(cls: Any, attribute: attrs.Attribute[Any], value: object) -> bool:
    """Return whether a value is among the texts of the option's type; refuse another text where it has some."""
    hint = _types(cls).get(attribute.name, Any)
    members = [hint] if get_origin(hint) is Literal else [one for one in get_args(hint) if get_origin(one) is Literal]
    texts = [text for member in members for text in get_args(member)]
    if texts and value not in texts and (isinstance(value, str) or get_origin(hint) is Literal):
        raise OptionError(f"{attribute.name} must be {type_text(hint)}, got {value!r:.80}")
    return isinstance(value, str) and value in texts


@lru_cache(maxsize=256)
def _types(cls: type) -> dict[str, Any]:
    """`_hints`; {} where they cannot be resolved, which is said where the class is registered."""
    try:
        return _hints(cls)
    except IncompatiblePlugin:
        return {}


def component_option(default: str, *, kind: str, help: str) -> Any:
    """Return an attrs field that is itself a component: a name, a table `{name = ..., option = ...}`, or an instance.

    Parameters
    ----------
    default : str
        The name of the default component.
    kind : str
        The kind of component.
    help : str
        What the component does.

    Examples
    --------
    >>> component_option("collective-dual", kind="collective", help="the E-step").metadata["component"]
    'collective'
    """
    return attrs.field(default=default, metadata={"help": help, "component": kind})


@attrs.frozen(kw_only=True)
class OptionInfo:
    """One option as `dpgm plugins NAME` prints it."""

    name: str
    type: str
    default: str
    unit: str
    help: str


def describe(cls: type) -> list[OptionInfo]:
    """Return every option of a component class: name, type, default, unit and help."""
    hints = _hints(cls)
    return [
        OptionInfo(
            name=field.name,
            type=f"component: {field.metadata['component']}"
            if "component" in field.metadata
            else type_text(hints.get(field.name, Any)),
            default="required" if field.default is attrs.NOTHING else _default_text(field.default),
            unit=field.metadata.get("unit", ""),
            help=field.metadata.get("help", ""),
        )
        for field in _fields(cls)
        if field.init
    ]


def build(cls: type[T], values: Mapping[str, Any], *, what: str, resolve: Resolve | None = None) -> T:
    """Return a component made from its options; every refusal is an OptionError that names component and option.

    what: how messages call it, such as "learner 'naive-mle'". resolve: makes component-valued options.
    """
    fields = {field.name: field for field in _fields(cls) if field.init}
    hints = dict.fromkeys(fields, Any) | _hints(cls)
    for name in values:
        if name not in fields:
            for one in fields.values():
                if name in one.metadata.get("replaces", ()):
                    raise OptionError(f"{what} has option {one.name!r} in place of {name!r}; set that one, or neither")
            raise OptionError(f"{what} has no option {name!r}{did_you_mean(name, fields)}")
    ready: dict[str, Any] = {}
    for name, field in fields.items():
        if name not in values and field.default is attrs.NOTHING:
            raise OptionError(
                f"{what} needs option {name!r} ({type_text(hints[name])}): {field.metadata.get('help', '')}"
            )
        if "component" in field.metadata and resolve is not None:
            ready[name] = resolve(field.metadata["component"], values.get(name, field.default))
        elif name in values and _is_whole_object(field, values[name]):
            ready[name] = values[name]
        elif name in values:
            if "holds" in field.metadata and values[name] == _stand_in(field):
                raise OptionError(
                    f"option {name!r} of {what} was a {field.metadata['holds'].__name__} given as an object, which no "
                    "file holds; give the component itself again, made with that object"
                )
            ready[name] = _converted(hints[name], values[name], f"option {name!r} of {what}")
    refusal = None
    try:
        return cls(**ready)
    except OptionError as error:  # of a shared validator, which cannot know the component's name
        refusal = str(error)
    except DpgmError:
        raise
    except (ValueError, TypeError) as error:
        refusal = str(error.args[0]) if error.args else type(error).__name__
    except Exception as error:  # a validator of somebody else's
        refusal = f"{type(error).__name__}: {error}"
    raise OptionError(f"{what} refuses its options: {refusal}")


def with_options(component: T, options: Mapping[str, Any], *, what: str) -> T:
    """Return the same component with some options replaced, as plain values. Raises OptionError.

    A table for an option that is a component itself changes that component; its name is not looked at.
    """
    cls: Any = type(component)
    if not attrs.has(cls):
        raise OptionError(f"{what} is no attrs class, so it has no options that could be set to {dict(options)!r}")
    fields = {one.name: one for one in _fields(cls)}
    # What stands in for an object in a file changes nothing: the object is here.
    values = {
        name: value
        for name, value in options.items()
        if name not in fields
        or not (_is_whole_object(fields[name], getattr(component, name)) and value == _stand_in(fields[name]))
    }
    unchanged = {}
    for name, one in fields.items():
        inside = getattr(component, name)
        if "component" in one.metadata and isinstance(values.get(name), Mapping) and attrs.has(type(inside)):
            table = {key: value for key, value in values.pop(name).items() if key != "name"}
            unchanged[name] = with_options(inside, table, what=f"option {name!r} of {what}")
        elif name not in values and ("component" in one.metadata or _is_whole_object(one, inside)):
            unchanged[name] = inside
    plain = {name: value for name, value in plain_options(component).items() if name not in unchanged}
    built: Any = build(cls, plain | values, what=what)
    made: T = attrs.evolve(built, **unchanged)
    return made


def known_options(cls: type, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a file has of a component, without those that others have replaced since."""
    replaced = {name for field in _fields(cls) for name in field.metadata.get("replaces", ())} if attrs.has(cls) else ()
    return {name: value for name, value in recorded.items() if name not in replaced}


def plain_options(component: object) -> dict[str, Any]:
    """Return a component's fields as plain values for a file; {} for objects that are not attrs classes."""
    cls: Any = type(component)
    if not attrs.has(cls):
        return {}
    plain: dict[str, Any] = converter.unstructure(component)
    stand_ins = {
        one.name: _stand_in(one) for one in _fields(cls) if _is_whole_object(one, getattr(component, one.name))
    }
    return plain | stand_ins


def type_text(hint: Any) -> str:
    """Return a type as users read it.

    >>> type_text(float), type_text(Literal["a", "b"]), type_text(float | Literal["auto"] | None)
    ('number', "'a' or 'b'", "number or 'auto' or none")
    """
    names = {float: "number", int: "whole number", str: "text", bool: "true or false", type(None): "none"}
    if hint in names:
        return names[hint]
    origin: Any = get_origin(hint)
    if origin is Literal:
        return " or ".join(repr(value) for value in get_args(hint))
    if origin in (Union, types.UnionType):
        return " or ".join(type_text(member) for member in get_args(hint))
    if origin in (tuple, list):
        return "list of " + type_text(get_args(hint)[0])
    return getattr(hint, "__name__", str(hint))


def _default_text(default: Any) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        return "computed"
    return "none" if default is None else repr(default) if isinstance(default, str) else str(default)


def _is_whole_object(field: attrs.Attribute[Any], value: object) -> bool:
    return "holds" in field.metadata and isinstance(value, field.metadata["holds"])


def _stand_in(field: attrs.Attribute[Any]) -> str:
    """Return what a file has in place of an object."""
    return f"<{field.metadata['holds'].__name__} given as an object>"


def _fields(cls: Any) -> tuple[attrs.Attribute[Any], ...]:
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(cls)
    return fields


def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except Exception as error:
        raise IncompatiblePlugin(
            f"{cls.__module__}.{cls.__qualname__}: the types of its options cannot be resolved ({error}); "
            "import them at run time, not only under TYPE_CHECKING"
        ) from None


def _converted(hint: Any, value: Any, what: str) -> Any:
    try:
        if get_origin(hint) in (tuple, list) and isinstance(value, (str, bytes, Mapping)):
            raise ValueError("no list, though it would be read as one of its letters or keys")
        return converter.structure(value, hint)
    except DpgmError:
        raise
    except Exception:
        near = ""
        if _is_literal(hint) and isinstance(value, str):
            near = did_you_mean(value, get_args(hint))
    # What holds records, as an engine's frame does, may show some of them.
    shown = repr(value) if type(value).__module__ == "builtins" else f"a {type(value).__name__}"
    raise OptionError(f"{what} must be {type_text(hint)}, got {shown}{near}")


def _is_literal(hint: Any) -> bool:
    origin: Any = get_origin(hint)
    return origin is Literal


def _is_union(hint: Any) -> bool:
    origin: Any = get_origin(hint)
    return origin is Union or origin is types.UnionType


def _strict(value: Any, kind: type) -> Any:
    accepted = (int, float) if kind is float else kind
    if isinstance(value, bool) is not (kind is bool) or not isinstance(value, accepted):
        raise ValueError(f"not a {kind.__name__}")
    made: Any = kind(value)
    if kind is float and math.isnan(made):
        raise ValueError("not a number")
    return made


def _literal(value: Any, hint: Any) -> Any:
    for member in get_args(hint):
        if value == member and type(value) is type(member):
            return value
    raise ValueError("not one of the choices")


def _union(value: Any, hint: Any) -> Any:
    members = get_args(hint)
    # Exact choices first, so that "auto" is not taken for a free text.
    for member in sorted(members, key=lambda one: not _is_literal(one)):
        if member is type(None):
            if value is None:
                return None
            continue
        try:
            return converter.structure(value, member)
        except (ValueError, TypeError, DpgmError, cattrs.BaseValidationError, cattrs.StructureHandlerNotFoundError):
            continue
    raise ValueError("fits none of the types")


def _fraction(value: Any, _: Any) -> Fraction:
    try:
        return amount("amount", value, zero=True)
    except BudgetError:
        raise ValueError("not an exact amount") from None


#: Strict cattrs converter shared by options and files.
converter = cattrs.Converter(forbid_extra_keys=True)
for _type in (bool, int, float, str):
    converter.register_structure_hook(_type, _strict)
converter.register_structure_hook(Fraction, _fraction)
converter.register_unstructure_hook(Fraction, str)
# Classes that read and write themselves, such as Budget, which this module must not import.
use_class_methods(converter, "_structure", "_unstructure")
converter.register_structure_hook_func(_is_literal, _literal)
converter.register_structure_hook_func(_is_union, _union)
converter.register_structure_hook_func(lambda hint: hint == Place, lambda value, _: place(value))
converter.register_unstructure_hook(Url, str)


# --------------------------------------------------------------------------------------------------
# Validators, whose refusals name the option


def positive(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Refuse, with OptionError, anything but a finite number above 0; a validator of attrs."""
    if not (_is_number(value) and value > 0):
        raise OptionError(f"{attribute.name} must be a finite number above 0, got {value!r}")


def at_least_zero(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Refuse, with OptionError, anything but a finite number of at least 0; a validator of attrs."""
    if not (_is_number(value) and value >= 0):
        raise OptionError(f"{attribute.name} must be a finite number of at least 0, got {value!r}")


def share(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Refuse, with OptionError, anything but a number from 0 to below 1; a validator of attrs."""
    if not (_is_number(value) and 0 <= value < 1):
        raise OptionError(f"{attribute.name} must be a number from 0 to below 1, got {value!r}")


def whole(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Refuse, with OptionError, anything but a whole number of at least 1; a validator of attrs.

    Examples
    --------
    >>> @attrs.frozen(kw_only=True)
    ... class Mine:
    ...     steps: int = attrs.field(default=3, validator=whole)
    >>> Mine(steps=True)
    Traceback (most recent call last):
    dpgm_core.errors.OptionError: steps must be a whole number of at least 1, got True
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise OptionError(f"{attribute.name} must be a whole number of at least 1, got {value!r}")


def flag(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Refuse, with OptionError, anything but true and false; a validator of attrs."""
    if not isinstance(value, bool):
        raise OptionError(f"{attribute.name} must be true or false, got {value!r}")


def _is_number(value: object) -> typing.TypeGuard[float]:
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False
