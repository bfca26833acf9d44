#: mean, median, deviation
import statistics
values = [2.5, 3.5, 8.0, 1.0, 4.25, 9.75]
print(statistics.mean(values), statistics.median(values), round(statistics.stdev(values), 3))
print(statistics.quantiles(values, n=4))
#: numpy basics
import numpy as np
a = np.arange(12).reshape(3, 4)
print(a.sum(axis=0), a.mean(), a.T.shape)
print(a[a % 2 == 0], np.linalg.norm(a))
#: numpy save and load
import numpy as np
np.save("matrix.npy", np.eye(3))
again = np.load("matrix.npy")
np.savetxt("matrix.csv", again, delimiter=",")
print(np.loadtxt("matrix.csv", delimiter=",").trace())
#: least squares
import numpy as np
x = np.linspace(0, 10, 50)
y = 3 * x + 2 + np.sin(x)
slope, intercept = np.polyfit(x, y, 1)
print(round(slope, 2), round(intercept, 2))
#: monte carlo pi
import random
random.seed(7)
inside = sum(random.random() ** 2 + random.random() ** 2 < 1 for _ in range(20000))
print(4 * inside / 20000)
#: pandas group and sum
import pandas as pd
df = pd.DataFrame({"city": ["Rome", "Oslo", "Rome"], "n": [2, 3, 4]})
print(df.groupby("city")["n"].sum())
print(df.describe().loc["mean"].to_dict())
#: pandas file round trip
import pandas as pd
pd.DataFrame({"a": [1, 2, 3], "b": list("xyz")}).to_csv("table.csv", index=False)
df = pd.read_csv("table.csv")
df["c"] = df["a"].apply(lambda v: v ** 2)
df.to_json("table.json", orient="records")
print(pd.read_json("table.json").shape)
#: pandas query and eval
import pandas as pd
df = pd.DataFrame({"price": [1.0, 2.5, 4.0], "qty": [10, 4, 1]})
df = df.eval("total = price * qty")
print(df.query("total > 5 and qty < 10"))
#: pandas dates
import pandas as pd
days = pd.date_range("2024-01-01", periods=10, freq="D")
series = pd.Series(range(10), index=days)
print(series.resample("W").sum())
print(series.rolling(3).mean().dropna().tolist())
#: pandas merge and pivot
import pandas as pd
left = pd.DataFrame({"k": [1, 2, 3], "v": [10, 20, 30]})
right = pd.DataFrame({"k": [2, 3, 4], "w": ["b", "c", "d"]})
both = left.merge(right, on="k", how="outer")
print(both.fillna("-"))
#: linear algebra by hand
def matmul(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]
m = [[1, 1], [1, 0]]
power = m
for _ in range(8):
    power = matmul(power, m)
print(power)
#: running average
from collections import deque
def smooth(values, width):
    window = deque(maxlen=width)
    for value in values:
        window.append(value)
        yield sum(window) / len(window)
print([round(v, 2) for v in smooth([1, 5, 2, 8, 3], 3)])
#: histogram in text
import random
random.seed(1)
bins = [0] * 10
for _ in range(500):
    bins[min(9, int(random.gauss(5, 1.5)))] += 1
for i, n in enumerate(bins):
    print(f"{i}: {'#' * (n // 5)}")
#: sqlite in memory
import sqlite3
db = sqlite3.connect(":memory:")
db.execute("create table sales(item text, n integer)")
db.executemany("insert into sales values (?, ?)", [("tea", 3), ("cake", 5), ("tea", 2)])
for row in db.execute("select item, sum(n) from sales group by item order by 2 desc"):
    print(row)
#: sqlite in a file
import sqlite3
with sqlite3.connect("books.db") as db:
    db.execute("create table if not exists books(title, year)")
    db.execute("insert into books values ('Sandbox', 2024)")
print(sqlite3.connect("books.db").execute("select count(*) from books").fetchone())
#: fft of a signal
import numpy as np
t = np.arange(0, 1, 1 / 256)
signal = np.sin(2 * np.pi * 20 * t) + 0.5 * np.sin(2 * np.pi * 50 * t)
spectrum = np.abs(np.fft.rfft(signal))
print(np.argsort(spectrum)[-2:])
#: k means by hand
import random
random.seed(3)
points = [(random.gauss(c, 0.5), random.gauss(c, 0.5)) for c in (0, 5) for _ in range(30)]
centres = [points[0], points[-1]]
for _ in range(5):
    groups = [[], []]
    for p in points:
        d = [(p[0] - c[0]) ** 2 + (p[1] - c[1]) ** 2 for c in centres]
        groups[d.index(min(d))].append(p)
    centres = [tuple(sum(v) / len(g) for v in zip(*g)) for g in groups]
print([tuple(round(v, 1) for v in c) for c in centres])
#: decimal money
from decimal import Decimal, ROUND_HALF_UP
prices = [Decimal("19.99"), Decimal("5.01"), Decimal("0.10")]
total = sum(prices) * Decimal("1.19")
print(total.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP))
#: fractions
from fractions import Fraction
harmonic = sum(Fraction(1, n) for n in range(1, 11))
print(harmonic, float(harmonic), harmonic.limit_denominator(100))
#: scipy minimise
from scipy import optimize
result = optimize.minimize_scalar(lambda x: (x - 2) ** 2 + 1)
print(round(result.x, 3), round(result.fun, 3))
