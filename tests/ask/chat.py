"""`adyton ask --chat`: questions one after the other, in one session."""

import json

from endpoint import Answer, Endpoint, call
from parts import check, last_text, point, same

FORMS = ("openai", "anthropic")


def chat(place, endpoint, questions, *args, first=()):
    return place.run("ask", "--chat", "--base-url", endpoint.base, "--model", "scripted", *args,
                     *first, stdin="".join(question + "\n" for question in questions))


@point
def a_later_question_finds_variables_and_files_of_an_earlier_one(place):
    for form in FORMS:
        with Endpoint([Answer(None, [call("import random\nx = random.random()\n"
                                          "open('f.txt', 'w').write(str(x))\nprint('set')")]),
                       Answer("I have it."),
                       Answer(None, [call("print(open('f.txt').read() == str(x), 'once')")]),
                       Answer("It is the same.")]) as e:
            done = chat(place, e, ["Draw a number.", "", "Is it still that one?"], "--api", form)
            same((done.returncode, done.stdout), (0, "I have it.\nIt is the same.\n"), done.stderr)
            check("True once" in last_text(e.requests[3]), "the state", e.requests[3])
            check("set" not in last_text(e.requests[3]), "it was not run again", e.requests[3])


@point
def the_conversation_goes_along(place):
    with Endpoint([Answer("Oslo."), Answer("Rome.")]) as e:
        done = chat(place, e, ["And Italy?"], first=["The capital of Norway?"])
        same((done.returncode, done.stdout), (0, "Oslo.\nRome.\n"), done.stderr)
        said = [(m["role"], m["content"]) for m in e.requests[1]["messages"][-3:]]
        same(said, [("user", "The capital of Norway?"), ("assistant", "Oslo."),
                    ("user", "And Italy?")], "what the model is told")
        system = e.requests[0]["messages"][0]["content"]
        check("never run again" in system and "run again before" not in system, "the prompt", system)


@point
def a_failure_leaves_what_was_there_and_the_chat_goes_on(place):
    with Endpoint([Answer(None, [call("x = 41\n1/0")]), Answer(None, [call("print(x + 1)")]),
                   Answer("42, after an error."),
                   Answer(status=400, body='{"error": {"message": "no"}}'),
                   Answer("Here I am.")]) as e:
        done = chat(place, e, ["Go.", "This one fails.", "Are you there?"])
        same(done.stdout, "42, after an error.\nHere I am.\n", done.stderr)
        same(done.returncode, 0, "the last answer's status")
        check("no" in done.stderr, "the endpoint's failure is told", done.stderr)
        users = [m["content"] for m in e.requests[4]["messages"] if m["role"] == "user"]
        check("This one fails." not in json.dumps(users), "what failed is forgotten", users)


@point
def a_session_that_is_lost_is_told_and_followed_by_a_new_one(place):
    with Endpoint([Answer(None, [call("x = 1")]), Answer("Done."),
                   Answer(None, [call("import os\nos.abort()")]),
                   Answer(None, [call("print('x' in globals(), open('given.txt').read())")]),
                   Answer("Begun anew.")]) as e:
        given = place.file("given.txt", "given")
        done = chat(place, e, ["Go.", "Crash."], "--file", given)
        same((done.returncode, done.stdout), (0, "Done.\nBegun anew.\n"), done.stderr)
        check("The session is lost" in last_text(e.requests[3]), "what the model is told",
              e.requests[3])
        check("False given" in last_text(e.requests[4]), "files as they were given", e.requests[4])


@point
def limits_and_refusals_hold_in_a_chat(place):
    with Endpoint([Answer(None, [call("import subprocess\nsubprocess.run(['ls'])")]),
                   Answer(None, [call("while True: pass")]),
                   Answer(None, [call("print('kept')")]), Answer("Good.")]) as e:
        done = chat(place, e, ["Go."], "--timeout", "1s")
        same((done.returncode, done.stdout), (0, "Good.\n"), done.stderr)
        check("process-start" in last_text(e.requests[1]), "the refusal", e.requests[1])
        check("timeout" in last_text(e.requests[2]), "the limit", e.requests[2])


@point
def wrong_use_of_a_chat_is_told(place):
    for option in (["--json"], ["--dry-run"], ["--cold"], ["--save", "x.py"]):
        done = place.run("ask", "--chat", "--model", "m", *option, stdin="")
        same(done.returncode, 2, "%s: %s" % (option, done.stderr))
    with Endpoint([]) as e:
        done = chat(place, e, ["Hello?"], "--socket", place.home + "/nobody")
        same((done.returncode, done.stdout), (125, ""), done.stderr)
        check("nobody" in done.stderr, "who does not answer", done.stderr)
        same(len(e.requests), 0, "requests")
