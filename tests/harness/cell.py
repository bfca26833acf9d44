"""Runs `adyton run --json` and reads what it says. Knows the outcome's form, not the cases."""

import json
import os
import signal
import subprocess
import time

SCHEMA = "adyton.outcome/1"
STATUS_EXIT = {"ok": 0, "exception": 1, "rejected": 126, "violation": 126, "timeout": 124,
               "memory": 137, "output": 137, "disk": 137, "pids": 137, "failed": 125}
# What must have held a run, by the isolation that its outcome names.
LAYERS = {
    "namespaces": ("user", "mount", "pid", "net", "ipc", "uts", "cgroup-ns", "cgroup", "rlimits",
                   "capabilities", "no_new_privs", "landlock", "seccomp"),
    "landlock": ("cgroup", "rlimits", "capabilities", "no_new_privs", "landlock", "seccomp"),
}


class Result:
    """What the program did, as bytes and numbers, and its outcome when it gave one."""

    def __init__(self, argv, code, out, err, seconds, hung):
        self.argv, self.code, self.out, self.err = argv, code, out, err
        self.seconds, self.hung = seconds, hung
        self.outcome, self.malformed = None, None
        try:
            self.outcome = json.loads(out.decode("utf-8"))
        except ValueError as exc:
            self.malformed = "%s: %r" % (exc, out[:300])

    def get(self, *keys):
        value = self.outcome
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    @property
    def status(self):
        return self.get("status")

    @property
    def stdout(self):
        return self.get("stdout") or ""

    @property
    def stderr(self):
        return self.get("stderr") or ""

    @property
    def signal(self):
        """The signal's name, whether the outcome gives a name or a number."""
        value = self.get("signal")
        return signal.Signals(value).name if isinstance(value, int) and value else value or None

    @property
    def limit(self):
        value = self.get("limit")
        return value.get("name") if isinstance(value, dict) else value

    def incidents(self):
        return ["%s %s %s" % (i.get("layer"), i.get("rule"), i.get("act"))
                for i in self.get("incidents") or []]

    def describe(self):
        text = "got: exit %s after %.2f s" % (self.code, self.seconds)
        if self.outcome is None:
            return "%s, no outcome (%s), stderr %r" % (text, self.malformed, self.err[-600:])
        return ("%s, status %s, exit_code %s, signal %s, limit %s, message %r, error %r, "
                "incidents %s, stdout %r, stderr %r, own stderr %r" % (
                    text, self.status, self.get("exit_code"), self.signal, self.limit,
                    self.get("message"), self.get("error"), self.incidents(),
                    self.stdout[-500:], self.stderr[-800:], self.err[-500:]))


def run(program, identity, options, source, stdin=subprocess.DEVNULL, environment=None,
        limit_s=60, arguments=()):
    """Runs one source file. `limit_s` is ours: a program that takes longer is hung."""
    argv = [program, "run", "--json", *options, source]
    if arguments:
        argv += ["--", *arguments]
    started = time.monotonic()
    child = subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             cwd=identity.home, env=identity.environment(environment),
                             preexec_fn=identity.prepare(), start_new_session=True)
    hung = False
    try:
        out, err = child.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        hung = True
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
    return Result(argv, child.returncode, out, err, time.monotonic() - started, hung)


def refusal(program, identity, policy, source):
    """Why this host refuses cells to an ordinary user, or None. Only a suite that is itself run
    by such a user may skip for it: as root the suite makes what a user needs."""
    if os.geteuid() == 0:
        return None
    result = run(program, identity, ["--policy", policy], source)
    return result.get("message") if result.status == "failed" else None


def problems_of_form(result, in_session=False):
    """What is wrong with the outcome whatever was run: form, exit status, layers."""
    if result.hung:
        return ["adyton did not return; it was killed after %.0f s" % result.seconds]
    if result.outcome is None:
        return ["no outcome: " + str(result.malformed)]
    found = []
    if result.get("schema") != SCHEMA:
        found.append("schema is %r" % result.get("schema"))
    if result.get("session_id") is not None and not in_session:
        found.append("session_id is %r outside a session" % result.get("session_id"))
    found += _exit_problems(result)
    if result.status not in ("failed", "rejected"):
        held = result.get("isolation") or []
        wanted = LAYERS[result.get("engine", "isolation")]
        found += ["layer %s is not among %s" % (layer, held) for layer in wanted
                  if not any(h == layer or h.startswith(layer + ":") for h in held)]
    for name in ("wall_ms", "cpu_ms", "peak_memory_bytes", "processes"):
        value = result.get("usage", name)
        if not isinstance(value, (int, float)) or value < 0:
            found.append("usage.%s is %r" % (name, value))
    return found


def _exit_problems(result):
    """The exit status of the program must be what the status table says of the outcome."""
    status = result.status
    if status == "exit":
        wanted = result.get("exit_code")
    elif status == "crashed":
        wanted = 128 + getattr(signal, str(result.signal), 0)
    elif status in STATUS_EXIT:
        wanted = STATUS_EXIT[status]
    else:
        return ["status %r is not one of ours" % status]
    if result.code != wanted:
        return ["status %s calls for exit status %s, adyton ended with %s"
                % (status, wanted, result.code)]
    return []
