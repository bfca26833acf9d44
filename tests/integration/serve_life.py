#!/usr/bin/env python3
"""How the supervisor begins, ends, and keeps others out.  Usage: serve_life.py PATH-TO-ADYTON

Prints TAP.  Names after the path choose checks.
"""
import json
import os
import pty
import resource
import signal
import socket
import sqlite3
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from serve_parts import (MARK, SLEEP, Client, Skip, Suite, cell_of, check, children_of, is_alive,
                         same, wait_for)

ADYTON = os.path.abspath(sys.argv[1])
OTHER_UID = 64999

suite = Suite()
test = suite.test


@test()
def it_drains(place):
    client = place.client()
    client.run("1", SLEEP % 1, stream=True)
    client.until("stdout")
    place.signal(signal.SIGTERM)
    wait_for(lambda: "told to end" in place.notes(), "it says so")
    client.run("2", "print(2)")
    check(client.until("busy", "2")[0]["retry_after_ms"] > 0, "new runs are refused")
    same(client.outcome("1")["stdout"], "up\ndone\n", "what ran runs to its end")
    same(place.ended(), 0, "its exit status")
    check(not os.path.exists(place.socket), "the socket is gone")


@test("--max-runs", "1")
def told_twice_it_ends_at_once(place):
    client = place.client()
    client.run("1", SLEEP % 60, stream=True)
    client.run("2", "pass")
    client.until("stdout")
    cell = children_of(place.process.pid)
    check(cell_of(place.process.pid, MARK), "a cell is there", cell)
    place.signal(signal.SIGINT)
    same(client.until("busy")[0]["id"], "2", "what waits is refused")
    place.signal(signal.SIGTERM)
    same(place.ended(5), 0, "its exit status")
    wait_for(lambda: not any(is_alive(p, s) for p, (_, s) in cell.items()), "the cell ends", 5)
    check(client.is_closed(), "the connection is closed")
    done = place.call("runs", "list", "--format", "json")
    check(b'"open"' not in done.stdout and b'"failed"' in done.stdout, "it is recorded", done)


@test("--policy", lambda p: p.file("p.yaml", "name: data\nmemory: 128M\n"))
def policies_are_read_again(place):
    memory = lambda: json.loads(place.run("--policy", "data", "--json", "-c", "1").stdout)[
        "limits"]["memory_bytes"] >> 20
    same(memory(), 128, "the limit")
    client = place.client()
    client.run("1", SLEEP % 0.5, policy="data", stream=True)
    client.until("stdout")
    place.file("p.yaml", "name: data\nmemory: 96M\n")
    place.signal(signal.SIGHUP)
    wait_for(lambda: "reloaded" in place.notes(), "it says so")
    same(memory(), 96, "the limit")
    same(client.outcome("1")["limits"]["memory_bytes"] >> 20, 128, "that of a run that runs")
    for broken in ("name: data\nmemory: much\n", "name: strict\n", ""):
        place.file("p.yaml", broken)
        if not broken:
            os.unlink(os.path.join(place.path, "p.yaml"))
        said = place.notes().count("stays as it was")
        place.signal(signal.SIGHUP)
        wait_for(lambda: place.notes().count("stays as it was") > said, "it says so")
        same(memory(), 96, "the limit")


def groups():
    found = set()
    for point in ("/sys/fs/cgroup",):
        for folder, names, _ in os.walk(point):
            found |= {os.path.join(folder, n) for n in names if n.startswith("adyton-")}
    return found


@test()
def killed_it_leaves_nothing(place):
    before = groups()
    process = place.popen("-c", SLEEP % 60)
    process.stdout.readline()
    cell = children_of(place.process.pid)
    check(cell_of(place.process.pid, MARK), "a cell is there", cell)
    mine = {g for g in groups() - before if "adyton-%d-" % place.process.pid in g}
    place.signal(signal.SIGKILL)
    place.ended()
    out, err = process.communicate(timeout=10)
    same(process.returncode, 125, "the exit status of adyton run")
    check(b"is gone" in err and out == b"", "a sentence, and no second run", out, err)
    wait_for(lambda: not any(is_alive(p, s) for p, (_, s) in cell.items()), "processes end", 10)
    wait_for(lambda: not mine & groups(), "control groups go: %s" % mine, 10)
    check(os.path.exists(place.socket), "the socket's name is left, as it must be")
    done = place.run("-c", "print(1)")
    check(done.returncode == 125 and b"no supervisor answers" in done.stderr, "a sentence", done)
    place.start()
    same(place.run("-c", "print(1)").stdout, b"1\n", "the next one finds a clean house")


@test()
def a_living_supervisor_is_not_replaced(place):
    done = place.call("serve", "--socket", place.socket)
    check(done.returncode == 125 and b"listens on" in done.stderr, "refused", done)
    path = place.file("precious", "text")
    done = place.call("serve", "--socket", path)
    check(done.returncode == 125 and b"no socket" in done.stderr, "refused", done)
    check(os.path.getsize(path) == 4, "the file is as it was")
    same(place.run("-c", "print(1)").stdout, b"1\n", "the first one serves on")
    same(os.stat(place.socket).st_mode & 0o777, 0o600, "the socket's mode")
    same(os.stat(os.path.dirname(place.socket)).st_mode & 0o777, 0o700, "its folder's mode")


@test(None)
def a_folder_that_others_write_is_no_place(place):
    folder = os.path.join(place.path, "open")
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    done = place.call("serve", "--socket", os.path.join(folder, "s"))
    check(done.returncode == 125 and b"other users may write" in done.stderr, "refused", done)


def as_other(function):
    """In a child of another uid; what it returns must be true."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setgroups([])
            os.setresgid(OTHER_UID, OTHER_UID, OTHER_UID)
            os.setresuid(OTHER_UID, OTHER_UID, OTHER_UID)
            status = 0 if function() else 1
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1] == 0


def need_root():
    if os.geteuid() != 0:
        raise Skip("only root can be another user")


@test()
def another_user_is_refused(place):
    need_root()

    def cannot_connect():
        try:
            Client(place.socket, hello=False)
        except PermissionError:
            return True

    def is_told_so():
        client = Client(place.socket, hello=False)
        return client.receive().get("code") == "peer" and client.is_closed()

    def cannot_run():
        done = place.run("-c", "print(1)")
        return done.returncode == 2 and b"this supervisor is user" in done.stderr

    check(as_other(cannot_connect), "the modes keep another user out")
    os.chmod(place.path, 0o755)
    os.chmod(os.path.dirname(place.socket), 0o755)
    os.chmod(place.socket, 0o666)
    check(as_other(is_told_so), "where the modes do not, the supervisor does")
    check(as_other(cannot_run), "adyton run says why")
    same(place.status()["runs"]["started"], 0, "runs")


@test(None)
def strangers_are_sent_nothing(place):
    need_root()
    os.chmod(place.path, 0o777)
    path = os.path.join(place.path, "s")
    ready, told = os.pipe()

    def listen():
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        os.write(told, b"1")
        connection, _ = listener.accept()
        return connection.recv(1) == b""

    pid = os.fork()
    if pid == 0:
        os._exit(0 if as_other(listen) else 1)
    os.read(ready, 1)
    done = place.call("run", "--socket", path, "-c", "print('secret')")
    check(done.returncode == 125 and b"strangers" in done.stderr, "refused", done)
    same(os.waitpid(pid, 0)[1], 0, "what the stranger got")


@test(None)
def systemd_passes_its_socket_and_is_told(place):
    listener = socket.socket(socket.AF_UNIX)
    path = os.path.join(place.path, "s")
    listener.bind(path)
    listener.listen()
    listener.set_inheritable(True)
    notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notices.bind(os.path.join(place.path, "notify"))
    notices.settimeout(10)
    script = 'exec 3<&%d; LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" serve' % listener.fileno()
    with open(place.log, "wb") as log:
        place.process = subprocess.Popen(
            ["bash", "-c", script, place.adyton], pass_fds=[listener.fileno()], stderr=log,
            env={**place.environment, "NOTIFY_SOCKET": os.path.join(place.path, "notify")})
    listener.close()
    same(notices.recv(100), b"READY=1", "the first notice")
    same(place.call("run", "--socket", path, "-c", "print(1)").stdout, b"1\n", "a run")
    place.signal(signal.SIGTERM)
    same(notices.recv(100), b"STOPPING=1", "the last notice")
    same(place.ended(), 0, "its exit status")
    check(os.path.exists(path), "systemd's socket is systemd's to remove")


@test(None)
def the_users_own_place_is_found(place):
    need_root()
    os.chmod(place.path, 0o755)
    for name in ("runtime", "state", "home"):
        os.mkdir(os.path.join(place.path, name), 0o700)
        os.chown(os.path.join(place.path, name), OTHER_UID, OTHER_UID)
    policy = place.file("p.yaml", "name: mine\ncgroup: optional\n")
    os.chmod(policy, 0o644)
    user = {"user": OTHER_UID, "group": OTHER_UID, "extra_groups": [], "cwd": "/",
            "env": {**place.environment, "HOME": os.path.join(place.path, "home")}}
    run = lambda *args: subprocess.run([place.adyton, *args], capture_output=True, timeout=30, **user)
    done = run("status")
    check(done.returncode == 1 and b"no supervisor" in done.stderr, "nobody listens", done)
    done = run("run", "--policy", "mine", "-c", "print(1)")
    check(done.returncode == 2 and b"no policy 'mine'" in done.stderr, "nobody to ask", done)
    with open(place.log, "wb") as log:
        place.process = subprocess.Popen([place.adyton, "serve", "--policy", policy], stderr=log, **user)
    wait_for(lambda: "listens on" in place.notes(), "it listens: " + place.notes())
    done = run("run", "--policy", "mine", "-c", "print(1)")
    same((done.returncode, done.stdout), (0, b"1\n"), "the run, asked of nobody by name")
    status = run("status")
    check(b"1 started" in status.stdout and b"mine" in status.stdout, "the status", status)


@test()
def the_status_has_its_numbers(place):
    same(place.run("-c", "print(1)").returncode, 0, "a run")
    def ask():
        return json.loads(place.call("status", "--json", "--socket", place.socket).stdout)

    # That the run's client is gone is heard a moment after it is.
    status = wait_for(lambda: ask()["clients"] == 1 and ask(), "one client is left")
    same(status["schema"], "adyton.status/1", "the schema")
    same((status["pid"], status["runs"]["started"], status["clients"]),
         (place.process.pid, 1, 1), "the numbers")
    check(status["runs"]["average_ms"] > 0, "the average", status)
    wait_for(lambda: place.status()["cells"]["idle"] > 0, "a cell is idle")
    status = place.status()
    (kind,) = status["pool"]
    same((kind["policy"], kind["ready"]), ("standard", True), "the kind of cells")
    check(kind["cells"] >= kind["idle"] > 0 and kind["age_ms"] > 0, "its numbers", kind)
    same(status["memory"]["pool_bytes"], kind["memory_bytes"], "the pool's memory")
    check(kind["memory_bytes"] > 1 << 20, "an interpreter holds more than a MiB", kind)
    text = place.call("status", "--socket", place.socket).stdout
    for word in (b"zygotes", b"idle", b"standard: ", b"zygote up", b"busy", b"waiting", b"a second", b"MiB", b"standard"):
        check(word in text, "the table has %r" % word, text)
    same(place.call("status", "--watch", "--socket", place.socket).returncode, 2, "no terminal")
    ours, theirs = pty.openpty()
    watch = subprocess.Popen(place.command("status", "--watch", "--socket", place.socket),
                             stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    while seen.count(b"supervisor  pid") < 3:
        seen += os.read(ours, 4096)
    watch.send_signal(signal.SIGINT)
    same(watch.wait(10), -signal.SIGINT, "how it ends")
    check(seen.count(b"\x1b[H\x1b[J") >= 3, "it is drawn in place", seen)
    os.close(ours)
    same(place.call("status", "--socket", place.socket + "x").returncode, 1, "nobody there")


@test()
def every_run_is_recorded(place):
    client = place.client()
    ids = []
    for code in ("print(1)", "1/0", "import socket"):
        client.run("1", code)
        ids.append(client.outcome("1")["id"])
    client.run("2", SLEEP % 60, stream=True)
    client.until("stdout")
    client.close()
    wait_for(lambda: place.status()["queue"]["running"] == 0, "the last one is cancelled")
    done = place.call("runs", "list", "--format", "json")
    check(done.returncode == 0, "the list", done)
    for name in ids:
        check(name.encode() in done.stdout, "the ledger has the run", name)
    check(b"cancelled" in done.stdout, "the cancelled one, too", done.stdout)
    same(place.call("runs", "verify").returncode, 0, "the ledger verifies")


@test("--max-runs", "2")
def a_locked_ledger_holds_up_nobody_else(place):
    """Runs that need it wait, up to 5 s; the supervisor goes on."""
    same(place.run("-c", "print(0)").stdout, b"0\n", "the control")
    client, other = place.client(), place.client()
    client.run("1", SLEEP % 0.5, stream=True)
    client.until("stdout", "1")
    base = sqlite3.connect(os.path.join(place.path, "state/adyton/ledger.db"), isolation_level=None)
    base.execute("BEGIN IMMEDIATE")
    client.run("2", "print(2)")
    client.until("stdout", "1")     # the last that 1 says: what is left is to record its end
    for _ in range(20):
        same(other.ask("ping")["type"], "pong", "an answer")
    same(place.status()["queue"]["running"], 2, "runs that wait for the ledger")
    client.run("3", "print(3)")
    client.send({"type": "cancel", "id": "2"})
    same(client.outcome("2")["message"], "the run was cancelled", "one that had not begun")
    base.execute("ROLLBACK")
    ended = {}
    for _ in range(2):
        message = client.until("finished")[0]
        ended[message["id"]] = message["outcome"]
    same({name: one["stdout"] for name, one in ended.items()}, {"1": "up\ndone\n", "3": "3\n"},
         "what the others said")
    base.execute("BEGIN IMMEDIATE")
    client.run("4", "print(4)")
    outcome = client.outcome("4")
    check(outcome["status"] == "failed" and "more than 5 s" in outcome["message"], "refused", outcome)
    base.close()
    client.run("5", "print(5)")
    same(client.outcome("5")["stdout"], "5\n", "the next one")
    same(place.call("runs", "verify").returncode, 0, "the ledger verifies")


@test(None)
def a_disk_that_fails_is_told(place):
    """What is recorded reaches the disk later, by a process that nobody waits for."""
    library = os.path.join(os.path.dirname(ADYTON), "tests", "nosync.so")
    if not os.path.exists(library):
        raise Skip("there is no %s" % library)
    broken = os.path.join(place.path, "broken")
    place.environment.update(LD_PRELOAD=library, NOSYNC_WHILE=broken)
    place.start()
    same(place.run("-c", "print(1)").stdout, b"1\n", "a run that begins the journal")
    place.file("broken", "")
    same(place.run("-c", "print(2)").stdout, b"2\n", "a run that adds to it")
    wait_for(lambda: "does not reach the disk (Input/output error)" in place.notes(), "it says so")
    os.unlink(broken)
    wait_for(lambda: "reaches the disk again" in place.notes(), "it is tried again")
    same(place.notes().count("does not reach"), 1, "how often it was told")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(suite.main(ADYTON, sys.argv[2:]))
