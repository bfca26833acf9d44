#: replace a builtin | inside
import builtins
builtins.print_before = print
builtins.len = lambda x: 0
print("CHANGED" if len("abc") == 0 else "BLOCKED")
#: replace by setattr | inside
import builtins
setattr(builtins, "le" + "n", lambda x: 0)
print("CHANGED" if len("abc") == 0 else "BLOCKED")
#: replace in __builtins__ | inside
b = __builtins__ if isinstance(__builtins__, dict) else vars(__builtins__)
import builtins
builtins.__dict__["len"] = lambda x: 0
print("CHANGED" if len("abc") == 0 else "BLOCKED")
#: replace os in sys.modules | inside
import sys
import types
sys.modules["os"] = types.ModuleType("os")
import os
print("CHANGED" if not hasattr(os, "system") else "BLOCKED")
#: replace a function of os | inside
import os
os.remove = lambda path: None
print("CHANGED" if os.remove("x") is None else "BLOCKED")
#: replace code of a function | inside
def f():
    return 1
def g():
    return 2
f.__code__ = g.__code__
print("CHANGED" if f() == 2 else "BLOCKED")
#: an import hook | inside
import sys
class Finder:
    def find_spec(self, *args):
        return None
sys.meta_path = [Finder()] + sys.meta_path
print("CHANGED")
#: utf-7 source | danger inside
# -*- coding: utf-7 -*-
print("CHANGED")
#: a hidden codec | danger inside
# coding: unicode_escape
print("CHANGED")
#: nul in the source | danger inside
print("CHANGED")@NUL@
#: invalid utf-8 | danger inside
print("CHANGED @FF@")
