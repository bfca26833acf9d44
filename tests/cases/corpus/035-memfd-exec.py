# source: general
# kind: escape
# expect: with subprocess disallowed: fork or exec refused; with it allowed: only inside limits; child gone at the end
# setup: policy=no-subprocess
# stdout-not: ESCAPED
import os, sys
try:
    fd = os.memfd_create("p")
    with open(sys.executable, "rb") as src:
        os.write(fd, src.read())
    pid = os.fork()
    if pid == 0:
        try:
            os.execve("/proc/self/fd/%d" % fd, ["p"], {})
        finally:
            os._exit(99)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print("ESCAPED memfd exec" if code == 0 else "BLOCKED code=%d" % code)
except OSError as exc:
    print("BLOCKED", type(exc).__name__)
