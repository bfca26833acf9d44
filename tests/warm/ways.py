"""Ways by which two programs of one machine meet: `ways.py hold|seek|both MARK [TICKETS]`.

Runs outside, where each way must work, and in cells, where none may lead from one to another.
`hold` takes every way's place under the name MARK and prints a ticket for each; `seek` looks for
them and prints what it found; `both` is the two in one process. Then they wait for SIGUSR2 from
the host, and tell what else has reached them. A dictionary way -> answer is printed as one line
of JSON: a list of what was found (empty: nothing), or "no: " and the error that refused it.

Only the standard library: this file is handed to cells as their code.
"""

import atexit
import contextlib
import ctypes
import errno
import fcntl
import glob
import json
import os
import platform
import signal
import socket
import sys
import threading
import time

TASK, MARK = sys.argv[1], sys.argv[2]
TICKETS = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
OUTSIDE = os.path.isdir("/var/lib")     # no cell has one
KEY = int(MARK[-6:], 16) + 1
FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run", ".", os.path.expanduser("~"))
# All cells and the host read the same file.
SHARED = os.path.join(os.path.dirname(os.__file__), "this.py")
PATIENCE_S = 2

libc = ctypes.CDLL(None, use_errno=True)
kept, received = [], []


def call(function, *args):
    result = function(*args)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def name_process():
    call(libc.prctl, 15, MARK[:15].encode(), 0, 0, 0)


# Each way: hold_x() gives a ticket, seek_x(ticket) a list of what it found. -----------------

def hold_processes():
    return os.getpid()


def seek_processes(_):
    return look_in_proc("comm") + look_in_proc("cmdline")


def look_in_proc(name):
    """Files of other processes that have the mark in them."""
    found = []
    for path in glob.glob("/proc/[0-9]*/" + name):
        if int(path.split("/")[2]) == os.getpid():
            continue
        with contextlib.suppress(OSError), open(path, "rb") as file:
            if MARK[:15].encode() in file.read():
                found.append(path)
    return found


def hold_descriptors():
    kept.append(os.memfd_create(MARK))
    return None


def seek_descriptors(_):
    found = []
    for path in glob.glob("/proc/[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if MARK in os.readlink(path) and int(path.split("/")[2]) != os.getpid():
                found.append(path)
    return found


def hold_signals():
    signal.signal(signal.SIGUSR1, lambda *_: received.append("SIGUSR1"))
    return os.getpid()


def seek_signals(pids):
    """Who was hit tells it. Everybody is aimed at only where that is nobody of the host."""
    for pid in pids if isinstance(pids, list) else [pids]:
        if pid != os.getpid():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGUSR1)
    if not OUTSIDE:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        for pid in (-1, 0, os.getppid()):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGUSR1)
    return []


def hold_files():
    places = []
    for folder in FOLDERS:
        with contextlib.suppress(OSError):
            path = os.path.join(folder, MARK + ".file")
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o666))
            atexit.register(remove, path)
            places.append(path)
    return places


def remove(path):
    with contextlib.suppress(OSError):
        os.unlink(path)


def seek_files(_):
    found = []
    for folder in FOLDERS + (() if OUTSIDE else ("/", "/etc", "/home", "/opt", "/srv", "/mnt")):
        with contextlib.suppress(OSError):
            found += [n for n in os.listdir(folder) if MARK in n and n.endswith(".file")]
    return found


def serve(family, address):
    listener = socket.socket(family)
    listener.bind(address)
    listener.listen()
    kept.append(listener)

    def answer():
        while True:
            with contextlib.suppress(OSError):
                listener.accept()[0].sendall(MARK.encode())
    threading.Thread(target=answer, daemon=True).start()
    return listener.getsockname()


def ask(family, address):
    with socket.socket(family) as client:
        client.settimeout(PATIENCE_S)
        try:
            client.connect(address)
            return [client.recv(100).decode()]
        except (ConnectionRefusedError, FileNotFoundError):
            return []


def hold_abstract_socket():
    serve(socket.AF_UNIX, "\0" + MARK)


def seek_abstract_socket(_):
    return ask(socket.AF_UNIX, "\0" + MARK)


def hold_socket_file():
    serve(socket.AF_UNIX, "/tmp/%s.socket" % MARK)
    atexit.register(remove, "/tmp/%s.socket" % MARK)


def seek_socket_file(_):
    return ask(socket.AF_UNIX, "/tmp/%s.socket" % MARK)


def hold_datagram():
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.bind("\0%s.datagram" % MARK)
    kept.append(receiver)


def seek_datagram(_):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        try:
            sender.sendto(b"x", "\0%s.datagram" % MARK)
        except ConnectionRefusedError:
            return []
        return ["somebody takes it"]


def hold_loopback():
    return serve(socket.AF_INET, ("127.0.0.1", 0))[1]


def seek_loopback(port):
    return ask(socket.AF_INET, ("127.0.0.1", port)) if port else []


def hold_socket_list():
    kept.append(socket.socket(socket.AF_UNIX))
    kept[-1].bind("\0%s.list" % MARK)


def seek_socket_list(_):
    found = []
    for path in ("/proc/net/unix", "/proc/self/net/unix"):
        with contextlib.suppress(FileNotFoundError), open(path) as file:
            found += [path] if MARK + ".list" in file.read() else []
    return found


def hold_sysv_memory():
    return call(libc.shmget, KEY, 4096, 0o1666)


def seek_sysv_memory(_):
    return missing_is_nothing(libc.shmget, KEY, 0, 0)


def hold_sysv_semaphores():
    return call(libc.semget, KEY, 1, 0o1666)


def seek_sysv_semaphores(_):
    return missing_is_nothing(libc.semget, KEY, 0, 0)


def hold_sysv_queue():
    return call(libc.msgget, KEY, 0o1666)


def seek_sysv_queue(_):
    return missing_is_nothing(libc.msgget, KEY, 0)


def missing_is_nothing(function, *args):
    try:
        return ["number %d" % call(function, *args)]
    except OSError as error:
        if error.errno == errno.ENOENT:
            return []
        raise


def hold_posix_memory():
    kept.append(call(libc.shm_open, ("/%s.shm" % MARK).encode(), os.O_CREAT | os.O_RDWR, 0o666))
    atexit.register(libc.shm_unlink, ("/%s.shm" % MARK).encode())


def seek_posix_memory(_):
    return missing_is_nothing(libc.shm_open, ("/%s.shm" % MARK).encode(), os.O_RDWR, 0)


def semaphore(flags):
    libc.sem_open.restype = ctypes.c_void_p
    found = libc.sem_open(("/" + MARK).encode(), flags, 0o666, 1)
    if not found:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return found


def hold_posix_semaphore():
    kept.append(semaphore(os.O_CREAT))
    atexit.register(libc.sem_unlink, ("/" + MARK).encode())


def seek_posix_semaphore(_):
    return missing_is_nothing(lambda: semaphore(0) and 1)


def hold_posix_queue():
    kept.append(call(libc.mq_open, ("/" + MARK).encode(), os.O_CREAT | os.O_RDWR, 0o666, None))
    atexit.register(libc.mq_unlink, ("/" + MARK).encode())


def seek_posix_queue(_):
    return missing_is_nothing(libc.mq_open, ("/" + MARK).encode(), os.O_RDWR, 0, None)


ADD_KEY, KEYCTL = (248, 250) if platform.machine() == "x86_64" else (217, 219)
USER_KEYRING, SEARCH, UNLINK = -4, 10, 9


def hold_keyring():
    key = call(libc.syscall, ADD_KEY, b"user", MARK.encode(), b"secret", 6, USER_KEYRING)
    atexit.register(libc.syscall, KEYCTL, UNLINK, key, USER_KEYRING)
    return key


def seek_keyring(_):
    try:
        return ["key %d" % call(libc.syscall, KEYCTL, SEARCH, USER_KEYRING, b"user",
                                MARK.encode(), 0)]
    except OSError as error:
        if error.errno == errno.ENOKEY:
            return []
        raise


def hold_file_watch():
    """Reads a file that all of us read, again and again."""
    def read():
        while True:
            with open(SHARED) as file:
                file.read()
            time.sleep(0.01)
    threading.Thread(target=read, daemon=True).start()


def seek_file_watch(_):
    watch = call(libc.inotify_init1, os.O_NONBLOCK)
    try:
        call(libc.inotify_add_watch, watch, SHARED.encode(), 0x20)     # IN_OPEN
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with contextlib.suppress(BlockingIOError):
                return ["%d bytes of events" % len(os.read(watch, 4096))]
            time.sleep(0.01)
        return []
    finally:
        os.close(watch)


def hold_folder_watch():
    pass    # as above


def seek_folder_watch(_):
    """dnotify, its elder sister: a signal when something in a folder is read."""
    signal.signal(signal.SIGRTMIN, lambda *_: None)
    folder = os.open(os.path.dirname(SHARED), os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.fcntl(folder, fcntl.F_SETSIG, signal.SIGRTMIN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
        fcntl.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_ACCESS | fcntl.DN_MULTISHOT)
        seen = signal.sigtimedwait([signal.SIGRTMIN], PATIENCE_S)
        return ["a signal"] if seen else []
    finally:
        os.close(folder)


def hold_lease():
    """Holds up whoever opens the file for the kernel's lease-break-time."""
    file = os.open("lease.txt" if OUTSIDE else SHARED, os.O_RDONLY | os.O_CREAT * OUTSIDE)
    kept.append(file)
    atexit.register(remove, "lease.txt")
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    return os.path.realpath("lease.txt")


def seek_lease(path):
    file = os.open(path if OUTSIDE else SHARED, os.O_RDONLY)
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except BlockingIOError:
        return ["it is taken"]
    finally:
        os.close(file)
    return []


def hold_lock():
    kept.append(os.open(SHARED, os.O_RDONLY))
    fcntl.flock(kept[-1], fcntl.LOCK_EX)


def seek_lock(_):
    file = os.open(SHARED, os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return ["it is locked"]
    finally:
        os.close(file)
    return []


WAYS = [name[5:] for name in list(globals()) if name.startswith("hold_")]


def attempt(function, *args):
    try:
        return function(*args)
    except OSError as error:
        return "no: " + errno.errorcode.get(error.errno, str(error.errno))
    except Exception as error:      # whatever this interpreter lacks
        return "no: %s: %s" % (type(error).__name__, error)


def main():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])     # for the host, at the end
    name_process()
    answers = TICKETS
    if TASK in ("hold", "both"):
        answers = {way: attempt(globals()["hold_" + way]) for way in WAYS}
    if TASK in ("seek", "both"):
        refused = {way: it for way, it in answers.items() if str(it).startswith("no: ")}
        answers = {way: attempt(globals()["seek_" + way], answers.get(way)) for way in WAYS}
        answers.update(refused if TASK == "both" else {})
    print(json.dumps(answers), flush=True)
    if TASK != "both":
        signal.sigwait([signal.SIGUSR2])
        print(json.dumps({"received": received}), flush=True)


main()
