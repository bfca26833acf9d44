#: subclasses of object
found = [k for k in object.__subclasses__() if k.__name__ == "BuiltinImporter"][0]
posix = found.load_module("posix")
print("ESCAPED", posix.read(posix.open("@OUT@/secret", 0), 9))
#: from a tuple
for k in ().__class__.__base__.__subclasses__():
    if k.__name__ == "BuiltinImporter":
        px = k.load_module("posix")
        print("ESCAPED", px.read(px.open("@OUT@/secret", 0), 9))
#: from a string's mro
k = [c for c in "".__class__.__mro__[1].__subclasses__() if c.__name__ == "BuiltinImporter"][0]
px = k.load_module("posix")
print("ESCAPED", px.read(px.open("@OUT@/secret", 0), 9))
#: from bases
k = [c for c in [].__class__.__bases__[0].__subclasses__() if c.__name__ == "BuiltinImporter"][0]
px = k.load_module("posix")
print("ESCAPED", px.read(px.open("@OUT@/secret", 0), 9))
#: type.__subclasses__
k = [c for c in type.__subclasses__(object) if isinstance(c, type)] if False else type.__subclasses__(type) and object.__subclasses__()
k = [c for c in k if c.__name__ == "BuiltinImporter"][0]
px = k.load_module("posix")
print("ESCAPED", px.read(px.open("@OUT@/secret", 0), 9))
#: getattr to subclasses
k = [c for c in getattr(object, "__sub" + "classes__")() if c.__name__ == "BuiltinImporter"][0]
px = k.load_module("posix")
print("ESCAPED", px.read(px.open("@OUT@/secret", 0), 9))
#: subclasses from character codes
word = "".join(map(chr, (95, 95, 115, 117, 98, 99, 108, 97, 115, 115, 101, 115, 95, 95)))
k = [c for c in type.__dict__[word](object) if c.__name__ == "BuiltinImporter"][0]
px = k.load_module("posix")
print("ESCAPED", px.read(px.open("@OUT@/secret", 0), 9))
#: globals of a method
import os
g = os._wrap_close.__init__.__globals__
print("ESCAPED" if g["system"]("true") == 0 else "BLOCKED")
#: globals by getattr
import os
g = getattr(os.walk, "__glo" + "bals__")
print("ESCAPED" if g["system"]("true") == 0 else "BLOCKED")
#: generator frame
def gen():
    yield
f = gen().gi_frame.f_builtins["__import__"]
print("ESCAPED" if f("os").system("true") == 0 else "BLOCKED")
#: coroutine frame
async def co():
    pass
c = co()
imp = c.cr_frame.f_builtins["__import__"]
c.close()
print("ESCAPED" if imp("os").system("true") == 0 else "BLOCKED")
#: frame globals of a traceback
try:
    1 / 0
except ZeroDivisionError as exc:
    g = exc.__traceback__.tb_frame.f_globals
print("ESCAPED" if g["__builtins__"].__import__("os").system("true") == 0 else "BLOCKED")
#: builtins by a frame
import sys
b = sys._getframe().f_builtins
print("ESCAPED" if b["__import__"]("os").system("true") == 0 else "BLOCKED")
#: builtins of a warning
import warnings
b = warnings.catch_warnings()._module.__builtins__
print("ESCAPED" if b["__import__"]("os").system("true") == 0 else "BLOCKED")
#: self of a builtin
print("ESCAPED" if print.__self__.__import__("os").system("true") == 0 else "BLOCKED")
#: __builtins__ itself
b = __builtins__
imp = b["__import__"] if isinstance(b, dict) else b.__import__
print("ESCAPED" if imp("os").system("true") == 0 else "BLOCKED")
#: gc walk
import gc
mods = [o for o in gc.get_objects() if type(o).__name__ == "module" and o.__name__ == "os"]
print("ESCAPED" if mods[0].system("true") == 0 else "BLOCKED")
#: gc referrers | inside
import gc
import os
print("ESCAPED" if any("system" in r for r in gc.get_referrers(os.system) if isinstance(r, dict)) else "BLOCKED")
#: format string walk | inside
class Box:
    def __init__(self):
        self.secret = "s3cret"
print("ESCAPED", "{0.__init__.__globals__}".format(Box()))
#: format map walk | inside
class Box:
    def f(self):
        pass
print("ESCAPED", "{b.f.__globals__}".format_map({"b": Box()}))
#: loader of a module
imp = __import__("sys").modules["_frozen_importlib"].BuiltinImporter
px = imp.load_module("posix")
print("ESCAPED", px.read(px.open("@OUT@/secret", 0), 9))
#: create_builtin
import _imp
import importlib.machinery
px = _imp.create_builtin(importlib.machinery.ModuleSpec("posix", None, origin="built-in"))
print("ESCAPED", px.read(px.open("@OUT@/secret", 0), 9))
#: eval with empty builtins
expr = "[k for k in ().__class__.__base__.__subclasses__() if k.__name__ == 'Quitter'][0].__init__.__globals__"
table = eval(expr, {"__builtins__": {}})
print("ESCAPED" if table["sys"].modules["os"].system("true") == 0 else "BLOCKED")
#: pandas hands out os
import pandas as pd
print("ESCAPED" if pd.io.common.os.system("true") == 0 else "BLOCKED")
#: numpy hands out os
import numpy.lib.npyio as n
print("ESCAPED" if n.os.system("true") == 0 else "BLOCKED")
#: logging hands out os
import logging
print("ESCAPED" if logging.os.system("true") == 0 else "BLOCKED")
#: random hands out os
import random
print("ESCAPED" if random._os.system("true") == 0 else "BLOCKED")
#: a class of its own is a way up
class Mine:
    pass
top = Mine
while getattr(top, "__ba" + "se__"):
    top = getattr(top, "__ba" + "se__")
name = "__sub%ses__" % "clas"
k = [c for c in type.mro(Mine)[-1:]][0]
k = [c for c in vars(type)[sorted(n for n in vars(type) if "subclasses" in n and "check" not in n)[0]](k) if c.__name__ == "BuiltinImporter"][0]
px = k.load_module("posix")
print("ESCAPED", px.read(px.open("".join(["@OUT@", "/secret"]), 0), 9))
#: through a dictionary of types | unseen
walk = type("T", (), {}).__bases__[0]
subs = [v for k, v in type.__dict__.items() if k.strip("_") == "subclasses"][0]
k = [c for c in subs(walk) if c.__name__ == "BuiltinImporter"][0]
loader = [v for n, v in vars(k).items() if n == "load_module"][0].__func__
px = loader(k, "posix")
print("ESCAPED", px.read(px.open("@OUT@" + str("/secret"), 0), 9))
