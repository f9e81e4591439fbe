"""The rules of the page (web/), for tidy.py: who may import whom, and what has one place.

Names of jobs, hosts and labels are written by strangers, so nothing may make markup of text. The network is in api, plotting in charts, and
how a number is written is in base/format.ts, so that each can be read, and changed, in one place.
"""

import json
import re
from typing import Iterator

IMPORT = re.compile(r"""(?:^|\n)\s*(?:import|export)\b[^;'"]*?from\s*["']([^"']+)["']|import\s*\(?\s*["']([^"']+)["']""")

# What is forbidden, and the files that may have it all the same.
RULES = [
    (r"\b(?:inner|outer)HTML\b|insertAdjacentHTML|document\.write\b|DOMParser|createContextualFragment|\beval\(|new Function\(", r"$^",
     "text could become markup or code"),
    (r"\bfetch\(|XMLHttpRequest|new WebSocket|new EventSource|sendBeacon", r"web/src/api/.*", "the network is for api/"),
    (r"""from\s*["']uplot|import\s*["']uplot""", r"web/src/charts/.*", "uPlot is for charts/"),
    (r"toFixed\(|toLocale\w*\(|\bIntl\.|toPrecision\(", r"web/src/base/format\.ts", "how a number is written is for base/format.ts"),
]
ANY = re.compile(r":\s*any\b|\bas any\b|<any>|any\[\]|@ts-ignore|@ts-expect-error|@ts-nocheck")


def without_comments(text: str) -> str:
    return re.sub(r"(?<![:\w])//[^\n]*|/\*.*?\*/", lambda match: "\n" * match[0].count("\n"), text, flags=re.S)


def findings(files: dict[str, str], dependencies: str, layers: dict[str, list[str]], any_recorded: int) -> Iterator[tuple[str, int, str]]:
    found_any = []
    for path, text in files.items():
        if not path.startswith("web/"):
            continue
        if path == "web/package.json":
            yield from undocumented(path, text, dependencies)
            continue
        if not path.startswith("web/src/") or not path.endswith(".ts"):
            continue
        code = without_comments(text)
        yield from imports(path, code, layers)
        if path.endswith(".test.ts"):
            continue
        for pattern, allowed, message in RULES:
            if not re.fullmatch(allowed, path):
                for match in re.finditer(pattern, code):
                    yield path, code.count("\n", 0, match.start()) + 1, f"'{match[0]}': {message}"
        found_any += [(path, code.count("\n", 0, match.start()) + 1) for match in ANY.finditer(code)]
    if len(found_any) > any_recorded:
        for path, line in found_any:
            yield path, line, f"unchecked type (there are {len(found_any)}, recorded {any_recorded})"
    elif len(found_any) < any_recorded:
        yield "tools/tidy_exceptions.txt", 0, f"only {len(found_any)} unchecked types are left; lower typescript_any"


def undocumented(path: str, text: str, dependencies: str) -> Iterator[tuple[str, int, str]]:
    package = json.loads(text)
    for name in [*package.get("dependencies", {}), *package.get("devDependencies", {})]:
        if f"`{name}`" not in dependencies:
            yield path, 0, f"'{name}' has no row in docs/dependencies.md"


def imports(path: str, code: str, layers: dict[str, list[str]]) -> Iterator[tuple[str, int, str]]:
    parts = path.split("/")[2:]
    folder = parts[0] if len(parts) > 1 else None
    if folder is not None and folder not in layers:
        yield path, 0, f"folder '{folder}' has no row in web/LAYERS"
        return
    for match in IMPORT.finditer(code):
        name = match[1] or match[2]
        if folder is None or not name.startswith("."):
            continue
        steps = parts[:-1]
        for part in name.split("/"):
            if part == "..":
                steps = steps[:-1]
            elif part != ".":
                steps = [*steps, part]
        other = steps[0] if len(steps) > 1 else None
        if other is None:
            yield path, code.count("\n", 0, match.start()) + 1, f"'{folder}' may not import '{name}', which is the application"
        elif other != folder and other not in layers[folder]:
            yield path, code.count("\n", 0, match.start()) + 1, f"'{folder}' may not import '{other}' (web/LAYERS)"
