"""A program that lies about what it shows: `hostile.py BUILD`. Prints TAP.

It finds the memory that items go through in its own address space, writes what it likes there,
and rings as often as it likes, from every thread, with wrong lengths, wrong turns, while another
thread changes the bytes. The run's facts, the other runs and the supervisor must not notice; each
attack is followed by an item of the honest form, the control, so that a door that is merely shut
does not pass.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "warm"), HERE]

from parts import ran_warm, stage, watch          # noqa: E402

# The start of every attack: the memory, the bell, an honest item.
TOOLS = """
import ctypes, os, random, struct, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 180, "aarch64": 42}[os.uname().machine]
with open("/proc/self/maps") as maps:
    place = [line.split("-")[0] for line in maps if "memfd:claims" in line]
base = int(place[0], 16)
FRAME = %d
turn = 1000
def write(offset, data):
    ctypes.memmove(base + offset, data, len(data))
def bell(magic=0x61647974):
    libc.syscall.restype = ctypes.c_long
    return libc.syscall(ctypes.c_long(number), ctypes.c_ulong(magic), 0, 0)
def ring(data, n=None, at=None):
    global turn
    turn += 1
    write(FRAME + 8, data)
    write(FRAME, struct.pack("=II", turn if at is None else at, len(data) if n is None else n))
    return bell()
def part(mime, data, omitted=0):
    return struct.pack("=III", len(mime), len(data), omitted) + mime + data
def item(*parts, flags=0):
    return struct.pack("=II", flags, len(parts)) + b"".join(parts)
def honest():
    return ring(item(part(b"text/plain", b"honest")))
"""
# name, program, what the honest item at the end must be answered, further checks of the outcome
ATTACKS = (
    ("garbage of every length", """
random.seed(7)
for n in list(range(64)) + [200, 5000, 65536, 4 << 20]:
    assert ring(random.randbytes(n)) in (0, 1, 2)
    if turn > 1060: break
""", 0),
    ("lengths that are not so", """
for n in (0, 1, 0x7fffffff, 0x80000000, 0xffffffff, (4 << 20) + (64 << 10) + 1):
    assert ring(item(part(b"text/plain", b"abc")), n=n) == 2, n
for field in (0, 4, 8):
    for value in (1, 0x7fffffff, 0xffffffff):
        frame = bytearray(item(part(b"text/plain", b"abc")))
        frame[8 + field:12 + field] = struct.pack("=I", value)
        assert ring(bytes(frame)) == 2, (field, value)
""", 0),
    ("the same turn again and again", """
for _ in range(1000):
    assert ring(item(part(b"text/plain", b"once")), at=5) == 0
""", 0),
    ("another thread changes it meanwhile", """
going = True
def disturb():
    while going:
        write(FRAME + 4, struct.pack("=I", random.getrandbits(32)))
        write(FRAME + 8, random.randbytes(64))
threads = [threading.Thread(target=disturb) for _ in range(2)]
for thread in threads: thread.start()
for _ in range(100): ring(item(part(b"text/plain", b"abc" * 100)))
going = False
for thread in threads: thread.join()
""", 0),
    ("names and JSON that break out", r"""
for mime in (b"", b"\0", b"text/plain\0x", b"a/" + b"b" * 90, b"a/" + b"b" * 200, b'a/"}', b"\xff/\xff"):
    ring(item(part(mime, b"x"), part(b"text/plain", b"y")))
for text in (b"[" * 100000, b"{" * 21 + b"}" * 21, b'{"a":1,"a":2}', b'"\xff"', b"1e999", b"[" + b"1," * 300000 + b"1]",
             b'{"__proto__": {}}', b"\xef\xbb\xbf{}", b'"\\ud800"'):
    ring(item(part(b"application/json", text), part(b"", text), part(b"text/plain", b"z")))
""", 0),
    ("a thousand items", """
answers = {ring(item(part(b"text/plain", b"x"))) for _ in range(1000)}
assert answers == {0, 1}, answers
""", 1),
    ("a gigabyte", """
big = item(part(b"image/png", bytes((4 << 20) - 100)))
answers = [ring(big) for _ in range(256)]
assert set(answers) == {0}, answers     # kept, as so many bytes left out
""", 1),
    ("many main values", """
for i in range(10): ring(item(part(b"text/plain", b"m%d" % i), flags=0xffffffff))
""", 0),
    ("the bell without its magic is a call that no kernel has", """
for magic in (0, 1, 0x61647975, 0x161647974, 0xffffffffffffffff):
    assert bell(magic) == -1 and ctypes.get_errno() == 38, magic
""", 0),
    ("from a forked child, who shares the memory", """
child = os.fork()
if child == 0:
    for _ in range(300): ring(item(part(b"text/plain", b"child")))
    os._exit(0)
os.waitpid(child, 0)
""", 1),
)


def frame_offset(build):
    """sizeof(struct claims), as the guest of this build has it: the frame begins behind it."""
    acts, act = 32, 4 + 4 + 24 + 40 + 256
    return 10 * 4 + acts * act + 128 + 1024 + 64 * 1024


def problems_of(outcome, answer):
    if outcome["status"] != "ok":
        return ["status %s: %s %s" % (outcome["status"], outcome.get("message"),
                                      outcome.get("stderr"))]
    problems = []
    if outcome["stdout"] != "%d\n" % answer:
        problems.append("the honest item was answered %r" % outcome["stdout"])
    texts = [one["data"].get("text/plain") for one in outcome["results"]]
    if answer == 0 and texts[-1:] != ["honest"]:
        problems.append("the honest item is not the last: %r" % texts[-3:])
    if len(texts) > 256 or len([one for one in outcome["results"] if one.get("main")]) > 1:
        problems.append("%d results, main: %r" % (len(texts), [
            one for one in outcome["results"] if one.get("main")]))
    return problems


def main():
    with stage(__doc__, "plain-60s.yaml") as (tap, made):
        if made:
            before = watch(made)
            tools = TOOLS % frame_offset(made)
            with made.supervisor() as served:
                served.await_idle()
                for name, code, answer in ATTACKS:
                    code = tools + code + "print(honest())\n"
                    for kind in ("cold", "warm"):
                        outcome = made.cold(served, code) if kind == "cold" else \
                            served.run(code, policy="plain")
                        problems = [] if kind == "cold" else ran_warm(outcome)
                        tap.point("%s: %s" % (kind, name), problems + problems_of(outcome, answer))
                other = served.run("display('another')", policy="plain")
                tap.point("another run afterwards has its own results alone", ran_warm(other) + (
                    [] if [one["data"] for one in other["results"]] == [{"text/plain": "'another'"}]
                    else [other["results"]]))
                problems = served.end()
            tap.point("nothing is left", problems + before.leftovers(3.0))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
