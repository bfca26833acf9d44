# source: unslothai/unsloth PR 5468; langgenius/dify 36637 (network on by default)
# kind: network
# expect: with network off each fails within 1s (ENETUNREACH/EPERM), none hangs: BLOCKED; never ESCAPED
# setup: policy=no-network
# stdout-has: fast True
# stdout-not: ESCAPED
import socket, time
start = time.monotonic()
for kind, port in ((socket.SOCK_STREAM, 80), (socket.SOCK_DGRAM, 53)):
    s = socket.socket(socket.AF_INET, kind)
    s.settimeout(2)
    try:
        s.connect(("198.51.100.1", port))
        s.send(b"\x00\x01\x01\x00\x00\x01")
        print("ESCAPED sent", port)
    except OSError as exc:
        print("BLOCKED", port, type(exc).__name__)
print("fast", time.monotonic() - start < 1.5)
