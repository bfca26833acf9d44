#: a tower of powers | danger
print("ESCAPED", len(str(10 ** 10 ** 8)))
#: a long shift | danger
print("ESCAPED", (1 << (1 << 40)) > 0)
#: a long list | danger
x = [0] * 10 ** 10
print("ESCAPED")
#: a long text | danger
x = "a" * (10 ** 11)
print("ESCAPED")
#: a list of a range | danger
x = list(range(10 ** 10))
print("ESCAPED")
#: a comprehension over a range | danger
x = [n for n in range(10 ** 10)]
print("ESCAPED")
#: zero bytes | danger
x = bytearray(1 << 40)
x[:] = b"x" * len(x)
print("ESCAPED")
#: an endless list | danger
x = []
while True:
    x.append("y" * 10 ** 6)
#: an endless text | danger
x = "y"
while 1:
    x += "y" * 1000
#: an endless fork | danger
import os
while True:
    os.fork()
#: growth by doubling | danger unseen
x = "x"
for i in range(60):
    x = x + x
print("ESCAPED")
#: a decompression bomb | danger unseen
import zlib
c = zlib.compressobj(9)
packed = b"".join(c.compress(b"\0" * (1 << 20)) for _ in range(1024)) + c.flush()
x = zlib.decompress(packed)
print("ESCAPED", len(x))
