#: exec of a plain text
exec("import os; print('ESCAPED' if os.system('true') == 0 else 'BLOCKED')")
#: eval of an import
print("ESCAPED" if eval("__import__('os').system('true')") == 0 else "BLOCKED")
#: exec of joined text
exec("import o" + "s\nprint('ESCAPED' if os.system('true') == 0 else 'BLOCKED')")
#: exec of base64
import base64
exec(base64.b64decode("cHJpbnQoJ0VTQ0FQRUQnIGlmIF9faW1wb3J0X18oJ29zJykuc3lzdGVtKCd0cnVlJykgPT0gMCBlbHNlICdCTE9DS0VEJyk="))
#: exec of hex
exec(bytes.fromhex("7072696e7428274553434150454427206966205f5f696d706f72745f5f28276f7327292e73797374656d2827747275652729203d3d203020656c73652027424c4f434b45442729").decode())
#: exec of compressed text
import zlib
packed = zlib.compress(b"import os; print('ESCAPED' if os.system('true') == 0 else 'BLOCKED')")
exec(zlib.decompress(packed))
#: exec of marshalled code
import marshal
code = marshal.dumps(compile("import os; print('ESCAPED' if os.system('true') == 0 else 'BLOCKED')", "x", "exec"))
exec(marshal.loads(code))
#: compile then exec
code = compile("import os\nprint('ESCAPED' if os.system('true') == 0 else 'BLOCKED')", "<x>", "exec")
exec(code)
#: exec in exec
exec("exec(\"import os; print('ESCAPED' if os.system('true') == 0 else 'BLOCKED')\")")
#: exec as decorator
@exec
@"import os; print('ESCAPED' if os.system('true') == 0 else 'BLOCKED')".format
def anything():
    pass
#: exec by another name
run = exec
run("import os; print('ESCAPED' if os.system('true') == 0 else 'BLOCKED')")
#: exec through builtins
import builtins
getattr(builtins, "ex" + "ec")("import os; print('ESCAPED' if os.system('true') == 0 else 'BLOCKED')")
#: eval with a lambda
eval("(lambda: print('ESCAPED' if __import__('os').system('true') == 0 else 'BLOCKED'))()")
#: exec of an f string
m = "os"
exec(f"import {m}; print('ESCAPED' if {m}.system('true') == 0 else 'BLOCKED')")
#: exec of a rot13 text
import codecs
exec(codecs.decode("vzcbeg bf; cevag('RFPNCRQ' vs bf.flfgrz('gehr') == 0 ryfr 'OYBPXRQ')", "rot13"))
#: exec of character codes
exec("".join(chr(c) for c in [105, 109, 112, 111, 114, 116, 32, 111, 115, 59, 112, 114, 105, 110, 116, 40, 34, 69, 83, 67, 65, 80, 69, 68, 34, 32, 105, 102, 32, 111, 115, 46, 115, 121, 115, 116, 101, 109, 40, 34, 116, 114, 117, 101, 34, 41, 61, 61, 48, 32, 101, 108, 115, 101, 32, 49, 41]))
#: eval in a comprehension
print(["ESCAPED" if eval(c) == 0 else "BLOCKED" for c in ("__import__('os').system('true')",)])
#: code from a constructed object
import types
f = types.FunctionType(compile("import os; x = os.system('true')", "x", "exec"), globals())
f()
print("ESCAPED" if x == 0 else "BLOCKED")
#: bytecode by hand | danger inside
import types
c = (lambda: 0).__code__
print("ESCAPED", types.CodeType(0, 0, 0, 0, 0, 0, b"", (), (), (), "", "", "", 0, b"", b""))
#: code read from a file | unseen
with open("m.py", "w") as f:
    f.write("import os\nprint('ESCAPED' if os.system('true') == 0 else 'BLOCKED')")
import m
#: exec of a list joined at run time | unseen
lines = ["import os"]
lines.append("print('ESCAPED' if os.system('true') == 0 else 'BLOCKED')")
exec("\n".join(sorted(lines)))
