#!/usr/bin/env python3
"""The rules of the tree that no compiler checks, as a test (`ctest -L tidy`, or run it by hand).

Each check is a function of a Tree, which is a dictionary of files, so that tidy_test.py can hold a good
and a bad sample of each. A rule whose sense is not obvious says why beside it; CONTRIBUTING.md has the
rest. Lengths and the count of unnamed units may be exceeded only as tools/tidy_exceptions.txt records,
and what is recorded may only shrink.
"""

import ast
import pathlib
import re
import subprocess
import sys
from typing import Iterator, NamedTuple

from cpp_text import functions_of, line_of, strip_code
from tidy_owners import OWNERS, SYSTEM_HEADER
import tidy_web

FILE_LINES = 500
FUNCTION_LINES = 60  # one screen
SLACK_LINES = 20  # a recorded length this far above the truth must be lowered
FILE_BYTES = 512 * 1024

EXCEPTIONS = "tools/tidy_exceptions.txt"
DEPENDENCIES = "docs/dependencies.md"
PACKAGES = "tools/debian-packages.txt"

# A module's answer depends on its arguments only: same input, same answer, and tests need no machine.
PURE = "units flops catalog tuning samples wire training_logs jobs schedulers model rollups live analysis detect notify views simulation validation".split()
IMPURE = {
    "a clock": r"\b(?:system_clock|steady_clock|high_resolution_clock)::now|\bstd::time\s*\(|"
               r"(?<![\w.:>])(?:gettimeofday|clock_gettime|time)\s*\(\s*(?:nullptr|NULL|0|&)",
    "the environment": r"\bgetenv\b",
    "a file": r"\bfopen\b|\b[io]?fstream\b|\bstd::filesystem\b",
    "a socket": r"(?<![\w.:>])socket\s*\(",
    "a thread": r"\bstd::(?:jthread|thread|async)\b",
    "an output": r"\bstd::(?:cout|cerr|clog)\b|(?<!\w)(?:f|v|vf)?printf\s*\(|\bputs\s*\(",
    "chance": r"(?<![\w.:>])s?rand\s*\(|\bstd::s?rand\s*\(|\brandom_device\b",
}

# What only a program may do, not a library; and where threads may be started besides.
APPS_ONLY = {
    "ending the process": r"(?<![\w.>])(?:std::)?(?:_?exit|_Exit|quick_exit|abort)\s*\(",
    "arguments of the program": r"\bargv\b",
    "signals": r"(?<![\w.>])(?:std::)?(?:signal|sigaction)\s*\(",
    "starting a thread": IMPURE["a thread"],
}
THREADED = ("net", "sources")
ABORTS = "src/base/check.h"

# A variable at namespace scope (the formatter puts it at the start of a line) or a static one in a function
# or class, that is not constant.
_TYPE_AND_NAME = r"[\w:][\w:<>,*& ]*[ >*&](\w+)(?:\[\w*\])?\s*(?:=[^=]|\{|;)"
MUTABLE_GLOBAL = re.compile(
    r"^(?!const|using|typedef|namespace|class|struct|union|enum|template|friend|extern|return|static|inline)"
    + _TYPE_AND_NAME +
    r"|\b(?:static|inline|thread_local) (?!const|inline|static|thread_local|namespace|struct|class)" + _TYPE_AND_NAME,
    re.M)

# What a number in a header measures, as a word of its name ("power_watts_max", "gpu_hours_lost"). A scale
# turns one unit into another and has none of its own.
UNIT_WORD = re.compile(
    r"(?:^|_)(?:seconds|bytes|hertz|watts|joules|celsius|tokens|samples|flops|usd|ratio|total|hours|weight|intervals)2?"
    r"(?:_|$)|^value(?:_min|_max)?$|(?:^|_)scale$")
RAW_DOUBLE = re.compile(
    r"^[ \t]*(?:mutable |const )?(?:double|float|std::(?:optional|vector)<double>)\s+(\w+)\s*"
    r"(?:=[^;()]*|\{[^;]*\})?;", re.M)

EXTENSIONS = set(
    ".cc .h .py .txt .md .cmake .json .jsonl .csv .tsv .metrics .yaml .yml .toml .ini .prom .html .css .ts .js "
    ".svg .png .gz .log .scenario .service .mjs".split())
NAMES = set("run test bench build build-web install-deps .npmrc LICENSE LAYERS Dockerfile .gitignore .gitattributes "
            ".clang-format .clang-tidy .editorconfig".split())
CODE = (".cc", ".h")
# Texts in which words are checked; data files may say what they like.
PROSE = (".cc", ".h", ".py", ".md", ".cmake", ".txt", ".ts", ".mjs", ".js", ".css", ".html", "")


class Finding(NamedTuple):
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line or ''}: {self.message}".replace(":: ", ": ")


Findings = Iterator[Finding]


class Tree:
    """Files by their path from the root, as bytes."""

    def __init__(self, files: dict[str, bytes]):
        self.files = dict(sorted(files.items()))
        self._code: dict[str, str] = {}

    def text(self, path: str) -> str:
        return self.files.get(path, b"").decode("utf-8", errors="replace")

    def named(self, *suffixes: str) -> list[str]:
        return [path for path in self.files if path.endswith(suffixes)]

    def code(self, path: str) -> str:
        """The text of a C++ file without comments, string contents and macro definitions; every line
        keeps its number."""
        if path not in self._code:
            self._code[path] = strip_code(self.text(path))
        return self._code[path]

    def layers(self, table: str = "src/LAYERS") -> dict[str, list[str]]:
        rows = re.findall(r"^([a-z_]+) *:(.*)$", self.text(table), re.M)
        return {name: others.split() for name, others in rows}


def suffix_of(path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    return name[name.rindex("."):] if "." in name[1:] else ""


def module_of(path: str) -> str | None:
    parts = path.split("/")
    return parts[1] if parts[0] == "src" and len(parts) > 2 else None


def includes_of(tree: Tree, path: str) -> list[tuple[int, str, str]]:
    """(line, quote or bracket, name) of each include."""
    text = tree.text(path)
    found = re.finditer(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', text, re.M)
    return [(line_of(text, match.start()), match[1], match[2]) for match in found]


# --- direction ---------------------------------------------------------------------------------------


def out_of_order(table: str, layers: dict[str, list[str]]) -> Findings:
    names = list(layers)
    for row, others in enumerate(layers.values()):
        for other in others:
            if other not in names[:row]:
                yield Finding(table, 0, f"'{names[row]}' names '{other}', which is not above it")


def check_layers(tree: Tree) -> Findings:
    """src/LAYERS has no cycle, and every include in src/ follows it. Linking alone does not notice: a
    header of a module that is not linked compiles all the same."""
    layers = tree.layers()
    yield from out_of_order("src/LAYERS", layers)
    for name in layers:
        if not re.search(rf"\badd_module\({name}\b", tree.text("CMakeLists.txt")):
            yield Finding("CMakeLists.txt", 0, f"module '{name}' of src/LAYERS is not built")
    for path in tree.named(*CODE):
        module = module_of(path)
        if module is None:
            continue
        if module not in layers:
            yield Finding(path, 0, f"module '{module}' has no row in src/LAYERS")
            continue
        for line, quote, name in includes_of(tree, path):
            if quote != '"':
                continue
            other = name.split("/")[0]
            if "/" not in name or other not in layers:
                yield Finding(path, line, f'"{name}" is no "module/header.h"')
            elif other != module and other not in layers[module]:
                yield Finding(path, line, f"'{module}' may not include '{other}' (src/LAYERS)")
            elif other != module and name.endswith("_internal.h"):
                yield Finding(path, line, f'"{name}" is internal to \'{other}\'')


def check_app_layers(tree: Tree) -> Findings:
    """The same for the folders of the program, whose table is apps/flopsight/LAYERS; the frame beside it
    may start them all."""
    table = "apps/flopsight/LAYERS"
    layers = tree.layers(table)
    yield from out_of_order(table, layers)
    for path in tree.named(*CODE):
        match = re.fullmatch(r"apps/flopsight/([^/]+)/[^/]+", path)
        if match is None:
            continue
        folder = match[1]
        if folder not in layers:
            yield Finding(path, 0, f"folder '{folder}' has no row in {table}")
            continue
        for line, quote, name in includes_of(tree, path):
            other = name.split("/")[0]
            if quote == '"' and "/" in name and other in layers and other != folder and other not in layers[folder]:
                yield Finding(path, line, f"'{folder}' may not include '{other}' ({table})")


def check_owners(tree: Tree) -> Findings:
    for path in tree.named(*CODE):
        if path.endswith("_bench.cc"):
            continue
        for line, quote, name in includes_of(tree, path):
            owners = [owner for header, owner in OWNERS.items() if re.fullmatch(header, name)]
            if owners and not re.fullmatch(owners[0], path):
                yield Finding(path, line, f"<{name}> may be included by {owners[0]} only")
            elif not owners and quote == "<" and not SYSTEM_HEADER.fullmatch(name):
                yield Finding(path, line, f"<{name}> has no owner in tools/tidy.py")


def check_dependencies(tree: Tree) -> Findings:
    """Every package that we ask people to install has its reason written down."""
    for number, line in enumerate(tree.text(PACKAGES).splitlines(), 1):
        fields = line.split("#")[0].split()
        if fields and f"`{fields[1]}`" not in tree.text(DEPENDENCIES):
            yield Finding(PACKAGES, number, f"'{fields[1]}' has no row in {DEPENDENCIES}")


def check_pure(tree: Tree) -> Findings:
    for path in tree.named(*CODE):
        if module_of(path) not in PURE or is_test(path):
            continue
        code = tree.code(path)
        for what, pattern in IMPURE.items():
            for match in re.finditer(pattern, code):
                yield Finding(path, line_of(code, match.start()),
                              f"'{match[0].strip()}': a pure module may not reach for {what}")


def is_test(path: str) -> bool:
    """Tests, and headers that only tests include (test_….h)."""
    return bool(re.search(r"_(?:test|bench|fuzz)\.cc$|/test_[^/]*\.h$", path))


def check_apps_only(tree: Tree) -> Findings:
    """Libraries are told what to do by arguments and answer by values; who started them is not theirs."""
    for path in tree.named(*CODE):
        module = module_of(path)
        if module is None or is_test(path) or path == ABORTS:
            continue
        for what, pattern in APPS_ONLY.items():
            if what == "starting a thread" and module in THREADED:
                continue
            for match in re.finditer(pattern, tree.code(path)):
                yield Finding(path, line_of(tree.code(path), match.start()),
                              f"'{match[0].strip()}': {what} is for apps/")


def check_mutable_globals(tree: Tree) -> Findings:
    for path in tree.named(*CODE):
        if module_of(path) not in PURE or is_test(path):
            continue
        for match in MUTABLE_GLOBAL.finditer(tree.code(path)):
            yield Finding(path, line_of(tree.code(path), match.start()),
                          f"'{match[1] or match[2]}' can change and outlives a call: a pure module has no memory")


def check_personalities(tree: Tree) -> Findings:
    """One version, one behaviour: what a program can do is not decided by flags of its build."""
    for path in tree.named(*CODE):
        code = tree.code(path)
        for match in re.finditer(
                r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b.*\b(?:FLOPSIGHT|USE|HAVE|WITH|ENABLE)_\w+",
                code, re.M):
            yield Finding(path, line_of(code, match.start()), "a feature switch of the build")


# --- what is built and read --------------------------------------------------------------------------


def check_web(tree: Tree) -> Findings:
    """What web/LAYERS and tidy_web.py say of the page."""
    known = [tree.text(DEPENDENCIES), tree.layers("web/LAYERS"), recorded(tree).get("typescript_any", Recorded(0, 0)).limit]
    for path, line, message in tidy_web.findings({path: tree.text(path) for path in tree.named(".ts", "package.json")}, *known):
        yield Finding(path, line, message)


def check_unbuilt(tree: Tree) -> Findings:
    """CMake takes sources by glob from a module's own folder; a file elsewhere would silently be no part
    of the build, and a test among them would silently not run."""
    built = "".join(tree.text(path) for path in tree.named("CMakeLists.txt", ".cmake"))
    folders = "|".join(tree.layers()) or "-"
    for path in tree.named(".cc"):
        name = path.rsplit("/", 1)[-1]
        in_app = re.fullmatch(r"apps/flopsight/(?:[a-z]+/)?[^/]+", path)
        if in_app and re.search(r"_(?:fuzz|bench)\.cc$", name):
            yield Finding(path, 0, "apps/ takes no fuzzers or benchmarks; put it into a module")
        elif not in_app and not re.fullmatch(rf"src/(?:{folders})/[^/]+", path) and path not in built:
            yield Finding(path, 0, "built by nobody: not in a module's folder, named by no CMake file")
    for path in tree.named("_test.py"):
        if path not in built:
            yield Finding(path, 0, "run by nobody: add it to tests/CMakeLists.txt")
    for path in tree.named(".py"):
        if path.startswith("tests/") and "/test_" in path and not path.startswith("tests/e2e/test_"):
            yield Finding(path, 0, "run by nobody: only tests/e2e/test_*.py is taken by glob")


def check_pragma_once(tree: Tree) -> Findings:
    for path in tree.named(".h"):
        if not re.search(r"^#pragma once$", tree.text(path), re.M):
            yield Finding(path, 1, "no #pragma once")


def check_files(tree: Tree) -> Findings:
    for path, content in tree.files.items():
        if len(content) > FILE_BYTES:
            yield Finding(path, 0, f"{len(content)} bytes, over {FILE_BYTES}: git keeps it for ever")
        if path.startswith("tests/corpus/"):
            continue
        if suffix_of(path) not in EXTENSIONS and path.rsplit("/", 1)[-1] not in NAMES:
            yield Finding(path, 0, "an unusual kind of file; if it is right, add it to tools/tidy.py")


# --- words -------------------------------------------------------------------------------------------

OPEN_END = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b(?!\(#\d+\))")
# Paths of the machine somebody happened to write on. Split so that this file does not name them itself.
MACHINE_PATH = re.compile(r"\.\./sha" r"red\b|(?<![\w.~}-])/(?:wor" r"k|hom" r"e|Use" r"rs)/\w")
LINE_REFERENCE = re.compile(r"\b[\w/.-]+\.(?:cc|h|py|cmake|txt|ts):\d+")


def check_open_ends(tree: Tree) -> Findings:
    for path in tree.files:
        if suffix_of(path) in PROSE and not path.startswith("tests/corpus/"):
            text = tree.text(path)
            for match in OPEN_END.finditer(text):
                yield Finding(path, line_of(text, match.start()),
                              f"{match[0]} without an issue, as in {match[0]}(#12)")


def check_machine_paths(tree: Tree) -> Findings:
    for path, content in tree.files.items():
        if path.startswith("tests/corpus/") or b"\0" in content:
            continue
        text = tree.text(path)
        for match in MACHINE_PATH.finditer(text):
            yield Finding(path, line_of(text, match.start()),
                          f"'{match[0]}…' is a path of one machine")


def check_line_references(tree: Tree) -> Findings:
    for path in tree.named(".md"):
        text = tree.text(path)
        for match in LINE_REFERENCE.finditer(text):
            yield Finding(path, line_of(text, match.start()),
                          f"'{match[0]}': name a symbol, lines move")


# A path in backquotes. Those with a capitalised word or a wildcard are patterns ("tests/e2e/test_NAME.py").
QUOTED_PATH = re.compile(r"`((?:docs|src|tools|apps|cmake|examples|benchmarks|tests|\.ci)/[\w/.-]*)`")
PLACEHOLDER = re.compile(r"[A-Z]{3}")


def check_links(tree: Tree) -> Findings:
    """Links and quoted paths in documents lead to something in the tree."""
    known = set(tree.files)
    for path in tree.files:
        known.update(str(parent) for parent in pathlib.PurePosixPath(path).parents)
    for path in tree.named(".md"):
        text = re.sub(r"^```.*?^```", lambda match: "\n" * match[0].count("\n"), tree.text(path),
                      flags=re.M | re.S)
        for match in re.finditer(r"\]\(([^)\s]+)(?: [^)]*)?\)", text):
            target = match[1].split("#")[0]
            if not target or re.match(r"[a-z]+:", target):
                continue
            parts: list[str] = [] if target.startswith("/") else path.split("/")[:-1]
            for part in target.strip("/").split("/"):
                if part == "..":
                    parts = parts[:-1] if parts else ["outside"]
                elif part != ".":
                    parts.append(part)
            if ("/".join(parts) or ".") not in known:
                yield Finding(path, line_of(text, match.start()), f"'{match[1]}' leads nowhere")
        for match in QUOTED_PATH.finditer(text):
            if match[1].rstrip("/") not in known and not PLACEHOLDER.search(match[1]):
                yield Finding(path, line_of(text, match.start()), f"'{match[1]}' is not in the tree")


def check_tables(tree: Tree) -> Findings:
    """A blank line ends a table: rows after it are shown as text with bars in it."""
    for path in tree.named(".md"):
        lines = re.sub(r"^```.*?^```", lambda match: "\n" * match[0].count("\n"), tree.text(path), flags=re.M | re.S).split("\n")
        for i, line in enumerate(lines):
            begins = line.startswith("|") and (i == 0 or not lines[i - 1].startswith("|"))
            if begins and not re.fullmatch(r"\|[ :|-]+", "".join(lines[i + 1:i + 2])):
                yield Finding(path, i + 1, "a row of no table: expected a head and a rule above it")


# --- lengths and ratchets ----------------------------------------------------------------------------


class Recorded(NamedTuple):
    line: int
    limit: int


def recorded(tree: Tree) -> dict[str, Recorded]:
    entries = {}
    for number, line in enumerate(tree.text(EXCEPTIONS).splitlines(), 1):
        fields = line.split(maxsplit=2)
        if fields and not line.startswith("#"):
            limit = int(fields[1]) if len(fields) == 3 and fields[1].isdigit() else -1
            entries[fields[0]] = Recorded(number, limit)
    return entries


def lengths_of(tree: Tree) -> Iterator[tuple[str, str, int, int, int]]:
    """(key, path, line, lines, limit) of each file and function."""
    for path in tree.named(".cc", ".h", ".py", ".ts", ".mjs"):
        yield path, path, 0, tree.text(path).count("\n"), FILE_LINES
        if path.endswith(CODE):
            for name, line, lines in functions_of(tree.code(path)):
                yield f"{path}:{name}", path, line, lines, FUNCTION_LINES
        if not path.endswith(".py"):
            continue
        try:
            module = ast.parse(tree.text(path))
        except SyntaxError as error:
            yield path, path, error.lineno or 1, FILE_LINES + 1, FILE_LINES
            continue
        for node in ast.walk(module):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                yield f"{path}:{node.name}", path, node.lineno, lines, FUNCTION_LINES


def check_lengths(tree: Tree) -> Findings:
    entries = recorded(tree)
    longest: dict[str, int] = {}
    for key, path, line, lines, limit in lengths_of(tree):
        longest[key] = max(lines, longest.get(key, 0))
        allowed = max(limit, entries[key].limit) if key in entries else limit
        if lines > allowed:
            what = "function" if ":" in key else "file"
            yield Finding(path, line, f"{what} of {lines} lines, over {allowed} ({key})")
    for key, (line, limit) in entries.items():
        if key in ("raw_double", "typescript_any"):
            continue
        usual = FUNCTION_LINES if ":" in key else FILE_LINES
        now = longest.get(key, 0)
        if limit < 0:
            yield Finding(EXCEPTIONS, line, "expected: KEY LINES why")
        elif now <= usual:
            yield Finding(EXCEPTIONS, line, f"{key} needs no exception any more; remove the line")
        elif now < limit - SLACK_LINES:
            yield Finding(EXCEPTIONS, line, f"{key} has {now} lines now; lower it")


def check_raw_doubles(tree: Tree) -> Findings:
    """A number in a public header names its unit, or is a type of units/. The count of those that do
    not is recorded, so that it can only fall."""
    found = []
    for path in tree.named(".h"):
        if module_of(path) in (None, "base", "units") or path.endswith("_internal.h"):
            continue
        code = tree.code(path)
        for match in RAW_DOUBLE.finditer(code):
            if not match[1].endswith("_") and not UNIT_WORD.search(match[1]):
                found.append(Finding(path, line_of(code, match.start(1)),
                                     f"'{match[1]}': a number without a unit"))
    line, limit = recorded(tree).get("raw_double", Recorded(0, 0))
    if len(found) > limit:
        for finding in found:
            message = f"{finding.message} (there are {len(found)}, recorded {limit})"
            yield finding._replace(message=message)
    elif len(found) < limit:
        yield Finding(EXCEPTIONS, line, f"only {len(found)} numbers without a unit are left; lower it")


CHECKS = [check for name, check in list(globals().items()) if name.startswith("check_")]


def tree_of(root: pathlib.Path) -> Tree:
    """Tracked files and those that git would track; without git, everything outside build/."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=False)
    if listed.returncode == 0:
        paths = [root / name for name in listed.stdout.decode().split("\0") if name]
    else:
        skipped = {"build", ".git", ".cache", "__pycache__", "node_modules"}
        paths = [path for path in root.rglob("*") if not skipped & set(path.relative_to(root).parts)]
    return Tree({str(path.relative_to(root)): path.read_bytes() for path in paths if path.is_file()})


def main() -> int:
    if len(sys.argv) > 1:
        print(f"tidy.py: unknown argument '{sys.argv[1]}', expected none", file=sys.stderr)
        return 2
    tree = tree_of(pathlib.Path(__file__).resolve().parent.parent)
    findings = sorted({finding for check in CHECKS for finding in check(tree)})
    for finding in findings:
        print(finding)
    print(f"tidy: {len(findings)} findings in {len(tree.files)} files")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
