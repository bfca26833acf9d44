#!/usr/bin/python3
"""Questions to a session about code that is not run: `complete.py BUILD [NAME…]`. Prints TAP."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

from serve_parts import Suite, check, same  # noqa: E402

suite = Suite()


class Session:
    def __init__(self, place, **fields):
        self.place, self.client, self.n = place, place.client(), 0
        answer = self.ask("session_new", **fields)
        self.id = answer["session"]["session_id"]

    def ask(self, kind, **fields):
        self.n += 1
        name = "r%d" % self.n
        self.client.send({"type": kind, "id": name, **fields})
        while True:
            message = self.client.receive()
            if message.get("id") == name and message["type"] != "accepted":
                return message

    def run(self, code):
        return self.ask("run", session=self.id, code=code)["outcome"]

    def complete(self, code, **fields):
        return self.ask("session_complete", session=self.id, code=code, **fields)

    def matches(self, code, cursor=None):
        answer = self.complete(code, cursor=len(code) if cursor is None else cursor)
        same(answer["type"], "completions", "the answer's type: %r" % answer)
        return answer["start"], answer["matches"]

    def state(self, code):
        answer = self.complete(code)
        same(answer["type"], "completions", "the answer's type: %r" % answer)
        return answer["state"]


@suite.test()
def names_of_the_session_are_offered(place):
    session = Session(place)
    session.run("import math\nlong_name = 1\nlong_shot = 'ü'\nclass Thing:\n    size = 3\nthing = Thing()")
    same(session.matches("print(long_"), (6, ["long_name", "long_shot"]), "matches of a name")
    same(session.matches("math.flo"), (0, ["math.floor"]), "matches of a module")
    same(session.matches("x = thing."), (4, ["thing.size"]), "matches of an object")
    same(session.matches("ü = thing.si + 1", 12), (4, ["thing.size"]), "matches before the end")
    same(session.matches("whi"), (0, ["while"]), "matches of a keyword")
    same(session.matches("nothing_here.x"), (0, []), "matches of what is not there")
    same(session.matches("f(thing).si"), (8, []), "a call is not followed")
    same(session.matches(""), (0, []), "matches of nothing")


@suite.test()
def whether_code_is_whole_is_told(place):
    session = Session(place)
    for state, texts in (
            ("complete", ("x = 1", "", "if x:\n    y = 1\n\n", "a = 1\nb = 2", "f'''\n'''")),
            ("incomplete", ("if x:", "if x:\n    y = 1", "f(1,", "s = '''a", "@property",
                            "def f():\n    return (")),
            ("invalid", ("1 +* 2", "if x\n", ")"))):
        for text in texts:
            same(session.state(text), state, "the state of %r" % text)


@suite.test()
def a_question_is_no_run(place):
    session = Session(place)
    session.run("x = 1")
    ledger = place.call("runs", "list", "--session", session.id).stdout
    session.state("x = 2")
    session.matches("import o")
    same(place.call("runs", "list", "--session", session.id).stdout, ledger, "the ledger")
    outcome = session.run("x, '_' in globals()")
    same(outcome["execution_count"], 2, "the count")
    same(outcome["stdout"], "", "its output")


@suite.test()
def an_object_that_never_answers_is_interrupted(place):
    session = Session(place)
    session.run("kept = 5\nclass Slow:\n    @property\n    def name(self):\n        while True: pass\n"
                "slow = Slow()")
    answer = session.complete("slow.name.x", cursor=11)
    same((answer["type"], answer.get("code")), ("error", "session"), "the answer")
    check("no answer" in answer["message"], "it says so", answer)
    outcome = session.run("print(kept)")
    same((outcome["stdout"], outcome["session"]), ("5\n", "kept"), "the session")


@suite.test()
def an_object_that_kills_loses_its_session_only(place):
    session, other = Session(place), Session(place)
    session.run("import os\nclass End:\n    @property\n    def name(self): os._exit(3)\nend = End()")
    answer = session.complete("end.name.x", cursor=10)
    same((answer["type"], answer["code"]), ("error", "session"), "the answer")
    check("ended" in answer["message"], "it says that it has ended", answer)
    same(other.state("x = 1"), "complete", "another session")


@suite.test()
def what_makes_no_sense_is_refused(place):
    session = Session(place)
    for fields, word in (({"cursor": 5}, "behind"), ({"cursor": -1}, "cursor"),
                         ({"cursor": "1"}, "cursor"), ({"stream": True}, "unknown")):
        answer = session.complete("x", **fields)
        same((answer["type"], answer["code"]), ("error", "request"), "the answer to %r" % fields)
        check(word in answer["message"], "it says what", answer)
    answer = session.ask("session_complete", session="s_0", code="x")
    same((answer["type"], answer["code"]), ("error", "session"), "the answer for no session")


@suite.test()
def forged_answers_are_bounded(place):
    """The code may show what it likes while it is asked: it is not believed."""
    session = Session(place)
    session.run("class Loud:\n    def __dir__(self):\n        display({'application/json': {'state': 'x'}}, raw=True)\n"
                "        return ['a' * 100000, 'b\\n', 3, '\\x1b[2J', 'ok']\nloud = Loud()\ndisplay")
    answer = session.complete("loud.", cursor=5)
    check(answer["type"] in ("error", "completions"), "there is an answer", answer)
    check(not any("\x1b" in m or "\n" in m for m in answer.get("matches", [])), "names alone", answer)
    same(session.run("print(1)")["stdout"], "1\n", "the session goes on")


@suite.test()
def one_forged_answer_is_checked(place):
    """In place of the real one, which never comes."""
    session = Session(place)
    session.run("class Liar:\n    def __dir__(self):\n"
                "        display({'application/json': claim}, raw=True)\n        raise SystemExit\n"
                "liar = Liar()\ndisplay")
    good = {"start": 0, "matches": ["liar.x"], "more": 0}
    for claim in ({**good, "start": 6}, {**good, "start": -1}, {**good, "start": "0"},
                  {**good, "matches": [1]}, {**good, "matches": "x"}, {**good, "more": -1},
                  {**good, "matches": ["x"] * 1001}, {**good, "matches": ["x" * 5000]},
                  {"state": "complete"}, [1], "x", None):
        session.run("claim = %r" % (claim,))
        answer = session.complete("liar.", cursor=5)
        same((answer["type"], answer.get("code")), ("error", "session"), "the answer to %.80r" % (claim,))
    session.run("claim = %r" % (good,))
    same(session.matches("liar."), (0, ["liar.x"]), "a claim that could be true")


if __name__ == "__main__":
    sys.exit(suite.main(os.path.join(os.path.abspath(sys.argv[1]), "adyton"), sys.argv[2:]))
