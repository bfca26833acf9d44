"""Budgets, retries, keys: what ends a question, and what never leaves."""

import json
import os
import time

from endpoint import Answer, Endpoint, call
from parts import KEY, answered, check, last_text, point, same

DONE = Answer("It is done.")
BAD = Answer(None, [call("1/0")])


@point
def attempts_end_with_the_status_of_the_last_run(place):
    rows = ((BAD, 1), (Answer(None, [call("import _ctypes")]), 126),
            (Answer(None, [call("import sys\nsys.exit(7)")]), 7))
    for answer, status in rows:
        with Endpoint([answer]) as e:
            done = place.ask(e)
            same((done.returncode, done.stdout), (status, ""), "the end; " + done.stderr)
            same(len(e.requests), 3, "requests")
            check("3 attempts failed" in done.stderr, "why", done.stderr)
    with Endpoint([BAD]) as e:
        place.ask(e, "--attempts", "1")
        same(len(e.requests), 1, "requests of one attempt")


@point
def tokens_are_counted_against_the_budget(place):
    for usage, budget in (((50, 60), "200"), (None, "1000")):
        with Endpoint([Answer(None, [call("print(1)")], usage=usage)]) as e:
            done = place.ask(e, "--token-budget", budget)
            same(done.returncode, 1, "the exit status")
            check("token budget" in done.stderr, "why", done.stderr)
            check(1 <= len(e.requests) <= 2, "requests", len(e.requests))


@point
def time_is_counted_against_the_budget(place):
    with Endpoint([Answer("later", status=429, headers={"Retry-After": "3600"})]) as e:
        started = time.monotonic()
        done = place.ask(e, "--time-budget", "20s")
        same(done.returncode, 125, "the exit status")
        check("time budget" in done.stderr, "why", done.stderr)
        check(time.monotonic() - started < 20, "it does not wait for what cannot be")
        same(len(e.requests), 1, "requests")


@point
def busy_endpoints_are_asked_again(place):
    for status in (429, 500, 503):
        with Endpoint([Answer("later", status=status, headers={"retry-after-ms": "20"}),
                       DONE]) as e:
            done = place.ask(e)
            answered(done, "It is done.\n")
            check("trying again" in done.stderr and str(status) in done.stderr, "it is said",
                  done.stderr)
            same(len(e.requests), 2, "requests")
    past = {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}
    with Endpoint([Answer("later", status=429, headers=past), DONE]) as e:
        done = place.ask(e)
        answered(done, "It is done.\n")
        check("again in 0.0 s" in done.stderr, "a date is understood", done.stderr)


@point
def refusals_of_the_endpoint_are_final(place):
    for status in (400, 401, 403, 404):
        with Endpoint([Answer("no such thing 4711", status=status)]) as e:
            done = place.ask(e)
            same((done.returncode, done.stdout), (125, ""), "the end")
            check("%d: no such thing 4711" % status in done.stderr, "why", done.stderr)
            same(len(e.requests), 1, "requests")


@point
def answers_that_break_off_are_asked_for_again(place):
    for way in ((), ("--no-stream",)):
        with Endpoint([Answer("It is half done and broken off", break_at=90), DONE]) as e:
            done = place.ask(e, *way)
            answered(done, "It is done.\n")
            same(len(e.requests), 2, "requests")
        with Endpoint([Answer(body='{"choices": [{"mess')]) as e:
            done = place.ask(e, "--retries", "1", *way)
            same(done.returncode, 125, "the end")
            check("no whole JSON" in done.stderr, "why", done.stderr)
            same(len(e.requests), 2, "requests")


@point
def an_error_within_a_stream_is_one(place):
    body = 'data: {"error": {"message": "overloaded 4711"}}\n\ndata: [DONE]\n\n'
    broken = Answer(body=body, headers={"content-type": "text/event-stream"})
    with Endpoint([broken]) as e:
        done = place.ask(e, "--retries", "0")
        same(done.returncode, 125, "the end")
        check("overloaded 4711" in done.stderr, "why", done.stderr)


@point
def one_that_never_stops_is_stopped(place):
    with Endpoint([Answer(None, [call("print(1)")])]) as e:
        done = place.ask(e)
        same(done.returncode, 1, "the exit status")
        same(len(e.requests), 16, "requests")


@point
def the_key_is_nowhere_but_in_its_header(place):
    quoted = Answer("Incorrect API key provided: %s." % KEY, status=401)
    with Endpoint([Answer(None, [call("import os\nprint(os.environ)")]), quoted]) as e:
        done = place.ask(e, "--verbose")
        same(e.headers[0]["authorization"], "Bearer " + KEY, "the header")
        check("Incorrect API key provided: ***" in done.stderr, "it is hidden", done.stderr)
        for text in (done.stdout, done.stderr, str(e.requests)):
            check(KEY not in text, "the key is in no text", text)
    # Where a message is cut, no part of the key is left over.
    for status, before in ((401, 120), (401, 145), (200, 130)):
        text = "x" * before + KEY
        body = {"error": {"message": text}}
        for stream in (True, False):
            answer = Answer(text, status=status)
            if status == 200:
                kind = "text/event-stream" if stream else "application/json"
                answer = Answer(body=("data: %s\n\n" if stream else "%s") % json.dumps(body),
                                headers={"content-type": kind})
            with Endpoint([answer]) as e:
                done = place.ask(e, "--retries", "0", *(() if stream else ("--no-stream",)))
                check("xxx" in done.stderr and "sk-" not in done.stderr, "no part", done.stderr)
    for folder, _, names in os.walk(place.home):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                check(KEY.encode() not in file.read(), "the key is in no file", name)


@point
def a_key_file_must_be_ones_own(place):
    with Endpoint([DONE]) as e:
        good = place.file("key", "sk-from-file\n")
        answered(place.ask(e, "--key-file", good), "It is done.\n")
        same(e.headers[0]["authorization"], "Bearer sk-from-file", "the header")
        for name, text, mode, why in (("open", "sk-x", 0o644, "chmod 600"),
                                      ("group", "sk-x", 0o640, "chmod 600"),
                                      ("lines", "sk-x\nEvil: 1", 0o600, "printable ASCII"),
                                      ("empty", "\n", 0o600, "empty")):
            done = place.ask(e, "--key-file", place.file(name, text, mode))
            same(done.returncode, 2, "the exit status of " + name)
            check(why in done.stderr, "why: " + name, done.stderr)
        same(place.ask(e, "--key-file", place.home).returncode, 2, "a folder")
        same(len(e.requests), 1, "requests")


@point
def there_is_no_option_for_a_key(place):
    with Endpoint([DONE]) as e:
        for option in ("--key", "--api-key", "--token"):
            same(place.ask(e, option, "sk-x").returncode, 2, option)
        done = place.run("ask", "--base-url", "http://u:p@127.0.0.1:1/v1", "--model", "m", "q")
        same(done.returncode, 2, "a password in a URL")
        same(e.requests, [], "requests")


@point
def a_key_does_not_go_over_plain_http_to_others(place):
    done = place.run("ask", "--base-url", "http://model.invalid/v1", "--model", "m", "q")
    same(done.returncode, 2, "the exit status")
    check("plain HTTP" in done.stderr, "why", done.stderr)
    for url in ("ftp://127.0.0.1/", "file:///etc/passwd", "127.0.0.1:1", "http://a b/"):
        same(place.run("ask", "--base-url", url, "--model", "m", "q").returncode, 2, url)


@point
def without_a_key_there_is_none_in_the_header(place):
    with Endpoint([DONE]) as e:
        answered(place.ask(e, OPENAI_API_KEY=""), "It is done.\n")
        same(e.headers[0]["authorization"], "Bearer none", "the header")


@point
def a_person_who_cannot_be_asked_is_said_to_be_missing(place):
    with Endpoint([DONE]) as e:
        done = place.run("ask", "--base-url", e.base, "--model", "m", "--confirm", "q")
        # In a terminal of whoever runs the tests there is somebody.
        if done.returncode != 0:
            check("no terminal" in done.stderr, "why", done.stderr)


@point
def wrong_words_are_named(place):
    for args, why in ((("--modl", "x", "q"), "--model"), (("q", "r"), "in quotes"),
                      ((), "question is missing"), (("--attempts", "0", "q"), "1 to 10"),
                      (("--api", "x", "q"), "openai"), (("q",), "which model")):
        done = place.run("ask", *args)
        same((done.returncode, done.stdout), (2, ""), "the end of %r" % (args,))
        check(why in done.stderr, "why", done.stderr)
    with Endpoint([DONE]) as e:
        answered(place.ask(e, "--", question="--help"), "It is done.\n")
        same(last_text(e.requests[0]), "--help", "a question that looks like an option")
        answered(place.ask(e, question="-", stdin="from stdin"), "It is done.\n")
        same(last_text(e.requests[1]), "from stdin", "a question from stdin")
