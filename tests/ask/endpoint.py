"""A scripted endpoint of a model, and a proxy: HTTP servers on loopback that play one part each.

`Endpoint` gives its answers in their order, in either form, whole or streamed, and keeps what it
was asked.  No model is involved.
"""
import http.server
import json
import select
import socket
import socketserver
import ssl
import threading


def call(code, name="execute_python", id_="call_1"):
    return {"id": id_, "name": name, "arguments": code if isinstance(code, str) and
            code.startswith("{") else json.dumps({"code": code})}


class Answer:
    """What one request gets. `finish`: cut, or as it should be; `break_at`: bytes before the end."""

    def __init__(self, text=None, calls=(), finish=None, status=200, headers=None, body=None,
                 piece=None, break_at=None, usage=(10, 5)):
        self.text, self.calls, self.finish, self.status = text, list(calls), finish, status
        self.headers, self.body, self.piece = headers or {}, body, piece
        self.break_at, self.usage = break_at, usage


def openai(answer):
    calls = [{"id": c["id"], "type": "function",
              "function": {"name": c["name"], "arguments": c["arguments"]}} for c in answer.calls]
    message = {"role": "assistant", "content": answer.text}
    if calls:
        message["tool_calls"] = calls
    whole = {"id": "c", "object": "chat.completion", "choices": [
        {"index": 0, "message": message,
         "finish_reason": answer.finish or ("tool_calls" if calls else "stop")}]}
    if answer.usage:
        whole["usage"] = dict(zip(("prompt_tokens", "completion_tokens"), answer.usage))
    return whole


def openai_stream(answer):
    def chunk(delta, finish=None):
        return "data: %s\n\n" % json.dumps(
            {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]},
            ensure_ascii=False)
    text = answer.text or ""
    out = [chunk({"role": "assistant"})]
    out += [chunk({"content": text[i:i + 7]}) for i in range(0, len(text), 7)]
    for i, c in enumerate(answer.calls):
        out.append(chunk({"tool_calls": [{"index": i, "id": c["id"], "type": "function",
                                          "function": {"name": c["name"], "arguments": ""}}]}))
        out += [chunk({"tool_calls": [{"index": i, "function":
                                       {"arguments": c["arguments"][k:k + 5]}}]})
                for k in range(0, len(c["arguments"]), 5)]
    out.append(chunk({}, answer.finish or ("tool_calls" if answer.calls else "stop")))
    if answer.usage:
        out.append("data: %s\n\n" % json.dumps({"choices": [], "usage": dict(zip(
            ("prompt_tokens", "completion_tokens"), answer.usage))}))
    return "".join(out) + "data: [DONE]\n\n"


def anthropic(answer):
    blocks = [{"type": "text", "text": answer.text}] if answer.text else []
    blocks += [{"type": "tool_use", "id": c["id"], "name": c["name"],
                "input": json.loads(c["arguments"])} for c in answer.calls]
    return {"id": "m", "type": "message", "role": "assistant", "content": blocks,
            "stop_reason": answer.finish or ("tool_use" if answer.calls else "end_turn"),
            "usage": dict(zip(("input_tokens", "output_tokens"), answer.usage or (0, 0)))}


def anthropic_stream(answer):
    whole = anthropic(answer)

    def event(name, **members):
        return "event: %s\ndata: %s\n\n" % (name, json.dumps({"type": name, **members},
                                                             ensure_ascii=False))
    out = [event("message_start", message=dict(whole, content=[])), event("ping")]
    for i, block in enumerate(whole["content"]):
        if block["type"] == "text":
            out.append(event("content_block_start", index=i,
                             content_block={"type": "text", "text": ""}))
            out += [event("content_block_delta", index=i,
                          delta={"type": "text_delta", "text": block["text"][k:k + 6]})
                    for k in range(0, len(block["text"]), 6)]
        else:
            out.append(event("content_block_start", index=i, content_block=dict(block, input={})))
            text = json.dumps(block["input"])
            out += [event("content_block_delta", index=i,
                          delta={"type": "input_json_delta", "partial_json": text[k:k + 6]})
                    for k in range(0, len(text), 6)]
        out.append(event("content_block_stop", index=i))
    out.append(event("message_delta", delta={"stop_reason": whole["stop_reason"]},
                     usage={"output_tokens": whole["usage"]["output_tokens"]}))
    return "".join(out) + event("message_stop")


FORMS = {"/v1/chat/completions": (openai, openai_stream), "/v1/messages": (anthropic,
                                                                          anthropic_stream)}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        endpoint = self.server.endpoint
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        request = json.loads(body)
        endpoint.requests.append(request)
        endpoint.headers.append(dict((k.lower(), v) for k, v in self.headers.items()))
        answer = endpoint.next(request)
        whole, stream = FORMS[self.path]
        if answer.body is not None:
            data, kind = answer.body, answer.headers.get("content-type", "application/json")
        elif answer.status != 200:
            data, kind = json.dumps({"error": {"message": answer.text}}), "application/json"
        elif request.get("stream"):
            data, kind = stream(answer), "text/event-stream"
        else:
            data, kind = json.dumps(whole(answer)), "application/json"
        self.answer(answer, data.encode() if isinstance(data, str) else data, kind)

    def answer(self, answer, data, kind):
        self.send_response(answer.status)
        self.send_header("Content-Type", kind)
        for name, value in answer.headers.items():
            if name != "content-type":
                self.send_header(name, value)
        self.send_header("Connection", "close")
        self.close_connection = True
        if answer.break_at is None and answer.piece is None:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        data = data[:answer.break_at]
        piece = answer.piece or len(data) or 1
        try:
            for at in range(0, len(data), piece):
                self.wfile.write(data[at:at + piece])
                self.wfile.flush()
        except OSError:
            pass    # who asked has seen enough

    def log_message(self, *_):
        pass


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


class Endpoint:
    """`answers`: in their order, the last one again and again; or a function of the request."""

    def __init__(self, answers, tls=None):
        self.answers, self.requests, self.headers = answers, [], []
        self.server = _Server(("127.0.0.1", 0), _Handler)
        self.server.endpoint = self
        self.scheme = "http"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.scheme = "https"

    def next(self, request):
        if callable(self.answers):
            return self.answers(request)
        return self.answers[min(len(self.requests), len(self.answers)) - 1]

    @property
    def port(self):
        return self.server.server_address[1]

    @property
    def base(self):
        return "%s://127.0.0.1:%d/v1" % (self.scheme, self.port)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class _Proxy(http.server.BaseHTTPRequestHandler):
    """CONNECT for https, the absolute form for http; every name leads to the endpoint."""

    def note(self):
        self.server.seen.append((self.command, self.path,
                                 dict((k.lower(), v) for k, v in self.headers.items())))

    def do_CONNECT(self):
        self.note()
        with socket.create_connection(("127.0.0.1", self.server.port)) as there:
            self.connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            ends = (self.connection, there)
            while True:
                ready, _, _ = select.select(ends, [], [], 60)
                data = ready[0].recv(65536) if ready else b""
                if not data:
                    break
                ends[1 - ends.index(ready[0])].sendall(data)
        self.close_connection = True

    def do_POST(self):
        self.note()
        body = self.rfile.read(int(self.headers["content-length"]))
        path = "/" + self.path.split("/", 3)[3]
        with socket.create_connection(("127.0.0.1", self.server.port)) as there:
            head = "POST %s HTTP/1.0\r\n" % path + "".join(
                "%s: %s\r\n" % item for item in self.headers.items()) + "\r\n"
            there.sendall(head.encode() + body)
            while True:
                data = there.recv(65536)
                if not data:
                    break
                self.connection.sendall(data)
        self.close_connection = True

    def log_message(self, *_):
        pass


class Proxy(Endpoint):
    def __init__(self, port):
        self.server = _Server(("127.0.0.1", 0), _Proxy)
        self.server.seen, self.server.port = [], port
        self.scheme = "http"

    @property
    def seen(self):
        return self.server.seen

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port
