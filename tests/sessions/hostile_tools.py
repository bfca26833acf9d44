"""What code that attacks its own session begins with: each channel, found as such code would."""

# sizeof(struct claims): the frame of an item begins behind it; see src/guest/wire.h.
ACT_BYTES, ACTS = 4 + 4 + 24 + 40 + 256, 32
FRAME = 10 * 4 + ACTS * ACT_BYTES + 128 + 1024 + 64 * 1024

TOOLS = """
import array, ctypes, os, random, struct, sys, threading, time
MAGIC, FRAME = 0x61647974, %d
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 180, "aarch64": 42}[os.uname().machine]
with open("/proc/self/maps") as maps:
    place = [line.split()[0].split("-") for line in maps if "memfd:claims" in line][0]
base, size = int(place[0], 16), int(place[1], 16) - int(place[0], 16)
top = max(fd for fd in range(3, 300) if os.path.exists("/proc/self/fd/%%d" %% fd) and
          os.readlink("/proc/self/fd/%%d" %% fd).startswith("socket:"))
turn = 1000
def say(data):
    return os.write(top, data)
def ended(run, kind=0, code=0, refused=0):
    return struct.pack("=IIIiI", MAGIC, run, kind, code, refused)
def write(offset, data):
    data = data[:size - offset]
    ctypes.memmove(base + offset, data, len(data))
def ring(data, n=None):
    global turn
    turn += 1
    write(FRAME + 8, data)
    write(FRAME, struct.pack("=II", turn & 0xffffffff, len(data) if n is None else n))
    return libc.syscall(ctypes.c_long(number), ctypes.c_ulong(MAGIC), 0, 0)
def part(mime, data, omitted=0):
    return struct.pack("=III", len(mime), len(data), omitted) + mime + data
def item(*parts, flags=0):
    return struct.pack("=II", flags, len(parts)) + b"".join(parts)
def send_fds(data, fds):
    body = (ctypes.c_char * len(data)).from_buffer_copy(data)
    vector = struct.pack("=QQ", ctypes.addressof(body), len(data))
    vector = (ctypes.c_char * len(vector)).from_buffer_copy(vector)
    rights = struct.pack("=QII", 16 + 4 * len(fds), 1, 1) + array.array("i", fds).tobytes()
    rights = (ctypes.c_char * len(rights)).from_buffer_copy(rights)
    head = struct.pack("=QIIQQQQI4x", 0, 0, 0, ctypes.addressof(vector), 1,
                       ctypes.addressof(rights), len(rights), 0)
    return libc.sendmsg(top, (ctypes.c_char * len(head)).from_buffer_copy(head), 0x40)
def background(step):
    def go():
        while True:
            try: step()
            except OSError: time.sleep(0.01)
    threading.Thread(target=go, daemon=True).start()
""" % FRAME
