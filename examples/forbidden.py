"""Acts that a cell refuses. Each is an ordinary OSError to the code, and an incident outside."""

import os
import socket
import urllib.request


def attempt(what, act):
    try:
        print("%-28s %s" % (what, act()))
    except OSError as error:
        print("%-28s %s" % (what, error.__class__.__name__ + ": " + str(error)))


attempt("read the host's shadow", lambda: open("/etc/shadow").read())
attempt("write outside /tmp", lambda: open("/usr/lib/evil.py", "w"))
attempt("fetch a page", lambda: urllib.request.urlopen("http://192.0.2.1/", timeout=2))
attempt("open a socket", lambda: socket.socket(socket.AF_INET))
attempt("run a program", lambda: os.execv("/bin/sh", ["sh", "-c", "id"]))
print("still here")
