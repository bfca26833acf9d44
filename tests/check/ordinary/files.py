#: write and read back
with open("notes.txt", "w") as file:
    file.write("first\nsecond\n")
with open("notes.txt") as file:
    for number, line in enumerate(file, 1):
        print(number, line.strip())
#: paths with os.path
import os
path = os.path.join(os.getcwd(), "data", "a.csv")
print(os.path.basename(path), os.path.splitext(path)[1], os.path.dirname(path))
print(os.path.exists("/etc/passwd"), os.sep, os.environ.get("HOME"))
#: folders and listing
import os
os.makedirs("tree/a/b", exist_ok=True)
for name in ("x.txt", "y.txt"):
    with open(os.path.join("tree", "a", name), "w") as file:
        file.write(name)
for folder, folders, names in os.walk("tree"):
    print(folder, sorted(folders), sorted(names))
#: pathlib
from pathlib import Path
base = Path("project")
base.mkdir(exist_ok=True)
(base / "main.py").write_text("print(1)\n")
for path in sorted(base.glob("*.py")):
    print(path, path.stat().st_size, path.suffix, path.read_text().strip())
#: pathlib in tmp
import pathlib
report = pathlib.Path("/tmp") / "report.md"
report.write_text("# Report\n")
print(report.exists(), report.parent, report.with_suffix(".txt").name)
report.unlink()
#: copy and remove
import os
import shutil
os.mkdir("src_dir")
with open("src_dir/a.txt", "w") as f:
    f.write("a" * 100)
shutil.copytree("src_dir", "copy_dir")
print(shutil.disk_usage(".").total > 0, os.listdir("copy_dir"))
shutil.rmtree("copy_dir")
#: temporary files
import tempfile
import os
with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "t.bin"), "wb") as file:
        file.write(b"\0" * 1024)
    print(os.path.getsize(os.path.join(folder, "t.bin")))
with tempfile.NamedTemporaryFile("w+", suffix=".log") as log:
    log.write("line")
    log.flush()
    print(log.name.startswith(tempfile.gettempdir()))
#: zip archive
import zipfile
with zipfile.ZipFile("bundle.zip", "w") as archive:
    archive.writestr("a.txt", "alpha")
    archive.writestr("b/b.txt", "beta")
with zipfile.ZipFile("bundle.zip") as archive:
    print(archive.namelist(), archive.read("a.txt"))
    archive.extractall("unpacked")
#: gzip and compare
import gzip
text = b"compress me " * 200
with gzip.open("text.gz", "wb") as file:
    file.write(text)
with gzip.open("text.gz", "rb") as file:
    print(file.read() == text)
#: config file
import configparser
config = configparser.ConfigParser()
config["server"] = {"host": "127.0.0.1", "port": "8080"}
with open("app.ini", "w") as file:
    config.write(file)
again = configparser.ConfigParser()
again.read("app.ini")
print(again.getint("server", "port"))
#: pickle of one's own data
import pickle
data = {"a": [1, 2, 3], "b": ("x", None)}
with open("data.pkl", "wb") as file:
    pickle.dump(data, file)
with open("data.pkl", "rb") as file:
    print(pickle.load(file) == data)
#: tar archive
import tarfile
import io
with tarfile.open("t.tar.gz", "w:gz") as tar:
    info = tarfile.TarInfo("hello.txt")
    info.size = 5
    tar.addfile(info, io.BytesIO(b"hello"))
with tarfile.open("t.tar.gz") as tar:
    print(tar.getnames())
#: discard output
import os
import sys
with open(os.devnull, "w") as nothing:
    print("unseen", file=nothing)
with open("/dev/null", "w") as nothing:
    nothing.write("x")
print(sys.stdout.writable())
#: expanded home
import os
target = os.path.expanduser("~/results.txt")
with open(target, "w") as file:
    file.write("kept")
print(os.path.isfile(target), os.path.abspath("results.txt"))
#: rename and sizes
import os
for i in range(3):
    with open(f"part{i}.txt", "w") as file:
        file.write("x" * i)
os.rename("part2.txt", "last.txt")
os.remove("part0.txt")
print(sorted((name, os.stat(name).st_size) for name in os.listdir(".") if name.endswith(".txt")))
#: relative walk up and down
import os
os.makedirs("deep/er", exist_ok=True)
os.chdir("deep/er")
with open("../note.txt", "w") as file:
    file.write("up")
os.chdir("/tmp")
print(open("deep/note.txt").read())
#: random bytes
with open("/dev/urandom", "rb") as file:
    print(len(file.read(8)))
