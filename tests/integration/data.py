#!/usr/bin/env python3
"""Data folders (`adyton run --data`): seen, never written, nothing else of the host.
Usage: data.py PATH-TO-ADYTON [NAME…]

Prints TAP.  What the code tries is tried in a folder that may be written as well, where it works.
"""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from serve_parts import Skip, Suite, check, same, wait_for

ADYTON = os.path.abspath(sys.argv[1])
suite = Suite()
test = suite.test

# A list of [name, "done" or the error's name] for a folder; stdout is JSON.
TRIES = r"""
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def mount():
    if libc.syscall(165 if os.uname().machine == "x86_64" else 40, 0, here.encode(), 0, 0x1020, 0):
        raise OSError(ctypes.get_errno(), "")
def reopen():
    fd = os.open(here + "/a.txt", os.O_RDONLY)
    os.write(os.open("/proc/self/fd/%d" % fd, os.O_WRONLY), b"x")
tries = {
    "create": lambda: open(here + "/new", "w"),
    "append": lambda: open(here + "/a.txt", "a"),
    "truncate": lambda: os.truncate(here + "/a.txt", 0),
    "reopen": reopen,
    "folder": lambda: os.mkdir(here + "/folder"),
    "link": lambda: os.symlink("x", here + "/link"),
    "hard link": lambda: os.link(here + "/a.txt", here + "/hard"),
    "rename": lambda: os.rename(here + "/a.txt", here + "/b.txt"),
    "mode": lambda: os.chmod(here + "/b.txt", 0o600),
    "time": lambda: os.utime(here + "/b.txt", (1, 1)),
    "remove": lambda: os.unlink(here + "/b.txt"),
    "fifo": lambda: os.mkfifo(here + "/fifo"),
}
here, seen = sys.argv[1], {}
for name, call in tries.items():
    try:
        call()
        seen[name] = "done"
    except OSError as error:
        seen[name] = type(error).__name__
print(json.dumps(seen))
"""


def folder(place, name="data", mode=0o755):
    path = os.path.join(place.path, name)
    os.makedirs(path + "/sub")
    for file, text in (("a.txt", "hello\n"), ("sub/b.txt", "deep\n"), ("naïve\nname", "odd")):
        with open(os.path.join(path, file), "w") as out:
            out.write(text)
    for entry in (path, path + "/sub"):
        os.chmod(entry, mode)
    return path


def policy(place, name="lab", more="", paths=()):
    listed = "".join("  - \"%s\"\n" % path for path in paths)
    return place.file(name + ".yaml", "name: %s\nextends: standard\nvalidation: 'off'\n%s%s"
                      % (name, more, "data_paths:\n" + listed if listed else ""))


def outcome(done):
    check(done.stdout, "there is an outcome", done.stderr)
    return json.loads(done.stdout)


def cold(place, *args):
    return place.call("run", "--cold", "--json", *args)


def told(done, what="the run"):
    result = outcome(done)
    same((result["status"], result["stderr"]), ("ok", ""), what)
    return result["stdout"]


LIST = "import os\nprint(sorted(os.listdir('/data')))\nprint(open('/data/%s').read())"


@test(None)
def one_folder_is_seen_as_data(place):
    data = folder(place)
    same(told(cold(place, "--data", data, "-c", LIST % "sub/b.txt")),
         "['a.txt', 'naïve\\nname', 'sub']\ndeep\n\n", "what is seen")


@test(None)
def several_stand_side_by_side(place):
    one, two = folder(place, "one"), folder(place, "two")
    code = LIST % "two/a.txt"
    same(told(cold(place, "--data", one, "--data", two, "-c", code)),
         "['one', 'two']\nhello\n\n", "by their own names")
    same(told(cold(place, "--data", one + "=left", "--data", two + "=Größe 2", "-c",
                   LIST % "left/a.txt")), "['Größe 2', 'left']\nhello\n\n", "by given names")
    same(told(cold(place, "--data", one + "=only", "-c", LIST % "only/a.txt")),
         "['only']\nhello\n\n", "one with a name")


@test(None)
def nothing_in_it_can_be_written(place):
    data, rules = folder(place), policy(place)
    seen = json.loads(told(cold(place, "--policy", rules, "--data", data, "-c", TRIES, "--",
                                "/data")))
    check("done" not in seen.values(), "nothing is done", seen)
    before = {name: os.stat(os.path.join(data, name)).st_mtime_ns for name in os.listdir(data)}
    same(sorted(before), ["a.txt", "naïve\nname", "sub"], "the folder")
    control = json.loads(told(cold(place, "--policy", rules, "--file",
                                   os.path.join(data, "a.txt") + "=w/a.txt", "-c", TRIES, "--",
                                   "/tmp/w")))
    same(set(control.values()), {"done"}, "the same in /tmp")


@test(None)
def it_cannot_be_made_writable(place):
    if os.uname().machine not in ("x86_64", "aarch64"):
        raise Skip("the numbers of system calls are known for x86_64 and arm64")
    code = ("import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
            "x = os.uname().machine == 'x86_64'\n"
            "r = [libc.syscall(165 if x else 40, 0, b'/data', 0, 0x1020, 0),\n"
            "     libc.syscall(166 if x else 39, b'/data', 2),\n"
            "     libc.syscall(442, -100, b'/data', 0, 0, 0)]\n"
            "print(r, os.statvfs('/data').f_flag & 15)")
    result = outcome(cold(place, "--policy", policy(place), "--data", folder(place), "-c", code))
    flags = os.ST_RDONLY | os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC
    same(result["stdout"], "[-1, -1, -1] %d\n" % flags, "read-only, nosuid, nodev, noexec")
    check(len(result["incidents"]) >= 2, "they are incidents", result["incidents"])


@test(None)
def nothing_above_it_is_visible(place):
    data = folder(place)
    place.file("secret", "SECRET")
    code = ("import os\nfd = os.open('/data', os.O_RDONLY)\n"
            "print(sorted(os.listdir('/data/..')) == sorted(os.listdir('/')))\n"
            "up = os.open('..', os.O_RDONLY, dir_fd=fd)\n"
            "print(os.path.samestat(os.fstat(up), os.stat('/')))\n"
            "print(os.path.exists('/data/../secret'), os.path.exists(%r))" % place.path)
    same(told(cold(place, "--policy", policy(place), "--data", data, "-c", code)),
         "True\nTrue\nFalse False\n", "what is above")


@test(None)
def links_lead_to_nothing_of_the_host(place):
    data = folder(place)
    secret = place.file("secret", "SECRET")
    os.chmod(secret, 0o644)
    os.symlink(secret, data + "/absolute")
    os.symlink("../secret", data + "/relative")
    os.symlink("/etc/hostname", data + "/cell")
    os.symlink("a.txt", data + "/inside")
    for name in ("absolute", "relative"):
        with open(data + "/" + name) as file:
            same(file.read(), "SECRET", "the link outside")
    code = ("def read(name):\n    try:\n        return open('/data/' + name).read()\n"
            "    except OSError as error:\n        return type(error).__name__\n"
            "for name in ('absolute', 'relative', 'cell', 'inside'):\n    print(read(name))")
    same(told(cold(place, "--policy", policy(place), "--data", data, "-c", code)).split("\n")[:4],
         ["FileNotFoundError", "FileNotFoundError", "cell", ""], "what they lead to")


@test(None)
def devices_and_programs_in_it_are_dead(place):
    data = folder(place)
    rules = policy(place, more="processes: exec\n")
    with open(data + "/run.sh", "w") as file:
        file.write("#!/bin/sh\necho ran\n")
    os.chmod(data + "/run.sh", 0o755)
    names = ["run"]
    if os.geteuid() == 0:
        os.mknod(data + "/null", 0o666 | 0o020000, os.makedev(1, 3))
        os.chmod(data + "/null", 0o666)
        names.append("device")
    code = ("import subprocess\n"
            "def run():\n    return subprocess.check_output(['/data/run.sh'])\n"
            "def device():\n    return open('/data/null').read()\n"
            "for call in (%s):\n    try:\n        print(call())\n"
            "    except OSError as error:\n        print(type(error).__name__)"
            % (", ".join(names) + ","))
    same(told(cold(place, "--policy", rules, "--data", data, "-c", code)),
         "PermissionError\n" * len(names), "what they are")


@test(None)
def what_makes_no_sense_is_refused(place):
    data, file = folder(place), place.file("file", "x")
    cases = [((data + "/none",), "no data folder"), ((file,), "is no folder"),
             (("/",), "whole host"), (("/proc/self",), "is in /proc"),
             ((data + "=a/b",), "is no name"), ((data + "=..",), "is no name"),
             ((data + "=",), "DIR or DIR=NAME"), ((data, data), "want the name"),
             ((data,) * 17, "more than 16")]
    for folders, text in cases:
        words = [word for name in folders for word in ("--data", name)]
        done = cold(place, *words, "-c", "print(1)")
        same((done.returncode, done.stdout), (2, b""), "the end of %s" % (folders[:2],))
        check(text.encode() in done.stderr, "%r is said" % text, done.stderr)
    done = cold(place, "--isolation", "landlock", "--data", data, "-c", "print(1)")
    check(done.returncode == 2 and b"read_paths" in done.stderr, "without mounts", done.stderr)
    if os.geteuid() == 0:
        os.chmod(data, 0o700)
        done = cold(place, "--data", data, "-c", "print(1)")
        check(done.returncode == 2 and b"chmod o+rx" in done.stderr, "root's own", done.stderr)


def lab(place):
    """A supervisor's policy that lists one folder; others lie beside it."""
    allowed = folder(place, "allowed")
    folder(place, "allowed2")
    folder(place, "private")
    os.symlink(os.path.join(place.path, "private"), allowed + "/out")
    return policy(place, paths=[allowed])


@test("--policy", lab)
def a_supervisor_shows_what_its_policy_lists(place):
    allowed = os.path.join(place.path, "allowed")
    run = ("--json", "--policy", "lab")
    text = told(place.run(*run, "--data", allowed, "-c", LIST % "a.txt"))
    check("hello" in text, "the folder", text)
    text = told(place.run(*run, "--data", allowed + "/sub=s", "-c", LIST % "s/b.txt"))
    same(text, "['s']\ndeep\n\n", "one beneath it")
    for name in ("allowed2", "private", "allowed/out", "allowed/../private", "."):
        done = place.run(*run, "--data", os.path.join(place.path, name), "-c", "print(1)")
        same((done.returncode, done.stdout), (2, b""), "the end of " + name)
        check(b"data_paths" in done.stderr, "why " + name, done.stderr)
    done = place.run("--json", "--data", allowed, "-c", "print(1)")
    check(done.returncode == 2 and b"has no data_paths" in done.stderr, "another policy",
          done.stderr)


@test("--policy", lab)
def the_protocol_has_them(place):
    allowed = os.path.join(place.path, "allowed")
    client = place.client()
    client.run("1", "print(open('/data/x/a.txt').read())", policy="lab",
               data=[{"path": allowed, "name": "x"}])
    same(client.outcome("1")["stdout"], "hello\n\n", "a folder by its path and name")
    for wrong in ("x", [allowed], [{"name": "x"}], [{"path": "a"}], [{"path": 1}],
                  [{"path": allowed, "more": 1}], [{"path": allowed, "name": ""}],
                  [{"path": allowed, "name": "a/b"}], [{"path": allowed}] * 17):
        client.run("2", "print(1)", policy="lab", data=wrong)
        same(client.until("error", "2")[0]["code"], "request", "what %r is" % (wrong,))
    client.run("3", "print(1)", policy="lab", data=[{"path": place.path}])
    same(client.until("error", "3")[0]["code"], "limit", "a folder that is not listed")


@test("--policy", lab)
def those_that_come_again_find_warm_cells(place):
    allowed = os.path.join(place.path, "allowed")

    def run(name="a.txt"):
        result = outcome(place.run("--json", "--policy", "lab", "--data", allowed, "-c",
                                   LIST % name))
        same(result["status"], "ok", "the run")
        return result

    same(run()["engine"]["start"], "cold", "the first")
    warm = wait_for(lambda: run()["engine"]["start"] != "cold" and run(), "one is warm", 120)
    check("hello" in warm["stdout"], "it sees the folder", warm)
    plain = outcome(place.run("--json", "--policy", "lab", "-c",
                              "import os\nprint(os.path.exists('/data'))"))
    same(plain["stdout"], "False\n", "a run without the folder")
    # Another folder at the same path is not the one that warm cells have.
    os.rename(allowed, allowed + ".old")
    os.rename(os.path.join(place.path, "private"), allowed)
    with open(allowed + "/new.txt", "w") as file:
        file.write("fresh")
    check("fresh" in run("new.txt")["stdout"], "it is the new one that is seen")


if __name__ == "__main__":
    sys.exit(suite.main(ADYTON, sys.argv[2:]))
