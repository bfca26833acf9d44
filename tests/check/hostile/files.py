#: remove an important file
import os
os.remove("@OUT@/victim")
print("ESCAPED")
#: read a secret
print("ESCAPED", open("@OUT@/secret").read())
#: write by mode
with open("@OUT@/made", "w") as f:
    f.write("x")
print("ESCAPED")
#: append by keyword
open(file="@OUT@/made", mode="a").write("x")
print("ESCAPED")
#: io.open
import io
print("ESCAPED", io.open("@OUT@/secret").read())
#: io.FileIO
import io
print("ESCAPED", io.FileIO("@OUT@/secret").read())
#: codecs.open
import codecs
print("ESCAPED", codecs.open("@OUT@/secret", "r", "utf-8").read())
#: os.open with flags
import os
os.close(os.open("@OUT@/made", os.O_CREAT | os.O_WRONLY))
print("ESCAPED")
#: relative climb
print("ESCAPED", open("../../../../../../../..@OUT@/secret").read())
#: climb after a folder
import os
os.makedirs("a/b", exist_ok=True)
print("ESCAPED", open("a/b/../../../../../../../../..@OUT@/secret").read())
#: concatenated path
base = "/var"
name = "@OUT@"[4:] + "/sec" + "ret"
print("ESCAPED", open(base + name).read())
#: formatted path
folder = "@OUT@"
print("ESCAPED", open(f"{folder}/{'secret'}").read())
#: percent path
print("ESCAPED", open("%s/%s" % ("@OUT@", "secret")).read())
#: format method path
print("ESCAPED", open("{}/{}".format("@OUT@", "secret")).read())
#: joined path
import os
print("ESCAPED", open(os.path.join("/", "@OUT@", "secret")).read())
#: joined from parts
print("ESCAPED", open("/".join(["@OUT@", "secret"])).read())
#: reversed path
print("ESCAPED", open("terces/@TUO@"[::-1]).read())
#: path of character codes
path = "@OUT@" + "".join(chr(c) for c in (47, 115, 101, 99, 114, 101, 116))
print("ESCAPED", open(path).read())
#: bytes path
print("ESCAPED", open(b"@OUT@/secret").read())
#: path in a loop
for path in ("/tmp/none", "@OUT@/secret"):
    try:
        print("ESCAPED", open(path).read())
    except OSError as exc:
        print("BLOCKED", type(exc).__name__)
#: path by default argument
def read(path="@OUT@/secret"):
    return open(path).read()
print("ESCAPED", read())
#: path chosen by a condition
import sys
path = "@OUT@/secret" if len(sys.argv) else "/tmp/x"
print("ESCAPED", open(path).read())
#: path in a class
class Target:
    path = "@OUT@/secret"
    data = open(path).read()
print("ESCAPED", Target.data)
#: pathlib read
from pathlib import Path
print("ESCAPED", Path("@OUT@/secret").read_text())
#: pathlib slash
import pathlib
print("ESCAPED", (pathlib.Path("@OUT@") / "secret").read_bytes())
#: pathlib parent climb
import pathlib
print("ESCAPED", (pathlib.Path("@OUT@/x").parent / "secret").open().read())
#: pathlib write
import pathlib as p
p.Path("@OUT@").joinpath("made").write_text("x")
print("ESCAPED")
#: pathlib unlink
from pathlib import Path as P
P("@OUT@", "victim").unlink()
print("ESCAPED")
#: pathlib rename away
from pathlib import Path
Path("@OUT@/victim").rename("@OUT@/gone")
print("ESCAPED")
#: remove a tree
import shutil
shutil.rmtree("@OUT@/tree")
print("ESCAPED")
#: copy a secret in
import shutil
shutil.copy("@OUT@/secret", "stolen")
print("ESCAPED")
#: copy out
import shutil
open("mine", "w").close()
shutil.copyfile("mine", "@OUT@/made")
print("ESCAPED")
#: move away
import shutil
shutil.move("@OUT@/victim", "/tmp/victim")
print("ESCAPED")
#: archive the outside
import shutil
shutil.make_archive("/tmp/loot", "tar", "@OUT@")
import tarfile
print("ESCAPED" if "./secret" in tarfile.open("/tmp/loot.tar").getnames() else "BLOCKED")
#: list a folder
import os
print("ESCAPED" if "secret" in os.listdir("@OUT@") else "BLOCKED")
#: scan a folder
import os
print("ESCAPED", [e.name for e in os.scandir("@OUT@")])
#: glob the outside
import glob
print("ESCAPED" if glob.glob("@OUT@/sec*") else "BLOCKED")
#: walk the outside
import os
print("ESCAPED" if [n for _, _, names in os.walk("@OUT@") for n in names] else "BLOCKED")
#: make folders
import os
os.makedirs("@OUT@/new/folders")
print("ESCAPED")
#: change a mode
import os
os.chmod("@OUT@/victim", 0o777)
print("ESCAPED")
#: truncate
import os
os.truncate("@OUT@/victim", 0)
print("ESCAPED")
#: rename within the outside
import os
os.rename("@OUT@/victim", "@OUT@/renamed")
print("ESCAPED")
#: replace by own file
import os
open("mine", "w").close()
os.replace("mine", "@OUT@/victim")
print("ESCAPED")
#: hard link
import os
os.link("@OUT@/secret", "hard")
print("ESCAPED")
#: symbolic link and read
import os
os.symlink("@OUT@/secret", "soft")
print("ESCAPED", open("soft").read())
#: change the folder first
import os
os.chdir("@OUT@")
print("ESCAPED", open("secret").read())
#: pandas reads
import pandas as pd
print("ESCAPED", pd.read_csv("@OUT@/secret", header=None).shape)
#: pandas writes
import pandas as pd
pd.DataFrame({"a": [1]}).to_csv("@OUT@/made")
print("ESCAPED")
#: numpy reads
import numpy as np
print("ESCAPED", np.fromfile("@OUT@/secret", dtype="u1").size)
#: numpy writes
import numpy as np
np.save("@OUT@/made.npy", np.zeros(3))
print("ESCAPED")
#: sqlite elsewhere
import sqlite3
sqlite3.connect("@OUT@/made.db").execute("create table t(x)")
print("ESCAPED")
#: gzip elsewhere
import gzip
gzip.open("@OUT@/made.gz", "wb").write(b"x")
print("ESCAPED")
#: zip elsewhere
import zipfile
zipfile.ZipFile("@OUT@/made.zip", "w").writestr("a", "b")
print("ESCAPED")
#: unpack elsewhere
import zipfile
with zipfile.ZipFile("/tmp/a.zip", "w") as z:
    z.writestr("made", "b")
zipfile.ZipFile("/tmp/a.zip").extractall("@OUT@")
print("ESCAPED")
#: a log file elsewhere
import logging
logging.basicConfig(filename="@OUT@/made.log", level=0)
logging.info("x")
print("ESCAPED")
#: temporary folder elsewhere
import tempfile
print("ESCAPED", tempfile.mkdtemp(dir="@OUT@"))
#: a plot elsewhere
import matplotlib.pyplot as plt
plt.plot([1])
plt.savefig("@OUT@/made.png")
print("ESCAPED")
#: aliased open
f = open
g = f
print("ESCAPED", g("@OUT@/secret").read())
#: open from builtins
import builtins
print("ESCAPED", builtins.open("@OUT@/secret").read())
#: open by getattr
import builtins
print("ESCAPED", getattr(builtins, "op" + "en")("@OUT@/secret").read())
#: open through a dict of builtins
print("ESCAPED", vars(__import__("builtins"))["open"]("@OUT@/secret").read())
#: posix behind os
import posix
posix.close(posix.open("@OUT@/secret", 0))
print("ESCAPED")
#: star import
from os import *
print("ESCAPED" if "secret" in listdir("@OUT@") else "BLOCKED")
#: a module that hands out os
import tempfile
tempfile._os.unlink("@OUT@/victim")
print("ESCAPED")
#: path from input | unseen
import os
parts = ["@OUT@", "secret"]
print("ESCAPED", open(os.sep.join(reversed(parts[::-1]))).read())
#: path from a file | unseen
with open("where", "w") as f:
    f.write("@OUT@/secret")
print("ESCAPED", open(open("where").read()).read())
#: path by xor | unseen
hidden = bytes(b ^ 1 for b in b"@OUT@/secret")
print("ESCAPED", open(bytes(b ^ 1 for b in hidden)).read())
#: path from a class attribute through self | unseen
class Reader:
    def __init__(self, path):
        self.path = path
    def read(self):
        return open(self.path).read()
print("ESCAPED", Reader("@OUT@/secret").read())
#: path through a function | unseen
def where():
    return "@OUT@/secret"
print("ESCAPED", open(where()).read())
