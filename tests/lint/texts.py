"""Rules about words, tables and documents."""

import re

# Said in pieces: this file is read by its own rule.
MARKS = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"))
                   + r")\b|\b(?i:" + "st" + r"ub(?:bed)?)\b")
PLACES = re.compile(r"(?<![\w/])/(?:" + "wo" + r"rk/\w|ro" + r"ot/(?:\.pyenv|\.cache|\.local|src|adyton))")
HOSTS = re.compile("|".join(("pypi" + r"\.org", "python" + r"hosted\.org", "registry"
                             + r"\.npmjs", "deb" + r"\.debian\.org", "proxy" + r"\.golang",
                             "static" + r"\.crates", "gh" + r"cr\.io", "qu" + r"ay\.io")))
# What attack code reaches for, and the names that it is told from.
CORPUS = "tests/cases/corpus/"


def words(tree):
    """No marks of unfinished work, no paths of one machine, no registry hosts."""
    found = []
    for path, text in tree.under(""):
        for number, line in enumerate(text.splitlines(), 1):
            for what, pattern in (("unfinished", MARKS), ("a path of one machine", PLACES),
                                  ("a registry host", HOSTS)):
                match = pattern.search(line)
                if match and not path.startswith(CORPUS):
                    found.append("%s:%d: %s: %s" % (path, number, what, match.group(0)))
    return found


# Tables whose rows carry a reason: file, table, what stands before the reason in a row.
TABLES = (
    ("src/jail/syscalls.c", "jail_syscalls[]", r'\{CALL\((?P<name>\w+)\)[^"]*'),
    ("src/jail/enter.c", "jail_enter_steps[]", r'\{"(?P<name>\w+)",\s*'),
    ("src/jail/seal.c", "jail_seal_steps[]", r'\{"(?P<name>\w+)",\s*'),
)
REASON = r'"(?P<why>[^"]*)"'
REASON_LETTERS_MIN = 4


def _rows(text, table):
    """The rows of one table, each on a line of its own."""
    start = text.find(table)
    body = text[text.find("{", start) + 1:text.find("\n};", start)] if start >= 0 else ""
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    rows, row, depth = [], "", 0
    for piece in re.findall(r'"(?:[^"\\]|\\.)*"|[{}]|[^"{}]+', body):
        depth += (piece == "{") - (piece == "}")
        if depth or piece == "}":
            row += " ".join(piece.split()) if not piece.startswith('"') else piece
        if piece == "}" and depth == 0:
            rows.append(row)
            row = ""
    return rows


def reasons(tree):
    """Every row of a table that decides has its reason, in words."""
    found = []
    for path, table, begins in TABLES:
        if path not in tree.texts:
            found.append("%s: is not there" % path)
            continue
        rows = _rows(tree.texts[path], table)
        if not rows:
            found.append("%s: no rows of %s were found" % (path, table))
        for row in rows:
            name, why = re.match(begins, row), re.match(begins + REASON, row)
            if not name:
                found.append("%s: a row of %s without a name: %s" % (path, table, row[:60]))
            elif not why or len(re.sub(r"\W", "", why["why"])) < REASON_LETTERS_MIN:
                found.append("%s: the row %s of %s has no reason" % (path, name["name"], table))
    return found


LINK = re.compile(r"\[[^\]]+\]\((?!https?:|mailto:)([^)\s]*)\)")
HEADING = re.compile(r"^#+ +(.*?) *$", re.M)
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)


def _anchors(text):
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in HEADING.findall(FENCE.sub("", text))}


def _resolve(path, target):
    parts = path.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def links(tree):
    """A link of a document leads to a file, or a heading, that is there."""
    found = []
    for path, text in tree.under("", ".md"):
        for link in LINK.findall(FENCE.sub("", text)):
            target, _, anchor = link.partition("#")
            where = _resolve(path, target) if target else path
            if where is None or (target and not tree.has(where)):
                found.append("%s: a link to %s, which is not there" % (path, target))
            elif anchor and anchor not in _anchors(tree.texts.get(where, "")):
                found.append("%s: %s has no heading #%s" % (path, where, anchor))
    return found


COMMANDS = ("make run", "make test")
SECTIONS = {"docs/ARCHITECTURE.md": None, "docs/THREATS.md": None, "LICENSE": "Apache License"}


def documents(tree):
    """The documents that people are promised are there, and say the two commands."""
    found = ["%s: is not there" % path for path in SECTIONS if path not in tree.texts]
    found += ["%s: does not say '%s'" % (path, text) for path, text in SECTIONS.items()
              if text and text not in tree.texts.get(path, "")]
    readme = tree.texts.get("README.md", "")
    found += ["README.md: does not say '%s'" % text for text in COMMANDS if text not in readme]
    makefile = tree.texts.get("Makefile", "")
    found += ["Makefile: has no target '%s'" % text.split()[1] for text in COMMANDS
              if not re.search(r"^%s:" % text.split()[1], makefile, re.M)]
    return found


OPTION = re.compile(r'"(--[a-z][a-z0-9-]+)"')


def manuals(tree):
    """Each option that the program knows is in a manual page, and each page has a name."""
    pages = {path: text.replace("\\-", "-") for path, text in tree.under("man/")}
    every = "\n".join(pages.values())
    found = ["%s: no NAME section" % path for path, text in pages.items()
             if ".SH NAME" not in text]
    for prefix in ("src/door/", "src/prog/", "src/policy/fields.c"):
        for path, text in tree.under(prefix, ".c"):
            for option in sorted(set(OPTION.findall(text))):
                if not re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(option), every):
                    found.append("%s: %s is in no manual page" % (path, option))
    return found
