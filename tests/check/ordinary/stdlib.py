#: counters and chains
import itertools
print(list(itertools.islice(itertools.count(10, 5), 4)))
print(list(itertools.chain.from_iterable([[1, 2], [3]])))
print([(k, len(list(g))) for k, g in itertools.groupby("aabbbc")])
#: combinations
from itertools import combinations, product
print(list(combinations("abc", 2)), len(list(product([0, 1], repeat=4))))
#: partial and reduce
from functools import partial, reduce
import operator
double = partial(operator.mul, 2)
print(double(21), reduce(operator.add, range(5)), sorted([(1, "b"), (0, "a")], key=operator.itemgetter(1)))
#: attrgetter for sorting
import operator
from collections import namedtuple
P = namedtuple("P", "name age")
people = [P("bob", 30), P("ann", 25)]
print(sorted(people, key=operator.attrgetter("age")), list(map(operator.methodcaller("upper"), "ab")))
#: dates
from datetime import datetime, timedelta, timezone
noon = datetime(2024, 2, 29, 12, tzinfo=timezone.utc)
print(noon.isoformat(), (noon + timedelta(days=366)).date(), noon.strftime("%A %d %B"))
#: calendar
import calendar
print(calendar.month(2024, 2))
print(calendar.isleap(2100), calendar.monthrange(2024, 2))
#: heaps
import heapq
queue = []
for n in (5, 1, 4, 2):
    heapq.heappush(queue, (n, f"job{n}"))
print([heapq.heappop(queue) for _ in range(2)], heapq.nlargest(2, [3, 9, 4]))
#: bisect
import bisect
grades = [60, 70, 80, 90]
print(["FDCBA"[bisect.bisect(grades, score)] for score in (33, 77, 99)])
#: hashes
import hashlib
import hmac
print(hashlib.sha256(b"data").hexdigest()[:16], hmac.new(b"key", b"msg", "sha256").hexdigest()[:16])
#: struct and array
import array
import struct
packed = struct.pack("<Ihf", 7, -2, 1.5)
print(struct.unpack("<Ihf", packed), array.array("i", [1, 2, 3]).tobytes().hex())
#: argparse without arguments
import argparse
parser = argparse.ArgumentParser(prog="demo")
parser.add_argument("--count", type=int, default=2)
parser.add_argument("names", nargs="*")
args = parser.parse_args([])
print(args.count, args.names, vars(args))
#: logging to stderr
import logging
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("demo")
log.info("started with %d items", 3)
log.debug("not shown")
print(log.name)
#: threads and a queue
import queue
import threading
work = queue.Queue()
results = []
def worker():
    while True:
        n = work.get()
        if n is None:
            return
        results.append(n * n)
thread = threading.Thread(target=worker)
thread.start()
for n in range(5):
    work.put(n)
work.put(None)
thread.join()
print(sorted(results))
#: a thread pool
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(max_workers=3) as pool:
    print(list(pool.map(lambda n: n ** 2, range(6))))
#: multiprocessing by fork
import multiprocessing as mp
def square(n):
    return n * n
if __name__ == "__main__":
    with mp.get_context("fork").Pool(2) as pool:
        print(pool.map(square, [1, 2, 3]))
#: asyncio tasks
import asyncio
async def pause(n):
    await asyncio.sleep(0.01)
    return n * 2
async def main():
    print(await asyncio.gather(*(pause(n) for n in range(3))))
print(asyncio.iscoroutinefunction(main), asyncio.Queue.__name__)
#: context managers
import contextlib
import io
out = io.StringIO()
with contextlib.redirect_stdout(out):
    print("captured")
with contextlib.suppress(ZeroDivisionError):
    1 / 0
print(out.getvalue().strip())
#: replaced stdout
import io
import sys
saved, sys.stdout = sys.stdout, io.StringIO()
print("hidden")
text = sys.stdout.getvalue()
sys.stdout = saved
print(text.upper())
#: inspecting functions
import inspect
def area(width: float, height: float = 1.0) -> float:
    """The area of a rectangle."""
    return width * height
print(inspect.signature(area), area.__doc__, area.__name__, area.__code__.co_varnames)
#: traceback as text
import traceback
try:
    int("x")
except ValueError:
    print(traceback.format_exc().splitlines()[-1])
#: literal_eval
import ast
print(ast.literal_eval("{'a': [1, 2, (3, None)]}"))
tree = ast.parse("x = 1 + 2")
print(ast.dump(tree)[:40], type(tree.body[0]).__name__)
#: random choices
import random
rng = random.Random(42)
deck = [f"{r}{s}" for s in "SHDC" for r in "A23456789TJQK"]
rng.shuffle(deck)
print(deck[:5], rng.choices("ab", weights=[9, 1], k=5), rng.sample(range(100), 3))
#: uuid and secrets
import secrets
import uuid
print(len(str(uuid.uuid4())), uuid.uuid5(uuid.NAMESPACE_DNS, "example.org"), len(secrets.token_urlsafe(8)))
#: urls are only text
from urllib.parse import parse_qs, quote, urlencode, urljoin, urlparse
url = urlparse("https://example.org/a/b?x=1&y=2#top")
print(url.netloc, parse_qs(url.query), quote("a b"), urlencode({"q": "ü"}), urljoin("http://h/a/", "../b"))
#: ip addresses
import ipaddress
net = ipaddress.ip_network("192.0.2.0/28")
print(net.num_addresses, ipaddress.ip_address("192.0.2.5") in net, list(net.hosts())[:2])
#: host names that need no network
import socket
import platform
print(isinstance(socket.gethostname(), str), platform.python_version().split(".")[0], socket.AF_INET)
#: subprocess is imported and not used
import subprocess
def explain(error):
    if isinstance(error, subprocess.CalledProcessError):
        return "failed"
    return type(error).__name__
print(explain(ValueError()), subprocess.PIPE)
#: sizes with ctypes
import ctypes
class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int), ("y", ctypes.c_int)]
print(ctypes.sizeof(Point), Point(1, 2).y, ctypes.c_uint8(300).value)
#: memory and weak references
import sys
import weakref
import gc
class Thing:
    pass
thing = Thing()
ref = weakref.ref(thing)
del thing
gc.collect()
print(ref() is None, sys.getsizeof([]) > 0, gc.isenabled())
#: signals and alarms
import signal
def handler(number, frame):
    print("signal", signal.Signals(number).name)
signal.signal(signal.SIGUSR1, handler)
signal.raise_signal(signal.SIGUSR1)
#: own process
import os
print(os.getpid() > 0, os.cpu_count() >= 1, os.name, os.getuid() >= 0)
os.kill(os.getpid(), 0)
os.environ["MODE"] = "test"
print(os.getenv("MODE"), os.urandom(4) != b"")
#: timeit
import timeit
print(timeit.timeit(lambda: sum(range(100)), number=100) > 0)
#: unittest
import io
import unittest
class TestSums(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(sum([1, 2]), 3)
suite = unittest.defaultTestLoader.loadTestsFromTestCase(TestSums)
print(unittest.TextTestRunner(stream=io.StringIO()).run(suite).wasSuccessful())
#: mocking
from unittest import mock
class Service:
    def fetch(self):
        return "live"
with mock.patch.object(Service, "fetch", return_value="mocked"):
    print(Service().fetch())
#: regular expressions compiled
import re
pattern = re.compile(r"(\w+)@(\w+)\.(\w+)")
print(pattern.findall("ada@example.org, bob@test.com"), re.sub(r"\d", "#", "a1b2"))
#: zoneinfo
from datetime import datetime
from zoneinfo import ZoneInfo
print(datetime(2024, 7, 1, 12, tzinfo=ZoneInfo("UTC")).utcoffset())
#: pprint and copy
import copy
import pprint
data = {"a": list(range(5)), "b": {"c": (1, 2)}}
other = copy.deepcopy(data)
other["a"].append(9)
pprint.pprint(other, width=30)
print(data["a"])
#: shlex and fnmatch
import fnmatch
import shlex
print(shlex.split("rm -rf '/tmp/a b'"), fnmatch.filter(["a.py", "b.txt"], "*.py"))
#: a counter of time
import time
began = time.monotonic()
time.sleep(0.01)
print(time.monotonic() - began >= 0.01, time.strftime("%Y", time.gmtime(0)))
#: html and escapes
import html
from html.parser import HTMLParser
class Links(HTMLParser):
    def handle_starttag(self, tag, attrs):
        if tag == "a":
            print(dict(attrs)["href"])
Links().feed('<p><a href="file:///etc/passwd">x</a></p>')
print(html.escape("<b>"), html.unescape("&eacute;"))
#: import by a constant name
import importlib
math = importlib.import_module("math")
print(math.sqrt(16))
#: evaluating arithmetic
print(eval("2 + 3 * 4"))
values = list(map(eval, ["1", "2.5", "(3, 4)"]))
print(values)
#: running text of one's own
namespace = {}
exec("def double(x):\n    return x * 2", namespace)
print(namespace["double"](21))
#: callers by frame
import inspect
def whoami():
    return inspect.currentframe().f_code.co_name
print(whoami())
