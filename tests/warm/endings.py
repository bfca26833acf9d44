"""Programs end in a warm cell as they end in a cold one: `endings.py BUILD`. Prints TAP.

Each program runs in both; status, exit code, signal, limit, error and the bytes of both streams
must be the same. What the right ending is, CPython's own main says in the cold cell. A program
that may differ says why.
"""

import base64
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from parts import ran_warm, stage, watch          # noqa: E402

FACTS = ("status", "exit_code", "signal", "error", "truncated")

PROGRAMS = {
    "the end of the file": "print('end')",
    "sys.exit()": "import sys; sys.exit()",
    "sys.exit(0)": "import sys; sys.exit(0)",
    "sys.exit(7)": "import sys; sys.exit(7)",
    "sys.exit(-1)": "import sys; sys.exit(-1)",
    "sys.exit(256)": "import sys; sys.exit(256)",
    "sys.exit(2 ** 70)": "import sys; sys.exit(2 ** 70)",
    "sys.exit(True)": "import sys; sys.exit(True)",
    "sys.exit with a text": "import sys; sys.exit('no \\u00e9 more')",
    "sys.exit with a tuple": "import sys; sys.exit((1, 'two'))",
    "sys.exit with a __str__ that raises": """
import sys
class Odd:
    def __str__(self):
        raise ValueError('no text')
sys.exit(Odd())
""",
    "SystemExit whose code is an attribute": """
class Mine(SystemExit):
    code = 5
raise Mine
""",
    "SystemExit whose code is a property that raises": """
class Mine(SystemExit):
    @property
    def code(self):
        raise KeyError('x')
raise Mine
""",
    "SystemExit with a text, stderr closed": "import sys; sys.stderr.close(); sys.exit('text')",
    "an exception": "def f():\n    1 / 0\nf()",
    "a chain of exceptions": """
try:
    {}['x']
except KeyError as e:
    raise RuntimeError('while') from e
""",
    "a group of exceptions": "raise ExceptionGroup('all', [ValueError(1), KeyError('k')])",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "a syntax error": "print('never'\n",
    "an exception hook": """
import sys
def hook(kind, value, traceback):
    print('hooked', kind.__name__, value, traceback.tb_lineno)
sys.excepthook = hook
raise ValueError('x')
""",
    "an exception hook that raises": """
import sys
def hook(*_):
    raise KeyError('in the hook')
sys.excepthook = hook
raise ValueError('x')
""",
    "an exception hook that exits": """
import sys
sys.excepthook = lambda *_: sys.exit(9)
raise ValueError('x')
""",
    "no exception hook": "import sys; del sys.excepthook; raise ValueError('x')",
    "atexit": """
import atexit
atexit.register(print, 'first registered')
atexit.register(print, 'last registered', flush=True)
print('body')
""",
    "atexit that raises": """
import atexit
atexit.register(print, 'still called')
atexit.register(lambda: 1 / 0)
""",
    "atexit that exits": "import atexit, sys; atexit.register(sys.exit, 4)",
    "atexit after an exception": "import atexit; atexit.register(print, 'cleanup'); 1 / 0",
    "atexit that registers another": """
import atexit
atexit.register(lambda: atexit.register(print, 'late'))
""",
    "atexit in a cycle of objects": """
import atexit
class Node:
    def __del__(self):
        print('gone', flush=True)
node = Node()
node.self = node
atexit.register(print, 'before')
""",
    "__del__ of a global": """
class Node:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        print('del', self.name)
node = Node('global')
Node('at once')
""",
    "__del__ order": """
class Node:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        print('del', self.name)
b, a, _c = Node('b'), Node('a'), Node('_c')
""",
    "__del__ that raises": """
class Node:
    def __del__(self):
        raise ValueError('in del')
node = Node()
""",
    "__del__ that uses globals and modules": """
import os, json
value = 'still here'
class Node:
    def __del__(self):
        print(value, os and os.sep, json and json.dumps([1]))
node = Node()
""",
    "a finalizer of weakref": """
import weakref
class Node: pass
node = Node()
weakref.finalize(node, print, 'finalized')
""",
    "a file that was not closed": """
file = open('out.txt', 'w')
file.write('text')
import atexit, os
class Last:
    def __del__(self):
        os.write(1, b'size %d\\n' % os.stat('out.txt').st_size)
""",
    "stdout not flushed": "import sys; sys.stdout = open(1, 'w', buffering=9999, closefd=False);"
                          " sys.stdout.write('late')",
    "a file of ours on descriptor 1": "f = open(1, 'w', buffering=9999, closefd=False)\n"
                                      "f.write('kept in a buffer')",
    "stdout closed": "import sys; sys.stdout.close()",
    "print to a closed stdout": "import sys; sys.stdout.close(); print('x')",
    "descriptor 1 closed": "import os; os.close(1); print('lost')",
    "descriptor 1 closed, in a buffer": """
import os, sys
sys.stdout = open(1, 'w', buffering=9999, closefd=False)
print('lost')
os.close(1)
""",
    "stdout is None": "import sys; sys.stdout = None; print('nothing')",
    "stdout without flush": "import sys; sys.stdout = object()",
    "a daemon thread": """
import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print('main is done')
""",
    "a daemon thread that prints": """
import threading, time
def chatter():
    while True:
        time.sleep(0.001)
threading.Thread(target=chatter, daemon=True).start()
time.sleep(0.05)
print('main is done')
""",
    "a thread that ends later": """
import threading, time
def work():
    time.sleep(0.3)
    print('thread is done')
threading.Thread(target=work).start()
print('main is done')
""",
    "a thread after an exception": """
import threading, time
def work():
    time.sleep(0.3)
    print('thread is done', flush=True)
threading.Thread(target=work).start()
raise ValueError('x')
""",
    "a thread that raises": """
import threading
t = threading.Thread(target=lambda: 1 / 0, name='worker')
t.start()
t.join()
print('main is done')
""",
    "sys.exit in a thread": """
import threading, sys
t = threading.Thread(target=sys.exit, args=(3,))
t.start()
t.join()
""",
    "a pool of threads": """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2)
pool.submit(print, 'from the pool')
""",
    "os._exit": "import os; print('kept'); os._exit(6)",
    "os._exit with a buffer": "import os, sys; sys.stdout = open(1, 'w', closefd=False);"
                              " print('lost'); os._exit(6)",
    "os.abort": "import os; os.abort()",
    "SIGTERM": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "SIGSEGV": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "SIGPIPE is ignored": "import os, signal; os.kill(os.getpid(), signal.SIGPIPE); print('on')",
    "SIGINT": "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "a handler that raises": """
import os, signal
def handler(number, frame):
    raise ValueError(number)
signal.signal(signal.SIGUSR1, handler)
os.kill(os.getpid(), signal.SIGUSR1)
""",
    "faulthandler": "import faulthandler, os, signal; faulthandler.enable();\n"
                    "print('on', flush=True); os.kill(os.getpid(), signal.SIGTERM)",
    "a null pointer": "import ctypes; ctypes.string_at(0)",
    "recursion without end": "def f(): f()\nf()",
    "children of a fork": """
import os, sys
pid = os.fork()
if pid == 0:
    print('child', flush=True)
    sys.exit(3)
print('parent', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
""",
    "a child that raises": """
import os
pid = os.fork()
if pid == 0:
    raise ValueError('in the child')
print('parent', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
""",
    "a child with atexit": """
import os, atexit
atexit.register(lambda: os.write(1, b'bye\\n'))
pid = os.fork()
if pid:
    os.waitpid(pid, 0)
""",
    "asyncio": """
import asyncio
async def main():
    await asyncio.gather(*(asyncio.sleep(0.01) for _ in range(5)))
    return 'done'
print(asyncio.run(main()))
""",
    "asyncio with an exception": """
import asyncio
async def main():
    raise ValueError('x')
asyncio.run(main())
""",
    "a coroutine that nobody awaits": "async def f(): pass\nf()\nprint('end')",
    "a task that nobody awaits": """
import asyncio
async def sleeper():
    try:
        await asyncio.sleep(60)
    finally:
        print('cancelled')
async def main():
    asyncio.create_task(sleeper())
    await asyncio.sleep(0)
asyncio.run(main())
""",
    "a flood of signals": """
import os, signal
count = 0
def on_signal(*unused):
    global count
    count += 1
signal.signal(signal.SIGUSR1, on_signal)
for i in range(3000):
    os.kill(os.getpid(), signal.SIGUSR1)
print(count)
raise SystemExit(3)
""",
    "stopped and continued": """
import os, signal, time
me = os.getpid()
if os.fork() == 0:
    while open('/proc/%d/stat' % me).read().rsplit(')', 1)[1].split()[0] not in 'Tt':
        time.sleep(0.01)
    os.kill(me, signal.SIGCONT)
    os._exit(0)
os.kill(me, signal.SIGSTOP)
print('on', os.wait()[1])
""",
    "multiprocessing": """
import multiprocessing
def square(n):
    return n * n
if __name__ == '__main__':
    with multiprocessing.get_context('fork').Pool(2) as pool:
        print(pool.map(square, range(5)))
""",
    "logging": """
import logging
logging.basicConfig(level=logging.INFO, format='%(levelname)s %(message)s')
logging.info('one')
logging.getLogger('x').error('two')
logging.shutdown()
""",
    "logging at the end": """
import atexit, logging, sys
from logging.handlers import MemoryHandler
target = logging.StreamHandler(sys.stdout)
memory = MemoryHandler(99, target=target)
logging.getLogger().addHandler(memory)
logging.getLogger().warning('flushed by shutdown')
""",
    "a warning": "import warnings; warnings.warn('careful', DeprecationWarning)",
    "a warning at the end": """
import atexit, warnings
atexit.register(lambda: warnings.warn('late'))
""",
    "a warning of a resource": """
import warnings
warnings.simplefilter('always')
open('/dev/null')
print('end')
""",
    "a hook of unraisable exceptions": """
import sys
sys.unraisablehook = lambda it: print('unraisable', it.exc_type.__name__)
class Node:
    def __del__(self):
        1 / 0
node = Node()
""",
    "a generator that is not finished": """
def gen():
    try:
        yield 1
    finally:
        print('closed')
g = gen()
next(g)
""",
    "a context that is not left": """
import contextlib
@contextlib.contextmanager
def ctx():
    try:
        yield
    finally:
        print('left')
c = ctx()
c.__enter__()
""",
    "a temporary folder": """
import tempfile, os, warnings
warnings.simplefilter('ignore')
d = tempfile.TemporaryDirectory()
print(os.path.isdir(d.name))
""",
    "exit 3, and a flush that fails": """
import os, sys
sys.stdout = open(1, 'w', buffering=9999, closefd=False)
print('lost')
os.close(1)
sys.exit(3)
""",
    "sys.exit with a text, stderr is None": "import sys; sys.stderr = None; sys.exit('text')",
    "an exception whose frame holds objects": """
class Node:
    def __del__(self):
        print('freed')
def f():
    node = Node()
    1 / 0
f()
""",
    "collector off": """
import gc
gc.disable()
class Node:
    def __del__(self):
        print('freed')
node = Node()
node.self = node
""",
    "an import at the end": """
class Node:
    def __del__(self):
        import colorsys
node = Node()
""",
    "input at the end of stdin": "input()",
    "builtins changed": "import builtins; builtins.print = None; print('x')",
    "modules deleted": "import sys; sys.modules.clear(); 1 / 0",
    "modules deleted, then the end": "import sys; print('x'); sys.modules.clear()",
    "__main__ deleted": "import sys; del sys.modules['__main__']; print('end')",
    "atexit and threading spoiled": """
import atexit, threading
atexit._run_exitfuncs = threading._shutdown = lambda: print('mine')
atexit.register(print, 'registered')
""",
    "numpy at the end": """
import numpy, atexit
class Node:
    def __del__(self):
        print(numpy.arange(3).sum())
node = Node()
""",
    "globals in a module of ours": """
import sys, types
module = types.ModuleType('ours')
exec('''
class Node:
    def __del__(self):
        print('del in a module')
node = Node()
''', module.__dict__)
sys.modules['ours'] = module
del module
""",
}

SOURCE_LINE = re.compile(rb"(?m)^    \S.*\n")


def without_source(found):
    """A warm cell's traceback still shows the line of a finalizer that runs last of all: the module
    that reads it is the zygote's, and not taken apart."""
    return dict(found, stderr=SOURCE_LINE.sub(b"", found["stderr"]))


def numpy_is_whole(found):
    """numpy is the zygote's, and not taken apart before the program's last finalizer."""
    return dict(found, stdout=b"", stderr=b"")


# Programs whose endings may differ: what is made of both before they are compared.
DIFFERENT = {"__del__ that raises": without_source, "an import at the end": without_source,
             "numpy at the end": numpy_is_whole}
ADDRESS = re.compile(rb"\b0x[0-9a-f]+")


def facts(outcome):
    found = {name: outcome.get(name) for name in FACTS}
    found["limit"] = (outcome.get("limit") or {}).get("name")
    for name in ("stdout", "stderr"):
        value = outcome.get(name + "_base64")
        text = base64.b64decode(value) if value is not None else outcome.get(name).encode()
        found[name] = ADDRESS.sub(b"0x", text)
    return found


def compare(name, warm, cold):
    problems, same_form = ran_warm(warm), DIFFERENT.get(name, dict)
    ours, theirs = same_form(facts(warm)), same_form(facts(cold))
    for what in ours:
        if ours[what] != theirs[what]:
            problems.append("%s: warm %r, cold %r" % (what, ours[what], theirs[what]))
    return problems


def main():
    with stage(__doc__) as (tap, made):
        if made:
            before = watch(made)
            with made.supervisor() as served:
                served.await_idle()
                for name, code in PROGRAMS.items():
                    warm = served.run(code, "--base64", policy="plain")
                    cold = made.cold(served, code, "--base64")
                    tap.point(name, compare(name, warm, cold))
                problems = served.end()
            tap.point("nothing is left", problems + before.leftovers(3.0))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
