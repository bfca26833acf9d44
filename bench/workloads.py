"""What compute.py runs: pure Python and numpy, each a function `work` that takes about a tenth of a
second. The pure ones are those of the pyperformance suite in kind, written anew and cut short."""

PURE = {
    "nbody": """
def work():
    bodies = [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 39.47], [4.84, -1.16, -0.10, 0.6, 2.8, -0.02, 0.037],
              [8.34, 4.12, -0.4, -1.01, 1.8, 0.008, 0.011], [12.8, -15.1, -0.22, 1.08, 0.86, -0.01, 0.001],
              [15.3, -25.9, 0.17, 0.97, 0.59, -0.03, 0.002]]
    pairs = [(a, b) for i, a in enumerate(bodies) for b in bodies[i + 1:]]
    for _ in range(9000):
        for a, b in pairs:
            dx, dy, dz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
            mag = 0.01 * (dx * dx + dy * dy + dz * dz + 0.1) ** -1.5
            ma, mb = a[6] * mag, b[6] * mag
            a[3] -= dx * mb; a[4] -= dy * mb; a[5] -= dz * mb
            b[3] += dx * ma; b[4] += dy * ma; b[5] += dz * ma
        for b in bodies:
            b[0] += 0.01 * b[3]; b[1] += 0.01 * b[4]; b[2] += 0.01 * b[5]
    return round(bodies[0][0], 6)
""",
    "fannkuch": """
def work(n=8):
    count, perm1, best, r = list(range(1, n + 1)), list(range(n)), 0, n
    while True:
        while r != 1:
            count[r - 1] = r
            r -= 1
        if perm1[0] != 0:
            perm, flips, k = perm1[:], 0, perm1[0]
            while k:
                perm[:k + 1] = reversed(perm[:k + 1])
                flips += 1
                k = perm[0]
            best = max(best, flips)
        while r != n:
            perm1.insert(r, perm1.pop(0))
            count[r] -= 1
            if count[r] > 0:
                break
            r += 1
        else:
            return best
""",
    "spectral norm": """
def work(n=130):
    def a(i, j):
        return 1.0 / ((i + j) * (i + j + 1) // 2 + i + 1)
    def times(u):
        v = [sum(a(i, j) * x for j, x in enumerate(u)) for i in range(n)]
        return [sum(a(j, i) * x for j, x in enumerate(v)) for i in range(n)]
    u = [1.0] * n
    for _ in range(3):
        v = times(u)
        u = times(v)
    return round((sum(x * y for x, y in zip(u, v)) / sum(y * y for y in v)) ** 0.5, 6)
""",
    "objects": """
class Point:
    __slots__ = ("x", "y", "z")
    def __init__(self, i):
        self.x, self.y, self.z = i * 0.5, i * 0.25, i * 0.125
    def normalize(self):
        norm = (self.x ** 2 + self.y ** 2 + self.z ** 2 + 1) ** 0.5
        self.x /= norm; self.y /= norm; self.z /= norm
    def larger(self, other):
        self.x = max(self.x, other.x); self.y = max(self.y, other.y); self.z = max(self.z, other.z)
        return self
def work():
    points = [Point(i) for i in range(60000)]
    for p in points:
        p.normalize()
    most = points[0]
    for p in points[1:]:
        most = most.larger(p)
    return round(most.x, 6)
""",
    "dictionaries": """
def work():
    words = ["w%d" % (i * 7919 % 5003) for i in range(160000)]
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return sorted(counts.items(), key=lambda it: (-it[1], it[0]))[0]
""",
    "JSON": """
import json
def work():
    rows = [{"id": i, "name": "row %d" % i, "tags": ["a", "b", str(i)], "value": i / 7} for i in range(9000)]
    return len(json.loads(json.dumps(rows, indent=None)))
""",
    "regular expressions": """
import re
def work():
    text = " ".join("user%d@host%d.example.org, 2026-%02d-%02d;" % (i, i % 50, i % 12 + 1, i % 28 + 1) for i in range(9000))
    found = re.findall("([a-z0-9]+)@([a-z0-9.]+), ([0-9]{4})-([0-9]{2})-([0-9]{2})", text)
    return len(found), len(re.sub(r"[0-9]+", "#", text))
""",
    "sorting": """
import random
def work():
    draw = random.Random(5)
    values = [draw.random() for _ in range(130000)]
    return round(sum(sorted(values)[::1000]), 6)
""",
    "pickling": """
import pickle
def work():
    data = {i: [(i, str(i), float(i))] * 3 for i in range(30000)}
    return len(pickle.loads(pickle.dumps(data, 5)))
""",
    "hashing": """
import hashlib
def work():
    data, digest = bytes(range(256)) * 4096, b""
    for _ in range(60):
        digest = hashlib.sha256(data + digest).digest()
    return digest.hex()[:8]
""",
}

NUMPY = {
    "numpy: product of matrices": """
import numpy
def work():
    a = numpy.arange(640000, dtype=float).reshape(800, 800) % 97
    return float((a @ a @ a).trace())
""",
    "numpy: elementwise": """
import numpy
def work():
    x = numpy.linspace(0, 10, 1000000)
    for _ in range(3):
        y = numpy.sin(x) * numpy.exp(-x / 7) + numpy.sqrt(x)
    return round(float(y.sum()), 3)
""",
    "numpy: sorting": """
import numpy
def work():
    return round(float(numpy.sort(numpy.random.default_rng(3).random(1200000))[::9999].sum()), 6)
""",
    "numpy: Fourier transform": """
import numpy
def work():
    x = numpy.random.default_rng(4).random(1 << 20)
    return round(float(abs(numpy.fft.ifft(numpy.fft.fft(x))).sum()), 3)
""",
    "pandas: groups": """
import numpy, pandas
def work():
    rng = numpy.random.default_rng(6)
    frame = pandas.DataFrame({"k": rng.integers(0, 500, 400000), "v": rng.random(400000)})
    return round(float(frame.groupby("k").v.mean().sum()), 6), len(frame.sort_values("v"))
""",
}

ALL = {**PURE, **NUMPY}
