#!/usr/bin/python3
"""`adyton mcp` byte by byte: `run.py BUILD [NAME…]`. Prints TAP.

What no public client sends, and what happens when one of the two ends is gone. (What they do send
is in tests/clients.)
"""

import json
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

from serve_parts import (MARK, SLEEP, Suite, cell_of, check, children_of, memory_of,  # noqa: E402
                         same, wait_for)

suite = Suite()
VERSION = "io.modelcontextprotocol/protocolVersion"
META = {VERSION: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
PRIVATE = ("--private",)


class Server:
    """`adyton mcp` on pipes."""

    def __init__(self, place, *options):
        options = options or ("--socket", place.socket)
        self.process = subprocess.Popen(place.command("mcp", *options), env=place.environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.n = 0

    def send(self, data):
        self.process.stdin.write(data if isinstance(data, bytes) else data.encode())
        self.process.stdin.flush()

    def message(self, **members):
        self.send(json.dumps(dict({"jsonrpc": "2.0"}, **members)) + "\n")

    def receive(self):
        line = self.process.stdout.readline()
        check(line.endswith(b"\n"), "the server answers", line)
        return json.loads(line)

    def ask(self, method, **params):
        self.n += 1
        self.message(id=self.n, method=method, params=params)
        return self.answer(self.n)

    def answer(self, id_):
        while True:
            message = self.receive()
            if "method" not in message:
                same(message["id"], id_, "the id that is answered: %r" % message)
                return message

    def start(self, id_, name, **arguments):
        self.message(id=id_, method="tools/call", params={"name": name, "arguments": arguments})

    def call(self, name, **arguments):
        answer = self.ask("tools/call", name=name, arguments=arguments)
        check("result" in answer, "there is a result", answer)
        return answer["result"]

    def good(self, code, **arguments):
        result = self.call("execute_python", code=code, **arguments)
        check(not result.get("isError"), "no error", result)
        return result["structuredContent"]

    def bad(self, name, what, **arguments):
        result = self.call(name, **arguments)
        text = result["content"][0]["text"]
        check(result.get("isError") and what in text, "an error with '%s'" % what, result)
        return text

    def end(self):
        """Ends its input; the exit status."""
        self.process.stdin.close()
        return self.process.wait(20)


def error_of(answer):
    return answer["error"]["code"]


# --- messages ---

@suite.test("--preload", "none")
def what_is_no_request_gets_its_error_and_the_server_goes_on(place):
    server = Server(place)
    for line, code, id_ in (
            ("{no json}", -32700, None), ("[]", -32600, None), ('[{"jsonrpc":"2.0"}]', -32600, None),
            ("1", -32700, None), ('"x"', -32700, None), ("{}", -32600, None),
            ('{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, 1),
            ('{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
            ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
            ('{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
            ('{"jsonrpc":"2.0","id":2,"method":7}', -32600, 2),
            ('{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}', -32602, 3),
            ('{"jsonrpc":"2.0","id":4,"method":"no/such"}', -32601, 4),
            ('{"jsonrpc":"2.0","id":5,"method":"notifications/initialized"}', -32601, 5),
            ('{"jsonrpc":"2.0","id":6,"id":6,"method":"ping"}', -32700, None),
            ('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"no_such"}}', -32602, 7),
            ('{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"execute_python",'
             '"arguments":[]}}', -32602, 8),
            ('{"jsonrpc":"2.0","id":9,"method":"tools/list","params":{"cursor":"x"}}', -32602, 9),
            ('{"jsonrpc":"2.0","id":10,"method":"initialize","params":{}}', -32602, 10),
            ("[" * 5000, -32600, None), ('{"a":' * 5000, -32700, None)):
        server.send(line + "\n")
        answer = server.receive()
        same((answer["error"]["code"], answer["id"]), (code, id_), "the error of " + line[:80])
    same(server.ask("ping")["result"], {}, "a ping after them")
    same(server.end(), 0, "the exit status")


@suite.test("--preload", "none")
def ids_come_back_as_they_were(place):
    server = Server(place)
    for id_ in (0, -1, 2 ** 53, "", "0", "ä\n", "x" * 1000):
        server.message(id=id_, method="ping")
        same(server.receive(), {"jsonrpc": "2.0", "id": id_, "result": {}}, "the answer")
    server.start("a", "execute_python", code="import time; time.sleep(2)")
    server.start("a", "execute_python", code="1")
    same(error_of(server.receive()), -32600, "a second request under an id that goes on")
    check("result" in server.answer("a"), "the first is answered")
    server.start("a", "execute_python", code="1")
    check("result" in server.answer("a"), "and then the id is free")
    server.end()


@suite.test("--preload", "none")
def notifications_blank_lines_and_answers_get_no_answer(place):
    server = Server(place)
    quiet = ['{"jsonrpc":"2.0","method":"%s"}' % name for name in
             ("notifications/unknown", "ping", "initialize", "tools/call", "no/such")]
    quiet += ["", " ", "\r", "\t\r", '{"jsonrpc":"2.0","id":1,"result":{}}',
              '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}',
              '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}',
              '{"jsonrpc":"2.0","method":"notifications/cancelled"}']
    server.send("\n".join(quiet * 200) + "\n")
    server.send('{"jsonrpc":"2.0","id":"end","method":"ping"}\r\n')
    same(server.receive()["id"], "end", "the first answer")
    server.end()


@suite.test("--preload", "none")
def each_request_decides_its_era(place):
    server = Server(place)
    found = server.ask("server/discover", _meta=META)["result"]
    same((found["supportedVersions"], found["resultType"], found["cacheScope"]),
         (["2026-07-28"], "complete", "public"), "what is discovered")
    same(error_of(server.ask("server/discover")), -32602, "a discovery without _meta")
    wrong = server.ask("tools/list", _meta=dict(META, **{VERSION: "2099-01-01"}))["error"]
    same((wrong["code"], wrong["data"]), (-32022, {"supported": ["2026-07-28"],
                                                   "requested": "2099-01-01"}), "an unknown version")
    for method in ("initialize", "ping", "logging/setLevel", "subscriptions/listen"):
        same(error_of(server.ask(method, _meta=META)), -32601, method + " in the modern era")
    same(error_of(server.ask("tools/list", _meta={VERSION: "2026-07-28"})), -32602,
         "no capabilities")
    modern, legacy = server.ask("tools/list", _meta=META)["result"], server.ask("tools/list")["result"]
    same((modern["tools"], "resultType" in legacy), (legacy["tools"], False), "the tools")
    for wanted, given in (("2025-03-26", "2025-03-26"), ("2099-01-01", "2025-11-25")):
        answer = server.ask("initialize", protocolVersion=wanted, capabilities={},
                            clientInfo={"name": "x", "version": "1"})
        same(answer["result"]["protocolVersion"], given, "the version for " + wanted)
    run = server.ask("tools/call", name="execute_python", arguments={"code": "1 + 1"}, _meta=META)
    same((run["result"]["resultType"], run["result"]["structuredContent"]["result"]),
         ("complete", "2"), "a call in the modern era")
    server.end()


@suite.test("--preload", "none")
def links_lead_to_files_where_the_client_knows_them(place):
    server = Server(place)
    session = server.good("open('a b.txt', 'w').write('x;y'); open(b'\\xff', 'w').write('1')")["session_id"]

    def links():
        content = server.call("list_files", session_id=session)["content"]
        return [block["uri"] for block in content if block["type"] == "resource_link"]
    uri = "adyton://%s/a%%20b.txt" % session
    same(links(), [uri], "the links: none to a name that is no text")
    for meta, more in ((None, set()), (META, {"ttlMs", "cacheScope", "resultType", "_meta"})):
        result = server.ask("resources/read", uri=uri, **({"_meta": meta} if meta else {}))["result"]
        same(result["contents"], [{"uri": uri, "mimeType": "text/plain", "text": "x;y"}], "what is read")
        same(set(result) - {"contents"}, more, "beside it")
    for wrong in (uri + "x", "adyton://s_%s/a" % ("0" * 32), "adyton://%s/..%%2F..%%2Fetc%%2Fpasswd" % session,
                  "file:///etc/passwd"):
        same(error_of(server.ask("resources/read", uri=wrong)), -32002, "the error of " + wrong)
        same(error_of(server.ask("resources/read", uri=wrong, _meta=META)), -32602, "the same, modern")
    server.ask("initialize", protocolVersion="2025-03-26", capabilities={})
    same(links(), [], "links for a client that is older than these")
    server.end()


@suite.test("--preload", "none")
def a_line_that_is_too_long_is_refused_and_skipped(place):
    server = Server(place)
    server.send(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"y" * (33 << 20))
    server.send('"}}\n')
    same(error_of(server.receive()), -32700, "the error")
    same(server.ask("ping")["result"], {}, "a ping after it")
    check(memory_of(server.process.pid) < 200 << 20, "little memory is held")
    server.end()


# --- results ---

@suite.test()
def what_is_large_is_cut_and_said_so(place):
    server = Server(place, "--socket", place.socket, "--policy", "open")
    result = server.call("execute_python", code="import sys\nprint('\\x01\u20ac' * 4_000_000)\n"
                         "print('e' * 9_000_000, file=sys.stderr)\n'\u20ac' * 3_000_000")
    whole = len(json.dumps(result, ensure_ascii=False).encode())
    check(whole < 9_000_000, "the result is small", whole)
    form = result["structuredContent"]
    check(form["truncated"] and "omitted" in form["stdout"] and "\ufffd" not in form["stdout"],
          "it is cut at whole characters", form["stdout"][-200:])
    check("omitted" in result["content"][0]["text"], "the text says so")
    images = server.call("execute_python", code="import matplotlib.pyplot as plt\n"
                         "for i in range(25):\n    plt.figure(figsize=(1, 1)); plt.show()")
    same(sum(block["type"] == "image" for block in images["content"]), 20, "images")
    check(images["structuredContent"]["truncated"], "and that there were more")
    bytes_ = server.good("import os\nos.write(1, b'a\\xff\\xfe\\xc3b\\x00c')")["stdout"]
    check(bytes_.startswith("a\ufffd") and bytes_.endswith("c"), "bytes that are no text", bytes_)
    server.end()


@suite.test("--preload", "none")
def what_grows_on_its_way_is_still_answered(place):
    server = Server(place)
    session = server.good("open('c', 'w').write('\\x01' * (2 << 20))\n"
                          "open('e', 'w').write('\\x1b[1mbold' * 200_000)")["session_id"]
    for name, kind in (("c", "resource"), ("e", "text")):
        result = server.call("read_file", session_id=session, path=name)
        same(result["content"][0]["type"], kind, "how %s comes" % name)
        check(len(json.dumps(result)) < 8_000_000, "and how large", name)
    long = dict(META, **{VERSION: "x" * 10_000_000})
    same(error_of(server.ask("tools/list", _meta=long)), -32022, "a long version")
    server.message(id="i" * 10_000_000, method="ping")
    answer = server.receive()
    same((error_of(answer), answer["id"]), (-32600, None), "a long id")
    server.end()


@suite.test("--preload", "none")
def a_client_that_does_not_read_holds_up_nothing(place):
    slow, other = Server(place), Server(place)
    for i in range(150):
        slow.start(i, "execute_python", code="print('x' * 900_000)\nprint('y' * 900_000)")
    for _ in range(5):
        other.good("1 + 1")
        time.sleep(0.3)
    check(memory_of(slow.process.pid) < 300 << 20, "bounded memory", memory_of(slow.process.pid))
    same(len({slow.receive()["id"] for _ in range(150)}), 150, "in the end each is answered")
    same((slow.end(), other.end()), (0, 0), "the exit statuses")


@suite.test("--preload", "none")
def a_flood_of_live_output_is_told_in_parts(place):
    server = Server(place)
    server.send(json.dumps({
        "jsonrpc": "2.0", "id": "flood", "method": "tools/call",
        "params": {"name": "execute_python", "_meta": {"progressToken": "p"},
                   "arguments": {"code": "for _ in range(20_000):\n    print('\u20ac' * 3_000)"}}}) + "\n")
    told, began = [], time.monotonic()
    while True:
        message = server.receive()
        if "method" not in message:
            break
        same((message["method"], message["params"]["progressToken"]),
             ("notifications/progress", "p"), "what comes before the answer")
        told.append(message["params"])
        check(memory_of(server.process.pid) < 200 << 20, "little memory is held")
    check(told, "some of it is told while it runs")
    # At most one in a tenth of a second, whatever the machine does; never the flood itself.
    check(len(told) <= 20 * (time.monotonic() - began) + 5, "it is told now and then", len(told))
    steps = [one["progress"] for one in told]
    check(all(a < b for a, b in zip(steps, steps[1:])), "progress grows", steps[:20])
    check(all(len(one["message"].encode()) < 20_000 and "\ufffd" not in one["message"]
              for one in told), "in small parts of whole characters")
    form = message["result"]["structuredContent"]
    check(form["truncated"] and len(form["stdout"].encode()) < 1_000_000, "and the answer is cut")
    server.end()


# --- cancelled ---

@suite.test("--preload", "none")
def a_cancelled_call_is_never_answered_and_its_session_is_kept(place):
    server = Server(place)
    session = server.good("x = 1")["session_id"]
    server.start("c", "execute_python", code=SLEEP % 30, session_id=session)
    wait_for(lambda: cell_of(place.process.pid, MARK), "it runs")
    server.message(method="notifications/cancelled", params={"requestId": "c"})
    same(server.good("x", session_id=session)["result"], "1", "the next call's value")
    server.end()


@suite.test("--preload", "none")
def a_call_cancelled_while_its_session_opens_leaves_none(place):
    server = Server(place)
    server.good("1")
    for i in range(40):
        server.start("c%d" % i, "execute_python", code="1")
        server.message(method="notifications/cancelled", params={"requestId": "c%d" % i})
    server.good("2")
    client = place.client()

    def sessions():
        client.send({"type": "session_list", "id": "l"})
        return client.until("sessions")[0]["sessions"]
    wait_for(lambda: len(sessions()) == 2 and all(s["state"] == "idle" for s in sessions()),
             "two sessions are left, not %d" % len(sessions()))
    server.end()
    wait_for(lambda: not sessions(), "and none when the server has ended")


@suite.test("--preload", "none")
def the_session_of_a_cancelled_first_call_ends(place):
    server = Server(place)
    kept = server.good("x = 1")["session_id"]
    server.start("c", "execute_python", code=SLEEP % 30)
    wait_for(lambda: cell_of(place.process.pid, MARK), "it runs")
    client = place.client()

    def sessions():
        client.send({"type": "session_list", "id": "l"})
        return [s["session_id"] for s in client.until("sessions")[0]["sessions"]]
    same(len(sessions()), 2, "sessions while it runs")
    server.message(method="notifications/cancelled", params={"requestId": "c"})
    wait_for(lambda: sessions() == [kept], "the one that nobody has heard of is gone")
    same(server.good("x", session_id=kept)["result"], "1", "the other's state")
    server.end()


@suite.test("--preload", "none")
def a_longer_timeout_than_is_allowed_counts_as_that(place):
    server = Server(place, "--socket", place.socket, "--limit", "timeout=1s")
    session = server.good("1", timeout=3)["session_id"]
    for seconds in (3, 3600):
        result = server.call("execute_python", session_id=session, code="while True: pass",
                             timeout=seconds)
        check("1s" in result["content"][0]["text"] and
              result["structuredContent"]["status"] == "timeout", "it ends after one", result)
    server.end()


# --- ends ---

def busy_server(place, *options):
    server = Server(place, *options)
    server.good("1")
    server.start("long", "execute_python", code=SLEEP % 30)
    root = place.process.pid if place.process else server.process.pid
    wait_for(lambda: cell_of(root, MARK), "it runs")
    return server


@suite.test(None)
def the_end_of_input_ends_a_private_supervisor_and_all_in_it(place):
    server = busy_server(place, *PRIVATE)
    ours = children_of(server.process.pid)
    check(len(ours) > 4, "there is something to be left behind", ours)
    began = time.monotonic()
    same(server.end(), 0, "the exit status")
    check(time.monotonic() - began < 10, "promptly")
    check_gone(ours)


def check_gone(processes):
    def alive():
        found = {}
        for pid, (name, start) in processes.items():
            try:
                with open("/proc/%d/stat" % pid, "rb") as file:
                    rest = file.read().rpartition(b") ")[2].split()
            except OSError:
                continue
            if int(rest[19]) == start and rest[0] not in (b"Z", b"X"):
                found[pid] = name
        return found
    wait_for(lambda: not alive(), "nothing is left: %r" % alive())


@suite.test(None)
def a_killed_server_takes_its_private_supervisor_along(place):
    server = busy_server(place, *PRIVATE)
    ours = children_of(server.process.pid)
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    check_gone(ours)


@suite.test(None)
def a_private_supervisor_that_dies_is_told_and_replaced(place):
    server = busy_server(place, *PRIVATE)
    ours = children_of(server.process.pid)
    with open("/proc/%d/task/%d/children" % (server.process.pid, server.process.pid)) as file:
        private = [int(word) for word in file.read().split()]
    same(len(private), 1, "children of the server: %r" % ours)
    os.kill(private[0], signal.SIGKILL)
    answer = server.answer("long")["result"]
    check(answer["isError"] and "ended unexpectedly" in answer["content"][0]["text"], "it is told",
          answer)
    same(server.good("1 + 1")["result"], "2", "the next call")
    same(server.end(), 0, "the exit status")
    check_gone(ours)


@suite.test("--preload", "none")
def a_killed_server_leaves_nothing_with_a_shared_supervisor(place):
    server, other = busy_server(place), Server(place)
    kept = other.good("x = 7")["session_id"]
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    client = place.client()

    def sessions():
        client.send({"type": "session_list", "id": "l"})
        return [s["session_id"] for s in client.until("sessions")[0]["sessions"]]
    wait_for(lambda: sessions() == [kept], "its sessions end, the other's stays")
    wait_for(lambda: not cell_of(place.process.pid, MARK), "and so does what ran")
    same(other.good("x", session_id=kept)["result"], "7", "the other's state")
    other.end()


@suite.test("--preload", "none")
def a_shared_supervisor_that_is_gone_is_told(place):
    server = busy_server(place)
    place.process.kill()
    place.process.wait()
    check("ended unexpectedly" in server.answer("long")["result"]["content"][0]["text"], "it is told")
    server.bad("execute_python", "cannot be used", code="1")
    place.start("--preload", "none")
    same(server.good("1 + 1")["result"], "2", "and found again")
    same(server.end(), 0, "the exit status")


@suite.test("--preload", "none")
def fifty_servers_with_one_supervisor_keep_apart(place):
    servers = [Server(place) for _ in range(50)]
    for i, server in enumerate(servers):
        server.start("first", "execute_python", code="mine = %d" % i)
    ids = [server.answer("first")["result"]["structuredContent"]["session_id"] for server in servers]
    same(len(set(ids)), 50, "sessions")
    for i, server in enumerate(servers):
        server.start("then", "execute_python", code="mine", session_id=ids[i])
    for i, server in enumerate(servers):
        form = server.answer("then")["result"]["structuredContent"]
        same(form["result"], str(i), "what is there")
    # The control: an id is all that is needed.
    same(servers[0].good("mine", session_id=ids[1])["result"], "1", "another's, by its id")
    servers[0].bad("execute_python", "session", code="1", session_id="s_" + "0" * 32)
    for server in servers:
        same(server.end(), 0, "the exit status")


@suite.test("--preload", "none")
def input_from_a_file_is_answered(place):
    path = place.file("in", '{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,'
                      '"method":"tools/list"}')
    with open(path) as file:
        done = subprocess.run(place.command("mcp", "--socket", place.socket), stdin=file,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30,
                              env=place.environment)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    same(([line["id"] for line in lines], done.returncode), ([1, 2], 0), "the answers")


@suite.test(None)
def wrong_use_is_told(place):
    for words in (["--nonsense"], ["--limit", "memory"], ["--private", "--socket", "x"],
                  ["--private", "--policy", "no-such-policy"],
                  ["--socket", "x", "--policy", "./x.yaml"], ["--policy", "./no-such.yaml"]):
        done = place.call("mcp", *words)
        check(done.returncode == 2 and not done.stdout and done.stderr, "exit 2 and words",
              words, done)


@suite.test(None)
def a_policy_from_a_file_and_limits_hold(place):
    path = place.file("mine.yaml", "extends: standard\ntimeout: 700ms\n")
    server = Server(place, "--policy", path, "--limit", "memory=128M")
    result = server.call("execute_python", code="while True: pass", timeout=60)
    same(result["structuredContent"]["status"], "timeout", "the status")
    result = server.call("execute_python", code="x = bytearray(200 << 20)")
    check(result["isError"], "memory is held", result)
    same(server.end(), 0, "the exit status")


if __name__ == "__main__":
    sys.exit(suite.main(os.path.join(os.path.abspath(sys.argv[1]), "adyton"), sys.argv[2:]))
