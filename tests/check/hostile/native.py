#: ctypes system
import ctypes
print("ESCAPED" if ctypes.CDLL(None).system(b"true") == 0 else "BLOCKED")
#: ctypes cdll attribute
from ctypes import cdll
print("ESCAPED" if cdll.LoadLibrary("libc.so.6").system(b"true") == 0 else "BLOCKED")
#: ctypes raw open
import ctypes as c
print("ESCAPED" if c.CDLL(None).open(b"@OUT@/secret", 0) >= 0 else "BLOCKED")
#: ctypes raw syscall | danger
import ctypes
import platform
nr = {"x86_64": 257, "aarch64": 56}[platform.machine()]
fd = ctypes.CDLL(None).syscall(nr, -100, b"@OUT@/secret", 0, 0)
print("ESCAPED" if fd >= 0 else "BLOCKED")
#: ctypes from numpy
import numpy as np
lib = np.ctypeslib.load_library("libc.so.6", "/lib/x86_64-linux-gnu")
print("ESCAPED" if lib.system(b"true") == 0 else "BLOCKED")
#: ctypes by __import__
print("ESCAPED" if __import__("ctypes").CDLL(None).system(b"true") == 0 else "BLOCKED")
#: private _ctypes | inside
import _ctypes
h = _ctypes.dlopen("libc.so.6", 2)
print("ESCAPED", _ctypes.dlsym(h, "system") > 0)
#: pythonapi
import ctypes
ctypes.pythonapi.PyRun_SimpleString(b"import os; print('ESCAPED' if os.system('true') == 0 else 'BLOCKED')")
#: object by address | inside
import ctypes
x = [1, 2]
print("ESCAPED", ctypes.cast(id(x), ctypes.py_object).value)
#: memory by address | danger inside
import ctypes
print("ESCAPED", ctypes.string_at(0x400000, 4))
#: extension loader | inside
import importlib.machinery
print("ESCAPED", importlib.machinery.ExtensionFileLoader("x", "@OUT@/x.so").name)
#: extension by hand | danger
import _imp
import importlib.machinery as m
_imp.create_dynamic(m.ModuleSpec("x", None, origin="@OUT@/x.so"))
print("ESCAPED")
#: ptrace the parent | danger
import ctypes
import os
r = ctypes.CDLL(None).ptrace(0x4206, os.getppid(), None, None)
print("ESCAPED" if r == 0 else "BLOCKED")
#: mount | danger
import ctypes
r = ctypes.CDLL(None).mount(b"none", b"/tmp", b"tmpfs", 0, None)
print("ESCAPED" if r == 0 else "BLOCKED")
#: unshare | danger
import ctypes
r = ctypes.CDLL(None).unshare(0x10000000)
print("ESCAPED" if r == 0 else "BLOCKED")
#: io_uring | danger
import ctypes
p = ctypes.create_string_buffer(120)
fd = ctypes.CDLL(None).syscall(425, 1, p)
print("ESCAPED" if fd >= 0 else "BLOCKED")
