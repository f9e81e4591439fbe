"""C++ read as text, well enough for tidy.py: without comments and strings, and cut into functions.

A parser would need the build's flags and a minute; this needs neither. It relies on the formatter's habits
and may be fooled by macros that open braces, of which the tree has none.
"""

import re
from typing import Iterator

CODE_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|\bR"([^()\\ ]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
    r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.S)
MACRO = re.compile(r"^[ \t]*#[ \t]*define\b(?:[^\n]*\\\n)*[^\n]*", re.M)


def strip_code(text: str) -> str:
    def blank(match: re.Match[str]) -> str:
        newlines = "\n" * match[0].count("\n")
        return newlines if match[0].startswith("/") else '""' + newlines

    text = CODE_TOKEN.sub(blank, text)
    return MACRO.sub(lambda match: "\n" * match[0].count("\n"), text)


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


FUNCTION_HEAD = re.compile(
    r"(?P<name>[\w~]*)\s*(?P<open>\().*\)\s*"
    r"(?:const|noexcept|override|final|mutable|&&?|try|->[^;]*|:[^;]*|requires\b.*|\s)*$", re.S)
TYPE_HEAD = re.compile(
    r"^\s*(?:template\s*<.*>\s*)?(?:inline\s+)?"
    r"(?:namespace|class|struct|union|enum|extern)\b(?!.*\)\s*$)", re.S)
TEST_HEAD = re.compile(r"\(\s*(\w+)\s*,\s*(\w+)\s*\)")


def functions_of(code: str) -> Iterator[tuple[str, int, int]]:
    """(name, line, lines) of each function of stripped C++. A function is a brace after a parameter list
    that no other function encloses; its lambdas count with it."""
    depth = 0  # open braces
    body_depth = None  # of the function that we are in
    name, start = "", 0
    head = 0  # where the text before the next brace begins
    for match in re.finditer(r"[{};]", code):
        if match[0] == "{":
            text = code[head:match.start()]
            found = None
            if body_depth is None and not TYPE_HEAD.match(text):
                found = FUNCTION_HEAD.search(text)
            if found:
                body_depth = depth
                start = head + len(text) - len(text.lstrip())
                name = found["name"] or "lambda"
                test = TEST_HEAD.match(text, found.start("open")) if name.isupper() else None
                if test:
                    name = f"{test[1]}.{test[2]}"
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == body_depth:
                first = line_of(code, start)
                yield name, first, line_of(code, match.start()) - first + 1
                body_depth = None
        head = match.end()
