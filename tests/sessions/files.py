#!/usr/bin/python3
"""Files of sessions: `files.py BUILD [NAME…]`. Prints TAP.

What is put, listed and read is exact, during a run as well; whatever the code makes of its tree
meanwhile stays within it, and within bounds.
"""

import base64
import hashlib
import io
import json
import os
import signal
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

import run as sessions  # noqa: E402
from serve_parts import Suite, check, data_of, memory_of, same, wait_for  # noqa: E402

suite = Suite()
LAST = ("session", "sessions", "finished", "error", "busy", "done", "files")


class Session(sessions.Session):
    def __init__(self, place, **fields):
        self.place = place
        super().__init__(place, **fields)

    def ask(self, kind, **fields):
        return self.ask_all(kind, **fields)[-1]

    def ask_all(self, kind, **fields):
        """All messages about a request."""
        self.n += 1
        name = "r%d" % self.n
        self.client.send({"type": kind, "id": name, **fields})
        messages = []
        while True:
            message = self.client.receive()
            if message.get("id") == name:
                messages.append(message)
                if message["type"] in LAST:
                    return messages

    def ask_beside(self, kind, **fields):
        """Over another connection."""
        client = self.place.client()
        client.send({"type": kind, "id": "beside", **fields})
        answer = client.receive()
        client.close()
        return answer

    def put(self, **files):
        """Files by their names; a dot in a name is written as __."""
        return self.put_all({name.replace("__", "."): data for name, data in files.items()})

    def put_all(self, files):
        items = [{"name": name, **coded(data)} for name, data in files.items()]
        answer = self.ask("session_put", session=self.id, files=items)
        same(answer["type"], "done", "the answer to a put: %r" % answer)

    def get(self, name, error=False):
        field = {"name": name} if isinstance(name, str) else {"name_base64": b64(name)}
        messages = self.ask_all("session_get", session=self.id, **field)
        if error:
            same(messages[-1]["type"], "error", "the answer: %r" % messages[-1])
            return messages[-1]
        same([m["type"] for m in (messages[0], messages[-1])], ["file", "done"],
             "the first and last message")
        data = b"".join(data_of(m) for m in messages[1:-1])
        same(messages[0]["file"]["bytes"], len(data), "the length told before")
        same(messages[-1]["bytes"], len(data), "the length told after")
        same(messages[-1]["sha256"], hashlib.sha256(data).hexdigest(), "the hash")
        return data

    def tar(self):
        """The members by name, as bytes, and the last message."""
        messages = self.ask_all("session_get", session=self.id)
        same(messages[-1]["type"], "done", "the answer: %r" % messages[-1])
        data = b"".join(data_of(m) for m in messages[:-1])
        same(messages[-1]["bytes"], len(data), "the length that is told")
        with tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape") as tar:
            return {os.fsencode(m.name): tar.extractfile(m).read() for m in tar}, messages[-1]

    def files(self):
        """Entries by path, and the answer."""
        answer = self.ask("session_files", session=self.id)
        same(answer["type"], "files", "the answer: %r" % answer)
        return {path_of(f): f for f in answer["files"]}, answer

    def changes(self):
        return {path: f.get("change") for path, f in self.files()[0].items()}


def b64(data):
    return base64.b64encode(data).decode()


def coded(data):
    return {"data": data} if isinstance(data, str) else {"data_base64": b64(data)}


def path_of(file):
    if "path_base64" in file:
        return base64.b64decode(file["path_base64"])
    return file["path"].encode()


# --- to and fro ---

@suite.test()
def what_is_put_is_there_and_comes_back(place):
    session = Session(place)
    blob = bytes(range(256)) * 300
    session.put(a__csv="x;y\n1;2\n", main__py="print('mine')", b__bin=blob)
    session.put_all({"d/e/f.txt": "deep", "name\nwith lines": "n", "ü€.txt": "é"})
    outcome = session.run("import hashlib\nprint(open('a.csv').read(), open('d/e/f.txt').read())\n"
                          "print(hashlib.sha256(open('b.bin', 'rb').read()).hexdigest())\n"
                          "open('made.bin', 'wb').write(b'\\xff\\0' * 100000)\n"
                          "open(b'odd\\xff\\n.txt', 'w').write('odd')")
    same(outcome["stdout"], "x;y\n1;2\n deep\n%s\n" % hashlib.sha256(blob).hexdigest(),
         "what the code reads")
    for name, data in (("a.csv", b"x;y\n1;2\n"), ("/tmp/b.bin", blob), ("main.py", b"print('mine')"),
                       ("made.bin", b"\xff\0" * 100000), (b"odd\xff\n.txt", b"odd"),
                       ("name\nwith lines", b"n"), ("ü€.txt", "é".encode()), ("d/e/f.txt", b"deep")):
        same(session.get(name), data, "%r" % (name,))
    members, done = session.tar()
    same(sorted(members), sorted(session.files()[0]), "the archive's names are those of the list")
    same((members[b"odd\xff\n.txt"], members[b"b.bin"]), (b"odd", blob), "what is in it")
    check("skipped" not in done, "nothing is left out", done)
    session.put(a__csv="new")
    same(session.run("print(open('a.csv').read())")["stdout"], "new\n", "a file that is replaced")


@suite.test()
def changes_are_those_since_the_last_run_began(place):
    session = Session(place)
    session.put(a="1", b="2")
    same(session.changes(), {b"a": "added", b"b": "added"}, "before the first run")
    session.run("open('c', 'w').write('3'); open('a', 'a').write('x'); import os; os.remove('b')")
    for _ in range(2):  # asking again changes nothing
        same(session.changes(), {b"a": "modified", b"b": "removed", b"c": "added"}, "after it")
    session.run("import os; os.utime('a'); os.rename('c', 'd')")
    listed, answer = session.files()
    same({p: f.get("change") for p, f in listed.items()},
         {b"a": None, b"c": "removed", b"d": "added"}, "after the second")
    same(answer["since"], 1, "the runs before")
    same((listed[b"a"]["bytes"], listed[b"a"]["mime"], listed[b"a"]["sha256"]),
         (2, "text/plain", hashlib.sha256(b"1x").hexdigest()), "what is told of a file")
    session.run("1")
    session.run("open('e', 'w')")
    answer = session.files()[1]
    same((answer["since"], [f.get("change") for f in answer["files"]]), (2, [None, None, "added"]),
         "nobody asked in between")
    session.of("session_restart")
    same(session.files()[1]["files"], [], "after a restart")
    session.put(z="1")
    same(session.changes(), {b"z": "added"}, "and then")


@suite.test()
def during_a_run_it_works_as_well(place):
    session = Session(place)
    session.start("long", "import os, time\nopen('up', 'w').write('1')\n"
                  "while not os.path.exists('go'):\n    time.sleep(0.01)\nprint(open('go').read())")
    wait_for(lambda: b"up" in session.files()[0], "the run's file is seen")
    same(session.get("up"), b"1", "and read")
    same(session.tar()[0], {b"up": b"1"}, "and archived")
    session.put(go="on")
    same(session.client.outcome("long")["stdout"], "on\n", "it sees what was put, whole")


@suite.test()
def what_is_not_there_or_no_file_is_told(place):
    session = Session(place)
    session.run("import os\nos.mkfifo('fifo'); os.mkdir('d'); os.symlink('/etc/passwd', 'link')\n"
                "os.symlink('/', 'root'); open('shut', 'w'); os.chmod('shut', 0)")
    for name, words in (("nothing", "no such file"), ("fifo", "no regular file"), ("d", "folder"),
                        ("link", "symbolic link"), ("root/etc/passwd", "symbolic link"),
                        ("../etc/passwd", "out of /tmp"), ("/etc/passwd", "out of /tmp"),
                        ("shut", "unreadable")):
        answer = session.get(name, error=True)
        check(answer["code"] == "file" and words in answer["message"], "%s: %s" % (name, words),
              answer)
    same(session.files()[0], {}, "the list")
    members, done = session.tar()
    same(members, {}, "the archive")
    check(done["skipped"] >= 4, "what was left out is counted", done)
    for name in ("root/x", "fifo/x"):
        answer = session.ask("session_put", session=session.id, files=[{"name": name, "data": "x"}])
        same((answer["type"], answer["code"]), ("error", "file"), "a put to %s" % name)
    for name in ("../x", "/etc/x", "a/../b", "", "."):
        answer = session.ask("session_put", session=session.id, files=[{"name": name, "data": "x"}])
        same((answer["type"], answer["code"]), ("error", "request"), "a put to %r" % name)
    session.put(link="mine", fifo="mine")
    same((session.get("link"), session.get("fifo")), (b"mine", b"mine"), "what took their places")


@suite.test()
def wrong_requests_are_told(place):
    session = Session(place)
    for fields in ({"name": ""}, {"name": "a\0b"}, {"name": "a" * 2000}, {"name": 1},
                   {"name": "a", "name_base64": "YQ=="}, {"name_base64": "%"}, {"path": "a"}):
        answer = session.ask("session_get", session=session.id, **fields)
        same((answer["type"], answer["code"]), ("error", "request"), "a get of %r" % fields)
    for files in (None, [], [{"name": "a"}], [{"name": "a", "data": "", "mode": 1}],
                  [{"name": "a", "data": ""}, {"name": "a/b", "data": ""}]):
        answer = session.ask("session_put", session=session.id,
                             **({} if files is None else {"files": files}))
        same((answer["type"], answer["code"]), ("error", "request"), "a put of %r" % files)
    for kind in ("session_get", "session_files"):
        answer = session.ask(kind, session="s_" + "0" * 32)
        same((answer["type"], answer["code"]), ("error", "session"), "of no session")
    session.is_alive("all of it")


# --- bounds, and ends ---

@suite.test()
def sizes_and_counts_are_bounded(place):
    session = Session(place, limits={"collect_files": "3", "collect_size": "1M"})
    session.run("for i in range(5): open('f%d' % i, 'w').write('x')\n"
                "open('large', 'wb').truncate(60 << 20)\n"
                "open('hole', 'wb').truncate(1 << 20)")
    listed, answer = session.files()
    same(len(listed), 3, "the files that are listed")
    check(answer["skipped"] == 4 and answer["note"], "what was left out", answer)
    same(len(session.tar()[0]), 3, "those that are archived")
    answer = session.get("large", error=True)
    check("collect_size" in answer["message"], "the reason", answer)
    same(session.get("hole"), bytes(1 << 20), "a sparse file is as long as it is")
    filled = session.run("open('fill', 'wb').write(bytes(4096))\n"
                         "try:\n    f = open('fill', 'ab')\n    while True: f.write(bytes(1 << 20))\n"
                         "except OSError as e: print(e.errno)\n")
    same(filled["stdout"], "28\n", "the disk is full")
    answer = session.ask("session_put", session=session.id,
                         files=[{"name": "more", "data": "x" * (1 << 20)}])
    check(answer["type"] == "error" and "disk of the cell is full" in answer["message"],
          "a put into it", answer)
    same(session.run("import os; print(os.path.exists('more'))")["stdout"], "False\n", "nor a part")


@suite.test()
def what_is_too_much_to_remember_is_said(place):
    session = Session(place, limits={"collect_files": "1000"})
    session.run("import os\nfor i in range(900): os.makedirs('%03d' % i + 'n' * 200 + '/' + 'm' * 200 + '/' + 'o' * 200);"
                " open('%03d' % i + 'n' * 200 + '/' + 'm' * 200 + '/' + 'o' * 200 + '/f', 'w')")
    same(set(session.changes().values()), {"added"}, "the first list")
    session.run("1")
    listed, answer = session.files()
    same((len(listed), "since" in answer), (900, False), "the next: no word of changes")
    check(all("change" not in f for f in answer["files"]), "of none")


@suite.test()
def the_end_of_a_session_ends_the_work_on_its_files(place):
    session, other = Session(place), Session(place)
    session.run("open('large', 'wb').truncate(60 << 20)")
    session.client.send({"type": "session_get", "id": "get", "session": session.id, "name": "large"})
    session.client.until("data", "get")
    other.ask("session_close", session=session.id)
    answer, _ = session.client.until("error", "get")
    check(answer["code"] == "session" and "closed on request" in answer["message"],
          "what is said", answer)
    answer = session.ask("session_get", session=session.id, name="large")
    check(answer["code"] == "session" and "closed on request" in answer["message"],
          "and of a late question", answer)
    again = Session(place)
    again.run("open('large', 'wb').truncate(60 << 20)")
    again.client.send({"type": "session_get", "id": "get", "session": again.id, "name": "large"})
    again.client.until("data", "get")
    again.client.send({"type": "cancel", "id": "get"})
    check("cancelled" in again.client.until("error", "get")[0]["message"], "one that is cancelled")
    again.is_alive("that")
    other.is_alive("another's end")


@suite.test()
def a_reader_that_is_slow_costs_no_memory(place):
    session, other = Session(place), Session(place)
    session.run("import os\nopen('large', 'wb').write(os.urandom(60 << 20))")
    pid = place.process.pid
    before = memory_of(pid)
    session.client.send({"type": "session_get", "id": "get", "session": session.id, "name": "large"})
    session.client.until("data", "get")
    for _ in range(10):
        other.is_alive("a reader that waits")
    check(memory_of(pid) - before < 8 << 20, "it holds little", memory_of(pid) - before)
    done, messages = session.client.until("done", "get")
    data = sum(len(data_of(m)) for m in messages if m["type"] == "data")
    check(40 << 20 < data < 60 << 20 and done["bytes"] == 60 << 20, "all of it comes", data, done)
    session.client.send({"type": "session_get", "id": "get", "session": session.id})
    session.client.until("data", "get")
    session.client.close()
    wait_for(lambda: other.ask("session_files", session=session.id)["type"] == "files",
             "its work has ended with it")


@suite.test()
def too_many_at_once_are_told_to_come_again(place):
    session, other = Session(place), Session(place)
    session.run("open('large', 'wb').truncate(60 << 20)")
    clients = [place.client() for _ in range(4)]
    for client in clients:
        client.send({"type": "session_get", "id": "get", "session": session.id, "name": "large"})
        client.until("data", "get")
    answer = session.of("session_files")
    same(answer["type"], "busy", "one more")
    same(other.of("session_files")["type"], "files", "of another session")
    for client in clients:
        client.close()
    wait_for(lambda: session.of("session_files")["type"] == "files", "those have ended")


@suite.test()
def a_supervisor_that_ends_lets_the_work_come_to_its_end(place):
    session = Session(place)
    session.run("import os\nopen('large', 'wb').write(os.urandom(60 << 20))")
    session.client.send({"type": "session_get", "id": "get", "session": session.id, "name": "large"})
    session.client.until("data", "get")
    place.signal(signal.SIGTERM)
    wait_for(lambda: place.status()["draining"], "it is ending")
    answer = session.ask_beside("session_files", session=session.id)
    same(answer["type"], "busy", "what is asked now: %r" % answer)
    done, messages = session.client.until("done", "get")
    same(done["bytes"], 60 << 20, "what was asked before comes")
    same(place.ended(), 0, "and then it ends")


# --- a hostile tree ---

SWAPS = """
import os, threading, time
os.makedirs('real'); open('real/f', 'w').write('mine'); os.symlink('/etc', 'evil')
os.makedirs('flood')
stop = False
def swap():
    while not stop:
        for a, b in (('real', 'x'), ('evil', 'real'), ('real', 'evil'), ('x', 'real')):
            try: os.rename(a, b)
            except OSError: pass
def grow():
    n = 0
    while not stop:
        n += 1
        p = 'flood/%d' % (n % 50)
        try:
            with open(p, 'ab') as f: f.write(b'y' * 5000)
            if n % 3 == 0: os.truncate(p, 10)
            if n % 5 == 0: os.remove(p)
            if n % 7 == 0: os.symlink('/etc/passwd', p)
        except OSError: pass
        try:
            if n % 11 == 0: os.remove(p)
            if n % 13 == 0: os.chmod('flood', 0)
            if n % 14 == 0: os.chmod('flood', 0o700)
        except OSError: pass
threads = [threading.Thread(target=f, daemon=True) for f in (swap, grow)]
for t in threads: t.start()
"""


@suite.test()
def a_tree_that_changes_while_it_is_read_leads_nowhere(place):
    session, neighbour = Session(place), Session(place)
    with open("/etc/passwd", "rb") as file:
        outside = file.read()
    session.run(SWAPS)
    for n in range(12):
        for messages in (session.ask_all("session_get", session=session.id, name="real/passwd"),
                         session.ask_all("session_get", session=session.id)):
            data = b"".join(data_of(m) for m in messages if m["type"] == "data")
            check(outside[:40] not in data, "nothing of the host is read")
            check(messages[-1]["type"] in ("done", "error"), "it ends", messages[-1])
        if messages[-1]["type"] == "done":
            with tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape") as tar:
                check(all(m.isreg() for m in tar), "the archive is sound")
        answer = session.ask("session_put", session=session.id,
                             files=[{"name": "real/put%d" % n, "data": "x"}])
        check(answer["type"] in ("done", "error"), "a put ends", answer)
        check(not os.path.exists("/etc/put%d" % n), "nothing is written outside")
        session.files()
    neighbour.is_alive("all of that")


def big(place):
    return place.file("big.yaml", "name: big\nextends: standard\ntimeout: 30s\ndisk_inodes: 20000\n"
                      "file_size: 1T\ncollect_size: 100M\n")


@suite.test("--policy", big)
def gigabytes_and_many_names_are_bounded(place):
    session, neighbour = Session(place, policy="big"), Session(place)
    session.run("import os\n"
                "for i in range(5000): os.close(os.open('n%d' % i, os.O_CREAT))\n"
                "open('huge', 'wb').truncate(1 << 39)\n"
                "d = 'deep'\n"
                "for i in range(100): d += '/d'\n"
                "os.makedirs(d); open(d + '/f', 'w')")
    listed, answer = session.files()
    same((len(listed), answer["skipped"] > 3000), (1000, True), "the list is bounded")
    same(len(session.tar()[0]), 1000, "the archive is bounded")
    session.get("huge", error=True)
    neighbour.is_alive("all of that")


# --- data folders ---

def lab(place):
    os.makedirs(os.path.join(place.path, "lab", "sub"))
    for name in ("lab/a.txt", "lab/sub/b.txt"):
        place.file(name, name)
    os.chmod(place.path, 0o755)
    return place.file("lab.yaml", "name: lab\nextends: standard\nvalidation: 'off'\n"
                      "data_paths:\n  - '%s'\n" % os.path.join(place.path, "lab"))


READ = """
try:
    open('/data/new', 'w')
except OSError as error:
    print(type(error).__name__)
import os
print(sorted(os.listdir('/data')), open('/data/a.txt').read())
"""


@suite.test("--policy", lab)
def data_folders_of_a_session(place):
    folder = os.path.join(place.path, "lab")
    session = Session(place, policy="lab", data=[{"path": folder}])
    wanted = "SecurityError\n['a.txt', 'sub'] lab/a.txt\n"
    for _ in range(2):
        same(session.run(READ)["stdout"], wanted, "what is seen, and not written")
    same(session.of("session_restart")["type"], "session", "the answer to a restart")
    same(session.run(READ)["stdout"], wanted, "after it")
    same(session.files()[0], {}, "the list of its files")
    done = place.call("session", "new", "--policy", "lab", "--data", folder + "/sub=deep",
                      "--socket", place.socket)
    same(done.returncode, 0, "as a command: %r" % done.stderr)
    other = Session(place, policy="lab")
    answer = other.ask("run", session=done.stdout.decode().strip(),
                       code="print(open('/data/deep/b.txt').read())")["outcome"]
    same(answer["stdout"], "lab/sub/b.txt\n", "its own folder: %r" % answer["stderr"])
    same(other.run("import os; print(os.path.exists('/data/a.txt'))")["stdout"], "False\n",
         "a session without")
    for path in ("/etc", folder + "/missing"):
        answer = other.ask("session_new", policy="lab", data=[{"path": path}])
        check(answer["type"] == "error" and answer["code"] in ("limit", "request"),
              "%s is refused" % path, answer)
    for field in ({"workspace": "w"}, {"files": []}, {"stdin": ""}):
        answer = other.ask("session_new", policy="lab", **field)
        same((answer["type"], answer["code"]), ("error", "request"), "%r" % field)


# --- the command line ---

def verb(place, name, session, *words):
    return place.call("session", name, session.id, *words, "--socket", place.socket)


@suite.test()
def put_get_and_files_as_commands(place):
    session = Session(place)
    here = place.file("a.csv", "x;y\n")
    odd = place.file("main.py", "print(1)")
    same(verb(place, "put", session, here, here + "=d/b.csv", odd).returncode, 0, "a put")
    session.run("open('made.bin', 'wb').write(b'\\xff\\0' * 50000); open(b'odd\\xff\\n.txt', 'w').write('o')\n"
                "open('\\x1b[2J', 'w'); import os; os.remove('a.csv')")
    done = verb(place, "files", session)
    check(b"\x1b" not in done.stdout and b"d/b.csv" in done.stdout and b"added" in done.stdout,
          "the list, for a terminal", done)
    listed = json.loads(verb(place, "files", session, "--json").stdout)
    same(sorted(f["path"] for f in listed["files"])[1:4], ["d/b.csv", "made.bin", "main.py"], "as JSON")
    out = os.path.join(place.path, "got.bin")
    for words in (["--out", out], ["--out", place.path], ["--out=-"]):
        done = verb(place, "get", session, "/tmp/made.bin", *words)
        same(done.returncode, 0, "a get with %r: %r" % (words, done.stderr))
    same(done.stdout, b"\xff\0" * 50000, "what is written to stdout")
    for name in ("got.bin", "made.bin"):
        with open(os.path.join(place.path, name), "rb") as file:
            same(file.read(), b"\xff\0" * 50000, "what is in " + name)
    os.symlink("/etc", os.path.join(place.path, "all"))
    folder = os.path.join(place.path, "folder")
    os.makedirs(os.path.join(folder, "main.py"))
    os.symlink("/tmp", os.path.join(folder, "d"))
    done = verb(place, "get", session, "--all", "--out", folder)
    same(done.returncode, 1, "into a folder where two names are taken")
    check(done.stderr.count(b"cannot write") == 2, "each is named", done.stderr)
    same(sorted(os.listdir(os.fsencode(folder))),
         [b"\x1b[2J", b"d", b"made.bin", b"main.py", b"odd\xff\n.txt"], "what is there then")
    check(not os.path.exists("/tmp/b.csv"), "no link is followed")
    archive = os.path.join(place.path, "all.tar")
    same(verb(place, "get", session, "--all", "--out", archive).returncode, 0, "as an archive")
    with tarfile.open(archive, errors="surrogateescape") as tar:
        same(sorted(os.fsencode(m.name) for m in tar),
             [b"\x1b[2J", b"d/b.csv", b"made.bin", b"main.py", b"odd\xff\n.txt"], "what is in it")


@suite.test()
def a_run_with_out_brings_all_that_is_there(place):
    session = Session(place)
    session.put_all({"in.csv": "1"})
    out = os.path.join(place.path, "out")
    os.makedirs(os.path.join(out, "taken"))
    done = place.run("--session", session.id, "--out", out, "--json", "-c",
                     "import os\nopen('made', 'w').write('2')\nopen('taken', 'w')\n"
                     "os.symlink('/etc/passwd', 'link')\nopen(b'bad\\xff', 'w').write('3')")
    outcome = json.loads(done.stdout)
    same({path_of(f): (f["bytes"], f["sha256"]) for f in outcome["files"]},
         {name: (1, hashlib.sha256(data).hexdigest())
          for name, data in ((b"in.csv", b"1"), (b"made", b"2"), (b"bad\xff", b"3"))}, "what came")
    same(outcome["files_skipped"], 2, "what did not: %r" % outcome.get("files_note"))
    same(sorted(os.listdir(os.fsencode(out))), [b"bad\xff", b"in.csv", b"made", b"taken"], "the folder")
    done = place.run("--session", session.id, "--out", out, "-c", "import os; os._exit(3)")
    same(done.returncode, 3, "of a session that is lost nothing comes: %r" % done.stderr)


@suite.test()
def a_get_writes_where_it_was_told_only(place):
    session = Session(place)
    session.put(x="inside")
    kept = place.file("kept", "mine")
    link = os.path.join(place.path, "link")
    os.symlink(kept, link)
    done = verb(place, "get", session, "x", "--out", link)
    same((done.returncode, open(kept).read()), (1, "mine"), "a link is no place: %r" % done.stderr)
    same(verb(place, "get", session, "x", "--out", kept).returncode, 0, "a file is replaced")
    same(open(kept).read(), "inside", "as a whole")
    missing = os.path.join(place.path, "missing")
    done = verb(place, "get", session, "nothing", "--out", missing)
    same((done.returncode, os.path.exists(missing)), (1, False), "of what is not there nothing is made")
    check(b"no such file" in done.stderr, "what is said", done.stderr)
    before = os.getcwd()
    os.chdir(place.path)
    try:
        same(verb(place, "get", session, "x").returncode, 0, "without --out it comes here")
        done = verb(place, "get", session, "x")
    finally:
        os.chdir(before)
    same((done.returncode, b"there already" in done.stderr), (1, True), "and replaces nothing")
    for words in (["get"], ["get", "--all"], ["get", "a", "b"], ["put"], ["put", "/no/such"],
                  ["files", "x"], ["files", "--out", "x"], ["get", "--all", "--out", "d", "x"]):
        done = verb(place, words[0], session, *words[1:])
        same(done.returncode, 2, "the exit status of %r: %r" % (words, done.stderr))
    session.of("session_close")
    for words in (["get", "x", "--out", "-"], ["put", kept], ["files"]):
        done = verb(place, words[0], session, *words[1:])
        same((done.returncode, b"has ended: closed on request" in done.stderr), (1, True),
             "%r of one that has ended: %r" % (words, done.stderr))


if __name__ == "__main__":
    sys.exit(suite.main(os.path.join(sys.argv[1], "adyton"), sys.argv[2:]))
