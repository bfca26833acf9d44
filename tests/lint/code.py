"""Rules about C: the order of the rooms, the preprocessor, lengths, globals, the layout."""

import os
import re
import subprocess
import tempfile

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
C = (".c", ".h")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
ROOM_LIST = re.compile(r"foreach room : \[([^\]]*)\]")
PRIVATE = ("_parts.h", "internal.h")
# Beside the list in src/meson.build: the guest is linked with the jail, and the rooms after it
# share wire.h with it; programs know everything.
BEHIND = {"guest": "jail"}
LAST = "prog"


def _places(meson):
    match = ROOM_LIST.search(meson)
    rooms = re.findall(r"'([^']+)'", match.group(1)) if match else []
    for room, before in BEHIND.items():
        if before in rooms:
            rooms.insert(rooms.index(before) + 1, room)
    return {room: place for place, room in enumerate(rooms + [LAST])}


def layers(tree):
    """A room includes itself and the rooms above it; private headers stay in their room."""
    places = _places(tree.texts.get("src/meson.build", ""))
    if len(places) < 2:
        return ["src/meson.build: no list of rooms was found"]
    found = []
    for path, text in tree.under("src/", *C):
        room = path.split("/")[1]
        if room not in places:
            found.append("%s: %s is no room of src/meson.build" % (path, room))
            continue
        for header in INCLUDE.findall(text):
            other = header.split("/")[0]
            if other not in places:
                found.append('%s: "%s" names no room: write "room/header.h"' % (path, header))
            elif places[other] > places[room]:
                found.append('%s: %s lies above %s and must not know "%s"'
                             % (path, room, other, header))
            elif other != room and header.endswith(PRIVATE):
                found.append('%s: "%s" is private to %s' % (path, header, other))
    return found


CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b")


def preprocessor(tree):
    """#if is the kernel room's alone, and headers are guarded by #pragma once."""
    found = []
    for path, text in tree.under("src/", *C):
        for number, line in enumerate(text.splitlines(), 1):
            if CONDITION.match(line) and not path.startswith("src/kernel/"):
                found.append("%s:%d: a condition outside src/kernel: %s"
                             % (path, number, line.strip()))
        # banned.h is forced into every file, and included by none.
        if path.endswith(".h") and "#pragma once" not in text and "/banned.h" not in path:
            found.append("%s: no #pragma once" % path)
    return found


def file_lengths(tree):
    """No source file is longer than two sittings."""
    found = []
    for prefix in ("src/", "tests/", "bench/", "tools/"):
        for path, text in tree.under(prefix, ".c", ".h", ".py", "/run"):
            lines = text.count("\n")
            if lines > FILE_LINES_MAX:
                found.append("%s: %d lines, more than %d" % (path, lines, FILE_LINES_MAX))
    return found


def _functions(text):
    """(first line, name, length) of each function: its braces stand in the first column."""
    lines = text.splitlines()
    start = None
    for number, line in enumerate(lines):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            head = start - 1
            while head > 0 and lines[head - 1].strip() and lines[head - 1][-1] not in ";}/":
                head -= 1
            names = re.findall(r"(\w+)\(", " ".join(lines[head:start]))
            yield head + 1, names[-1] if names else "?", number - head + 1
            start = None


def function_lengths(tree):
    """A function fits a screen."""
    found = []
    for prefix in ("src/", "tests/"):
        for path, text in tree.under(prefix, *C):
            found += ["%s:%d: %s has %d lines, more than %d"
                      % (path, line, name, length, FUNCTION_LINES_MAX)
                      for line, name, length in _functions(text)
                      if length > FUNCTION_LINES_MAX]
    return found


# A definition in the first column whose type is not const all the way: `static int n;`,
# `static const char *names[]` (the pointers change), but no function and no declaration.
GLOBAL = re.compile(r"^(?!extern|typedef|struct \w+ \{|enum|return|_Static_assert|PyMODINIT)"
                    r"(?P<type>[A-Za-z_][\w ]*?[ *]+(?:const )?)(?P<name>\w+)"
                    r"(?:\[[^\]]*\])*(?: = .*|;)$")
# CPython takes these by a pointer that is not const.
FOREIGN = re.compile(r"\b(?:PyMethodDef|PyModuleDef|PyModuleDef_Slot)\b")


def mutable_globals(tree):
    """State lives in structs that somebody owns, except in programs."""
    found = []
    for path, text in tree.under("src/", ".c"):
        if path.startswith("src/prog/"):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            match = GLOBAL.match(line)
            if not match or FOREIGN.search(line):
                continue
            of_pointers = "*" in match["type"]
            constant = match["type"].rstrip().endswith("const") if of_pointers \
                else re.search(r"\bconst\b", match["type"])
            if not constant:
                found.append("%s:%d: a global that can change: %s" % (path, number, line))
    return found


THREAD = re.compile(r"\bpthread_create\b|\bthrd_create\b|<threads\.h>")


def threads(tree):
    """One thread in every process of ours: fork, locks and signals stay simple."""
    return ["%s: starts threads: %s" % (path, match.group(0))
            for path, text in tree.under("src/", *C) for match in THREAD.finditer(text)]


def openings(tree):
    """A file opens with a comment that says what its job is."""
    return ["%s: does not open with a comment" % path
            for path, text in tree.under("src/", *C) if not text.startswith("/*")]


def _write(tree, folder, paths):
    for path in paths:
        os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
        with open(os.path.join(folder, path), "w") as file:
            file.write(tree.texts[path])


def layout(tree):
    """clang-format has nothing to change."""
    paths = [path for prefix in ("src/", "tests/") for path, _ in tree.under(prefix, *C)]
    with tempfile.TemporaryDirectory(prefix="lint-") as folder:
        _write(tree, folder, paths + [".clang-format"])
        done = subprocess.run(["clang-format", "--dry-run", "-Werror", "--style=file", *paths],
                              cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True)
    if done.returncode == 0:
        return []
    places = re.findall(r"^([^:\s]+):(\d+):\d+: error:", done.stderr, re.M)
    first = {}
    for path, line in places:
        first.setdefault(path, [line, 0])[1] += 1
    return ["%s:%s: clang-format would change this, and %d more places of the file"
            % (path, line, count - 1) for path, (line, count) in first.items()] or \
        [done.stderr[-500:]]
