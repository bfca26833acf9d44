"""Streams in pieces, proxies, TLS, the supervisor."""

import os
import subprocess

from endpoint import Answer, Endpoint, Proxy, call
from parts import KEY, answered, check, last_text, point, same
from supervisor import Supervisor

DONE = Answer("It is done.")


@point
def streams_may_come_in_pieces_of_one_byte(place):
    for form in ("openai", "anthropic"):
        with Endpoint([Answer("Köln 日本 🐍", [call("print('日本 🐍')")], piece=1),
                       Answer("Es ist 日本 🐍.", piece=1)]) as e:
            answered(place.ask(e, "--api", form), "Es ist 日本 🐍.\n")
            check("日本 🐍" in last_text(e.requests[1]), "the result", e.requests[1])


@point
def a_whole_answer_instead_of_a_stream_is_taken(place):
    body = '{"choices": [{"message": {"content": "It is done."}, "finish_reason": "stop"}]}'
    with Endpoint([Answer(body=body)]) as e:
        answered(place.ask(e), "It is done.\n")


@point
def calls_without_ids_or_indexes_are_told_apart(place):
    one = '{"choices": [{"delta": {"tool_calls": [{%s"function": %s}]}}]}'
    pieces = [one % ('"id": "a", ', '{"name": "execute_python", "arguments": "{\\"code\\": "}'),
              one % ("", '{"arguments": "\\"print(11)\\"}"}'),
              one % ('"index": 0, "id": "b", ',
                     '{"name": "execute_python", "arguments": "{\\"code\\": \\"print(22)\\"}"}'),
              one % ('"index": 0, "id": "c", ',
                     '{"name": "execute_python", "arguments": {"code": "print(33)"}}')]
    body = "".join("data: %s\r\n\r\n" % p for p in pieces) + "data: [DONE]"
    with Endpoint([Answer(body=body, headers={"content-type": "text/event-stream"}),
                   DONE]) as e:
        answered(place.ask(e), "It is done.\n")
        results = [m["content"] for m in e.requests[1]["messages"] if m["role"] == "tool"]
        same(results, ["stdout:\n11\n", "stdout:\n22\n", "stdout:\n33\n"], "results")


def certificates(place):
    """A test authority, and a certificate of its for 127.0.0.1 and a name."""
    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=place.home, check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj",
            "/CN=test authority", "-addext", "basicConstraints=critical,CA:TRUE")
    openssl("req", *key, "-keyout", "end.key", "-out", "end.csr", "-subj", "/CN=end")
    place.file("end.cnf", "subjectAltName=IP:127.0.0.1,DNS:model.example\n")
    openssl("x509", "-req", "-in", "end.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-days", "2", "-extfile", "end.cnf", "-out", "end.pem")
    return [os.path.join(place.home, name) for name in ("ca.pem", "end.pem", "end.key")]


@point
def tls_is_checked_against_the_authority_that_is_named(place):
    ca, end, key = certificates(place)
    with Endpoint([DONE], tls=(end, key)) as e:
        answered(place.ask(e, "--ca-file", ca), "It is done.\n")
        answered(place.ask(e, SSL_CERT_FILE=ca), "It is done.\n")
        done = place.ask(e)
        same(done.returncode, 125, "an unknown authority")
        check("certificate" in done.stderr.lower(), "why", done.stderr)
        wrong_name = "https://localhost:%d/v1" % e.port
        done = place.run("ask", "--base-url", wrong_name, "--model", "m", "--ca-file", ca, "q")
        same(done.returncode, 125, "another name")
        same(len(e.requests), 2, "requests")
        same(place.ask(e, "--ca-file", place.file("no.pem", "x")).returncode, 125, "no file")


@point
def proxies_are_used_and_see_no_key(place):
    ca, end, key = certificates(place)
    with Endpoint([DONE], tls=(end, key)) as e, Proxy(e.port) as proxy:
        args = ("--base-url", "https://model.example/v1", "--model", "m", "--ca-file", ca)
        for more, environment in ((("--proxy", proxy.url), {}),
                                  ((), {"https_proxy": proxy.url})):
            answered(place.run("ask", *args, *more, "q", **environment), "It is done.\n")
            method, path, headers = proxy.seen.pop()
            same((method, path), ("CONNECT", "model.example:443"), "what the proxy sees")
            check(KEY not in str(headers), "the key", headers)
        same(e.headers[0]["authorization"], "Bearer " + KEY, "the endpoint gets it")
    with Endpoint([DONE]) as e, Proxy(e.port) as proxy:
        args = ("--base-url", "http://model.example/v1", "--model", "m")
        answered(place.run("ask", *args, "q", http_proxy=proxy.url, OPENAI_API_KEY=""),
                 "It is done.\n")
        same(proxy.seen.pop()[:2], ("POST", "http://model.example/v1/chat/completions"),
             "what the proxy sees")
        seen = len(proxy.seen)
        answered(place.ask(e, http_proxy=proxy.url), "It is done.\n")
        same(len(proxy.seen), seen, "what stays on this machine goes through no proxy")
        done = place.ask(e, "--proxy", proxy.url)
        same(done.returncode, 2, "a key in the clear through a proxy")
        check("plain HTTP" in done.stderr, "why", done.stderr)
        answered(place.ask(e, "--proxy", proxy.url, "--plain-key"), "It is done.\n")
        same(len(proxy.seen), seen + 1, "when it is allowed")
        answered(place.ask(e, "--proxy", "", http_proxy="http://127.0.0.1:9"), "It is done.\n")


class Identity:
    """What tests/harness/supervisor.py wants to know of who runs it."""

    def __init__(self, place):
        self.home, self.groups, self.place = place.home, None, place

    def folder(self, name):
        path = os.path.join(self.home, name)
        os.makedirs(path, exist_ok=True)
        return path

    def environment(self):
        return self.place.environment

    def prepare(self):
        return None


@point
def a_supervisor_runs_the_code_when_one_listens(place):
    with Supervisor(place.program, Identity(place)) as supervisor, \
            Endpoint([Answer(None, [call("print(6 * 7)")]), DONE]) as e:
        done = place.ask(e, "--socket", supervisor.socket, "--json")
        same(done.returncode, 0, "the exit status " + done.stderr)
        check("42" in last_text(e.requests[1]), "the result", e.requests[1])
        status = place.run("status", "--json", "--socket", supervisor.socket).stdout
        check('"id"' in status or "runs" in status, "it has run there", status[:500])
    with Endpoint([Answer(None, [call("print(6 * 7)")]), DONE]) as e:
        gone = os.path.join(place.home, "nobody")
        same(place.ask(e, "--socket", gone).returncode, 125, "nobody listens where it must")


@point
def tools_prints_what_a_model_is_told(place):
    import json
    with Endpoint([DONE]) as e:
        place.ask(e)
        same(json.loads(place.run("tools").stdout), e.requests[0]["tools"], "openai")
        place.ask(e, "--api", "anthropic")
        shown = json.loads(place.run("tools", "--format", "anthropic").stdout)
        same(shown, e.requests[1]["tools"], "anthropic")
    mcp = json.loads(place.run("tools", "--format=mcp").stdout)[0]
    same((mcp["name"], mcp["inputSchema"]["required"]), ("execute_python", ["code"]), "mcp")
    same(place.run("tools", "--format", "x").returncode, 2, "an unknown form")
