#: os.system
import os
print("ESCAPED" if os.system("true") == 0 else "BLOCKED")
#: os.popen
import os
print("ESCAPED" if os.popen("echo hi").read() else "BLOCKED")
#: subprocess.run
import subprocess
subprocess.run(["/bin/true"], check=True)
print("ESCAPED")
#: subprocess.Popen from import
from subprocess import Popen as Start
print("ESCAPED" if Start(["/bin/true"]).wait() == 0 else "BLOCKED")
#: subprocess.check_output
import subprocess as sp
print("ESCAPED", sp.check_output("id", shell=True))
#: getoutput
import subprocess
print("ESCAPED" if subprocess.getstatusoutput("true")[0] == 0 else "BLOCKED")
#: alias of os
import os as o
print("ESCAPED" if o.system("true") == 0 else "BLOCKED")
#: alias of system
from os import system as s
print("ESCAPED" if s("true") == 0 else "BLOCKED")
#: assignment chain
import os
a = os
b = a.system
c = b
print("ESCAPED" if c("true") == 0 else "BLOCKED")
#: tuple assignment
import os, sys
x, y = os.system, sys.exit
print("ESCAPED" if x("true") == 0 else "BLOCKED")
#: getattr with joined halves
import os
print("ESCAPED" if getattr(os, "sys" + "tem")("true") == 0 else "BLOCKED")
#: getattr reversed
import os
print("ESCAPED" if getattr(os, "metsys"[::-1])("true") == 0 else "BLOCKED")
#: getattr from codes
import os
name = "".join(map(chr, [115, 121, 115, 116, 101, 109]))
print("ESCAPED" if getattr(os, name)("true") == 0 else "BLOCKED")
#: getattr from hex
import os
print("ESCAPED" if getattr(os, bytes.fromhex("73797374656d").decode())("true") == 0 else "BLOCKED")
#: getattr from base64
import base64
import os
print("ESCAPED" if getattr(os, base64.b64decode("c3lzdGVt").decode())("true") == 0 else "BLOCKED")
#: getattr lowered
import os
print("ESCAPED" if getattr(os, "SYSTEM".lower())("true") == 0 else "BLOCKED")
#: getattr replaced
import os
print("ESCAPED" if getattr(os, "sXYtem".replace("XY", "ys"))("true") == 0 else "BLOCKED")
#: getattr formatted
import os
print("ESCAPED" if getattr(os, "{}{}".format("sys", "tem"))("true") == 0 else "BLOCKED")
#: getattr rotated
import codecs
import os
print("ESCAPED" if getattr(os, codecs.decode("flfgrz", "rot13"))("true") == 0 else "BLOCKED")
#: __import__ of halves
print("ESCAPED" if __import__("o" + "s").system("true") == 0 else "BLOCKED")
#: importlib
import importlib
print("ESCAPED" if importlib.import_module("os").system("true") == 0 else "BLOCKED")
#: sys.modules
import sys
print("ESCAPED" if sys.modules["os"].system("true") == 0 else "BLOCKED")
#: dict of the module
import os
print("ESCAPED" if os.__dict__["system"]("true") == 0 else "BLOCKED")
#: vars of the module
import os
print("ESCAPED" if vars(os)["sys" + "tem"]("true") == 0 else "BLOCKED")
#: attrgetter
import operator
import os
print("ESCAPED" if operator.attrgetter("system")(os)("true") == 0 else "BLOCKED")
#: methodcaller
import operator
import os
print("ESCAPED" if operator.methodcaller("system", "true")(os) == 0 else "BLOCKED")
#: __getattribute__
import os
print("ESCAPED" if os.__getattribute__("system")("true") == 0 else "BLOCKED")
#: partial
import functools
import os
print("ESCAPED" if functools.partial(os.system, "true")() == 0 else "BLOCKED")
#: in a list
import os
print("ESCAPED" if [os.system][0]("true") == 0 else "BLOCKED")
#: in a dict of tools
import os
tools = {"run": os.system}
print("ESCAPED" if tools["run"]("true") == 0 else "BLOCKED")
#: as a default
import os
def run(command, how=os.system):
    return how(command)
print("ESCAPED" if run("true") == 0 else "BLOCKED")
#: by map
import os
print("ESCAPED" if list(map(os.system, ["true"])) == [0] else "BLOCKED")
#: lambda
import os
f = lambda c: os.system(c)
print("ESCAPED" if f("true") == 0 else "BLOCKED")
#: walrus
import os
print("ESCAPED" if (f := os.system)("true") == 0 else "BLOCKED")
#: as a decorator
import os
@os.system
@"true \043{}".format
def anything():
    pass
print("ESCAPED" if anything == 0 else "BLOCKED")
#: in a thread
import os
import threading
got = []
t = threading.Thread(target=lambda: got.append(os.system("true")))
t.start()
t.join()
print("ESCAPED" if got == [0] else "BLOCKED")
#: at exit | danger
import atexit
import os
atexit.register(os.system, "echo ESCAPED")
#: exec family
import os
os.execv("/bin/echo", ["echo", "ESCAPED"])
#: spawn
import os
print("ESCAPED" if os.spawnv(os.P_WAIT, "/bin/true", ["true"]) == 0 else "BLOCKED")
#: posix_spawn
import os
pid = os.posix_spawn("/bin/true", ["true"], {})
print("ESCAPED" if os.waitpid(pid, 0)[1] == 0 else "BLOCKED")
#: pty
import pty
print("ESCAPED" if pty.spawn("/bin/true") == 0 else "BLOCKED")
#: asyncio subprocess | danger
import asyncio
async def main():
    child = await asyncio.create_subprocess_exec("/bin/true")
    print("ESCAPED" if await child.wait() == 0 else "BLOCKED")
asyncio.run(main())
#: private fork_exec | danger inside
import _posixsubprocess
import os
print("ESCAPED", _posixsubprocess.fork_exec)
_posixsubprocess.fork_exec([b"/bin/true"], [b"/bin/true"], True, (), None, None, -1, -1, -1, -1, -1, -1, -1, -1, False, False, None)
#: fork then exec
import os
pid = os.fork()
if pid == 0:
    try:
        os.execv("/bin/true", ["true"])
    finally:
        os._exit(9)
print("ESCAPED" if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0 else "BLOCKED")
#: memfd exec
import os
fd = os.memfd_create("p")
os.write(fd, open("/bin/true", "rb").read())
pid = os.fork()
if pid == 0:
    try:
        os.execve(fd, ["p"], {})
    finally:
        os._exit(9)
print("ESCAPED" if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0 else "BLOCKED")
#: fullwidth letters
import ｏｓ
print("ESCAPED" if ｏｓ.ｓｙｓｔｅｍ("true") == 0 else "BLOCKED")
#: a webbrowser | danger
import webbrowser
print("ESCAPED" if webbrowser.open("file:///x") else "BLOCKED")
#: name read from a table at run time | unseen
import os
names = sorted(n for n in dir(os) if n.startswith("sys") and n.endswith("tem"))
print("ESCAPED" if getattr(os, names[0])("true") == 0 else "BLOCKED")
#: name from a loop | unseen
import os
for name, value in vars(os).items():
    if name[:3] == "sys" and name[3:] == "tem":
        print("ESCAPED" if value("true") == 0 else "BLOCKED")
        break
#: through a function's return | unseen
import os
def module():
    return os
print("ESCAPED" if getattr(module(), "system")("true") == 0 else "BLOCKED")
#: name by set difference | unseen
import os
picked = min({"system", "zzz"} - {"zzz"})
print("ESCAPED" if getattr(os, picked)("true") == 0 else "BLOCKED")
#: xored name | unseen
import os
name = "".join(chr(a ^ b) for a, b in zip(b"rxrue l", b"\x01\x01\x01\x01\x00M"))
print("ESCAPED" if getattr(os, name)("true") == 0 else "BLOCKED")
