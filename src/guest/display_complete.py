# What could stand at a cursor, and whether a text is whole: questions about code that is not run.
# A part of display.py, loaded when one is asked (display.c); the answer goes out as an item.

MATCHES = 500


def complete(source, kind, names):
    """source: the text as bytes. kind: "matches", at its end, or "state". names: of __main__."""
    text = source.decode("utf-8", "replace")
    item = _Item()
    item.data["application/json"] = _matches(text, names) if kind == "matches" else \
        {"state": _state(text)}
    _send(item, False)


def _state(text):
    """As Python's own prompt has it: a block is whole when an empty line follows it."""
    import codeop
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in ("single", "exec"):  # the second for more than one statement
            try:
                code = codeop.compile_command(text, "<input>", kind)
            except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError):
                continue
            return "incomplete" if code is None else "complete"
    return "invalid"


def _matches(text, names):
    at = len(text)
    while at > 0 and (text[at - 1] == "." or ("_" + text[at - 1]).isidentifier()):
        at -= 1
    head, dot, stem = text[at:].rpartition(".")
    known = _members(head, names) if dot else _globals(names)
    found = sorted({name for name in known if name.startswith(stem) and
                    (stem or not name.startswith("_"))}) if dot or stem else []
    return {"start": at, "matches": [head + dot + name for name in found[:MATCHES]],
            "more": max(0, len(found) - MATCHES)}


def _globals(names):
    import builtins
    import keyword
    known = [name for name in names if type(name) is str]
    return known + dir(builtins) + keyword.kwlist


def _members(head, names):
    """Attributes alone are followed: no call, no index."""
    import builtins
    first, *others = head.split(".")
    if first in names:
        thing = names[first]
    elif first in vars(builtins):
        thing = vars(builtins)[first]
    else:
        return []
    try:
        for name in others:
            thing = getattr(thing, name)
        return [name for name in dir(thing) if type(name) is str and name.isidentifier()]
    except Exception:
        return []
