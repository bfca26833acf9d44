"""What each rule must find, and what it must leave alone: a rule that finds nothing in its bad
samples would pass over the real tree just as well."""

MESON = {"src/meson.build": "foreach room : ['base', 'kernel', 'jail', 'cell', 'door']\n"}
MARK, HOST, HERE = "TO" + "DO", "pypi" + ".org", "/wo" + "rk/main"
LONG_FUNCTION = "/* f */\nstatic int\nlong_one(void)\n{\n" + "    go();\n" * 60 + "}\n"
SHORT_FUNCTION = LONG_FUNCTION.replace("    go();\n" * 5, "", 1)
STYLE = "BasedOnStyle: LLVM\nIndentWidth: 4\nColumnLimit: 90\n"
STEPS = 'const struct enter_step jail_enter_steps[] = {\n    {"root", "%s",\n     NS, run},\n};\n'
SEALS = 'const struct seal_step jail_seal_steps[] = {\n    {"rlimits", "%s", run},\n};\n'
CALLS = ('const struct syscall_row jail_syscalls[] = {\n    /* Memory. */\n'
         '    {CALL(brk), CALL_ALLOW, 0, 0, ANY, "%s"},\n'
         '    {CALL(mmap), CALL_ALLOW, 0, 0, ANY, "arenas {of} memory", ALONE},\n};\n')


def _tables(call, step, seal):
    return {"src/jail/syscalls.c": CALLS % call, "src/jail/enter.c": STEPS % step,
            "src/jail/seal.c": SEALS % seal}


def _documents(**changed):
    texts = {"README.md": "`make run`, `make test`\n", "Makefile": "run: x\ntest: x\n",
             "docs/ARCHITECTURE.md": "a\n", "docs/THREATS.md": "a\n",
             "LICENSE": "Apache License\n"}
    return {**texts, **changed}


# rule: (trees that it must pass, [(tree, what it must say)])
SAMPLES = {
    "layers": (
        [{**MESON, "src/cell/a.c": '#include "cell/a_parts.h"\n#include "base/b.h"\n',
          "src/guest/a.c": '#include "jail/j.h"\n', "src/cell/b.h": '#include "guest/w.h"\n',
          "src/prog/m.c": '#include "door/d.h"\n#include <stdio.h>\n'}],
        [({**MESON, "src/base/a.c": '#include "kernel/k.h"\n'}, "must not know"),
         ({**MESON, "src/jail/a.c": '#include "guest/w.h"\n'}, "must not know"),
         ({**MESON, "src/door/a.c": '#  include "cell/cell_parts.h"\n'}, "is private to cell"),
         ({**MESON, "src/door/a.c": '#include "jail/internal.h"\n'}, "is private to jail"),
         ({**MESON, "src/cell/a.c": '#include "cell.h"\n'}, "names no room"),
         ({**MESON, "src/misc/a.c": "\n"}, "is no room"),
         ({"src/base/a.c": "\n"}, "no list of rooms")]),
    "preprocessor": (
        [{"src/kernel/k.c": "#ifdef X\n#endif\n", "src/base/a.h": "#pragma once\n"}],
        [({"src/base/a.c": "x\n  # ifdef X\n"}, "src/base/a.c:2: a condition"),
         ({"src/base/a.c": "#if 0\n"}, "a condition"),
         ({"src/base/a.h": "int a;\n"}, "no #pragma once")]),
    "file lengths": (
        [{"src/base/a.c": "\n" * 600, "docs/long.md": "\n" * 900}],
        [({"src/base/a.c": "\n" * 601}, "601 lines"),
         ({"tests/x/a.py": "\n" * 700}, "700 lines"), ({"tests/run": "\n" * 601}, "601 lines")]),
    "function lengths": (
        [{"src/base/a.c": SHORT_FUNCTION + "static const int table[] = {\n" + "    1,\n" * 99
          + "};\n"}],
        [({"src/base/a.c": LONG_FUNCTION}, "src/base/a.c:2: long_one has 64 lines"),
         ({"tests/unit/a.c": SHORT_FUNCTION + "\n" + LONG_FUNCTION}, "long_one has 64")]),
    "mutable globals": (
        [{"src/base/a.c": "static const int n = 3;\nstatic const char *const names[] = {\n};\n"
          "static PyMethodDef methods[] = {\nstatic int\nf(void)\n{\n    int n = 0;\n}\n"
          "extern int a;\nconst size_t rows_n = 2;\nint f(int a);\nstruct a *b(int c);\n",
          "src/prog/a.c": "static int n;\n"}],
        [({"src/base/a.c": "static int n;\n"}, "can change"),
         ({"src/base/a.c": "static struct cell cells[10];\n"}, "can change"),
         ({"src/base/a.c": "int count = 0;\n"}, "can change"),
         ({"src/base/a.c": "static const char *names[] = {\n"}, "can change"),
         ({"src/base/a.c": "static char *last = NULL;\n"}, "can change")]),
    "threads": (
        [{"src/base/a.c": "/* pthread_sigmask */\n"}],
        [({"src/base/a.c": "pthread_create(&t, 0, f, 0);\n"}, "starts threads")]),
    "openings": (
        [{"src/base/a.c": "/* What it does. */\n"}],
        [({"src/base/a.c": "#include <stdio.h>\n"}, "does not open")]),
    "layout": (
        [{".clang-format": STYLE, "src/base/a.c": "int a;\n/* clang-format off */\nint   b;\n"}],
        [({".clang-format": STYLE, "src/base/a.c": "int   a;\n"}, "src/base/a.c:1"),
         ({".clang-format": STYLE, "tests/unit/a.c": "int f(void) { return  1; }\n"},
          "tests/unit/a.c:1")]),
    "words": (
        [{"src/a.c": "mkstemp(\"XXXXXX\"), stubborn, /proc/1/root/x, workspace\n",
          "tests/cases/corpus/1.py": HERE + "\n"}],
        [({"src/a.c": "a\nb " + MARK + " c\n"}, "src/a.c:2: unfinished"),
         ({"docs/a.md": "a st" + "ub\n"}, "unfinished"),
         ({"tests/a.py": "open('%s')\n" % HERE}, "a path of one machine"),
         ({"Makefile": "curl https://%s/x\n" % HOST}, "a registry host")]),
    "reasons": (
        [_tables("malloc", "before all", "first of all")],
        [(_tables("", "before all", "first of all"), "the row brk of jail_syscalls[] has no"),
         (_tables("...", "before all", "first of all"), "the row brk"),
         (_tables("malloc", "", "first of all"), "the row root"),
         (_tables("malloc", "before all", ""), "the row rlimits"),
         ({"src/jail/syscalls.c": "", "src/jail/enter.c": ""}, "no rows of")]),
    "links": (
        [{"README.md": "# A heading: one\n[a](docs/b.md#two-words) [b](#a-heading-one)\n"
          "[c](https://example.org/)\n```\n[x](nowhere.md)\n```\n",
          "docs/b.md": "## Two words\n[up](../README.md) [folder](../docs/)\n"}],
        [({"README.md": "[a](docs/b.md)\n"}, "a link to docs/b.md"),
         ({"docs/a.md": "[a](../../b.md)\n"}, "a link to ../../b.md"),
         ({"docs/a.md": "# A\n[a](#b)\n"}, "no heading #b")]),
    "documents": (
        [_documents()],
        [(_documents(**{"README.md": "`make run`\n"}), "does not say 'make test'"),
         (_documents(LICENSE="mine\n"), "does not say 'Apache License'"),
         (_documents(Makefile="run:\n"), "has no target 'test'"),
         ({"README.md": "make run make test"}, "docs/THREATS.md: is not there")]),
    "manuals": (
        [{"man/a.1": ".SH NAME\n\\-\\-cpu\\-time\n", "src/door/a.c": '{"--cpu-time", 1}'}],
        [({"man/a.1": ".SH NAME\n\\-\\-cpu\\-times\n", "src/door/a.c": '"--cpu-time"'},
          "--cpu-time is in no"),
         ({"man/a.1": ".SH NAME\n", "src/policy/fields.c": '.option = "--pids"'}, "--pids"),
         ({"man/a.1": "nothing\n"}, "no NAME")]),
}
