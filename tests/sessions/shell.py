#!/usr/bin/python3
"""`adyton shell`, at a terminal and at a pipe: `shell.py BUILD [NAME…]`. Prints TAP."""

import fcntl
import os
import pty
import re
import select
import signal
import stat
import struct
import subprocess
import sys
import termios
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

from serve_parts import PATIENCE_S, Skip, Suite, check, children_of, is_alive, same, wait_for  # noqa: E402

suite = Suite()
PROMPT, MORE = ">>> ", "... "
ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>])")


class Terminal:
    """A shell at a terminal of its own, which we read and type into."""

    def __init__(self, place, *options):
        self.place, self.text, self.at = place, "", 0
        self.fd, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
        self.process = subprocess.Popen(
            place.command("shell", *options), stdin=slave, stdout=slave, stderr=slave,
            env={**place.environment, "TERM": "xterm", "HOME": place.path, "TMPDIR": place.path,
                 "LC_ALL": "C.UTF-8"},
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.prompt()

    def read(self):
        """What is there; false: nothing any more."""
        if not select.select([self.fd], [], [], 0.1)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:     # the other end is closed
            return False
        self.text += ESCAPES.sub("", data.decode("utf-8", "replace"))
        return True

    def until(self, text):
        """Reads up to there; what came before it, since the last time."""
        end = time.monotonic() + PATIENCE_S
        while text not in self.text[self.at:]:
            check(time.monotonic() < end, "the terminal shows %r" % text, self.text[-900:])
            self.read()
        found = self.text.index(text, self.at)
        before, self.at = self.text[self.at:found], found + len(text)
        return before

    def prompt(self, text=PROMPT):
        return self.until("\n" + text).replace("\r", "")

    def type(self, text):
        os.write(self.fd, text.encode())

    def line(self, text, then=PROMPT):
        """What a line says, without the line itself."""
        self.type(text + "\n")
        return self.prompt(then).partition("\n")[2]

    def end(self):
        """Its exit status."""
        until = time.monotonic() + PATIENCE_S
        while self.read():
            check(time.monotonic() < until, "the shell ends", self.text[-900:])
        self.process.wait(PATIENCE_S)
        os.close(self.fd)
        return self.process.returncode

    def leave(self):
        self.type("\x04")
        same(self.end(), 0, "the exit status")


def piped(place, text, *options):
    return subprocess.run(place.command("shell", *options), input=text.encode(),
                          capture_output=True, timeout=2 * PATIENCE_S, env=place.environment)


# --- at a terminal ---

@suite.test(None)
def statements_and_blocks(place):
    shell = Terminal(place)
    same(shell.line("x = 20"), "", "what an assignment says")
    same(shell.line("x + 1"), "21", "what a value says")
    same(shell.line("for i in range(2):", MORE), "", "what a block's begin says")
    same(shell.line("    print(i * x)", MORE), "", "what its line says")
    same(shell.line(""), "0\n20", "what the block says")
    shell.line("def f():", MORE)
    shell.line("    return 'called'", MORE)
    same(shell.line("f()"), "'called'", "a block that the next statement has ended")
    same(shell.line("print(1); display(2); print(3); display('x' * 3)"), "1\n2\n3\n'xxx'",
         "output and results, in order")
    shell.line("text = '''one", MORE)
    shell.line("", MORE)
    shell.line("two'''")
    same(shell.line("text"), "'one\\n\\ntwo'", "a text of three lines")
    same(shell.line("print('no end', end='')"), "no end", "output without a line end")
    said = shell.line("1 / 0")
    check("ZeroDivisionError" in said and "1 / 0" in said, "the traceback has its line", said)
    check("adyton:" not in said, "nothing is said twice", said)
    said = shell.line("1 +* 2")
    check(said.startswith("<statement>:1:4: error:"), "a wrong statement is told", said)
    same(shell.line("'ü' * 2"), "'üü'", "text beyond ASCII")
    same(shell.line("x"), "20", "a value that was kept")
    shell.leave()


@suite.test(None)
def control_c_interrupts_the_code_only(place):
    shell = Terminal(place)
    shell.line("kept = 7")
    shell.type("while True: pass\n\n")
    shell.until("pass\r\n")
    shell.until(MORE)
    time.sleep(0.3)     # the statement is on its way, or runs; either way Ctrl-C ends it
    shell.type("\x03")
    check("KeyboardInterrupt" in shell.prompt(), "the code was interrupted", shell.text[-500:])
    same(shell.line("kept"), "7", "a variable after it")
    shell.type("print('never'")
    shell.until("'never'")
    shell.type("\x03")
    shell.prompt()
    same(shell.line("kept + 1"), "8", "a line after one that was dropped")
    shell.line("if kept:", MORE)
    shell.type("\x03")
    shell.prompt()
    same(shell.line("kept + 2"), "9", "a line after a block that was dropped")
    shell.leave()


@suite.test(None)
def a_running_statement_is_interrupted(place):
    shell = Terminal(place)
    shell.type("import time; print('up', flush=True); time.sleep(1000)\n")
    shell.until("\nup\r\n")
    shell.type("\x03")
    said = shell.prompt()
    check("KeyboardInterrupt" in said, "it was interrupted", said)
    same(shell.line("time.__name__"), "'time'", "what was imported")
    shell.leave()


@suite.test(None)
def tab_completes_live_names(place):
    shell = Terminal(place)
    shell.line("long_name = 'the value'; import math")
    shell.type("long_n\t\n")
    check("'the value'" in shell.prompt(), "the name was completed", shell.text[-300:])
    shell.type("math.is\t\t")
    shell.until("isfinite")
    shell.type("na\t(1.0)\n")
    check("False" in shell.prompt(), "it was completed further", shell.text[-300:])
    shell.line("if True:", MORE)
    shell.type("\tlong_n\t\n")
    shell.prompt(MORE)
    check("'the value'" in shell.line("") or "the value" not in shell.text[-1:], "in a block, too")
    shell.line("forged = {'start': 0, 'matches': ['bad.\\x1b[2Jy'], 'more': 0}")
    shell.line("class Bad:", MORE)
    shell.line("    def __dir__(self):", MORE)
    shell.line("        display({'application/json': forged}, raw=True); raise SystemExit", MORE)
    shell.line("")
    shell.line("bad = Bad(); display")
    shell.type("bad.\t")
    shell.type("__class__.__name__\n")
    check("'Bad'" in shell.prompt(), "nothing forged is inserted", shell.text[-300:])
    shell.leave()


@suite.test(None)
def history_is_kept_and_private(place):
    shell = Terminal(place)
    shell.line("'first line'")
    shell.line("'second line'")
    shell.type("\x1b[A\x1b[A\n")
    check("'first line'" in shell.prompt().partition("\n")[2], "the arrow recalls", shell.text[-300:])
    shell.leave()
    path = os.path.join(place.path, "state", "adyton", "shell_history")
    same(stat.S_IMODE(os.stat(path).st_mode), 0o600, "the mode of the file")
    with open(path) as file:
        check("'second line'\n" in file.readlines(), "the file has the line")
    os.chmod(path, 0o644)
    with open(path, "a") as file:
        file.write("".join("n%d = 0\n" % i for i in range(5000)) + "'a mark'\n")
    shell = Terminal(place)
    shell.type("\x1b[A\n")
    check("'a mark'" in shell.prompt().partition("\n")[2], "another shell recalls", shell.text[-300:])
    shell.leave()
    same(stat.S_IMODE(os.stat(path).st_mode), 0o600, "the mode, mended")
    with open(path) as file:
        check(len(file.readlines()) <= 2001, "the file is bounded")


@suite.test(None)
def a_link_is_no_history(place):
    os.makedirs(os.path.join(place.path, "state", "adyton"), 0o700)
    target = place.file("target", "kept\n")
    os.symlink(target, os.path.join(place.path, "state", "adyton", "shell_history"))
    shell = Terminal(place)
    shell.line("'typed'")
    shell.leave()
    with open(target) as file:
        same(file.read(), "kept\n", "the file behind the link")


@suite.test(None)
def a_plot_is_saved_and_named(place):
    shell = Terminal(place)
    if "ModuleNotFoundError" in shell.line("import matplotlib.pyplot as plt"):
        raise Skip("matplotlib is not installed")
    names = []
    for n in (1, 2):
        shell.type("plt.plot([%d, 2, 3]); plt.show()\n" % n)
        shell.until("adyton: image: ")
        names.append(shell.until(" ("))
        shell.prompt()
    for name in names:
        with open(name, "rb") as file:
            same(file.read(4), b"\x89PNG", "the file's begin")
    same(len({os.path.dirname(name) for name in names}), 1, "folders")
    shell.leave()


@suite.test(None)
def images_of_a_script(place):
    folder = os.path.join(place.path, "images")
    done = piped(place, "class Image:\n    def _repr_png_(self): return b'\\x89PNG\\r\\n'\n"
                 "Image()\nImage()\n", "--out", folder)
    same(sorted(os.listdir(folder)), ["figure-1.png", "figure-2.png"], "the files")
    check(b"figure-2.png" in done.stderr, "they are named", done.stderr)


@suite.test(None)
def control_characters_are_shown(place):
    shell = Terminal(place)
    said = shell.line("print('a\\x1b[2Jb\\x07c')")
    same(said, "a\\x1b[2Jb\\x07c", "what a hostile text says")
    shell.leave()


@suite.test(None)
def a_lost_session_is_said(place):
    shell = Terminal(place)
    shell.line("x = 1")
    said = shell.line("import os; os._exit(3)")
    check("session is lost" in said and "a new one was started" in said, "it is said", said)
    check("NameError" in shell.line("x"), "it is a new one")
    same(shell.line("1 + 1"), "2", "it works")
    said = shell.line("import time")
    shell.leave()


@suite.test(None)
def words_that_end_it(place):
    for word in ("exit", "quit()"):
        shell = Terminal(place)
        check("Ctrl-D" in shell.line(".help"), "help is shown", shell.text[-300:])
        shell.type(word + "\n")
        same(shell.end(), 0, "the exit status")


# --- at a pipe ---

@suite.test(None)
def a_script_of_statements(place):
    done = piped(place, "x = 1\nx + 1\ndef f(a):\n    b = a\n\n    return b * 2\nf(21)\n"
                 "if x:\n    print('yes')\n# between\nelse:\n    print('no')\nprint('last')")
    same(done.stdout, b"2\n42\nyes\nlast\n", "its output")
    same((done.stderr, done.returncode), (b"", 0), "what it says, and the exit status")


@suite.test(None)
def a_script_that_fails_goes_on(place):
    done = piped(place, "x = 5\n1 / 0\nprint(x)\nif x\nimport sys\nsys.exit(4)\nprint('after')\n"
                 "exit\nprint('never')\n")
    same(done.stdout, b"5\nafter\n", "its output")
    check(b"ZeroDivisionError" in done.stderr and b"[syntax-error]" in done.stderr, "its errors",
          done.stderr)
    same(done.returncode, 1, "the exit status")


@suite.test(None)
def a_script_that_is_interrupted_ends(place):
    shell = subprocess.Popen(place.command("shell"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=place.environment)
    shell.stdin.write(b"import time; print('up', flush=True); time.sleep(1000)\nprint('never')\n")
    shell.stdin.flush()
    same(shell.stdout.readline(), b"up\n", "its first line")
    shell.send_signal(signal.SIGINT)
    out, err = shell.communicate(timeout=PATIENCE_S)
    same((out, shell.returncode), (b"", 130), "what follows, and the exit status")
    check(b"KeyboardInterrupt" in err, "the code was told", err)


@suite.test(None)
def bytes_that_are_no_text(place):
    done = subprocess.run(place.command("shell"), input=b"print('\xff')\nprint('a\x00b')\nprint(3)",
                          capture_output=True, timeout=2 * PATIENCE_S, env=place.environment)
    check(done.stdout.endswith(b"3\n"), "it goes on", done.stdout, done.stderr)
    same(done.returncode, 1, "the exit status")


@suite.test(None)
def options_that_are_wrong(place):
    for options in (("--nothing",), ("--session", "s_1", "--policy", "strict"),
                    ("--private", "--socket", "/x"), ("--limit", "memory")):
        done = piped(place, "", *options)
        same((done.returncode, done.stdout), (2, b""), "what %r brings" % (options,))
        check(done.stderr.startswith(b"adyton: shell: "), "it is said", done.stderr)
    done = piped(place, "", "--socket", os.path.join(place.path, "nobody"))
    same(done.returncode, 125, "the exit status without a supervisor")
    done = piped(place, "", "--limit", "memory=900G")
    same(done.returncode, 125, "the exit status of a limit that is too wide")
    check(b"memory" in done.stderr, "it is named", done.stderr)


@suite.test(None)
def limits_and_policies_hold(place):
    done = piped(place, "while True: pass\n\nprint('kept')\n", "--limit", "timeout=1s")
    same(done.stdout, b"kept\n", "the output after a timeout")
    check(b"adyton: timeout: " in done.stderr, "it is told", done.stderr)
    policy = place.file("own.yaml", "extends: standard\ntimeout: 700ms\n")
    done = piped(place, "while True: pass\n", "--policy", policy)
    check(b"adyton: timeout: " in done.stderr, "a policy of one's own", done.stderr)


# --- beside a supervisor ---

@suite.test()
def a_session_that_is_there(place):
    made = place.call("session", "new", "--socket", place.socket)
    name = made.stdout.decode().strip()
    place.run("--session", name, "-c", "x = 3")
    done = piped(place, "x + 1\ny = x\n", "--session", name, "--socket", place.socket)
    same((done.stdout, done.stderr), (b"4\n", b""), "what it says")
    same(place.run("--session", name, "-c", "y").stdout, b"3\n", "what stays")
    done = piped(place, "1", "--session", "s_0", "--socket", place.socket)
    same(done.returncode, 125, "the exit status without such a session")
    check(b"no session" in done.stderr, "it is told", done.stderr)


@suite.test()
def its_own_session_ends_with_it(place):
    done = piped(place, "print('here')\n", "--socket", place.socket)
    same(done.stdout, b"here\n", "its output")
    wait_for(lambda: place.status()["sessions"]["open"] == 0, "the session is closed")


@suite.test()
def a_supervisor_that_dies_is_told(place):
    shell = Terminal(place, "--socket", place.socket)
    same(shell.line("1 + 1"), "2", "a value")
    place.process.kill()
    place.process.wait()
    shell.type("2 + 2\n")
    same(shell.end(), 125, "the exit status")
    check("supervisor is gone" in shell.text, "it is told", shell.text[-500:])


@suite.test(None)
def nothing_is_left_of_a_killed_shell(place):
    shell = Terminal(place)
    shell.type("import time; print('up', flush=True); time.sleep(1000)\n")
    shell.until("\nup\r\n")
    family = children_of(shell.process.pid)
    check(len(family) > 2, "a supervisor and a cell", family)
    shell.process.send_signal(signal.SIGKILL)
    shell.process.wait()
    os.close(shell.fd)
    wait_for(lambda: not any(is_alive(pid, start) for pid, (_, start) in family.items()),
             "all of it ends")


if __name__ == "__main__":
    sys.exit(suite.main(os.path.join(os.path.abspath(sys.argv[1]), "adyton"), sys.argv[2:]))
