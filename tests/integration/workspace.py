#!/usr/bin/env python3
"""Workspaces (`adyton run --workspace`): they stay, are bounded, and lead nowhere else.
Usage: workspace.py PATH-TO-ADYTON [NAME…]

Prints TAP.
"""
import json
import os
import stat
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from serve_parts import Suite, check, same

ADYTON = os.path.abspath(sys.argv[1])
suite = Suite()
test = suite.test
NAMED = ("--workspaces", "named")


def outcome(done):
    check(done.stdout, "there is an outcome", done.stderr)
    return json.loads(done.stdout)


def cold(place, *args, name="w"):
    return place.call("run", "--cold", "--json", *NAMED, "--workspace", name, *args)


def told(done, what="the run"):
    result = outcome(done)
    same((result["status"], result["stderr"]), ("ok", ""), what)
    return result["stdout"]


def workspaces(place):
    return os.path.join(place.path, "state", "adyton", "workspaces")


def lab(place, more=""):
    return place.file("lab.yaml", "name: lab\nextends: standard\nworkspaces: named\n" + more)


WRITE = "open('/workspace/notes.txt', 'a').write('line\\n')\n"
READ = "print(open('/workspace/notes.txt').read(), end='')"


@test("--policy", lab)
def what_is_left_is_there_for_the_next_run(place):
    told(cold(place, "-c", "import os\nos.makedirs('/workspace/a/b')\n" + WRITE))
    same(told(cold(place, "-c", WRITE + READ)), "line\nline\n", "the second run")
    served = place.run("--json", "--policy", "lab", "--workspace", "w", "-c", WRITE + READ)
    same(told(served), "line\n" * 3, "through a supervisor")
    same(outcome(served)["engine"]["start"], "cold", "its cell")
    same(told(cold(place, "-c", "import os\nprint(os.listdir('/workspace'))", name="other")),
         "[]\n", "another workspace")
    same(told(cold(place, "-c", "import os\nprint(sorted(os.listdir('/workspace')), "
                   "os.path.exists('/tmp/a'))")), "['a', 'notes.txt'] False\n", "it is no /tmp")
    plain = outcome(place.call("run", "--cold", "--json", "-c",
                               "import os\nprint(os.path.exists('/workspace'))"))
    same(plain["stdout"], "False\n", "a run without one")


@test(None)
def it_is_its_own_user_s_and_nobody_else_s(place):
    told(cold(place, "-c", WRITE))
    told(cold(place, "-c", "1", name="other"))
    is_one, is_other = (os.stat(os.path.join(workspaces(place), n)) for n in ("w", "other"))
    for each in (is_one, is_other):
        same(stat.S_IMODE(each.st_mode), 0o700, "the mode of a workspace")
    file = os.stat(os.path.join(workspaces(place), "w", "notes.txt"))
    same(file.st_uid, is_one.st_uid, "the owner of what a run left")
    if os.geteuid() == 0:
        check(is_one.st_uid != is_other.st_uid != 0, "each has a user", is_one, is_other)
    same(sorted(os.listdir(workspaces(place))), ["other", "w"], "nothing half made")


@test(None)
def the_policy_decides(place):
    done = place.call("run", "--cold", "--workspace", "w", "-c", "1")
    check(done.returncode == 2 and b"has no workspaces" in done.stderr, "standard", done.stderr)
    for name in ("", ".", "..", "a/b", "../x", ".hidden", "a b", "é", "x" * 64):
        done = cold(place, "-c", "1", name=name)
        same((done.returncode, done.stdout), (2, b""), "the name %r" % name)
    check(not os.path.exists(workspaces(place)), "nothing was made")
    done = cold(place, "--isolation", "landlock", "-c", "1")
    check(done.returncode == 2 and b"needs mounts" in done.stderr, "landlock", done.stderr)


@test("--policy", lab)
def a_client_is_told_what_its_policy_says(place):
    client = place.client()
    client.run("1", "1", workspace="w")
    same(client.until("error", "1")[0]["code"], "limit", "a policy without workspaces")
    for wrong in ("", "a/b", 1, "x" * 64):
        client.run("2", "1", policy="lab", workspace=wrong)
        same(client.until("error", "2")[0]["code"], "request", "the name %r" % (wrong,))
    client.run("3", "import os\nprint(os.listdir('/workspace'))", policy="lab", workspace="w")
    same(client.outcome("3")["stdout"], "[]\n", "a policy with them")


@test(None)
def it_is_bounded(place):
    patient = ("--policy", lab(place, "timeout: 1min\ncpu_time: 1min\n"))
    fill = ("import time\nwith open('/workspace/big', 'wb') as file:\n    while True:\n"
            "        file.write(bytes(1 << 20))\n        file.flush()\n        time.sleep(0.01)")
    result = outcome(cold(place, *patient, "--workspace-size", "8M", "-c", fill))
    same((result["status"], result["limit"]),
         ("disk", {"name": "workspace_size", "value": 8 << 20}), "the end")
    check("workspace:watched" in result["isolation"], "how it is held", result["isolation"])
    result = outcome(cold(place, *patient, "--workspace-size", "8M", "-c", "print('began')"))
    same((result["status"], result["stdout"]), ("failed", ""), "the next run")
    check("workspace is full" in result["message"], "why", result["message"])
    same(told(cold(place, *patient, "--workspace-size", "64M", "-c",
                   "import os\nos.unlink('/workspace/big')")), "", "room is made")
    same(told(cold(place, *patient, "--workspace-size", "8M", "-c", "print('began')")), "began\n", "again")
    files = ("import time\nfor i in range(100000):\n    open('/workspace/%d' % i, 'w').close()\n"
             "    if i % 100 == 0: time.sleep(0.001)")
    result = outcome(cold(place, *patient, "-c", files, name="many"))
    same((result["status"], result["limit"]), ("disk", {"name": "disk_inodes", "value": 4096}),
         "as many files as there may be")


@test(None)
def nothing_in_it_is_hidden(place):
    """What is deeper than anybody looks, or closed by its owner, is not overlooked."""
    patient = ("--policy", lab(place, "timeout: 1min\ncpu_time: 1min\nvalidation: 'off'\n"))
    end = "import os, time\n%stime.sleep(30)\n"
    deep = "for _ in range(80):\n    os.mkdir('d')\n    os.chdir('d')\n"
    codes = {"deep": "os.chdir('/workspace')\n" + deep}
    if os.geteuid() != 0:
        codes["closed"] = "os.mkdir('/workspace/d')\nos.chmod('/workspace/d', 0)\n"
    for name, code in codes.items():
        result = outcome(cold(place, *patient, "-c", end % code, name=name))
        same((result["status"], result["limit"]["name"]), ("disk", "workspace_size"), name)
        check("hid a part" in result["message"], "why", result["message"])
        same(outcome(cold(place, *patient, "-c", "1", name=name))["status"], "failed", "the next")


@test(None)
def sparse_files_count_by_what_they_hold(place):
    code = ("f = open('/workspace/sparse', 'wb')\nf.truncate(40 << 20)\nprint('made')\n"
            "import time\ntime.sleep(0.3)\nprint('lives')")
    same(told(cold(place, "--workspace-size", "8M", "-c", code)), "made\nlives\n", "a hole")


@test(None)
def what_is_left_in_it_leads_nowhere(place):
    """Links, pipes and programs that one run leaves for the next, or for us."""
    secret = place.file("secret", "SECRET")
    os.chmod(secret, 0o644)
    code = ("import os\nos.symlink(%r, '/workspace/link')\nos.symlink('/', '/workspace/root')\n"
            "os.mkfifo('/workspace/fifo')\nopen('/workspace/run', 'w').write('#!/bin/sh\\n')\n"
            "os.chmod('/workspace/run', 0o777)\nos.symlink('.', '/workspace/loop')" % secret)
    options = ("--validation", "off", "--processes", "exec", "--policy", "open")
    told(cold(place, *options, "-c", code))
    code = ("import os, subprocess\nprint(os.path.exists('/workspace/link'))\n"
            "try:\n    subprocess.run(['/workspace/run'])\nexcept OSError as e:\n"
            "    print(type(e).__name__)\n"
            "print(os.statvfs('/workspace').f_flag & 15)")
    same(told(cold(place, *options, "-c", code)), "False\nPermissionError\n%d\n"
         % (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC), "what the next run finds")


@test(None)
def a_workspace_that_was_replaced_is_refused(place):
    told(cold(place, "-c", "1"))
    os.rmdir(os.path.join(workspaces(place), "w"))
    os.symlink(place.path, os.path.join(workspaces(place), "w"))
    done = cold(place, "-c", "1")
    same((done.returncode, done.stdout), (2, b""), "a link in its place")
    if os.geteuid() == 0:
        os.mkdir(os.path.join(workspaces(place), "mine"))
        done = cold(place, "-c", "1", name="mine")
        check(done.returncode == 2 and b"belongs to user 0" in done.stderr, "root's own folder",
              done.stderr)
    os.chmod(workspaces(place), 0o777)
    done = cold(place, "-c", "1", name="new")
    check(done.returncode == 2 and b"others may write" in done.stderr, "a place that is open",
          done.stderr)


@test(None)
def validation_and_the_hook_know_it(place):
    code = ("try:\n    open('/%s/x', 'w').close()\n    print('written')\n"
            "except PermissionError as e:\n    print(type(e).__name__)")
    folder = "p = '/%s'\n" % "workspace"
    same(told(cold(place, "-c", code % "workspace")), "written\n", "a path that is told")
    same(told(cold(place, "--validation", "off", "-c", folder + code % "workspace")), "written\n",
         "the hook")
    same(outcome(cold(place, "-c", code % "workspaces"))["status"], "rejected", "beside it")
    result = outcome(place.call("run", "--cold", "--json", "-c", code % "workspace"))
    same(result["status"], "rejected", "without a workspace")


if __name__ == "__main__":
    sys.exit(suite.main(ADYTON, sys.argv[2:]))
