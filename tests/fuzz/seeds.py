#!/usr/bin/env python3
"""Writes seeds for the fuzz targets:  seeds.py FOLDER

Whole connections, as a client would send them, and sound exports of a ledger, so that the fuzzer
begins behind the first brace.
"""
import json
import os
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ledger"))
import chain  # noqa: E402

REQUESTS = [
    {"adyton": 1},
    {"type": "ping"},
    {"type": "status"},
    {"type": "cancel", "id": "a.b_c:d-1"},
    {"type": "run", "id": "1", "code": "print(1)\n"},
    {"type": "run", "id": "2", "code_base64": "/w==", "policy": "strict", "name": "x.py",
     "limits": {"timeout": "2s", "memory": "64M"}, "args": ["a", ""], "stdin": "é",
     "files": [{"name": "d/a", "data": "1"}, {"name": "b", "data_base64": "AAE="}],
     "data": [{"path": "/srv/a", "name": "b"}, {"path": "/srv"}], "workspace": "w",
     "python": "/usr/bin/python3", "collect": True, "stream": True},
    {"type": "session_put", "id": "4", "session": "s_1", "files": [{"name": "d\n/a", "data_base64": "AAE="}]},
    {"type": "session_get", "id": "5", "session": "s_1", "name": "d/\u20ac"},
    {"type": "session_get", "id": "6", "session": "s_1", "name_base64": "/wo="},
    {"type": "session_files", "id": "7", "session": "s_1"},
    {"type": "run", "id": "3", "code": "\0\"\\\u20ac", "stdin_base64": "", "colour": 1},
]


def frame(message):
    text = json.dumps(message).encode()
    return struct.pack(">I", len(text)) + text


def exports():
    """None, one with all kinds of rows, one that was pruned, one that is cut."""
    code = b"print(1)\n"
    common = {"time_us": 1, "run": "r_1"}
    intent = dict(common, kind="intent", policy="standard", name="main.py",
                  code=chain.code_hash(code), code_bytes=len(code), code_kept=1, owner=5, pid=7)
    outcome = dict(common, kind="outcome", intent=1, status="violation", message="\u20ac",
                   wall_us=1 << 62, incidents=1, incidents_dropped=0)
    incident = dict(common, kind="incident", intent=1, number=1, rule="system-call", fact=1,
                    layer="seccomp", action="refused", act="ptrace", count=1)
    again = dict(intent, run="r_2")
    whole = chain.write([intent, outcome, incident, again], [code])
    return [chain.write([]), whole,
            chain.write([dict(outcome, intent=3)], anchor=(8, "ab" * 32)), whole[:-100]]


MAGIC = 0x61647974


def claims():
    """struct claims up to its first act: an exception, and one with an act."""
    head = struct.pack("<IIiiIIIIII", MAGIC, 1, 3, 2, 1, 9, 4, 20, 1, 0)
    act = struct.pack("<Ii24s40s256s", 2, 7, b"file-outside", b"os.remove", b"/home/u/f.txt")
    return [head, head + act]


def verdicts():
    """Messages of a guest: a finding, and the end; see fuzz_verdict.c."""
    finding = struct.pack("<IIIiiii400s", MAGIC, 1, 0, 1, 0, 1, 9, b"imports os.system")
    end = struct.pack("<II", MAGIC, 16) + bytes(64)
    message = lambda body: struct.pack("<H", len(body)) + body
    return [message(finding), message(finding) * 3 + message(end)]


def displays():
    """Frames of a guest: see fuzz_display.c and wire.h."""
    def part(mime, data, omitted=0):
        return struct.pack("<III", len(mime), len(data), omitted) + mime + data

    def item(flags, *parts):
        body = struct.pack("<II", flags, len(parts)) + b"".join(parts)
        return struct.pack("<H", len(body)) + body
    text = part(b"text/plain", "\u20ac\n".encode())
    chart = part(b"application/vnd.adyton.chart+json", b'{"type":"line","elements":[[1,2.5e3,null]]}')
    return [item(0, text), item(1, text, chart, part(b"image/png", b"\x89PNG\0"),
                                part(b"text/html", b"", 70000), part(b"", b'{"a":{"b":1}}')),
            item(0, text) + item(1, chart) + item(1, part(b"image/svg+xml", b"<svg/>")) + b"\5\0ab"]


def files():
    """Messages of the process that reads a cell's files: see fuzz_files.c and files_parts.h."""
    def message(word, body, n=0):
        return struct.pack("<HII", len(body) + 8, word, n) + body
    entry = struct.pack("<1024sQ128s65s7x", b"d/a\xff\n", 8, b"text/csv", b"a" * 64)
    end = struct.pack("<Qi236s256s65s7x", 1, -2, b"gone: there is no such file", b"1 link skipped",
                      b"")
    return [message(1, entry), message(1, entry) + message(2, b"bytes", 5) * 2 + message(3, end),
            message(3, end[:-8]) + message(2, b"x", 9) + b"\1",
            message(2, b"y" * 32768, 32768) + message(3, end[:504] + b"a" * 72),
            message(1, entry) + message(3, struct.pack("<Qi", 0, 0) + end[12:])]


def sessions():
    """A session's guest on its channels: see fuzz_session.c."""
    def act(kind, body=b""):
        return struct.pack("<BH", kind, len(body)) + body
    say, end, stream, claim, ring, following, hang_up = range(7)
    ended = struct.pack("<IIIiI", MAGIC, 1, 0, 0, 0)
    checked = struct.pack("<II", MAGIC, 16) + bytes(64)
    item = displays()[0][2:]
    raised = act(claim, bytes(3) + claims()[1])
    two = act(stream, b"\0out") + act(ring, item) + act(say, ended) + act(following) + \
        act(stream, b"\1err") + raised + act(end, struct.pack("<Ii", 1, 1)) + act(following)
    return [b"\0" + two, b"\1" + act(say, checked) + two + act(say, checked) + act(say, ended),
            b"\0" + act(say, b"x") * 40 + act(say, ended * 9) + act(say, b"") + act(end) + act(end),
            b"\0" + act(end) + act(hang_up) + act(following) + act(ring, b"y" * 99)]


def pictures():
    """PNG files: of three bytes a pixel with each filter, of a palette, one that is cut."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + bytes(4)

    def png(width, height, kind, rows, *more):
        head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
        return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(more) +
                chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    whole = png(2, 10, 2, b"".join(bytes([y % 5]) + b"abcdef" for y in range(10)))
    return [whole, png(3, 2, 3, b"\0\0\1\2" * 2, chunk(b"PLTE", bytes(range(6)))), whole[:50]]


def streams():
    """Streams of an endpoint: a byte for form and pieces, then events; see fuzz_sse.c."""
    def event(value, name=""):
        return ("event: %s\n" % name if name else "") + "data: %s\n\n" % json.dumps(value)

    def delta(**members):
        return event({"choices": [{"index": 0, "delta": members, "finish_reason": None}]})
    call = delta(tool_calls=[{"index": 0, "id": "a", "function": {
        "name": "execute_python", "arguments": '{"code": '}}])
    rest = delta(tool_calls=[{"index": 0, "function": {"arguments": '"print(1)"}'}}])
    end = 'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\r\n\r\ndata: [DONE]\n\n'
    fence = delta(content="Sure:\n```python\nx = 1\n") + ": keep-alive\n\n" + delta(content="```\n~~~js\n")
    blocks = event({"type": "content_block_start", "content_block": {
        "type": "tool_use", "id": "t", "name": "execute_python", "input": {}}}, "content_block_start") \
        + event({"type": "content_block_delta", "delta": {
            "type": "input_json_delta", "partial_json": '{"code": "1"}'}}) \
        + event({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
                 "usage": {"output_tokens": 5}}) + event({"type": "message_stop"})
    return [b"\0" + (call + rest + end).encode(), b"\x06" + (fence + end).encode(),
            b"\1" + blocks.encode(), b"\x0f" + event({"type": "error", "error": {"message": "x"}}).encode(),
            b"\2\xef\xbb\xbfdata\rdata: \xe2\r\n\revent: y"]


def messages():
    """Lines of an MCP client, in both eras; see fuzz_rpc.c."""
    def line(method, id_=None, **params):
        whole = {"jsonrpc": "2.0", "method": method, "params": params}
        return json.dumps(whole if id_ is None else dict(whole, id=id_)).encode() + b"\n"
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}
    tools = [("execute_python", {"code": "1", "timeout": 1, "files": [{"name": "a", "data": "b"}]}),
             ("check_python", {"code": "1"}), ("session_close", {"session_id": "s_1"}),
             ("write_file", {"session_id": "s", "path": "a", "data_base64": "eA=="}),
             ("read_file", {"session_id": "s", "path": "a"}), ("list_files", {"session_id": "s"}),
             ("no_such", {})]
    legacy = line("initialize", 0, protocolVersion="2025-06-18", capabilities={}) + \
        line("notifications/initialized") + line("ping", "p") + line("tools/list", 1)
    modern = line("server/discover", "probe", _meta=meta) + line("tools/list", 2, _meta=meta) + \
        line("ping", 3, _meta=meta) + line("tools/list", 4, _meta={next(iter(meta)): "x"})
    calls = b"".join(line("tools/call", i, name=name, arguments=arguments,
                          _meta={"progressToken": i}) for i, (name, arguments) in enumerate(tools))
    calls += line("resources/read", 50, uri="adyton://s_1/a%20b.txt") + \
        line("resources/read", 51, uri="adyton://s_1/%ff", _meta=meta) + line("resources/list", 52)
    odd = b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n[]\n{"id":1}\n\r\n{"jsonrpc":"2.0","id":1,"result":{}}\n'
    return [legacy + calls + line("notifications/cancelled", requestId=0), modern, odd + b"{" * 99]


def main(folder):
    os.makedirs(folder, exist_ok=True)
    frames = [frame(r) for r in REQUESTS] + [b"".join(frame(r) for r in REQUESTS), b"\0\0\0\0"]
    for name, seeds in (("frames", frames), ("ledger", exports()), ("claims", claims()),
                        ("display", displays()), ("sixel", pictures()), ("files", files()), ("session", sessions()), ("verdict", verdicts()),
                        ("sse", streams()), ("rpc", messages())):
        for i, seed in enumerate(seeds):
            with open(os.path.join(folder, "%s-%d" % (name, i)), "wb") as file:
                file.write(seed)


main(sys.argv[1])
