"""The registry of back ends: one JSON file each, and the parse of names such as ``openvino@pdpd:axis=1``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from ort_rknpu.errors import RuleDataError, TargetError

BACKENDS: tuple[str, ...] = ("tensorrt", "directml", "openvino")

Row = TypeVar("Row")


@dataclass(frozen=True)
class Profile:
    """One family of targets, ``<name>@<variant>``.

    Attributes:
        name: what stands before the ``@``.
        variants: what may stand behind it: a version, a feature level or a broadcast mode.
        default: the variant a bare name means, or ``""`` where one must be named.
        options: option name -> which ``variants`` take it, its ``minimum`` and its ``default``.
        text: what the family describes, in one line.
    """

    name: str
    variants: tuple[str, ...]
    default: str
    options: Mapping[str, Mapping[str, Any]]
    text: str


@dataclass(frozen=True)
class Condition:
    """What a verdict of one profile leaves out: something no model file says."""

    profile: str
    text: str
    source: str


@dataclass(frozen=True)
class BackendTarget:
    """One back end that nodes are checked against.

    Attributes:
        name: the canonical name, for example ``openvino@pdpd:axis=1``.
        backend: the rule file: ``tensorrt``, ``directml`` or ``openvino``.
        profile: the family's name, for example ``tensorrt-dla``.
        variant: the version, feature level or broadcast mode.
        options: (name, value) pairs, every option that this variant takes.
    """

    name: str
    backend: str
    profile: str
    variant: str
    options: tuple[tuple[str, int], ...] = ()

    def option(self, name: str) -> int:
        """The value of one option; KeyError where the variant does not take it."""
        return dict(self.options)[name]


@cache
def load(backend: str) -> Mapping[str, Any]:
    """The rule file of one back end."""
    data: Mapping[str, Any] = json.loads(files(__package__).joinpath(f"{backend}.json").read_text("utf-8"))
    return data


def rows(backend: str, section: str, kind: type[Row]) -> tuple[Row, ...]:
    """One section of a rule file as dataclasses, lists as tuples.

    Raises:
        RuleDataError: a row has unknown or missing fields, or no source.
    """
    key: Any = kind
    return _rows(backend, section, key)


@cache
def _rows(backend: str, section: str, kind: type[Any]) -> tuple[Any, ...]:
    names = {field.name for field in fields(kind)}
    result = []
    for row in load(backend)[section]:
        if set(row) != names:
            raise RuleDataError(f"{backend}.json: {section}: fields {sorted(row)}, expected {sorted(names)}")
        if "source" in names and not row["source"]:
            raise RuleDataError(f"{backend}.json: {section}: a row without source: {row}")
        result.append(kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}))
    return tuple(result)


@cache
def profiles() -> dict[str, tuple[str, Profile]]:
    """Profile name -> (back end, profile), in registry order."""
    return {profile.name: (backend, profile) for backend in BACKENDS for profile in rows(backend, "profiles", Profile)}


def conditions(backend: str) -> tuple[Condition, ...]:
    """What the verdicts of one back end leave out."""
    return rows(backend, "conditions", Condition)


def backend_targets() -> tuple[BackendTarget, ...]:
    """Every back end target with its options at their defaults."""
    return tuple(
        get_backend_target(f"{name}@{variant}")
        for name, (_, profile) in profiles().items()
        for variant in profile.variants
    )


def is_backend_name(name: str) -> bool:
    """Whether ``name`` asks for a back end rather than a SoC, valid or not."""
    return "@" in name or name.strip().lower() in profiles()


def valid_names() -> str:
    """One line that lists every valid name."""
    parts = []
    for name, (_, profile) in profiles().items():
        plain = [v for v in profile.variants if not any(v in o["variants"] for o in profile.options.values())]
        parts.append(f"{name}@{{{','.join(plain)}}}")
        for option, rule in profile.options.items():
            parts.append(f"{name}@{{{','.join(rule['variants'])}}}[:{option}=N, N >= {rule['minimum']}]")
    return ", ".join(parts)


def get_backend_target(name: str) -> BackendTarget:
    """The back end target named ``<profile>@<variant>[:<option>=<integer>]``.

    A bare profile means its default variant, where it has one.

    Raises:
        TargetError: the profile, variant or option is unknown; the message lists the valid names.
    """
    head, *given = name.strip().lower().split(":")
    family, at, variant = head.partition("@")
    if family not in profiles():
        raise TargetError(f"unknown back end {name!r}; known: {valid_names()}")
    backend, profile = profiles()[family]
    if not at and profile.default:
        variant = profile.default
    if variant not in profile.variants:
        problem = f"unknown variant {variant!r}" if at else "a variant is needed"
        raise TargetError(f"{name!r}: {problem}; {family} has {', '.join(f'{family}@{v}' for v in profile.variants)}")
    options = {option: rule["default"] for option, rule in profile.options.items() if variant in rule["variants"]}
    for text in given:
        option, _, value = text.partition("=")
        if option not in options:
            takes = ", ".join(f"{o}=N" for o in options) or "no option"
            raise TargetError(f"{name!r}: unknown option {option!r}; {family}@{variant} takes {takes}")
        minimum = profile.options[option]["minimum"]
        try:
            options[option] = int(value)
        except ValueError:
            raise TargetError(f"{name!r}: {option} wants an integer of at least {minimum}, not {value!r}") from None
        if options[option] < minimum:
            raise TargetError(f"{name!r}: {option} wants an integer of at least {minimum}, not {value}")
    suffix = "".join(f":{o}={v}" for o, v in options.items() if v != profile.options[o]["default"])
    return BackendTarget(f"{family}@{variant}{suffix}", backend, family, variant, tuple(options.items()))
