"""What must come of each case. The header of a case says it in a sentence; this says it in the
words of our outcome. Data only: checks.py, controls.py and run.py walk it.

A row names the one right status. Where two are right, `status` is a set and a comment says why.
`stdout-has` and `stdout-not` lines of the case hold too, unless the row says `headers=False`.
"""

import copy
import os
import re

PLAIN, SESSION, VALIDATION = "plain", "session", "validation"

# What a read of a file that is not there at all says: the mount namespace is the layer.
NOT_THERE = "BLOCKED FileNotFoundError"
# Any refused system call is reported; what the row asks for is a part of "layer rule act".
EXEC_REFUSED = "seccomp system-call exec"
# What Python itself was asked to do is stopped a layer earlier, in words: a claim.
PROGRAM_STOPPED = "hook process-start "
SOCKET_STOPPED = "hook network-use socket.socket"


class Row:
    """One way to run one case."""

    def __init__(self, number, status, variant="", policy="plain", options=(), stdin=None,
                 files=None, exit_code=None, signal=None, limit=None, error=None, line=None,
                 has=(), lacks=(), stdout=None, headers=True, incident=None, within=None,
                 collect=False, check=None, control=None, modes=(PLAIN,), separate=False,
                 needs=None, environment=None, warm=None, session=None):
        self.number, self.variant, self.policy = number, variant, policy
        self.status = {status} if isinstance(status, str) else set(status)
        self.options, self.stdin, self.files = list(options), stdin, dict(files or {})
        self.exit_code, self.signal, self.limit = exit_code, signal, limit
        self.error = {error} if isinstance(error, str) else set(error or ())
        self.line = line            # of the error, in the submitted file
        self.has, self.lacks = list(has), list(lacks)
        self.stdout = stdout        # the whole of it
        self.headers = headers
        self.incident = incident    # None: any; NO_INCIDENT; or a part of one that must be there
        self.within = within        # seconds, for the whole program
        self.collect = collect      # with --out
        self.check = check          # the name of a function in checks.py
        self.control = control      # the name of a function in controls.py, or NO_CONTROL
        self.modes, self.separate, self.needs = modes, separate, needs
        self.environment = environment
        self.warm = warm or {}      # what differs in a warm cell
        self.session = session or {}    # what differs in a session
        self.runs = None            # of a session: what each but the last must come to
        self.each = None            # … options of each
        self.limits = []            # … what session new is told

    def as_warm(self):
        row = copy.copy(self)
        row.__dict__.update(self.warm)
        return row

    def as_session(self):
        row = self.as_warm()
        row.__dict__.update(self.session)
        if isinstance(row.status, str):
            row.status = {row.status}
        return row


NO_INCIDENT = "no incident"
BOTH = (PLAIN, VALIDATION)   # once more with validation on, which may refuse it before it runs

SECRETS = {"SBX_CANARY_KEY": "k", "OPENAI_API_KEY": "k", "DATABASE_URL": "postgres://u:p@h/d",
           "CI_TOKEN": "t", "AWS_SECRET_ACCESS_KEY": "s", "SSH_AUTH_SOCK": "/nowhere"}

ROWS = [
    # Ways to modules and builtins. Reaching `os` is no violation; the canary stays unread.
    Row(1, "ok", has=["REACHED posix", NOT_THERE], control="escapes", modes=BOTH),
    Row(2, "ok", has=["BLOCKED SecurityError"], incident=PROGRAM_STOPPED, control="escapes",
        modes=BOTH),
    Row(3, "ok", has=["REACHED through", NOT_THERE], control="escapes", modes=BOTH),
    Row(4, "ok", has=[NOT_THERE], control="escapes", modes=BOTH),
    Row(6, "ok", incident=NO_INCIDENT),
    Row(7, "ok", has=["RAN True", NOT_THERE], control="escapes", modes=BOTH),
    # That validating alone runs nothing is asked where validation is tested.
    Row(8, "ok", modes=BOTH),
    Row(9, "ok", has=[NOT_THERE], control="escapes", modes=BOTH),
    Row(10, "ok", has=[NOT_THERE], control="escapes", modes=BOTH),
    Row(11, "ok", stdout="CLEAN\n", control="wrapped_builtins"),
    Row(12, "ok", has=["REACHED", NOT_THERE], control="escapes", modes=BOTH),
    Row(15, "ok", has=["REACHED 3", NOT_THERE], control="escapes", modes=BOTH, needs="pandas"),
    Row(18, "ok", has=["REACHED os", NOT_THERE], control="escapes", modes=BOTH),
    Row(19, "ok", collect=True, check="pickle_is_opaque", control="pickle_is_live"),
    Row(21, "ok", stdout="'Yes'\n"),
    Row(22, "exit", exit_code=3, check="forgery_is_text", incident=NO_INCIDENT),
    # A session's channel can be found by who looks for it, and what is said there is not believed:
    # docs/SESSIONS.md.
    Row(23, "ok", stdout="NONE\n", files={"ARMED": b"1"}, control="inherited_pipe",
        session={"stdout": "OPEN [255] WROTE [255]\n", "headers": False}),
    Row(26, "ok", stdout="CLEAN\n", control="planted_token"),
    # What is registered for the exit is for that of the program, which a session does not come to.
    Row(27, "ok", control="epilogue_in_python", session={"stdout": "", "headers": False}),

    # Native code and the kernel's own doors.
    Row(30, "ok", has=["BLOCKED rc="], incident=EXEC_REFUSED, control="escapes", modes=BOTH),
    Row(31, "ok", has=["BLOCKED No such file or directory"], control="escapes", modes=BOTH),
    # The copy is made and the fork happens; what is refused is the exec, so code 99.
    Row(35, "ok", has=["BLOCKED code=99"], incident=PROGRAM_STOPPED + "os.exec", control="escapes", modes=BOTH),
    Row(38, "ok", lacks=["ESCAPED"], check="proc_shows_the_cell", control="escapes",
        modes=BOTH),
    # No control: a running program answers ETXTBSY outside of any sandbox too. The check
    # therefore asks for a refusal on each line instead.
    Row(39, "ok", check="three_refusals", control="none", modes=BOTH),
    # ptrace is attack-only: the call itself ends the cell.
    Row(41, "violation", lacks=["ESCAPED"], incident="seccomp system-call ptrace",
        control="escapes", modes=BOTH),
    Row(42, "ok", check="reaches_only_itself", control="reaches_others", modes=BOTH),
    # ENOSYS, so that libraries fall back: an unknown call is no incident.
    Row(44, "ok", has=["BLOCKED Function not implemented"], control="io_uring", modes=BOTH),

    # Files and what is collected of them.
    Row(47, "ok", collect=True, check="links_are_skipped", control="link_is_followed"),
    Row(49, "ok", check="three_refusals", control="hard_link", modes=BOTH),
    Row(50, "ok", has=[NOT_THERE], collect=True, check="links_are_skipped",
        control="dangling_link"),
    Row(51, "ok", collect=True, check="race_never_won", control="race_is_won"),
    # Ended in the middle of a swap: the collector then meets whichever of the two is there.
    Row(51, "timeout", variant="stopped", options=["--timeout", "400ms"], headers=False,
        limit="timeout", collect=True, check="race_never_won_often"),
    Row(52, "ok", collect=True, check="only_real_file", within=2.0),
    Row(53, "ok", collect=True, check="names_kept"),
    Row(55, "ok", control="writes_outside", modes=BOTH),
    Row(57, "ok", has=["triple double", "</script> EOF \" + exit() + \""]),

    # Network. Unix sockets exist, and lead to the cell's own files alone.
    Row(59, "ok", stdout="BLOCKED rest\n", check="nothing_reached", control="service_socket",
        modes=BOTH, within=3.0),
    # Under `network: none` the family itself is refused, before anything is asked of a network;
    # the case does not catch that, so the refusal is the program's exception.
    Row(61, "violation", lacks=["ESCAPED"], headers=False, error="SecurityError",
        incident=SOCKET_STOPPED, control="datagram_leaves", modes=BOTH, within=3.0),
    Row(61, "ok", variant="loopback", policy="loopback", within=3.0),
    Row(62, "ok", has=["BLOCKED 127.0.0.1 SecurityError", "BLOCKED ::1 SecurityError"],
        incident=SOCKET_STOPPED, check="nothing_reached", control="listener_reached", modes=BOTH,
        within=4.0),
    # A loopback of its own: nobody listens on it, which is another layer's answer.
    Row(62, "ok", variant="loopback", policy="loopback", check="nothing_reached",
        has=["BLOCKED 127.0.0.1 ConnectionRefusedError", "BLOCKED ::1"], within=4.0),
    Row(63, "violation", headers=False, error="SecurityError", incident=SOCKET_STOPPED,
        within=3.0),
    Row(63, "ok", variant="loopback", policy="loopback", stdout="pong\n", within=3.0),
    Row(64, "ok", has=["CLEAN"], environment=SECRETS, control="secrets_seen"),
    Row(67, "ok", separate=True, headers=False, check="second_is_clean", control="residue_stays"),

    # What ends a run.
    Row(68, "timeout", options=["--timeout", "2s"], limit="timeout", within=3.0),
    Row(69, "timeout", options=["--timeout", "2s"], limit="timeout", within=3.0),
    Row(71, "timeout", options=["--timeout", "2s"], limit="timeout", within=3.0),
    Row(72, "timeout", options=["--timeout", "2s"], limit="timeout", within=3.0),
    Row(73, "ok", within=2.0, control="orphan_holds_pipe"),
    Row(74, "ok", within=2.0, control="daemon_lives_on"),
    # Each of these catches the refusal and ends by itself: the limit held, and nothing ended.
    # Warm, numpy, pandas and matplotlib are mapped: a fork then costs what it costs a program that
    # has imported them, and more with each generation.
    Row(76, "ok", has=["STOPPED at", "BlockingIOError"], lacks=["REACHED"], within=5.0,
        warm={"policy": "wall-20s", "within": 20.0}),
    Row(77, "ok", has=["STOPPED at", "BlockingIOError"], lacks=["REACHED"], within=5.0),
    Row(78, "ok", has=["STOPPED True"], lacks=["REACHED"], within=5.0),
    Row(80, "memory", limit="memory", lacks=["codes [0, 0, 0, 0]"], within=5.0),
    Row(83, "ok", policy="collect-100", has=["STOPPED OSError"], collect=True,
        check="collection_is_bounded", within=3.0),
    Row(86, "ok", options=["--output", "64K"], stdout="Hello world\n" * 1626),
    Row(87, "ok", check="both_streams_whole", within=5.0),
    # The crash is CPython 3.11's own; from 3.12 on the interpreter raises RecursionError.
    Row(88, {"crashed", "exception"}, check="crash_is_named"),
    Row(90, "exception", error="SyntaxError", has=[], check="parser_says_nested", modes=BOTH),
    # Which of these, or none, is for the version of CPython to say; it never crashes.
    Row(91, {"ok", "exception"}, error={"RecursionError", "MemoryError", "SyntaxError"},
        modes=BOTH),
    # A gigabyte is packed first, which is slow on a busy machine.
    Row(93, "memory", policy="wall-20s", limit="memory", within=21.0),
    Row(94, "timeout", policy="wall-20s", options=["--cpu-time", "2s"], limit="cpu_time",
        lacks=["children ended"], within=6.0),
    Row(95, "ok", modes=(SESSION,), session={"policy": "memory-512m", "runs": ["ok"],
                                             "each": [["--memory", "64M"], []]}),

    # The code is the real __main__ of a real CPython.
    Row(96, "ok", stdout="55\n120\n7\n", incident=NO_INCIDENT),
    Row(97, "ok", stdout="[1.0, 2.0, 3.0]\n[0, 2]\n6\n", incident=NO_INCIDENT),
    Row(98, "ok", stdout="['100', '36']\na\n", incident=NO_INCIDENT),
    Row(100, "ok", stdout="1\nkept\n", incident=NO_INCIDENT),
    Row(103, "ok", stdout="guard\n5\nTrue\n", incident=NO_INCIDENT),
    Row(106, "ok", stdout="Point(x=1, y=2)\nTrue\n__main__\n", incident=NO_INCIDENT),
    Row(107, "ok", incident=NO_INCIDENT),
    Row(108, "exception", error="ZeroDivisionError", line=6, check="traceback_is_plain",
        incident=NO_INCIDENT),
    Row(109, "exception", error="SyntaxError", line=7, stdout="", check="caret_and_line",
        incident=NO_INCIDENT, modes=BOTH),
    Row(112, "exit", exit_code=3, stdout="kept\ncleanup\n", incident=NO_INCIDENT),
    Row(113, "ok", exit_code=0, stdout="bye\n", incident=NO_INCIDENT),
    Row(114, "exit", exit_code=137, incident=NO_INCIDENT),
    Row(115, "crashed", signal="SIGKILL"),
    Row(116, "exception", error="SecurityViolation", incident=NO_INCIDENT),
    Row(117, "ok", stdout="caught\ncaught\nstill here\n", incident=NO_INCIDENT),
    Row(118, "ok", stdin=b"3\n1\n2\n3\n", stdout="3\n6\ndone\n", incident=NO_INCIDENT),
    Row(120, "ok", stdin=b"a\nb\n", stdout="['a', 'b']\n", incident=NO_INCIDENT),
    # Our own standard input stays open and silent meanwhile: the cell must not wait for it.
    Row(121, "ok", stdout="name? no input\n", within=1.0, incident=NO_INCIDENT),
    Row(124, "timeout", options=["--timeout", "2s"], limit="timeout",
        stdout="Hello, World!\n", within=3.0),
    Row(129, "ok", needs="tqdm", incident=NO_INCIDENT),
    Row(130, "ok", stdout="\x1b[2J\x1b[31mAPPROVED BY OPERATOR\x1b[0m \x1b]52;c;aGk=\x07 nul:\0"
        " bs:\b\b del:\x7f\nend\n", check="json_is_ascii_safe"),
    Row(131, "exception", error="ValueError", has=["before\nrefused\n"], check="json_is_utf8"),
    Row(133, "ok", stdout="\u2615" * 100000 + "\n"),
    Row(135, "ok", incident=NO_INCIDENT),
    # CPython's own words differ by version: a cut-off literal, or "null bytes".
    Row(136, "exception", error={"SyntaxError", "ValueError"}, stdout="", modes=BOTH),
    Row(139, "ok", stdout="```python\nprint(1)\n```\n6 python |  padded  |\n",
        incident=NO_INCIDENT),
    Row(140, "ok", stdout="OSE 3\nTrue\n4 2\ncompiled\n", incident=NO_INCIDENT, modes=BOTH),
    Row(145, "ok", stdout="25 fine\n", incident=NO_INCIDENT),
    Row(146, "ok", stdout="all ok\n", incident=NO_INCIDENT),
    Row(147, "ok", stdout="[0, 1, 4, 9, 16, 25, 36, 49]\n8\n", incident=NO_INCIDENT),
    # A new interpreter that shall import the main module finds no file of it in a session, as with
    # `python3 -i`.
    Row(148, "ok", policy="exec", stdout="fork [2, 3, 4]\nspawn [2, 3, 4]\n",
        incident=NO_INCIDENT, session={"status": "exception", "error": {"BrokenProcessPool"},
                                       "stdout": "fork [2, 3, 4]\n", "headers": False}),
    # `spawn` is an exec, which this policy refuses. multiprocessing does not wait for the
    # exec's answer, so the program learns of it through the pool or a pipe.
    Row(148, "exception", variant="fork", headers=False, has=["fork [2, 3, 4]"],
        lacks=["spawn ["], incident=EXEC_REFUSED, within=5.0,
        error={"PermissionError", "BrokenProcessPool", "BrokenPipeError"}),
    Row(149, "ok", stdout="40\nhello\n7\n"),
    Row(152, "ok", policy="exec", stdout="child 42\n3\n", incident=NO_INCIDENT),
    Row(152, "violation", variant="fork", headers=False, error="SecurityError", stdout="",
        incident=PROGRAM_STOPPED),
    Row(153, "ok", policy="memory-512m", stdout="reserved\n", incident=NO_INCIDENT),
    Row(154, "ok", policy="memory-512m", stdout="(64, 64)\n64.0\n", check="stderr_is_empty",
        incident=NO_INCIDENT, needs="numpy"),
    # Importing pandas asks `uname -p` for the processor's name, which is refused and recorded.
    Row(155, "ok", files={"data.csv": b"city,n\nRome,2\nOslo,3\nRome,4\n"}, collect=True,
        check="summary_returned", needs="pandas"),
    Row(160, "ok", stdout="True\nrenamed\nhere\n", incident=NO_INCIDENT),
    Row(162, "ok", stdout="42\n", incident=NO_INCIDENT),
    Row(164, "ok", stdout="12:00 -> 21:00\nTrue\n", incident=NO_INCIDENT),

    # Sessions: the table names them so that none is forgotten.
    Row(167, "ok", modes=(SESSION,), stdout="new\nA\n", session={"runs": ["ok", "ok"]}),
    Row(169, "ok", modes=(SESSION,), stdout="alive 7\n", session={
        "runs": ["ok", "timeout"], "each": [[], ["--timeout", "2s"], []]}),
    Row(171, "ok", modes=(SESSION,), stdout="still 5\n", session={"runs": ["exit"]}),
    Row(173, "ok", modes=(SESSION,), session={"runs": ["ok"]}),
    # Its third run is none: the session is lost with the second, and that is told.
    Row(174, "memory", modes=(SESSION,), limit="memory", session={"runs": ["ok"]}),
]


class Case:
    """One program of the corpus: its bytes and what its header says."""

    def __init__(self, path):
        self.path, self.file = path, os.path.basename(path)
        self.number = int(self.file[:3])
        with open(path, "rb") as source:
            self.source = source.read()
        head = self.source[:4096].decode("utf-8", "replace")
        self.kind = re.search(r"^# kind: (.*)$", head, re.M).group(1)
        self.has = re.findall(r"^# stdout-has: (.*)$", head, re.M)
        self.lacks = re.findall(r"^# stdout-not: (.*)$", head, re.M)
        self.parts = re.split(rb"^# --- next run ---\n", self.source, flags=re.M)
        self.needs_canary = b"sbx-" in self.source


def load_corpus(folder):
    paths = [os.path.join(folder, n) for n in sorted(os.listdir(folder)) if n.endswith(".py")]
    return {case.number: case for case in map(Case, paths)}
