"""Random instances of JSON schemas: tool calls that fit, for agents that act at random and for tests.

What can be sampled is what pydantic and MCP servers write: types, unions, enums, references, bounds, sizes, and the
common formats. Keywords that say what a value must *not* be, and `pattern`, are ignored. What a schema cannot say, such
as the integer keys of a `dict[int, str]` or the text of a `Decimal`, cannot be sampled right.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from vfgym.errors import ConfigurationError
from vfgym.tools.json_numbers import resolve_reference

FRUGAL_DEPTH = 3
"""Levels of nesting below which samples are as small as the schema allows, so that recursive schemas end."""

MAX_DEPTH = 60
"""Levels of nesting after which a schema is taken to have no finite instance."""

SPAN = 10
"""A number without bounds lies this far around zero."""

UNIQUE_TRIES = 20
"""Draws for one more distinct item or key before the sample is left as it is."""

WORDS = ("river", "stone", "cloud", "apple", "tiger", "piano", "lemon", "ocean", "maple", "robin", "ember", "north")

FORMATS: dict[str, tuple[str, ...]] = {
    "date": ("2024-02-29", "1999-12-31", "2031-07-04"),
    "date-time": ("2024-02-29T12:30:00Z", "1999-12-31T23:59:59Z", "2031-07-04T00:00:00Z"),
    "time": ("12:30:00Z", "23:59:59Z", "00:00:00Z"),
    "duration": ("PT5M", "P1D", "PT1H30M"),
    "email": ("ann@example.com", "bob@example.org"),
    "uri": ("https://example.com/a", "https://example.org/b"),
    "uuid": ("6fa459ea-ee8a-4ca4-894e-db77e160355e", "16fd2706-8baf-433b-82eb-8c7fada847da"),
    "ipv4": ("192.0.2.1", "198.51.100.7"),
    "ipv6": ("2001:db8::1", "2001:db8::2"),
    "json-string": ('{"river": 1}', "[]"),
}
"""Examples of the formats that constrain a string, by their names in JSON schema."""


def sample_arguments(schema: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return random arguments that are valid under the schema of a tool's parameters.

    Required properties are always there, optional ones half of the time.

    Args:
        schema: JSON schema of an object, with its definitions.
        rng: Source of randomness: the same state gives the same arguments.

    Raises:
        ConfigurationError: The schema has no instance that can be found: contradicting bounds, a reference to nothing
            or to another document, a type that needs itself.
    """
    sampler = _Sampler(schema, rng)
    return sampler.object(sampler.flatten(schema), depth=0)


class _Sampler:
    """Samples one document: the schema at its root, which references point into, and the source of randomness."""

    def __init__(self, root: Mapping[str, Any], rng: np.random.Generator) -> None:
        self.root = root
        self.rng = rng

    def value(self, schema: Any, depth: int) -> Any:
        """Return an instance of `schema`, which lies `depth` levels below the root."""
        if depth > MAX_DEPTH:
            raise ConfigurationError(f"the schema needs itself and has no finite instance: {schema!r:.200}")
        flat = self.flatten(schema)
        if "const" in flat:
            return flat["const"]
        if "enum" in flat:
            return self.choose(flat["enum"])
        if options := self.options(flat):
            return self.value(self.choose_option(options, depth), depth + 1)
        match flat.get("type") or _infer_type(flat):
            case "object":
                return self.object(flat, depth)
            case "array":
                return self.array(flat, depth)
            case "string":
                return self.text(flat)
            case "integer" | "number" as kind:
                return self.number(flat, integral=kind == "integer")
            case "boolean":
                return self.below(2) == 1
            case "null":
                return None
            case _:
                return self.choose([self.choose(WORDS), self.below(SPAN), self.below(2) == 1])

    def object(self, flat: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """Return an object with its required properties, and some of the others."""
        properties, required = flat.get("properties", {}), flat.get("required", ())
        frugal = depth >= FRUGAL_DEPTH
        sample = {
            name: self.value(described, depth + 1)
            for name, described in properties.items()
            if name in required or (not frugal and self.below(2))
        }
        others = flat.get("additionalProperties", True)
        sample |= {name: self.value(others, depth + 1) for name in required if name not in sample}
        size = max(len(sample), flat.get("minProperties", 0))
        if not frugal and "additionalProperties" in flat and others is not False:
            size = min(size + self.below(3), max(size, flat.get("maxProperties", math.inf)))
        for _ in range(UNIQUE_TRIES * size):
            if len(sample) >= size:
                break
            name = self.value({"type": "string", **self.flatten(flat.get("propertyNames"))}, depth + 1)
            if name not in properties:
                sample.setdefault(name, self.value(others, depth + 1))
        return sample

    def array(self, flat: Mapping[str, Any], depth: int) -> list[Any]:
        """Return an array of between `minItems` and a few more items."""
        items = flat.get("items", True)
        first = flat.get("prefixItems", ())
        if isinstance(items, list):  # before draft 2020-12
            first, items = items, flat.get("additionalItems", True)
        low = flat.get("minItems", len(first))
        high = flat.get("maxItems", max(low, len(first)) if first or items is False else low + 3)
        if high < low:
            raise ConfigurationError(f"no array satisfies the schema {dict(flat)!r:.200}")
        count = low if depth >= FRUGAL_DEPTH else low + self.below(min(3, high - low) + 1)
        schemas = [*first[:count], *[items] * (count - len(first))]
        if not flat.get("uniqueItems"):
            return [self.value(schema, depth + 1) for schema in schemas]
        distinct: dict[str, Any] = {}
        for _ in range(UNIQUE_TRIES * count):
            if len(distinct) == count:
                break
            item = self.value(schemas[len(distinct)], depth + 1)
            distinct.setdefault(json.dumps(item, sort_keys=True), item)
        return list(distinct.values())

    def text(self, flat: Mapping[str, Any]) -> str:
        """Return an example of the format, or as many lower-case words as are long enough."""
        if flat.get("format") in FORMATS:
            return str(self.choose(FORMATS[flat["format"]]))
        text = str(self.choose(WORDS))
        while len(text) < flat.get("minLength", 0):
            text += self.choose(WORDS)
        return text[: flat.get("maxLength")]

    def number(self, flat: Mapping[str, Any], *, integral: bool) -> int | float:
        """Return a number within the bounds, or within `SPAN` of the only bound, or of zero."""
        excluded = {flat[key] for key in ("exclusiveMinimum", "exclusiveMaximum") if key in flat}
        step = Fraction(str(flat["multipleOf"])) if "multipleOf" in flat else None
        if integral:
            # The integers among the multiples of p/q, in lowest terms, are the multiples of p.
            step = Fraction(step.numerator if step else 1)
        span = SPAN * math.ceil(step or 1)
        low = max((flat[key] for key in ("minimum", "exclusiveMinimum") if key in flat), default=None)
        high = min((flat[key] for key in ("maximum", "exclusiveMaximum") if key in flat), default=None)
        if low is None:
            low = (span if high is None else high) - 2 * span
        if high is None:
            high = low + 2 * span
        if step is None:
            return self._real(low, high, excluded)
        first, last = math.ceil(Fraction(low) / step), math.floor(Fraction(high) / step)
        first, last = first + (first * step in excluded), last - (last * step in excluded)
        if last < first:
            raise ConfigurationError(f"no number satisfies the schema {dict(flat)!r:.200}")
        sample = step * (first + self.below(last - first + 1))
        return int(sample) if integral else float(sample)

    def _real(self, low: float, high: float, excluded: set[float]) -> float:
        """Return a number of few digits between two bounds where there is one."""
        if low > high or (low == high and low in excluded):
            raise ConfigurationError(f"no number lies between {low} and {high}")
        share = float(self.rng.random())
        sample = min(max(low * (1 - share) + high * share, low), high)  # the sum may be off by a rounding error
        rounded = round(sample, 2)
        if low < rounded < high:
            return rounded
        return low / 2 + high / 2 if sample in excluded else sample

    def options(self, flat: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the alternatives of a union, each with what stands beside the union; empty if it is none."""
        for key in ("anyOf", "oneOf"):
            if key in flat:
                shared = {name: keyword for name, keyword in flat.items() if name != key}
                return [_both(self.flatten(option), shared) for option in flat[key]]
        if isinstance(flat.get("type"), list):
            return [{**flat, "type": kind} for kind in flat["type"]]
        return []

    def choose_option(self, options: Sequence[dict[str, Any]], depth: int) -> dict[str, Any]:
        """Return one of the alternatives: any of those without a pattern, deep down the one that ends soonest."""
        plain = [option for option in options if "pattern" not in option] or options
        if depth >= FRUGAL_DEPTH:
            return min(plain, key=self.height)
        chosen: dict[str, Any] = self.choose(plain)
        return chosen

    def height(self, schema: Any, above: frozenset[str] = frozenset()) -> float:
        """Return how deep the flattest instance of `schema` is nested, infinite if it contains itself.

        Args:
            schema: Any schema of the document.
            above: References that were followed to get there.
        """
        if not isinstance(schema, Mapping):
            return 0
        if "$ref" in schema:
            reference = schema["$ref"]
            return math.inf if reference in above else self.height(self.target(reference), above | {reference})
        heights = [self.height(part, above) for part in schema.get("allOf", ())]
        heights += [min(self.height(option, above) for option in schema[key]) for key in ("anyOf", "oneOf") if key in schema]
        properties = schema.get("properties", {})
        heights += [1 + self.height(properties.get(name), above) for name in schema.get("required", ())]
        if schema.get("minItems"):
            items = schema.get("prefixItems") or [schema.get("items")]
            heights += [1 + self.height(item, above) for item in items]
        return max(heights, default=0)

    def flatten(self, schema: Any) -> dict[str, Any]:
        """Return `schema` with what it refers to, and the parts that must all hold, in its own keywords."""
        flat = dict(schema) if isinstance(schema, Mapping) else {}
        followed = set()
        while "$ref" in flat:
            reference = flat.pop("$ref")
            if reference in followed:
                raise ConfigurationError(f"the reference {reference!r} leads back to itself")
            followed.add(reference)
            flat = _both(flat, self.target(reference))
        for part in flat.pop("allOf", ()):
            flat = _both(flat, self.flatten(part))
        return flat

    def target(self, reference: str) -> Mapping[str, Any]:
        """Return the schema that a reference such as `#/$defs/Point` points at."""
        target = resolve_reference(reference, self.root)
        if not isinstance(target, Mapping):
            raise ConfigurationError(f"the schema refers to {reference!r}, which is not in it")
        return target

    def choose(self, options: Sequence[Any]) -> Any:
        """Return one of `options`, as it is: numpy's own choice would turn it into an array element."""
        if not options:
            raise ConfigurationError("the schema has an empty list of choices")
        return options[self.below(len(options))]

    def below(self, limit: int) -> int:
        """Return a random integer from 0 to `limit` - 1, which may exceed the 64 bits of numpy's integers."""
        return min(int(self.rng.random() * limit), limit - 1)


_LEAST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_MOST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")


def _both(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of two schemas that must both hold; of those that cannot be put together, the first one's."""
    both = {**second, **first}
    for key in first.keys() & second.keys():
        if key in _LEAST:
            both[key] = max(first[key], second[key])
        elif key in _MOST:
            both[key] = min(first[key], second[key])
        elif key == "required":
            both[key] = [*dict.fromkeys([*second[key], *first[key]])]
        elif key == "properties":
            both[key] = {**second[key], **first[key]}
        elif key == "allOf":
            both[key] = [*first[key], *second[key]]
    return both


def _infer_type(flat: Mapping[str, Any]) -> str:
    """Return the type that the keywords of a schema without `type` are about; empty if they fit any type."""
    about = {
        "object": ("properties", "required", "additionalProperties"),
        "array": ("items", "prefixItems", "minItems"),
        "string": ("minLength", "maxLength", "format", "pattern"),
        "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    }
    return next((kind for kind, keywords in about.items() if any(keyword in flat for keyword in keywords)), "")
