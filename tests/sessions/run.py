#!/usr/bin/python3
"""Sessions, from a socket and from the command line: `run.py BUILD [NAME…]`. Prints TAP.

What must be kept is kept, what is lost is said with its reason, and whatever one session's code
does to its channel, another session and the supervisor do not notice.
"""

import json
import os
import signal
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

from serve_parts import Skip, Suite, check, same, wait_for  # noqa: E402

CORPUS = os.path.join(HERE, "..", "cases", "corpus")
NEXT = "# --- next run ---"
suite = Suite()


class Session:
    """One session, over a connection of its own."""

    def __init__(self, place, **fields):
        self.client = place.client()
        self.n = 0
        answer = self.ask("session_new", **fields)
        same(answer["type"], "session", "the answer's type: %r" % answer)
        self.id = answer["session"]["session_id"]

    def ask(self, kind, **fields):
        """The last message about a request."""
        self.n += 1
        name = "r%d" % self.n
        self.client.send({"type": kind, "id": name, **fields})
        while True:
            message = self.client.receive()
            if message.get("id") == name and message["type"] in (
                    "session", "sessions", "finished", "error", "busy"):
                return message

    def of(self, kind):
        return self.ask(kind, session=self.id)

    def run(self, code, **fields):
        answer = self.ask("run", session=self.id, code=code, **fields)
        same(answer["type"], "finished", "the answer's type: %r" % answer)
        return answer["outcome"]

    def start(self, name, code, **fields):
        self.client.run(name, code, session=self.id, stream=True, **fields)

    def is_alive(self, what=""):
        outcome = self.run("print('alive')")
        same(outcome["stdout"], "alive\n", "its output after " + what)
        same(outcome["session"], "kept", "the session after " + what)


class Commands:
    """One session, as a person has it: `adyton session` and `adyton run --session`."""

    def __init__(self, place, *options):
        self.place = place
        done = place.call("session", "new", "--socket", place.socket, *options)
        same(done.returncode, 0, "the exit status of session new: %r" % done.stderr)
        self.id = done.stdout.decode().strip()

    def verb(self, name, *options):
        return self.place.call("session", name, self.id, "--socket", self.place.socket, *options)

    def run(self, code, *options):
        done = self.place.run("--session", self.id, "--json", *options, "-c", code)
        check(done.stdout, "there is an outcome", done.stderr)
        return json.loads(done.stdout)


def case(number):
    """The runs of a case of the corpus."""
    name = [n for n in os.listdir(CORPUS) if n.startswith("%03d-" % number)][0]
    with open(os.path.join(CORPUS, name)) as file:
        return [part.lstrip("\n") for part in file.read().split(NEXT)]


# --- what is kept ---

@suite.test()
def state_functions_and_classes_are_kept(place):
    session = Commands(place)
    outcomes = [session.run(code) for code in case(167)]
    same([o["stdout"] for o in outcomes], ["one\n", "3\n2024\n", "new\nA\n"], "the output")
    same([o["execution_count"] for o in outcomes], [1, 2, 3], "the counts")
    same({o["session_id"] for o in outcomes}, {session.id}, "the session's id")


@suite.test()
def an_interrupt_keeps_the_state(place):
    session = Commands(place)
    first, second, third = case(169)
    session.run(first)
    outcome = session.run(second, "--timeout", "1s")
    same((outcome["status"], outcome["session"]), ("timeout", "kept"), "the second run")
    same(outcome["stdout"], "looping\n", "its output")
    same(outcome["error"]["name"], "KeyboardInterrupt", "its error")
    same(session.run(third)["stdout"], "alive 7\n", "the third run's output")


@suite.test()
def sys_exit_ends_the_run_only(place):
    session = Commands(place)
    first, second = case(171)
    outcome = session.run(first)
    same((outcome["status"], outcome["exit_code"], outcome["session"]), ("exit", 2, "kept"),
         "the first run")
    same(session.run(second)["stdout"], "still 5\n", "the second run's output")


@suite.test()
def a_thread_that_prints_later_harms_nothing(place):
    session = Commands(place)
    first, second = case(173)
    check("first" in session.run(first)["stdout"], "the first run prints")
    check("second" in session.run(second)["stdout"], "the second run prints")


@suite.test()
def limits_are_set_for_each_run(place):
    session = Commands(place, "--limit", "memory=256M")
    first, second = case(95)
    same(session.run(first, "--memory", "64M")["stdout"], "small run\n", "the first run")
    outcome = session.run(second)
    same((outcome["status"], outcome["stdout"]), ("ok", "fits\n"), "the second run")


@suite.test()
def memory_that_ends_loses_the_session(place):
    session = Commands(place)
    first, second, third = case(174)
    session.run(first)
    # Validation sees such a loop coming; what it cannot see is where the bytes come from.
    outcome = session.run("size = int('64') << 20\n" + second.replace("64 << 20", "size"))
    same((outcome["status"], outcome["session"]), ("memory", "lost"), "the second run")
    check("memory" in outcome["session_note"], "the note names it", outcome["session_note"])
    done = place.run("--session", session.id, "-c", third)
    same((done.returncode, done.stdout), (2, b""), "the third run")
    check(b"has ended" in done.stderr and b"memory" in done.stderr, "why", done.stderr)
    again = Commands(place)
    same(again.run(third)["error"]["name"], "NameError", "a new session's error")


@suite.test()
def tracebacks_and_getsource_know_each_run(place):
    session = Session(place)
    session.run("def fails(n):\n    return 1 / n\n")
    outcome = session.run("x = 1\nfails(0)\n")
    for text in (outcome["stderr"], outcome["error"]["traceback"]):
        for line in ('File "<run 2>", line 2', "    fails(0)", 'File "<run 1>", line 2',
                     "    return 1 / n"):
            check(line in text, "the traceback has %r" % line, text)
    same(outcome["error"]["line"], 2, "the error's line")
    outcome = session.run("import inspect\nprint(inspect.getsource(fails), end='')")
    same(outcome["stdout"], "def fails(n):\n    return 1 / n\n", "the source")


@suite.test()
def displays_and_the_last_value_are_shown_each_run(place):
    session = Session(place)
    for n in (3, 4):
        outcome = session.run("display(%d)\n%d * 2" % (n, n), show_last=True)
        same(outcome["result"], str(n * 2), "the result of run %d" % n)
        texts = [r["data"]["text/plain"] for r in outcome["results"]]
        same(texts, [str(n), str(n * 2)], "what was shown")


@suite.test()
def counters_are_those_of_the_run(place):
    session = Session(place)
    busy = "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass"
    outcome = session.run(busy)
    check(outcome["usage"]["cpu_ms"] >= 350, "the first run has used time", outcome["usage"])
    try_open = "try:\n    open('/etc/shadow')\nexcept OSError: print('no')"
    refused = session.run(try_open)
    outcome = session.run("pass")
    check(outcome["usage"]["cpu_ms"] < 300, "the next one has not", outcome["usage"])
    same(refused["stdout"] in ("no\n", ""), True, "a refusal's output")
    same((outcome["incidents"], outcome["stdout"]), ([], ""), "the last run's acts and output")


@suite.test()
def what_validation_refuses_does_not_run(place):
    session = Session(place)
    outcome = session.run("print('ran')\nimport socket\nsocket.socket()")
    same((outcome["status"], outcome["stdout"], outcome["session"]), ("rejected", "", "kept"),
         "the run")
    session.is_alive("a refusal")


@suite.test()
def files_and_arguments_come_with_each_run(place):
    session = Session(place)
    for text in ("one", "two"):
        outcome = session.run("import sys\nprint(open('a.txt').read(), sys.argv[1:])",
                              files=[{"name": "a.txt", "data": text}], args=[text])
        same(outcome["stdout"], "%s ['%s']\n" % (text, text), "the output")


@suite.test()
def stdin_is_that_of_the_run(place):
    session = Session(place)
    read = "import sys\nprint(ascii(input()), ascii(sys.stdin.read()))"
    same(session.run(read, stdin="a\nb\u00e9\n")["stdout"], "'a' 'b\\xe9\\n'\n", "one")
    same(session.run(read, stdin="c\n")["stdout"], "'c' ''\n", "and another")
    same(session.run(read)["error"]["name"], "EOFError", "none")
    outcome = session.run("import os\nprint(os.read(0, 9), sys.__stdin__ is sys.stdin, os.listdir('/tmp'))\nos.close(0)",
                          stdin="xyz")
    same(outcome["stdout"], "b'xyz' True ['.cache']\n", "by its descriptor")
    same(session.run(read)["error"]["name"], "EOFError", "none, where it was closed")
    session.run("import io\nsys.stdin = io.StringIO('own')")
    same(session.run("print(sys.stdin.read())")["stdout"], "own\n",
         "what the code has put there, and its next run has none of its own")
    same(session.run(read, stdin="d\n")["stdout"], "'d' ''\n", "a run that has one again")
    outcome = session.run("1", stdin="x" * (70 << 20))
    same((outcome["error"]["name"], outcome["session"]), ("OSError", "kept"), "more than the disk holds")
    session.is_alive("all of it")


@suite.test()
def files_come_to_tmp_wherever_the_code_is(place):
    session = Session(place)
    session.run("import os\nos.mkdir('d')\nos.chdir('d')")
    outcome = session.run("print(open('/tmp/x/a').read(), os.getcwd(), os.listdir('.'))",
                          files=[{"name": "x/a", "data": "placed"}])
    same(outcome["stdout"], "placed /tmp/d []\n", "the output")


@suite.test()
def a_run_has_what_its_session_was_made_with(place):
    session = Session(place)
    answer = session.ask("run", session=session.id, code="1", policy="open")
    check("policy" in answer["message"], "a policy of its own is refused", answer)
    answer = session.ask("run", session=session.id, code="1", limits={"open_files": "100"})
    check("open_files" in answer["message"], "and a limit that is fixed", answer)
    session.is_alive("both")


# --- the command line ---

@suite.test()
def each_verb_does_its_part(place):
    session = Commands(place)
    done = place.call("session", "run", session.id, "--socket", place.socket, "-c", "x = 20\nx + 1")
    same((done.returncode, done.stdout), (0, b"21\n"), "a run that shows its last value")
    listed = json.loads(place.call("session", "list", "--json", "--socket", place.socket).stdout)
    same([(s["session_id"], s["state"]) for s in listed], [(session.id, "idle")], "the list")
    shown = session.verb("show").stdout.decode()
    check(session.id in shown and "1 runs" in shown, "what is shown", shown)
    same(session.verb("interrupt").returncode, 0, "an interrupt of nothing")
    same(session.verb("restart").returncode, 0, "a restart")
    same(session.run("x")["error"]["name"], "NameError", "a name that was there before")
    check("closed on request" in session.verb("close").stdout.decode(), "it is closed")
    done = session.verb("show")
    same((done.returncode, b"closed on request" in done.stderr), (1, True), "what is shown then")


@suite.test()
def wrong_words_are_told(place):
    session = Commands(place)
    for words in (["run", "--session", session.id, "--cold", "-c", "1"],
                  ["run", "--session", session.id, "--policy", "open", "-c", "1"],
                  ["session", "show"], ["session", "nothing"], ["session", "list", "x"]):
        same(place.call(*words).returncode, 2, "the exit status of %r" % (words,))
    done = place.call("session", "new", "--limit", "memory=9G", "--socket", place.socket)
    same(done.returncode, 1, "that of a limit that is wider: %r" % done.stderr)
    done = place.run("--session", session.id, "-c", "import os; os._exit(3)")
    same(done.returncode, 3, "that of a program that ended itself")
    check(b"the session is lost: the code ended the program" in done.stderr, "what is said",
          done.stderr)


# --- what is lost, and the end ---

@suite.test()
def what_does_not_yield_is_lost(place):
    session = Session(place)
    outcome = session.run("import time\nwhile True:\n    try:\n        time.sleep(9)\n"
                          "    except KeyboardInterrupt:\n        pass\n",
                          limits={"timeout": "500ms"})
    same((outcome["status"], outcome["session"]), ("timeout", "lost"), "the run")


@suite.test("--policy", lambda place: place.file(
    "slow.yaml", "name: slow\nextends: standard\nsession_grace: 30s\n"))
def the_grace_after_an_interrupt_is_the_policys(place):
    code = ("import time\ntry:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n"
            "    time.sleep(1.5)\n    print('done')\n")
    for fields, wanted in (({"policy": "slow"}, ("timeout", "kept", "done\n")),
                           ({"limits": {"session_grace": "50ms"}}, ("timeout", "lost", ""))):
        outcome = Session(place, **fields).run(code, limits={"timeout": "500ms"})
        same((outcome["status"], outcome["session"], outcome["stdout"]), wanted, "the run")


@suite.test()
def how_a_program_died_is_told(place):
    for code, status, word in (
            ("import os\nos._exit(3)", "exit", "exit code 3"),
            ("import os\nos.kill(os.getpid(), 11)", "crashed", "SIGSEGV"),
            ("import os\nos.closerange(3, 1 << 20)", "crashed", "channel was closed")):
        session = Session(place)
        outcome = session.run(code)
        same((outcome["status"], outcome["session"]), (status, "lost"), "the run of %r" % code)
        check(word in outcome["session_note"], "the note says %r" % word, outcome)


@suite.test()
def one_that_dies_while_it_waits_is_told(place):
    session = Session(place)
    session.run("import threading, time, os\n"
                "def late():\n    time.sleep(0.3)\n    os._exit(9)\n"
                "threading.Thread(target=late).start()")
    wait_for(lambda: not session.ask("session_list")["sessions"], "it is gone from the list")
    shown = session.of("session_show")
    same(shown["type"], "error", "what is shown: %r" % shown)
    check("exit code 9" in shown["message"], "the reason", shown)


@suite.test()
def interrupt_restart_and_close(place):
    session, other = Session(place), Session(place)
    session.run("x = 1")
    session.start("long", "import time\nprint('up', flush=True)\ntime.sleep(60)")
    session.client.until("stdout", "long")
    same(other.ask("session_interrupt", session=session.id)["session"]["state"], "busy",
         "the state")
    outcome = session.client.outcome("long")
    same((outcome["status"], outcome["error"]["name"], outcome["session"]),
         ("exception", "KeyboardInterrupt", "kept"), "the interrupted run")
    same(session.run("print(x)")["stdout"], "1\n", "what was kept")
    same(session.of("session_restart")["type"], "session", "the answer to a restart")
    outcome = session.run("print(x)")
    same((outcome["error"]["name"], outcome["execution_count"]), ("NameError", 1),
         "after a restart")
    same(session.of("session_close")["session"]["state"], "ended", "the state after close")
    answer = session.ask("run", session=session.id, code="1")
    check("closed on request" in answer["message"], "a late run hears why", answer)
    other.is_alive("another's end")


@suite.test()
def a_close_ends_the_run_that_goes_on(place):
    session, other = Session(place), Session(place)
    session.start("long", "import time\nprint('up', flush=True)\ntime.sleep(60)")
    session.client.until("stdout", "long")
    other.ask("session_close", session=session.id)
    outcome = session.client.outcome("long")
    same(outcome["session"], "lost", "the session")
    check("closed on request" in outcome["session_note"], "the note", outcome["session_note"])
    other.is_alive("another's end")


@suite.test()
def runs_of_a_session_wait_for_one_another(place):
    session = Session(place)
    for n in range(5):
        session.start("n%d" % n, "seen = globals().get('seen', []) + [%d]\nprint(seen)" % n)
    outcome = [session.client.outcome("n%d" % n) for n in range(5)][-1]
    same(outcome["stdout"], "[0, 1, 2, 3, 4]\n", "the order")


@suite.test()
def a_client_that_vanishes_leaves_the_session(place):
    session, other = Session(place), Session(place)
    session.run("x = 5")
    session.start("long", "import time\nprint('up', flush=True)\ntime.sleep(60)")
    session.start("waits", "x = 6")
    session.client.until("stdout", "long")
    session.client.close()
    wait_for(lambda: other.ask("session_show", session=session.id)["session"]["state"] == "idle",
             "its run has ended")
    outcome = other.ask("run", session=session.id, code="print(x)")["outcome"]
    same(outcome["stdout"], "5\n", "what is kept; what waited did not run")


@suite.test()
def idle_and_old_sessions_expire(place):
    idle = Session(place, limits={"session_idle": "300ms"})
    old = Session(place, limits={"session_age": "300ms"})
    for session, word in ((idle, "session_idle"), (old, "session_age")):
        wait_for(lambda: session.of("session_show")["type"] == "error", "it expires")
        check(word in session.of("session_show")["message"], "the reason",
              session.of("session_show"))


@suite.test()
def sessions_see_nothing_of_one_another(place):
    one, two = Session(place), Session(place)
    one.run("secret = 41\nopen('secret.txt', 'w').write('x')\nimport json\njson.mark = 1")
    outcome = two.run("import os, json\n"
                      "print('secret' in globals(), os.path.exists('secret.txt'), hasattr(json, 'mark'))\n"
                      "print(sorted(p for p in os.listdir('/proc') if p.isdigit()))")
    check(outcome["stdout"].startswith("False False False\n"), "nothing is seen", outcome)
    other = one.run("import os\nprint(sorted(p for p in os.listdir('/proc') if p.isdigit()))")
    same(other["stdout"], outcome["stdout"].split("\n", 1)[1], "each sees its own processes")
    check(one.id != two.id and len(one.id) >= 34, "ids are long", one.id, two.id)
    answer = one.ask("run", session="s_" + "0" * 32, code="1")
    same((answer["type"], answer["code"]), ("error", "session"), "a guessed id's answer")


# --- a hostile guest ---

FIND = """
import os, socket, struct
top = max(fd for fd in range(3, 300) if os.path.exists("/proc/self/fd/%d" % fd) and
          os.readlink("/proc/self/fd/%d" % fd).startswith("socket:"))
def say(data):
    return os.write(top, data)
def ended(run, kind=0, code=0, refused=0):
    return struct.pack("=IIIiI", 0x61647974, run, kind, code, refused)
"""


def hostile(place, name, code, wanted):
    """Code that has found its channel; a neighbour must not notice."""
    neighbour, session = Session(place), Session(place, policy="lax")
    neighbour.run("x = 1")
    outcome = session.run(FIND + code)
    check((outcome["status"], outcome["session"]) in wanted, "%s ends as it should" % name,
          outcome)
    neighbour.is_alive(name)
    Session(place).is_alive(name)
    return session, outcome


def lax(place):
    return place.file("lax.yaml", "name: lax\nextends: standard\nvalidation: \"off\"\n")


@suite.test("--policy", lax)
def garbage_on_the_channel_is_not_believed(place):
    session, outcome = hostile(place, "some garbage", "say(b'x'); say(b'y' * 20)\nprint('on')",
                               [("ok", "kept")])
    same(outcome["stdout"], "on\n", "the run's output")
    session.is_alive("garbage")
    hostile(place, "a flood", "while True:\n    say(b'z' * 20)", [("crashed", "lost")])
    hostile(place, "large messages", "for i in range(99):\n    say(b'z' * 60000)",
            [("crashed", "lost")])


@suite.test("--policy", lax)
def an_end_of_another_run_is_not_believed(place):
    session, outcome = hostile(place, "a wrong number", "say(ended(9)); say(ended(0))\n"
                               "say(ended(1, 7)); say(ended(1, 0, 0, 1))\nprint('on')",
                               [("ok", "kept")])
    same(outcome["stdout"], "on\n", "the run's output")
    session.is_alive("ends of other runs")


@suite.test("--policy", lax)
def an_end_that_is_claimed_too_early_harms_its_own_session(place):
    session, _ = hostile(place, "an early end",
                         "print('x', flush=True)\nsay(ended(1))\nimport time\ntime.sleep(0.2)",
                         [("ok", "kept")])
    for _ in range(3):  # its own second end is one too many, and no other's
        answer = session.ask("run", session=session.id, code="print(2)")
        check(answer["type"] in ("finished", "error"), "an answer comes", answer)


@suite.test("--policy", lax)
def a_job_that_the_code_takes_is_lost_with_its_session(place):
    session, _ = hostile(place, "a thief", """
import threading
def steal():
    while True:
        try:
            os.read(top, 1)
        except OSError:
            return
for _ in range(4):
    threading.Thread(target=steal, daemon=True).start()
""", [("ok", "kept")])
    answer = session.ask("run", session=session.id, code="print(2)",
                         limits={"timeout": "1s"})
    check(answer["type"] in ("finished", "error"), "an answer comes", answer)
    Session(place).is_alive("a thief")


@suite.test("--policy", lax)
def a_channel_that_is_closed_or_replaced_loses_its_session(place):
    hostile(place, "a closed channel", "os.close(top)", [("crashed", "lost")])
    hostile(place, "another in its place", "a, b = socket.socketpair()\n"
            "os.dup2(a.fileno(), top)", [("exception", "kept")])  # the limit is in the way
    hostile(place, "every number that the limit names",
            "os.closerange(3, os.sysconf('SC_OPEN_MAX'))", [("ok", "kept")])


@suite.test("--policy", lax)
def a_word_after_the_death_of_the_program_does_not_keep_the_session(place):
    """How the run has ended is a claim until the kernel has told of the death, which a word may outrun
    on a busy machine; that the session lives is none."""
    session, _ = hostile(place, "a child's word", """
program = os.getpid()
if os.fork() == 0:
    while os.getppid() == program:
        pass
    try:
        say(ended(1))
    finally:
        os._exit(0)
os._exit(7)
""", [("exit", "lost"), ("ok", "kept")])
    wait_for(lambda: session.of("session_show")["type"] == "error", "the session is lost")
    same(session.ask("run", session=session.id, code="1")["code"], "session", "a run in it")


@suite.test()
def what_spins_between_runs_is_ended(place):
    session = Session(place, limits={"cpu_time": "1s"})
    session.run("import threading\n"
                "def spin():\n    while True:\n        pass\n"
                "threading.Thread(target=spin, daemon=True).start()")
    wait_for(lambda: session.of("session_show")["type"] == "error", "it is ended")
    shown = session.of("session_show")
    check("CPU time" in shown["message"], "the reason", shown)


@suite.test("--preload", "none")
def hundreds_are_opened_and_closed_at_once(place):
    """More than a socket holds words about them, in either direction."""
    many = 450
    client = place.client()
    if place.status()["sessions"]["max"] < many:
        raise Skip("there are descriptors for %d sessions" % place.status()["sessions"]["max"])
    opened = []
    for n in range(many):
        client.send({"type": "session_new", "id": "n%d" % n})
        opened.append(client.until("session", "n%d" % n)[0]["session"]["session_id"])
    same(place.status()["sessions"]["idle"], many, "those that wait")
    frames = [json.dumps({"type": "session_close", "id": "c%d" % n, "session": session}).encode()
              for n, session in enumerate(opened[many // 10:])]
    client.send_bytes(b"".join(struct.pack(">I", len(frame)) + frame for frame in frames))
    for n in range(len(frames)):
        same(client.until("session", "c%d" % n)[0]["session"]["state"], "ended", "its state")
    same(place.status()["sessions"]["open"], many // 10, "those that are left")
    Session(place).is_alive("all that")
    place.signal(signal.SIGTERM)
    same(place.ended(), 0, "the end of the supervisor")


# --- the record ---

@suite.test()
def the_ledger_has_sessions_and_their_runs(place):
    session = Session(place)
    session.run("print(1)")
    session.of("session_close")
    done = place.call("runs", "--session", session.id, "--format", "json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    same([(row["status"], row["session"]) for row in rows], [("ok", session.id)] * 2,
         "its run and itself: %r" % (done.stderr,))
    check("session closed: closed on request" in done.stdout.decode(), "the reason", rows)
    lost = Session(place)
    lost.run("import os\nos._exit(4)")
    done = place.call("runs", "--session", lost.id, "--format", "json")
    check("session closed: the code ended the program itself" in done.stdout.decode(),
          "the reason", done.stdout)


if __name__ == "__main__":
    sys.exit(suite.main(os.path.join(sys.argv[1], "adyton"), sys.argv[2:]))
