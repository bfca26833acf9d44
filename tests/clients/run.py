#!/usr/bin/env python3
"""Public clients drive adyton.  Usage: run.py BUILD [NAME…]

Prints TAP. `ask.mjs` plays an OpenAI-compatible server and checks what `adyton ask` sends; the
`mcp_stdio.mjs` and `mcp_tools.mjs` drive `adyton mcp` with the public SDKs of MCP; the
programs of docs/AGENTS.md run with the public SDKs, which npm installs from the lock beside this
file, against a scripted endpoint. Without node or npm, or where npm reaches no registry, what needs
them is skipped by name.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [os.path.join(HERE, "..", "harness"), os.path.join(HERE, "..", "ask")]

from endpoint import Answer, Endpoint, call  # noqa: E402
from tap import Tap  # noqa: E402

LIMIT_S = 300
LINE = re.compile(r"(ok  |FAIL|skip) (.*)")
PROGRAM = re.compile(r"^```js (\S+)\n(.*?)^```$", re.M | re.S)
KEYS = {"OPENAI_API_KEY": "sk-test", "ANTHROPIC_API_KEY": "sk-test", "OPENAI_MODEL": "scripted",
        "ANTHROPIC_MODEL": "scripted"}


def environment(build, home, **more):
    kept = {name: value for name, value in os.environ.items()
            if not re.search(r"proxy|OPENAI|ANTHROPIC", name, re.I)}
    return dict(kept, PATH=build + ":" + os.environ["PATH"], XDG_STATE_HOME=home,
                XDG_RUNTIME_DIR=home, **more)


def drive_ask(tap, build, home):
    """Each check of the driver is a point."""
    command = ["node", os.path.join(HERE, "ask.mjs"), "--", os.path.join(build, "adyton"), "ask",
               "--base-url", "{BASE}", "--model", "{MODEL}", "{STREAM}", "{Q}"]
    done = subprocess.run(command, env=environment(build, home), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S,
                          text=True)
    tell_checks(tap, "ask.mjs", done, 30)


def tell_checks(tap, name, done, least):
    """Each check of a driver is a point."""
    points = 0
    for line in done.stdout.splitlines():
        match = LINE.match(line)
        if match:
            points += 1
            label, _, why = match.group(2).partition(": ") if match.group(1) == "FAIL" else (
                re.sub(r" \(\d+ ms\).*", "", match.group(2)), "", "")
            tap.point("%s: %s" % (name, label), [why] if match.group(1) == "FAIL" else [],
                      skip="the driver says so" if match.group(1) == "skip" else None)
    last = (done.stdout.splitlines() or [""])[-1]
    tap.point("%s: all its checks" % name, [] if points >= least and ", 0 failed" in last
              else done.stdout.splitlines()[-5:])


def drive_mcp(tap, build, home, folder):
    """The public SDKs against `adyton mcp`, in each of their modes."""
    for name in ("mcp_stdio.mjs", "mcp_tools.mjs", "lib"):
        target = os.path.join(folder, name)
        (shutil.copytree if name == "lib" else shutil.copy)(
            os.path.join(HERE, name), target, **({"dirs_exist_ok": True} if name == "lib" else {}))
    server = [os.path.join(build, "adyton"), "mcp"]
    socket = os.path.join(home, "mcp.sock")
    supervisor = subprocess.Popen([server[0], "serve", "--socket", socket], env=environment(build, home),
                                  stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        if os.path.exists(socket):
            break
        time.sleep(0.1)
    # A check wants a program of its own to be started, which only `open` lets code do.
    modes = [("v1", "legacy", ["--private"]), ("v2", "legacy", ["--socket", socket]),
             ("v2", "modern", ["--private"]), ("v2", "auto", ["--socket", socket])]
    try:
        for sdk, era, options in modes:
            done = node(["mcp_stdio.mjs", "--sdk", sdk, "--era", era, "--", *server, "--policy",
                         "open", *options], folder, environment(build, home, EXPECT="progress"))
            tell_checks(tap, "mcp_stdio.mjs, SDK %s, %s, %s" % (sdk, era, options[0]), done, 36)
        for options in (["--private"], ["--socket", socket]):
            done = node(["mcp_tools.mjs", "--", *server, *options], folder, environment(build, home))
            tell_checks(tap, "mcp_tools.mjs, %s" % options[0], done, 16)
    finally:
        supervisor.terminate()
        supervisor.wait()


def node(words, folder, env):
    return subprocess.run(["node", *words], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, text=True)


def drive_heavy(tap, build, home, folder):
    """The public inspector and LangChain's adapter: large, so only when they are named."""
    server = [os.path.join(build, "adyton"), "mcp", "--private"]
    inspect = ["node", os.path.join(folder, "node_modules", ".bin", "mcp-inspector"), "--cli", *server]
    env = environment(build, home, HOME=home, MCP_CATALOG_PATH=os.path.join(home, "catalog"))

    def inspector(*words):
        return subprocess.run([*inspect, *words], env=env, stdin=subprocess.DEVNULL, timeout=LIMIT_S,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def problems(done, *wanted, code=0):
        good = done.returncode == code and all(word in done.stdout for word in wanted)
        return [] if good else [done.returncode, done.stdout[-800:], done.stderr[-800:]]
    for era in ("legacy", "auto", "modern"):
        done = inspector("--method", "tools/list", "--strict", "--protocol-era", era)
        tap.point("the inspector lists the tools, strict, %s" % era,
                  problems(done, "execute_python", "list_files"))
    done = inspector("--method", "tools/call", "--tool-name", "execute_python", "--tool-args-json",
                     json.dumps({"code": "print(6 * 7)"}), "--format", "json")
    tap.point("the inspector calls one", problems(done, '"stdout":"42\\n"'))
    done = inspector("--method", "tools/call", "--tool-name", "execute_python", "--tool-args-json",
                     json.dumps({"code": "1/0"}), "--format", "json")
    tap.point("and is told of an error", problems(done, "ZeroDivisionError", code=5))
    shutil.copy(os.path.join(HERE, "heavy", "langchain.mjs"), folder)
    done = node(["langchain.mjs", *server], folder, env)
    tap.point("LangChain's adapter runs a loop of tools", problems(done, "All is well."))


def install(build, source=""):
    """The folder with the packages, or why there is none."""
    folder = os.path.join(build, "clients", source)
    os.makedirs(folder, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(HERE, source, name), folder)
    done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
                          cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=LIMIT_S, text=True)
    if done.returncode == 0:
        return folder, None
    return None, "npm ci: " + (done.stdout.strip().splitlines() or ["failed"])[-1]


def programs(folder):
    with open(os.path.join(ROOT, "docs", "AGENTS.md"), encoding="utf-8") as file:
        found = PROGRAM.findall(file.read())
    for name, text in found:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    return [name for name, _ in found]


def told(request):
    """Everything that tools have answered."""
    out = []
    for message in request["messages"]:
        if message["role"] == "tool":
            out.append(message["content"])
        elif isinstance(message["content"], list):
            out += [b["content"] for b in message["content"] if b["type"] == "tool_result"]
    return out


def run_loop(name, form, folder, build, home):
    """Bad code, two calls at once, a value; then an answer that needs what was computed."""
    answers = [Answer(None, [call("import _ctypes", id_="a")]),
               Answer("Again.", [call("print(6 * 7)", id_="b"), call("2 ** 100", id_="c")]),
               Answer(None, [call("1/0", id_="d")])]

    def play(request):
        done = told(request)
        if len(endpoint.requests) <= len(answers):
            return answers[len(endpoint.requests) - 1]
        good = "42" in done[1] and str(2 ** 100) in done[2]
        return Answer("All is well." if good else "wrong: %r" % done)

    with Endpoint(play) as endpoint:
        base = endpoint.base if form == "openai" else endpoint.base[:-len("/v1")]
        done = subprocess.run(
            ["node", name, "How much is it?"], cwd=folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S, text=True,
            env=environment(build, home, **KEYS, **{form.upper() + "_BASE_URL": base}))
        problems = []
        if (done.returncode, done.stdout) != (0, "All is well.\n"):
            problems = [repr(done.stdout), done.stderr[-800:]]
        results = told(endpoint.requests[-1]) if endpoint.requests else []
        for i, wanted in enumerate(("[import-denied]", "42", str(2 ** 100), "ZeroDivisionError")):
            if i >= len(results) or wanted not in results[i]:
                problems.append("result %d has no %s: %r" % (i, wanted, results[i:i + 1]))
        defined = json.loads(subprocess.run(
            [os.path.join(build, "adyton"), "tools", "--format", form], check=True,
            stdout=subprocess.PIPE).stdout)
        if endpoint.requests and endpoint.requests[0]["tools"] != defined:
            problems.append("the tools are not those of adyton tools")
        return problems


def main():
    build, names = os.path.abspath(sys.argv[1]), sys.argv[2:]
    tap, home = Tap(), tempfile.mkdtemp(prefix="clients-")
    missing = [name for name in ("node", "npm") if not shutil.which(name)]
    folder, why = None, "%s is not installed" % missing[0] if missing else None
    try:
        if "node" in missing:
            tap.point("ask.mjs", skip=why)
        elif not names or "ask" in names:
            drive_ask(tap, build, home)
        if not missing and (not names or "agents" in names or "mcp" in names):
            folder, why = install(build)
        if "heavy" in names:
            folder, why = install(build, "heavy") if not missing else (None, why)
            if why:
                tap.point("the inspector and LangChain", skip=why)
            else:
                drive_heavy(tap, build, home, folder)
        if not names or "mcp" in names:
            if why:
                tap.point("adyton mcp by the public SDKs", skip=why)
            else:
                drive_mcp(tap, build, home, folder)
        found = programs(folder or home) if "heavy" not in names else []
        for name, form in (("openai.mjs", "openai"), ("anthropic.mjs", "anthropic")):
            if names and "agents" not in names:
                continue
            label = "docs/AGENTS.md: the loop with the SDK of %s" % form
            if why:
                tap.point(label, skip=why)
            elif name not in found:
                tap.point(label, ["the page has no %s" % name])
            else:
                tap.point(label, run_loop(name, form, folder, build, home))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
