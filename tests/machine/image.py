"""The machine's file systems, made of this host's own files: the disk and the initial one.

The disk holds an interpreter with its library, some packages, what they all are linked with,
the program and its tests; nothing else of the host.
"""

import gzip
import json
import os
import shutil
import stat
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ("numpy", "pandas", "matplotlib")
# Run by the interpreter that goes along; prints where things are and what is loaded.
ASK = """
import importlib, json, os, sys, sysconfig
have = []
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        have.append(name)
    except ImportError:
        pass
if "matplotlib" in have:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot
print(json.dumps({
    "executable": sys.executable, "library": sysconfig.get_path("stdlib"), "have": have,
    "files": [m.__file__ for m in list(sys.modules.values())
              if getattr(m, "__file__", None)],
    "data": [matplotlib.get_data_path()] if "matplotlib" in have else []}))
"""
PLACES = ("/etc/ld.so.cache", "/etc/matplotlibrc", "/etc/python3",
          "/etc/localtime", "/usr/share/misc/magic.mgc", "/usr/share/zoneinfo",
          "/usr/lib/locale/C.utf8")
# What a host has that a cell must not reach.
SECRETS = (("/etc/shadow", 0o600), ("/boot/config", 0o644))
FOLDERS = ("proc", "sys", "dev", "tmp", "run", "home", "root", "var/tmp", "var/lib", "mnt",
           "etc", "opt", "boot", "usr/local/lib")
LEFT_OUT = ("right", "posix", "tests", "test", "testing", "idlelib", "lib2to3", "turtledemo",
            "ensurepip")
STATIC = "config-"   # in the interpreter's library: what programs that embed it link with
LOADED = ("importlib", "testing")   # numpy and pandas import their `testing`
SPARE_BYTES = 64 << 20
USER = "someone"
USER_ID = 64999


class Stage:
    """A folder that becomes the root of the disk. Paths keep their places and their links."""

    def __init__(self, top):
        self.top = top
        for name in FOLDERS:
            os.makedirs(os.path.join(top, name), exist_ok=True)

    def place(self, path):
        return self.top + path

    def _bring_links(self, path):
        """Makes the links on the way to `path`; returns where the way ends."""
        parts, here = path.strip("/").split("/"), ""
        while parts:
            here += "/" + parts.pop(0)
            if not os.path.islink(here):
                continue
            target = os.readlink(here)
            if not os.path.lexists(self.place(here)):
                os.makedirs(os.path.dirname(self.place(here)), exist_ok=True)
                os.symlink(target, self.place(here))
            full = os.path.normpath(os.path.join(os.path.dirname(here), target))
            parts, here = full.strip("/").split("/") + parts, ""
        return here

    def bring(self, path, left_out=()):
        """A file or a folder of the host, and the links that lead to it."""
        if not os.path.exists(path):
            return
        path = self._bring_links(os.path.abspath(path))
        if not os.path.isdir(path):
            self._copy(path)
            return
        for folder, names, files in os.walk(path):
            names[:] = [n for n in names
                        if n not in left_out and not n.startswith(STATIC)]
            os.makedirs(self.place(folder), exist_ok=True)
            for name in files + [n for n in names if os.path.islink(folder + "/" + n)]:
                full = os.path.join(folder, name)
                if os.path.islink(full):
                    if os.path.exists(full):
                        self.bring(full, left_out)
                elif stat.S_ISREG(os.lstat(full).st_mode):
                    self._copy(full)

    def _copy(self, path):
        # With its time: compiled modules are good for a source of that time only.
        target = self.place(path)
        if not os.path.exists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(path, target)

    def put(self, path, target):
        """A file of ours at a place of its own."""
        os.makedirs(os.path.dirname(self.place(target)), exist_ok=True)
        shutil.copy2(path, self.place(target))

    def write(self, path, text):
        with open(self.place(path), "w") as file:
            file.write(text)

    def bring_libraries(self):
        """What the programs and modules that are here are linked with."""
        binaries = []
        for folder, _, names in os.walk(self.top):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not os.path.islink(path) and _is_elf(path):
                    binaries.append(path)
        said = subprocess.run(["ldd", *binaries], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        for line in said.decode().splitlines():
            words = line.split()
            paths = [w for w in words if w.startswith("/") and not w.endswith(":")]
            if paths:
                self.bring(paths[-1])


def _is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def _bring_interpreter(stage, python):
    said = subprocess.run([python, "-c", ASK, *PACKAGES], check=True, cwd="/",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout
    answer = json.loads(said)
    stage.bring(answer["executable"])
    stage.bring("/usr/bin/python3")
    stage.bring(answer["library"], LEFT_OUT)
    for path in answer["files"] + answer["data"]:
        if path.startswith(answer["library"] + "/"):
            continue
        _bring_package(stage, path)
    return answer["have"]


def _bring_package(stage, path):
    """The whole of the package that a loaded file belongs to."""
    for name in ("/dist-packages/", "/site-packages/"):
        before, found, after = path.partition(name)
        if found:
            whole = before + found + after.split("/")[0]
            stage.bring(whole, [n for n in LEFT_OUT if n not in LOADED])
            return
    stage.bring(path)


def _bring_tests(stage, program, build):
    stage.put(program, "/opt/adyton/adyton")
    for place in ("src/guest", "guest", "../lib/adyton"):
        guest = os.path.join(os.path.dirname(program), place, "_adyton.abi3.so")
        if os.path.exists(guest):
            stage.put(guest, "/opt/adyton/guest/_adyton.abi3.so")
            break
    for name in ("probe", "probe.so", "layers"):
        path = os.path.join(build, "tests/escape", name)
        if os.path.exists(path):
            stage.put(path, "/opt/escape/" + name)
    for folder in ("machine", "harness", "escape"):
        here = os.path.join(HERE, "..", folder)
        for name in os.listdir(here):
            if name.endswith(".py"):
                stage.put(os.path.join(here, name), "/opt/%s/%s" % (folder, name))


def make_disk(folder, program, build, python):
    """Writes folder/disk; returns its path and the packages on it."""
    stage = Stage(os.path.join(folder, "root"))
    have = _bring_interpreter(stage, python)
    for path in PLACES:
        stage.bring(path, LEFT_OUT)
    for path, mode in SECRETS:
        stage.write(path, "secret\n")
        os.chmod(stage.place(path), mode)
    _bring_tests(stage, program, build)
    stage.bring_libraries()
    stage.write("/etc/passwd", "root:x:0:0:root:/root:/bin/false\n"
                "%s:x:%d:%d::/home/%s:/bin/false\n" % (USER, USER_ID, USER_ID, USER))
    stage.write("/etc/group", "root:x:0:\n%s:x:%d:\n" % (USER, USER_ID))
    size = sum(os.lstat(os.path.join(path, name)).st_size + 4096
               for path, folders, names in os.walk(stage.top) for name in names + folders)
    disk = os.path.join(folder, "disk")
    with open(disk, "wb") as file:
        file.truncate(size + size // 8 + SPARE_BYTES)
    path = "/usr/sbin:/sbin:" + os.environ.get("PATH", "")
    subprocess.run([shutil.which("mke2fs", path=path), "-q", "-t", "ext4", "-m", "0", "-O",
                    "^has_journal", "-d", stage.top, disk], check=True,
                   stdin=subprocess.DEVNULL)
    shutil.rmtree(stage.top)
    return disk, have


def _entry(name, mode, data=b""):
    """One member of a cpio archive, in the form that the kernel reads (newc)."""
    encoded = name.encode() + b"\0"
    numbers = (1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
    head = b"070701" + b"".join(b"%08X" % n for n in numbers) + encoded
    head += b"\0" * (-len(head) % 4)
    return head + data + b"\0" * (-len(data) % 4)


def make_initial(folder, start, modules):
    """Writes folder/initial: the first program, the modules, and where to mount."""
    parts = [_entry(name, 0o040755) for name in ("dev", "disk", "modules")]
    for number, path in enumerate(modules):
        with open(path, "rb") as file:
            parts.append(_entry("modules/%02d" % number, 0o100644, file.read()))
    with open(start, "rb") as file:
        parts.append(_entry("init", 0o100755, file.read()))
    parts.append(_entry("TRAILER!!!", 0))
    path = os.path.join(folder, "initial")
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"".join(parts))
    return path
