"""What the documents show is what happens:  examples.py BUILD

Runs every `$ command` of the console blocks in README.md and examples/README.md, in a folder that
holds the examples, and compares what comes out with what is printed there. Numbers that a
machine decides (times, sizes, versions, the kind of control group) may differ. Prints TAP.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "harness"))

from tap import Tap  # noqa: E402

DOCUMENTS = ("README.md", "examples/README.md")
LIMIT_S = 60
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
# A machine's own: what stands for each of them in both texts.
OWN = ((r"\d+(?:\.\d+)? (ms|s|MiB|KiB)\b", r"N \1"), (r"cpython [\d.]+", "cpython N"),
       (r"cgroup:v[12](?:\+v2)?", "cgroup:N"), (r"landlock:\d+", "landlock:N"),
       (r"[ \t]+$", ""))


def plain(text):
    for pattern, instead in OWN:
        text = re.sub(pattern, instead, text, flags=re.M)
    return text.rstrip("\n")


def commands(path):
    """(command, what it is said to print) of each console block."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        blocks = BLOCK.findall(file.read())
    for block in blocks:
        for piece in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, printed = piece.partition("\n")
            yield command, printed


def run(command, build, folder):
    environment = {"PATH": build + ":/usr/bin:/bin", "LANG": "C.UTF-8", "TMPDIR": folder,
                   "HOME": folder, "XDG_STATE_HOME": folder + "/state"}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=LIMIT_S)
    return done.stdout.decode("utf-8", "replace")


def main():
    build, tap = os.path.abspath(sys.argv[1]), Tap()
    with tempfile.TemporaryDirectory(prefix="examples-") as folder:
        shutil.copytree(os.path.join(ROOT, "examples"), os.path.join(folder, "examples"))
        able = run("adyton run -c pass; echo $?", build, folder)
        for path in DOCUMENTS:
            for command, printed in commands(path):
                name = "%s: %s" % (path, command[:70])
                if "no control group" in able:
                    tap.point(name, skip="no control group for this user")
                    continue
                got = run(command, build, folder)
                problems = [] if plain(got) == plain(printed) else \
                    ["it should print:", printed, "it printed:", got]
                tap.point(name, problems)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
