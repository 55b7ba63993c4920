"""``vfgym cache``: what the user's cache of answers holds, and forgetting it."""

from __future__ import annotations

from vfgym.cli.conventions import print_json
from vfgym.cli.table import print_table, wrap_text
from vfgym.clients.cache import CACHE_VARIABLE, ResponseCache
from vfgym.output.terminal import echo


def print_cache(*, as_json: bool) -> None:
    """Print where the cache is and what it holds.

    Raises:
        ConfigurationError: If the file is something else.
    """
    cache = ResponseCache()
    try:
        contents = cache.contents()
    finally:
        cache.close()
    if as_json:
        print_json(contents)
        return
    echo(f"{contents['path']}\n{contents['answers']} answers, {contents['bytes'] / 2**20:.1f} MB\n")
    if contents["models"]:
        print_table(["model", "answers"], [[model, str(count)] for model, count in contents["models"].items()])
    else:
        echo(wrap_text(f"`vfgym eval --cache` keeps answers in it; {CACHE_VARIABLE} names another file."))


def clear_cache(*, as_json: bool) -> None:
    """Forget all answers.

    Raises:
        ConfigurationError: If the file is something else.
    """
    cache = ResponseCache()
    try:
        count = cache.clear()
    finally:
        cache.close()
    if as_json:
        print_json({"path": str(cache.path), "forgotten": count})
    else:
        echo(f"forgot {count} answers of {cache.path}")
