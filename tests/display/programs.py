"""Programs that show something; what must come of each is in run.py."""

ORDER = """
import sys
print("one")
display(1)
print("two", file=sys.stderr)
display("é")
print("three", end="")
display([3])
print("four")
"""
FRESH = """
import builtins, sys
print(sorted(dir(builtins)), sys.displayhook is sys.__displayhook__, sorted(
    name for name in sys.modules if "adyton" in name and name != "adyton"))
"""
SHADOW = """
def display(thing):
    print("mine", thing)
display(1)
"""
PROTOCOL = r"""
class Rich:
    def __repr__(self): return "rich"
    def _repr_html_(self): return "<b>1</b>"
    def _repr_markdown_(self): return "*1*", {"wide": True}
    def _repr_latex_(self): return "$1$"
    def _repr_svg_(self): return "<svg/>"
    def _repr_png_(self): return b"\x89PNG\0"
    def _repr_json_(self): return {"a": [1, float("nan"), "é"]}
    def _repr_jpeg_(self): return None
display(Rich())
"""
BUNDLE = """
class Bundle:
    def __repr__(self): return "plain"
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"application/x-own": "own", "text/html": "<i>b</i>"}
    def _repr_html_(self): return "not asked"
display(Bundle())
display(Bundle(), include=["text/html"])
display(Bundle(), exclude=["text/html"])
display({"text/plain": "raw", "text/html": "<u>r</u>"}, raw=True, metadata={"k": 1})
"""
BROKEN = """
class Broken:
    def __repr__(self): raise ValueError("no")
    def _repr_html_(self): raise KeyError("gone")
    def __getattr__(self, name): return lambda *a, **k: "whatever"
display(Broken())
print("after")
"""
FUTURE = """
from __future__ import annotations
def f(x: NotThere) -> AlsoNot: return 42
(lambda: f(1))()
"""
RAISES = """
display("before")
[1, 2][3]
"""
INTERRUPTED = """
class Interrupted:
    def __repr__(self): raise KeyboardInterrupt
Interrupted()
"""
# Runs of one session, with what each must have: (program, limits, status, result, sizes).
SESSION = (
    ("x = 1\ndisplay(x)\nx + 1\n", {}, "ok", "2", []),
    ("import matplotlib.pyplot as plt\nplt.plot([1, 2]);\n", {}, "ok", None, [(640, 480)]),
    ("plt.plot([3]); plt.show()\nx * 10\n", {}, "ok", "10", [(640, 480)]),
    ("plt.get_fignums()\n", {}, "ok", "[]", []),
    ("class Endless:\n def __repr__(self):\n  while True: pass\nEndless()\n",
     {"timeout": "2s"}, "timeout", None, []),
    ("x\n", {}, "ok", "1", []),
)
PLOT = """
import matplotlib.pyplot as plt
plt.plot([1, 2, 3])
"""
SHOW = """
import matplotlib.pyplot as plt
print("before")
plt.plot([1, 2, 3]); plt.show()
print("between")
plt.plot([4, 5, 6]); plt.title("\\u4e2d a sign that the font may lack"); plt.show()
plt.show()
print(plt.get_fignums(), plt.isinteractive())
"""
OPEN = """
import matplotlib.pyplot as plt
small = plt.figure(figsize=(3, 2), dpi=50)
plt.figure(); plt.plot([1])
closed = plt.figure(); plt.close(closed)
print("end")
"""
ONCE = """
import matplotlib.pyplot as plt
def figure(title):
    made, axes = plt.subplots()
    axes.set_title(title)
    return made, axes
once, _ = figure("once"); display(once)
twice, axes = figure("twice"); display(twice)
axes.set_title("twice, changed")
last, _ = figure("last")
last
"""
PAUSE = """
import matplotlib.pyplot as plt
line, = plt.plot([1, 2])
for i in range(3):
    line.set_ydata([i, i])
    plt.pause(0.01)
plt.ginput(timeout=0.01)
"""
SIGNALS = """
import signal
ticks = 0
def tick(*_):
    global ticks
    ticks += 1
signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for i in range(200):
    display("x" * 1000 + str(i))
signal.setitimer(signal.ITIMER_REAL, 0)
print(ticks > 0)
"""
LARGE = """
import matplotlib.pyplot as plt
plt.figure(figsize=(60, 40), dpi=200)
"""
CHARTS = """
import datetime
import matplotlib.pyplot as plt
def show():
    plt.show()
plt.plot([1, 2], [1, 4], label="sq"); plt.plot([1, 2], [2, 3]); plt.axhline(2)
plt.title("squares"); plt.xlabel("time (s)"); plt.ylabel("Y"); plt.yscale("log"); show()
plt.scatter([1, 2], [3, 4], label="dots"); show()
plt.bar(["a", "b"], [3, 4], label="g"); show()
plt.barh(["u"], [5]); show()
plt.pie([1, 3], labels=["p", "q"]); show()
plt.boxplot([[1, 2, 3, 4, 20]], labels=["low"]); show()
figure, axes = plt.subplots(1, 2); figure.suptitle("both")
axes[0].plot([1]); axes[1].scatter([1], [2]); show()
plt.plot([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)], [1, 2]); show()
plt.imshow([[1, 2], [3, 4]]); plt.colorbar(); show()
"""
TABLES = """
import pandas as pd
display(pd.DataFrame({"n": [1.5, None], "when": pd.to_datetime(["2020-01-01", None]),
                      "what": ["é", None], ("c", 1): pd.Categorical(["x", "y"])},
                     index=["a", "b"]))
display(pd.DataFrame({"x": range(5000)}))
display(pd.DataFrame([range(300)]))
display(pd.Series([1, 2], name="s"))
"""
IMAGE = """
from PIL import Image
display(Image.new("RGB", (7, 5), "red"))
"""
# Not the libraries: what they look like from where display.py looks. See docs/RESULTS.md.
LIBRARIES = """
import json, sys, types
def module(name, **names):
    made = sys.modules[name] = types.ModuleType(name)
    made.__dict__.update(names)
    return made
class DataFrame:
    shape, columns, dtypes = (2, 2), ["a", "b"], ["Int64", "Utf8"]
    def head(self, n): return self
    def rows(self): return [(1, "x"), (2, None)]
DataFrame.__module__ = "polars.dataframe.frame"
display(DataFrame())
class BaseFigure:
    def __repr__(self): return "plotly figure"
    def to_json(self): return json.dumps({"data": [{"type": "bar"}], "layout": {}})
    def show(self): raise OSError("no browser")
BaseFigure.__module__ = "plotly.basedatatypes"
class Figure(BaseFigure): pass
display(Figure())
module("plotly.basedatatypes", BaseFigure=BaseFigure)
try:
    import plotly.graph_objects
except ImportError:
    pass
Figure().show()
class TopLevelMixin:
    def to_dict(self):
        return {"$schema": "https://vega.github.io/schema/vega-lite/v5.8.json", "mark": "bar"}
TopLevelMixin.__module__ = "altair.vegalite.v5.api"
class Chart(TopLevelMixin): pass
display(Chart())
class Model: pass
Model.__module__ = "bokeh.model"
module("bokeh"); module("bokeh.embed", json_item=lambda model: {"root_id": "1"})
display(Model())
"""
IPYTHON = """
from IPython.display import HTML, Markdown, display
display(HTML("<b>x</b>"), Markdown("*a*"))
display({"text/plain": "raw"}, raw=True, metadata={"a": 1})
"""
ALTAIR = """
import warnings; warnings.simplefilter("ignore")
import altair, pandas
display(altair.Chart(pandas.DataFrame({"a": [1, 2]})).mark_bar().encode(x="a"))
"""
BOUNDS = """
class Big:
    def __repr__(self): return "big"
    def _repr_html_(self): return "x" * 5000000
class Much:
    def __repr__(self): return "much"
    def _repr_mimebundle_(self, include=None, exclude=None):
        deep = []
        for _ in range(100): deep = [deep]
        return {"application/a+json": list(range(300000)), "application/b+json": deep}
display("a" * 1000000)
display(Big())
display(Much())
"""
MANY = """
for i in range(300):
    display(i)
print("end")
"""
ENDLESS = """
class Endless:
    def __repr__(self):
        while True: pass
print("start")
display("before")
display(Endless())
"""
FORK = """
import os, sys
import matplotlib.pyplot as plt
child = os.fork()
if child == 0:
    display("child")
    display(plt.figure())
    plt.show()
    os._exit(0)
print(os.WEXITSTATUS(os.waitpid(child, 0)[1]))
display("parent")
"""
THREADS = """
import threading
def some(first):
    for i in range(first, first + 20):
        display(i)
threads = [threading.Thread(target=some, args=(20 * i,)) for i in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
SPLIT = r"""
import os
os.write(1, b"\xe2\x82")
display(1)
os.write(1, b"\xac!\n")
"""
