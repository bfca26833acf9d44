"""Debian's packages that make the machine: the emulator, and the kernel with its modules.

The kernel is never installed: where the host has none of the kind, its package is fetched by
apt-get and unpacked into a folder that is kept between runs.
"""

import glob
import os
import re
import shutil
import subprocess

EMULATOR = "qemu-system-x86_64"
EMULATOR_PACKAGE = "qemu-system-x86"
KERNEL_PACKAGE = "linux-image-cloud-amd64"
# By their file names: what a virtio disk on PCI takes; the file system is built in.
MODULES = ("virtio_pci", "virtio_blk")
FETCH_SECONDS = 90


class Missing(Exception):
    """What the host lacks, and the command that mends it."""


def emulator():
    found = shutil.which(EMULATOR)
    if not found:
        raise Missing("no %s: apt-get install --no-install-recommends %s"
                      % (EMULATOR, EMULATOR_PACKAGE))
    if not shutil.which("mke2fs", path="/usr/sbin:/sbin:" + os.environ.get("PATH", "")):
        raise Missing("no mke2fs: apt-get install e2fsprogs")
    return found


class Kernel:
    """A kernel image, its release, and its modules in the order in which they load."""

    def __init__(self, image, top):
        self.image = image
        self.release = os.path.basename(image).partition("-")[2]
        self.folder = os.path.join(top, "lib/modules", self.release, "kernel")

    def modules(self):
        files = {}
        for path, _, names in os.walk(self.folder):
            for name in names:
                if name.endswith(".ko"):
                    files[name[:-3].replace("-", "_")] = os.path.join(path, name)
        order = []
        for name in MODULES:
            _add_module(name, files, order)
        return order


def _add_module(name, files, order):
    """What it depends on comes first; the file itself says what that is (modinfo's depends)."""
    if name not in files:
        raise Missing("the kernel has no module %s" % name)
    if files[name] in order:
        return
    with open(files[name], "rb") as file:
        found = re.search(rb"\0depends=([^\0]*)\0", file.read())
    for needed in filter(None, found.group(1).decode().split(",") if found else ()):
        _add_module(needed.replace("-", "_"), files, order)
    order.append(files[name])


def _kernel_in(top):
    images = sorted(glob.glob(os.path.join(top, "boot/vmlinuz-6.1.*-cloud-amd64")))
    for image in reversed(images):
        kernel = Kernel(image, top)
        if os.access(image, os.R_OK) and os.path.isdir(kernel.folder):
            return kernel
    return None


def _output(argv, **options):
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=FETCH_SECONDS, check=True,
                              **options)
    except (OSError, subprocess.SubprocessError) as exc:
        said = (getattr(exc, "stderr", b"") or b"").decode("utf-8", "replace").strip()
        last = said.splitlines()[-1] if said else str(exc)
        raise Missing("no kernel: apt-get install %s (%s)" % (KERNEL_PACKAGE, last)) from exc
    return done.stdout.decode("utf-8", "replace")


def kernel(cache):
    """The host's, or the one kept in `cache`, or the package's of today."""
    found = _kernel_in("/") or _kernel_in(cache)
    if found:
        return found
    depends = _output(["apt-cache", "depends", KERNEL_PACKAGE])
    names = re.findall(r"Depends: (linux-image-6\.1\S+-cloud-amd64)", depends)
    if not names:
        raise Missing("no kernel: apt knows no %s of version 6.1" % KERNEL_PACKAGE)
    os.makedirs(cache, exist_ok=True)
    # Not as apt's own user: the folder is ours.
    _output(["apt-get", "-o", "APT::Sandbox::User=root", "download", names[0]], cwd=cache)
    for package in glob.glob(os.path.join(cache, "*.deb")):
        _output(["dpkg-deb", "-x", package, cache])
        os.unlink(package)
    found = _kernel_in(cache)
    if not found:
        raise Missing("no kernel: %s holds none" % names[0])
    return found
