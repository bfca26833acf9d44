"""What `adyton run` prints of results, on a pipe and on a terminal: `terminal.py BUILD`. TAP."""

import base64
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import termios
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "warm"), HERE]

from parts import stage                           # noqa: E402

SHOWN = "print('printed')\ndisplay('a \\x1b[2J b')\ndisplay(7)\n"
# No library: a figure that says that it is one.
PNG = r"""
import struct, zlib
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
def png(width, height, row):
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(b"".join(row(y) for y in range(height)))) + chunk(b"IEND", b""))
def paeth(a, b, c):
    return min((a, b, c), key=lambda v: abs(a + b - c - v))
def filtered(y):
    "A row by each of the five filters in turn."
    colour = lambda y: (b"\xff\x00\x00" if y < 6 else b"\x00\x00\xff") * 10
    row, above = colour(y), colour(y - 1) if y else bytes(30)
    guess = (lambda i, l, c: 0, lambda i, l, c: l, lambda i, l, c: above[i],
             lambda i, l, c: (l + above[i]) // 2, lambda i, l, c: paeth(l, above[i], c))[y % 5]
    return bytes([y % 5]) + bytes(
        (row[i] - guess(i, row[i - 3] if i > 2 else 0, above[i - 3] if i > 2 else 0)) % 256
        for i in range(30))
class Picture:
    def __repr__(self): return "<picture>"
    def _repr_png_(self):
        return png(10, 12, filtered)
display(Picture())
"""
LONG = "import time\nprint('before', flush=True)\ntime.sleep(2.6)\nprint('after')\n"
VARIABLES = ("TERM", "TERM_PROGRAM", "LC_TERMINAL", "KITTY_WINDOW_ID", "TMUX")
ANSWERS_S = 60


class Terminal:
    """A program on a terminal; `answer` is what the terminal says when it is asked who it is."""

    def __init__(self, command, variables, answer=b"\x1b[?62;22c", folder=None, out=None):
        self.seen = b""
        environment = {k: v for k, v in os.environ.items() if k not in VARIABLES}
        environment.update(variables)
        ours, theirs = pty.openpty()
        attributes = termios.tcgetattr(theirs)
        attributes[1] &= ~termios.OPOST         # bytes as they are
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        child = subprocess.Popen(command, stdin=theirs, stdout=out or theirs, stderr=theirs,
                                 cwd=folder, env=environment, start_new_session=True,
                                 preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)))
        os.close(theirs)
        self.watch(ours, child, answer)
        self.code = child.wait()
        os.close(ours)

    def watch(self, ours, child, answer):
        until, asked = time.monotonic() + ANSWERS_S, False
        while time.monotonic() < until:
            ready, _, _ = select.select([ours], [], [], 0.2)
            if not ready:
                if child.poll() is not None:
                    return
                continue
            try:
                data = os.read(ours, 65536)
            except OSError:             # nobody has it open any more
                return
            self.seen += data
            if b"\x1b[c" in self.seen and not asked:
                asked = True
                os.write(ours, answer)
        child.kill()


def contains(what, text, *parts):
    return ["%s: no %r in %r" % (what, part, text[-800:]) for part in parts if part not in text]


def lacks(what, text, *parts):
    return ["%s: %r in %r" % (what, part, text[-800:]) for part in parts if part in text]


def image_of(seen):
    """(path, bytes) of the image that a line names."""
    named = re.search(rb"adyton: image: (\S+) \(", seen)
    if not named:
        return None, b""
    with open(named.group(1), "rb") as file:
        return named.group(1).decode(), file.read()


def forget(path):
    if path and os.path.basename(os.path.dirname(path)).startswith("adyton-"):
        shutil.rmtree(os.path.dirname(path))


def check_pipe(tap, run):
    done = subprocess.run(run("--show-last", code=SHOWN + "6 * 7\n"), capture_output=True)
    problems = [] if done.stdout == b"printed\n'a \\x1b[2J b'\n7\n42\n" else [done.stdout]
    problems += [] if done.stderr == b"" else [done.stderr]
    tap.point("on a pipe: text after what was printed", problems)
    done = subprocess.run(run(code=PNG), capture_output=True)
    tap.point("on a pipe: an image is saved only where one asks for it",
              [done.stdout, done.stderr] if done.stdout or done.stderr else [])
    done = subprocess.run(run("--verbose", code=PNG), capture_output=True)
    tap.point("on a pipe, verbose: that it was not",
              contains("stderr", done.stderr, b"1 not saved: --out"))
    done = subprocess.run(run("--quiet", code=PNG), capture_output=True)
    tap.point("on a pipe: quiet", [done.stderr] if done.stderr or done.stdout else [])


def check_out(tap, run):
    with tempfile.TemporaryDirectory() as folder:
        code = "open('figure-1.png', 'w').write('its own')\n" + PNG + "display(Picture())\n"
        done = subprocess.run(run("--out", folder, code=code), capture_output=True)
        found = {name: open(os.path.join(folder, name), "rb").read()
                 for name in sorted(os.listdir(folder)) if name.startswith("figure")}
        problems = [] if list(found) == ["figure-%d.png" % i for i in (1, 2, 3)] else [found]
        if found.get("figure-1.png") != b"its own":
            problems.append("what the code itself left was overwritten")
        if not found.get("figure-2.png", b"").startswith(b"\x89PNG"):
            problems.append("no PNG: %r" % found)
        tap.point("--out: saved beside what the code has left", problems + contains(
            "stderr", done.stderr, b"figure-2.png (", b"10x12"))


def check_protocols(tap, run):
    for name, variables, answer, start, end in (
            ("kitty", {"TERM": "xterm-kitty"}, b"", b"\x1b_Ga=T,f=100,q=2,m=0;", b"\x1b\\"),
            ("iTerm2", {"TERM": "xterm", "TERM_PROGRAM": "iTerm.app"}, b"",
             b"\x1b]1337;File=inline=1;size=", b"\a"),
            ("sixel", {"TERM": "xterm"}, b"\x1b[?62;4;22c", b'\x1bPq"1;1;10;12', b"\x1b\\")):
        shown = Terminal(run(code=PNG), variables, answer)
        path, image = image_of(shown.seen)
        problems = contains(name, shown.seen, start, end)
        if name != "sixel" and base64.b64encode(image) not in shown.seen:
            problems.append("the image in it is another")
        if name == "sixel":
            problems += check_sixel(shown.seen, image)
        forget(path)
        tap.point("a terminal that says that it is %s" % name, problems)
        hidden = Terminal(run("--no-images", code=PNG), variables, answer)
        forget(image_of(hidden.seen)[0])
        tap.point("%s with --no-images" % name, lacks(name, hidden.seen, start, b"\x1b[c") +
                  contains("name", hidden.seen, b"adyton: image: "))


def check_sixel(seen, image):
    """Its first band is red, its second blue, whatever filter a row has."""
    if not image.startswith(b"\x89PNG"):
        return ["no image was saved"]
    body = seen.partition(b"\x1bPq")[2].partition(b"\x1b\\")[0]
    palette = dict(re.findall(rb"#(\d+);2;(\d+;\d+;\d+)", body))
    bands = re.sub(rb"#\d+;2;\d+;\d+;\d+", b"", body.partition(b"12")[2]).split(b"-")
    drawn = [[palette.get(colour) for colour in re.findall(rb"#(\d+)!10~\$", band)]
             for band in bands]
    return [] if drawn == [[b"100;0;0"], [b"0;0;100"], []] else ["bands %r, %r" % (bands, drawn)]


def check_plain_terminal(tap, run):
    shown = Terminal(run(code=SHOWN + PNG), {"TERM": "xterm"})
    path, image = image_of(shown.seen)
    problems = contains("text", shown.seen, b"printed\n", b"'a \\x1b[2J b'\n7\n")
    problems += lacks("a terminal that says nothing", shown.seen, b"\x1bP", b"\x1b_G", b"1337")
    problems += [] if image.startswith(b"\x89PNG") else ["no image at %s" % path]
    forget(path)
    tap.point("a terminal that draws nothing: saved in a temporary folder, and named", problems)
    for variables in ({"TERM": "dumb"}, {"TERM": "screen", "KITTY_WINDOW_ID": "1"},
                      {"TERM": "xterm-kitty", "TMUX": "/tmp/x"}):
        shown = Terminal(run(code=PNG), variables)
        forget(image_of(shown.seen)[0])
        tap.point("nothing is drawn, nor asked, in %s" % variables,
                  lacks("seen", shown.seen, b"\x1bP", b"\x1b_G", b"1337", b"\x1b[c"))
    hostile = Terminal(run("--show-last", code="class X:\n def __repr__(self): return "
                           "'\\x1b]0;title\\x07 \\x1b[31mred'\nX()\n"), {"TERM": "xterm"})
    tap.point("control sequences of a result are shown, not obeyed",
              lacks("seen", hostile.seen, b"\x1b]0") + contains(
                  "seen", hostile.seen, b"\\x1b]0;title", b"\x1b[31mred\x1b[0m"))


def check_progress(tap, run):
    shown = Terminal(run(code=LONG), {"TERM": "xterm"})
    lines = re.findall(rb"\r\x1b\[K\S+ (\d+\.\d) s, (?:\d+ MiB, )?\d+\.\d s CPU", shown.seen)
    problems = [] if lines else ["no line in %r" % shown.seen]
    if not shown.seen.endswith(b"\r\x1b[Kafter\n"):
        problems.append("it is not gone: %r" % shown.seen[-80:])
    tap.point("a long run: a line on stderr, gone before what comes next", problems)
    quiet = Terminal(run("--quiet", code=LONG), {"TERM": "xterm"})
    tap.point("a long run with --quiet", lacks("seen", quiet.seen, b"\x1b[K"))
    done = subprocess.run(run(code=LONG), capture_output=True)
    tap.point("a long run on a pipe", [done.stderr] if done.stderr else [])
    middle = Terminal(run(code=LONG.replace("'before'", "'before', end=''")), {"TERM": "xterm"})
    tap.point("a line that is being written is not erased",
              lacks("seen", middle.seen, b"\x1b[K") + contains("seen", middle.seen, b"beforeafter"))


def main():
    with stage(__doc__, "plain-60s.yaml") as (tap, made):
        if made:
            def cold(*options, code):
                return [made.program, "run", "--cold", "--policy", made.policy, *options, "-c", code]
            check_pipe(tap, cold)
            check_out(tap, cold)
            check_protocols(tap, cold)
            check_plain_terminal(tap, cold)
            check_progress(tap, cold)
            with made.supervisor() as served:
                def warm(*options, code):
                    return [made.program, "run", *served.options_for("plain"), *options, "-c", code]
                served.await_idle()
                check_progress(tap, warm)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
