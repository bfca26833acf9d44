"""Sections of the validation suite that are about one thing each: where, how, how much."""

import json
import os
import resource
import time

import sarif

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
BOMB_LIMIT_S = 12


def _one(suite, source, *options):
    source = source if isinstance(source, bytes) else source.encode()
    return suite.check({"x": source}, *options)["x"]


def _places(said):
    return [(f["rule"], f["line"], f["column"], f["end_line"], f["end_column"])
            for f in said["findings"]]


# (what, source, rule, line, column, end column, part of the message)
PLACES = [
    ("a call", "import os\nx = os.system('ls')\n", "process-start", 2, 5, 14, "os.system starts"),
    ("behind characters of two bytes", "import os\né = 'üü'; os.system('ls')\n", "process-start",
     2, 11, 20, "os.system"),
    ("behind characters of four bytes", "import os\ns = '😀😀'; os.system(s)\n", "process-start",
     2, 11, 20, "os.system"),
    ("behind tabs", "import os\nif 1:\n\tos.system('ls')\n", "process-start", 3, 2, 11, "os.system"),
    ("with CRLF", "import os\r\n\r\nos.system('ls')\r\n", "process-start", 3, 1, 10, "os.system"),
    ("with CR alone", "import os\r\ros.system('ls')\r", "process-start", 3, 1, 10, "os.system"),
    ("behind a byte order mark", "\ufeffimport os; os.system('ls')\n", "process-start", 1, 12, 21,
     "os.system"),
    ("an alias", "from os import system as s\ns('ls')\n", "process-start", 2, 1, 2,
     "'s' is os.system, which starts a shell"),
    ("folded", "import os\ngetattr(os, 'sys' + 'tem')\n", "process-start", 2, 1, 27,
     "'getattr(os, 'sys' + 'tem')' is os.system"),
    ("a path", "open('/etc/' + 'passwd')\n", "file-outside", 1, 1, 25, "open: '/etc/passwd' is outside"),
    ("a climb", "open('a/../../etc/passwd')\n", "file-outside", 1, 1, 27,
     "'a/../../etc/passwd' is /etc/passwd, which is outside"),
    ("the start of a path", "import sys\nopen(f'/etc/{sys.argv[0]}')\n", "file-outside", 2, 1, 28,
     "a path that begins with '/etc/'"),
    ("a syntax error", "x = 1\nif x\n    pass\n", "syntax-error", 2, 5, 5, "expected ':'"),
    ("an indentation error", "def f():\nreturn 1\n", "syntax-error", 2, 1, 7,
     "IndentationError: expected an indented block"),
    ("an error of the compiler", "x = 1\nreturn x\n", "syntax-error", 2, 1, 9, "outside function"),
    ("an unclosed bracket", "value = (1 + 2\nfor i in x:\n    pass\n", "syntax-error", 1, 9, 9,
     "'(' was never closed"),
    ("in text that is run", "x = 1\nexec('import os; os.system(\"x\")')\n", "process-start", 2, 1, 34,
     "in the text that is run here: os.system"),
]


def positions(suite):
    """Line, column in characters, and CPython's own words."""
    for what, source, rule, line, column, end, part in PLACES:
        said = _one(suite, source)
        found = [f for f in said["findings"] if f["rule"] == rule and f["line"] == line
                 and f["column"] == column]
        problems = [] if found else ["seen: %s" % _places(said)]
        problems += [] if not found or part in found[0]["message"] else [found[0]["message"]]
        if found and found[0]["end_column"] != end and rule != "syntax-error":
            problems.append("ends at %s, not %s" % (found[0]["end_column"], end))
        suite.point("place: " + what, problems)
    said = _one(suite, "# -*- coding: latin-1 -*-\nimport os\nx = 'ä'; os.system('ls')\n".encode("latin-1"))
    suite.point("place: behind a character of latin-1",
                [] if ("process-start", 3, 10, 3, 19) in _places(said) else [_places(said)])
    comment = "import os  # adyton: allow process-start\nos.system('ls')  # noqa  # adyton: allow process-start\n"
    suite.point("comments allow nothing",
                [] if _one(suite, comment)["verdict"] == "rejected" else ["accepted"])


HARMLESS = """import os, shutil, sys
import os.path as p
os_name = "import os; os.system('x')"
eval_count = {"exec": 1, "system": 2}
print(os.path.join("a", "b"), os.getcwd(), os.environ.get("HOME"), shutil.disk_usage("/"))
print(p.exists("/etc/passwd"), os.name, os.sep, os_name, eval_count["exec"], os.cpu_count())
class Runner:
    def system(self): return "os.system"
    def eval(self): return self.system()
Runner().system()
"""


def formats(suite):
    """Text with a caret, JSON, SARIF, and the exit statuses."""
    files = {"clean": (b"print(1)\n", 0), "note": (b"import sys\nsys.settrace(None)\n", 0),
             "warning": (b"eval(input())\n", 1), "rejected": (b"import os\nos.system('x')\n", 126),
             "syntax": (b"x = (\n", 126)}
    paths = {}
    for name, (source, status) in files.items():
        paths[name] = os.path.join(suite.work, name + " ü.py")
        with open(paths[name], "wb") as file:
            file.write(source)
        for form in ("text", "json", "sarif"):
            done = suite.call("check", "--format", form, paths[name])
            suite.point("exit status of %s as %s" % (name, form),
                        [] if done.returncode == status else [done.returncode, done.stdout[-300:]])
    done = suite.call("check", paths["clean"], paths["warning"], paths["rejected"])
    suite.point("the worst of several files counts", [] if done.returncode == 126 else [done])
    done = suite.call("check", "/none/such.py", paths["clean"])
    suite.point("a file that is not there", [] if done.returncode == 125 and
                b"No such file" in done.stdout else [done])
    done = suite.call("check", "-", stdin=b"import os\nos.system('x')\n")
    wanted = b"     2 | os.system('x')\n       | ^~~~~~~~~\n"
    suite.point("standard input, the line and a caret", [] if wanted in done.stdout else [done.stdout])
    done = suite.call("check", "--memory", "8M", "--cgroup=optional", paths["clean"])
    suite.point("an option of the policy", [] if done.returncode in (0, 125) else [done])
    for args in (("check",), ("check", "--memory", "1T", "x"), ("check", "--format", "xml", "x"), ("check", "--frob", "x"),
                 ("check", "--policy", "none", "x")):
        done = suite.call(*args)
        suite.point("wrong use: " + " ".join(args), [] if done.returncode == 2 else [done])
    done = suite.call("check", "--format", "sarif", *paths.values())
    suite.point("SARIF 2.1.0", sarif.problems(json.loads(done.stdout), list(files)))
    escapes = b"x = '\x1b[2J\x1b]0;title\x07'; import os; os.system('\xe2\x80\xae')\n"
    done = suite.call("check", "-", stdin=escapes)
    suite.point("nothing drives a terminal", [] if b"\x1b" not in done.stdout and
                b"\xe2\x80\xae" not in done.stdout and done.returncode == 126 else [done.stdout])
    said = _one(suite, HARMLESS)
    suite.point("what only looks dangerous is no finding", [] if not said["findings"] else
                [f["message"] for f in said["findings"]])
    trace = os.path.join(suite.host.outside, "ran")
    effects = "print('RAN')\nopen(%r, 'w')\n@print\nclass A:\n    print('RAN')\n" % trace
    done = suite.call("check", "-", stdin=effects.encode())
    suite.point("checking executes nothing", [] if b"RAN\n" not in done.stdout
                and not os.path.exists(trace) else [done])


STRICT = [("import os", 126), ("import os.path", 126), ("from os import path", 126),
          ("from concurrent.futures import ThreadPoolExecutor", 126), ("import subprocess as s", 126),
          ("__import__('o' + 's')", 126), ("import importlib", 126), ("import socket", 126),
          ("import math, json, re, datetime", 0), ("import osmium", 0), ("os = 1", 0),
          ("s = 'import os'", 0), ("eval('1')", 126)]


def policies(suite):
    """Lists, severities and modes come from the policy."""
    for source, status in STRICT:
        done = suite.call("check", "--policy", "strict", "-", stdin=source.encode())
        suite.point("strict: " + source, [] if done.returncode == status else [done.stdout[-300:]])
    policy = os.path.join(suite.work, "own.yaml")
    with open(policy, "w") as file:
        file.write("imports_denied: [json]\nrules: {dynamic-code: error, process-start: warning}\n"
                   "read_paths: [/usr/share]\n")
    for source, status in (("import os; os.system('x')", 1), ("eval('1')", 126),
                           ("import json", 126), ("from json import loads", 126),
                           ("import posix", 0), ("open('/usr/share/x')", 0),
                           ("open('/usr/share/x', 'w')", 126), ("open('/usr/shared')", 126)):
        done = suite.call("check", "--policy", policy, "-", stdin=source.encode())
        suite.point("a policy of one's own: " + source,
                    [] if done.returncode == status else [done.stdout[-300:]])
    for options, status, found in (((), "rejected", True), (("--validation", "warn"), "exception", True),
                                   (("--validation", "off"), "exception", False),
                                   (("--policy", "open"), "exception", True)):
        outcome = suite.run(b"x = 1\nopen('/nonexistent/file')\n", *options)
        problems = [] if outcome["status"] == status else [outcome["status"], outcome["message"]]
        rules = [f["rule"] for f in outcome["findings"]]
        problems += [] if (rules == ["file-outside"]) == found else [rules]
        suite.point("a run: %s" % (" ".join(options) or "as the policy says"), problems)
    outcome = suite.run(b"import os\nos.system('x')\nprint('ran')\n")
    seen = [(i["rule"], i["layer"], i["action"], i["line"]) for i in outcome["incidents"]]
    suite.point("a rejected run has its incident and no output", [] if outcome["stdout"] == "" and
                seen == [("process-start", "ast", "refused", 2)] and outcome["usage"]["wall_ms"] == 0
                else [seen, outcome["stdout"], outcome["usage"]])
    outcome = suite.run(b"s = 'a\\d'\nprint(s is 'x')\n")
    suite.point("warnings are shown once", [] if outcome["status"] == "ok" and
                outcome["stderr"].count("SyntaxWarning") == 1 else [outcome["stderr"]])
    outcome = suite.run(b"import sys, gc\nprint('_ast' in sys.modules, gc.isenabled(),"
                        b" [f for f in sys.warnoptions])\nimport warnings\nprint(len(warnings.filters))")
    plain = suite.run(b"import sys, gc\nprint('_ast' in sys.modules, gc.isenabled(),"
                      b" [f for f in sys.warnoptions])\nimport warnings\nprint(len(warnings.filters))",
                      "--validation", "off")
    suite.point("validation leaves nothing behind", [] if outcome["stdout"] == plain["stdout"] != ""
                else [outcome["stdout"], plain["stdout"]])
    shadow = os.path.join(suite.work, "warnings.py")
    with open(shadow, "w") as file:
        file.write("print('IMPORTED')\n")
    done = suite.call("run", "--json", "--file", shadow, "-c", "x = 1 is 1\nimport os\nos.system('x')\n")
    suite.point("validation imports nothing of the job's", [] if b"IMPORTED" not in done.stdout and
                json.loads(done.stdout)["status"] == "rejected" else [done.stdout])


def _deep(template, depth, end=""):
    return template * depth + end


# (what, source, the rules one of which must be the reason; empty: accepted)
BOMBS = [
    ("1 MiB of brackets", b"(" * MIB, {"syntax-error"}),
    ("1 MiB of brackets in pairs", b"(" * (MIB // 2) + b")" * (MIB // 2), {"syntax-error"}),
    ("1 MiB of list brackets", b"x = " + b"[" * (MIB - 5), {"syntax-error"}),
    ("150 brackets", b"x = " + b"(" * 150 + b"1" + b")" * 150, set()),
    ("20,000 signs", b"x = " + b"-" * 20000 + b"1", {"parser-exhausted", "syntax-error"}),
    ("20,000 negations", b"x = " + b"not " * 20000 + b"1", {"parser-exhausted", "syntax-error"}),
    ("20,000 additions", b"x = 0" + b"+0" * 20000, {"parser-exhausted", "syntax-error"}),
    ("900 additions", b"x = 'a'" + b"+'a'" * 900, set()),
    ("20,000 attributes", b"x = a" + b".a" * 20000, {"parser-exhausted", "syntax-error"}),
    ("20,000 calls", b"x = a" + b"()" * 20000, {"parser-exhausted", "syntax-error"}),
    ("100,000 assignments in a row", b"a=" * 100000 + b"1", set()),
    ("5,000 elifs", b"if 0: pass\n" + b"elif 0: pass\n" * 5000,
     {"parser-exhausted", "syntax-error"}),
    ("400 elifs", b"if 0: pass\n" + b"elif 0: pass\n" * 400, set()),
    ("100 levels of blocks", "".join(" " * i + "if 1:\n" for i in range(101)).encode(), {"syntax-error"}),
    ("90 levels of functions", ("".join(" " * i + "def f():\n" for i in range(90)) + " " * 90
                                + "pass\n").encode(), set()),
    ("lambdas in lambdas", b"x = " + b"lambda: " * 5000 + b"1", {"parser-exhausted", "syntax-error"}),
    ("f-strings in f-strings", b"x = f'{f\"{f}\"}'\n", set()),
    ("a NUL byte", b"x = 1\ny = '\0'\n", {"source-encoding"}),
    ("invalid UTF-8", b"x = 1\ny = '\xff'\n", {"source-encoding"}),
    ("a cut character", b"x = '\xe2\x82", {"source-encoding"}),
    ("an encoded surrogate", b"x = '\xed\xa0\x80'\n", {"source-encoding"}),
    ("utf-7", b"# -*- coding: utf-7 -*-\nx = 1\n", {"obfuscation"}),
    ("utf-7 in the second line", b"#!/usr/bin/python\n# vim: set fileencoding=UTF-7 :\n", {"obfuscation"}),
    ("a codec that hides", b"# coding: raw_unicode_escape\nx = 1\n", {"obfuscation"}),
    ("an unknown codec", b"# coding: klingon\nx = 1\n", {"source-encoding"}),
    ("latin-1", "# coding: latin-1\nx = 'ä'\n".encode("latin-1"), set()),
    ("ASCII that is none", "# coding: ascii\nx = 'ä'\n".encode(), {"source-encoding"}),
    ("cp1252", "# coding: cp1252\nx = '€'\n".encode("cp1252"), set()),
    ("a byte order mark", b"\xef\xbb\xbfx = 1\n", set()),
    ("a byte order mark and utf-8", b"\xef\xbb\xbf# coding: utf-8\nx = 1\n", set()),
    ("a byte order mark and latin-1", b"\xef\xbb\xbf# coding: latin-1\nx = 1\n", {"source-encoding"}),
    ("utf-16", "x = 1\n".encode("utf-16"), {"source-encoding"}),
    ("a coding comment in the third line", b"\n\n# coding: utf-7\nx = 1\n", set()),
    ("a coding comment below code", b"x = 1\n# coding: utf-7\n", set()),
    ("lone surrogates", b"x = '\\ud800'\nopen('/etc/\\udcff')\n", {"file-outside"}),
    ("lone surrogates in names of files", b"open('\\ud800')\n", set()),
    ("nothing at all", b"", set()),
    ("only a comment", b"# nothing", set()),
    ("longer than the limit", b"#" * (MIB + 1), {"source-size"}),
    ("exactly the limit", b"#" * MIB, set()),
    ("1 MiB of one name", b"x = " + b"a" * (MIB - 4), set()),
    ("1 MiB of one string", b"x = '" + b"a" * (MIB - 6) + b"'", set()),
    ("1 MiB of lines of code", (b"value = transform(value, 'some text', key=3)  # and a comment\n"
                                * (MIB // 64))[:MIB // 64 * 62], set()),
    ("a number of 100,000 digits", b"x = " + b"1" * 100000, {"syntax-error"}),
    ("folding that would grow", b"x = 'a' * 60000\n" + b"x = x + x\n" * 5000, set()),
    ("formats that would grow", b"x = '%099999999d' % 1\ny = '{:>999999999}'.format(1)\n"
     b"z = '%*d' % (999999999, 1)\nw = 'a'.ljust(10**9)\n", set()),
    ("comprehensions in comprehensions", b"x = [[[[[[[[chr(a) for a in range(9)] for b in (1,2,3,4,5,6,7)]"
     b" for c in (1,2,3,4,5,6,7)] for d in (1,2,3,4,5,6,7)] for e in (1,2,3,4,5,6,7)]"
     b" for f in (1,2,3,4,5,6,7)] for g in (1,2,3,4,5,6,7)] for h in (1,2,3,4,5,6,7)]\n", set()),
    ("values that split again and again", b"".join(b"if a: x%d = (x%d, x%d)\n" % (i, i - 1, i - 1)
                                                   for i in range(1, 3000)), set()),
    ("exec in exec in exec", b"exec('exec(\"exec(\\\\\"import os\\\\\")\")')\n" * 2000, set()),
]


def bombs(suite):
    """What exhausts or breaks parsers: exact reasons, in bounded time and memory."""
    for what, source, reasons in BOMBS:
        began = time.monotonic()
        said = _one(suite, source)
        took = time.monotonic() - began
        rules = {f["rule"] for f in said["findings"] if f["severity"] == "error"}
        wanted = "rejected" if reasons else "accepted"
        problems = [] if said["verdict"] == wanted else ["%s: %s" % (said["verdict"], said["findings"][:2])]
        problems += [] if not reasons or rules & reasons else [rules]
        problems += [] if took < BOMB_LIMIT_S else ["%.1f s" % took]
        suite.point("bomb: %s" % what, problems)
    flood = b"import os\n" + b"os.system('x')\n" * 100000 + b"import ctypes\nctypes.CDLL(None)\n"
    large = ("--policy", os.path.join(HERE, "large.yaml"))
    said = _one(suite, flood, *large)
    kept = {}
    for finding in said["findings"]:
        kept[finding["rule"]] = kept.get(finding["rule"], 0) + 1
    suite.point("100,000 findings: at most 1,000 are kept, each rule has its place",
                [] if said["verdict"] == "rejected" and len(said["findings"]) <= 1000
                and kept.get("native-code") == 1 and kept["process-start"] > 700
                and said["findings_dropped"] + len(said["findings"]) == 100001
                else [said["verdict"], kept, said["findings_dropped"]])
    notes = b"import sys\n" + b"sys.settrace;" * 80000 + b"\nimport os\nos.system('x')\n"
    said = _one(suite, notes, *large)
    suite.point("80,000 notes do not hide an error", [] if said["verdict"] == "rejected" else
                [said["verdict"], said["findings"][:1]])
    said = _one(suite, b"x = " + b"f(1)\nx = " * 110000 + b"1", "--policy", os.path.join(HERE, "small.yaml"))
    suite.point("a parser out of memory is a reason", [] if said["verdict"] == "rejected" and
                said["findings"][0]["rule"] == "parser-exhausted" else [said])
    peak_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    suite.point("no process of adyton took more than 512 MiB", [] if peak_mib < 512 else [peak_mib])
