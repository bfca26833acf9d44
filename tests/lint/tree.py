"""The text of a source tree: what Git would keep, or what a self-test puts in its place."""

import os
import subprocess

SKIPPED_FOLDERS = (".git", "build", "node_modules", "__pycache__")


class Tree:
    """Paths, relative to the top, and the text of each file that is text."""

    def __init__(self, texts, folder=None):
        self.texts, self.folder = texts, folder

    def under(self, prefix, *suffixes):
        """(path, text) of the files below `prefix`, in order."""
        for path in sorted(self.texts):
            if path.startswith(prefix) and path.endswith(suffixes or ("",)):
                yield path, self.texts[path]

    def has(self, path):
        """True when there is such a file or folder."""
        path = path.rstrip("/")
        return path in self.texts or any(p.startswith(path + "/") for p in self.texts)


def _paths(folder):
    done = subprocess.run(["git", "-c", "safe.directory=*", "-C", folder, "ls-files", "-z",
                           "--cached", "--others", "--exclude-standard"],
                          stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode == 0:
        return [os.fsdecode(path) for path in done.stdout.split(b"\0") if path]
    found = []    # a tarball, or a machine without Git
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(SKIPPED_FOLDERS)]
        found += [os.path.relpath(os.path.join(top, name), folder) for name in names]
    return found


def read(folder):
    texts = {}
    for path in _paths(folder):
        try:
            with open(os.path.join(folder, path), encoding="utf-8") as file:
                texts[path] = file.read()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue    # not text, or deleted and not yet committed
    return Tree(texts, folder)
