"""What a model may answer with: code that is good or bad, in calls and in fences."""

import json
import os

from endpoint import Answer, Endpoint, call
from parts import answered, check, last_text, point, same

BLOCK = "Sure, here it is:\n\n```python\n%s```\nThat prints it."
DONE = Answer("It is done.")
# Libraries take their time on a busy machine.
SLOW = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "policies",
                    "plain-60s.yaml")
WAYS = ((), ("--no-stream",))
FORMS = ("openai", "anthropic")


@point
def good_code_in_a_fence_is_run_and_told(place):
    for way in WAYS:
        with Endpoint([Answer(BLOCK % "print(6 * 7)\n"), Answer("It is 42.")]) as e:
            answered(place.ask(e, *way), "It is 42.\n")
            check("stdout:\n42\n" in last_text(e.requests[1]), "the result", e.requests[1])
            same(e.requests[0]["stream"], not way, "whether it streams")


@point
def good_code_in_a_call_is_run_and_told_in_both_forms(place):
    for form in FORMS:
        for way in WAYS:
            with Endpoint([Answer("Let me see.", [call("print(6 * 7)")]),
                           Answer("It is 42.")]) as e:
                answered(place.ask(e, "--api", form, *way), "It is 42.\n")
                check("42" in last_text(e.requests[1]), "the result", e.requests[1])


@point
def the_anthropic_form_is_well_formed(place):
    with Endpoint([Answer(None, [call("1/0", id_="toolu_1"), call("print(2)", id_="")]),
                   DONE]) as e:
        answered(place.ask(e, "--api", "anthropic"), "It is done.\n")
        first, second = e.requests
        check(first["max_tokens"] > 0 and "system" in first, "what it must have", first)
        same(first["tools"][0]["input_schema"]["required"], ["code"], "the schema")
        calls, results = second["messages"][1]["content"], second["messages"][2]["content"]
        same([b["type"] for b in calls], ["tool_use"] * 2, "the calls come back")
        same([b["tool_use_id"] for b in results], [b["id"] for b in calls], "ids")
        same([b["is_error"] for b in results], [True, False], "what failed")
        check("ZeroDivisionError" in results[0]["content"][0]["text"], "the exception", results)
        same(e.headers[0]["x-api-key"], place.environment["ANTHROPIC_API_KEY"], "the key")
        check("anthropic-version" in e.headers[0], "the version", e.headers[0])


@point
def a_syntax_error_goes_back_and_is_repaired(place):
    with Endpoint([Answer(None, [call("print((1)")]), Answer(None, [call("print(1)")]),
                   DONE]) as e:
        answered(place.ask(e), "It is done.\n")
        told = last_text(e.requests[1])
        check("[syntax-error]" in told and "line 1" in told and "What to do" in told,
              "the finding", told)


@point
def a_dangerous_import_goes_back_and_is_repaired(place):
    with Endpoint([Answer(BLOCK % "import _posixsubprocess\n"), Answer(BLOCK % "print(1)\n"),
                   DONE]) as e:
        answered(place.ask(e), "It is done.\n")
        told = last_text(e.requests[1])
        check("[import-denied]" in told and "refused before it ran" in told, "the finding", told)
        same([row["status"] for row in place.rows("outcome")], ["rejected", "ok"], "outcomes")


@point
def an_endless_loop_ends_at_its_limit_and_is_repaired(place):
    with Endpoint([Answer(None, [call("while True: pass")]), Answer(None, [call("print(1)")]),
                   DONE]) as e:
        answered(place.ask(e, "--timeout", "2s"), "It is done.\n")
        check("timeout" in last_text(e.requests[1]), "the limit", e.requests[1])


@point
def an_exception_comes_with_its_traceback(place):
    with Endpoint([Answer(None, [call("def f():\n    return {}['key']\nf()\n")]), DONE]) as e:
        answered(place.ask(e), "It is done.\n")
        told = last_text(e.requests[1])
        check("KeyError: 'key'" in told and "line 2, in f" in told, "the traceback", told)


@point
def earlier_pieces_are_there_and_are_not_told_again(place):
    pieces = ["import random\nx = 20\nprint('first')", "x += 1\nprint('second')\nx",
              "boom = 1\n1/0", "print(x * 2)\nprint('boom' in globals())"]
    with Endpoint([Answer(None, [call(p)]) for p in pieces] + [DONE]) as e:
        saved = os.path.join(place.home, "saved.py")
        answered(place.ask(e, "--save", saved), "It is done.\n")
        same(last_text(e.requests[2]), "stdout:\nsecond\nvalue of the last expression:\n21\n",
             "the second result")
        check("first line is line 8" in last_text(e.requests[3]), "where it begins",
              last_text(e.requests[3]))
        same(last_text(e.requests[4]), "stdout:\n42\nFalse\n", "the last result")
        with open(saved) as file:
            same(file.read(), "\n".join((pieces[0], pieces[1], pieces[3])) + "\n", "the program")
        done = place.run("run", "--quiet", saved)
        same((done.returncode, done.stdout), (0, "first\nsecond\n42\nFalse\n"), "it runs alone")


@point
def several_blocks_are_one_program(place):
    text = ("First:\n```python\nx = 1\n```\nThen install:\n```bash\npip install y\n```\n"
            "and\n  ~~~py\n  print(x + 1)\n  ~~~\nOutput:\n```text\n2\n```\n")
    with Endpoint([Answer(text), DONE]) as e:
        answered(place.ask(e), "It is done.\n")
        check("stdout:\n2\n" in last_text(e.requests[1]), "the result", e.requests[1])


@point
def another_language_is_said_plainly(place):
    with Endpoint([Answer("```javascript\nconsole.log(1)\n```"), Answer(BLOCK % "print(1)\n"),
                   DONE]) as e:
        answered(place.ask(e), "It is done.\n")
        told = last_text(e.requests[1])
        check("only Python" in told and "javascript" in told, "what is said", told)


@point
def an_answer_that_was_cut_off_is_not_run(place):
    half = Answer("```python\nprint('half", finish="length")
    arguments = Answer(None, [call('{"code": "print(1')], finish="length")
    for cut in (half, arguments):
        with Endpoint([cut, Answer(None, [call("print(1)")]), DONE]) as e:
            answered(place.ask(e), "It is done.\n")
            check("cut off" in last_text(e.requests[1]), "what is said", e.requests[1])


@point
def arguments_that_are_no_json_are_named(place):
    with Endpoint([Answer(None, [call("{\"code\": \"print(1")]),
                   Answer(None, [call("print(1)")]), DONE]) as e:
        answered(place.ask(e), "It is done.\n")
        check("no JSON" in last_text(e.requests[1]), "what is said", e.requests[1])
        sent = e.requests[1]["messages"][-2]["tool_calls"][0]["function"]["arguments"]
        json.loads(sent)   # servers parse what is sent back


@point
def blocks_of_one_that_calls_tools_are_for_the_person(place):
    text = "It is 42. The code:\n```python\nprint(6 * 7)\n```\n"
    with Endpoint([Answer(None, [call("print(6 * 7)")]), Answer(text)]) as e:
        answered(place.ask(e), text)


@point
def figures_and_files_are_kept(place):
    code = ("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n"
            "open('out.csv', 'w').write('a,b\\n')\n")
    out = os.path.join(place.home, "out")
    with Endpoint([Answer(None, [call(code)]), Answer(None, [call("print(1)")]), DONE]) as e:
        answered(place.ask(e, "--out", out, "--policy", SLOW), "It is done.\n")
        same(sorted(os.listdir(out)), ["figure-1.png", "out.csv"], "what is there")
        check("image/png" in last_text(e.requests[1]), "the model is told", e.requests[1])


@point
def the_prompt_tells_of_files_libraries_and_limits(place):
    table = place.file("sales.csv", "day,amount\n" + "".join("%d,%d\n" % (i, i)
                                                             for i in range(50)))
    image = os.path.join(place.home, "x.bin")
    with open(image, "wb") as file:
        file.write(bytes(range(256)))
    with Endpoint([DONE]) as e:
        answered(place.ask(e, "--file", table, "--file", image, "--memory", "100M"),
                 "It is done.\n")
        system = e.requests[0]["messages"][0]["content"]
        for wanted in ("sales.csv (291 bytes), begins:\n    | day,amount\n    | 0,0\n",
                       "x.bin (256 bytes, binary)\n", "100M of memory", "Network: none",
                       "Imports that are refused: ", "Python 3."):
            check(wanted in system, "the prompt has " + wanted, system)
        check("| 9,9" not in system, "only the first rows are sent", system)


@point
def folders_of_data_are_named_and_readable(place):
    folder = os.path.join(place.home, "numbers")
    os.mkdir(folder)
    os.chmod(place.home, 0o755)
    for name, text in (("a.txt", "6 7"),):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    code = "a, b = open('/data/numbers/a.txt').read().split()\nprint(int(a) * int(b))"
    with Endpoint([Answer(None, [call(code)]), DONE]) as e:
        answered(place.ask(e, "--data", folder + "=numbers"), "It is done.\n")
        check("read-only: /data/numbers\n" in e.requests[0]["messages"][0]["content"], "the prompt",
              e.requests[0]["messages"][0])
        same(last_text(e.requests[1]), "stdout:\n42\n", "the result")


@point
def a_dry_run_runs_nothing(place):
    with Endpoint([Answer(BLOCK % "print(1)\n")]) as e:
        answered(place.ask(e, "--dry-run"), "print(1)\n")
    with Endpoint([Answer(BLOCK % "import _ctypes\n")]) as e:
        done = place.ask(e, "--dry-run")
        same((done.returncode, done.stdout), (126, "import _ctypes\n"), "a refused one")
        check("import-denied" in done.stderr, "the verdict", done.stderr)
    same(place.rows("intent"), [], "runs in the ledger")
    same([r["status"] for r in place.rows("request")], ["dry-run", "rejected"], "requests")


@point
def json_has_all_of_it(place):
    with Endpoint([Answer(None, [call("1/0")]), Answer(None, [call("print(3)")]),
                   DONE]) as e:
        done = place.ask(e, "--json")
        same(done.returncode, 0, "the exit status " + done.stderr)
        document = json.loads(done.stdout)
        same([document[k] for k in ("schema", "end", "answer", "program", "requests", "runs")],
             ["adyton.ask/1", "answered", "It is done.", "print(3)\n", 3, 2], "members")
        same([s["verdict"] for s in document["steps"]], ["exception", "ok", "answer"], "steps")
        same(document["outcome"]["stdout"], "3\n", "the outcome")
        same(document["tokens"], {"input": 30, "output": 15}, "tokens")


@point
def verbose_shows_each_step(place):
    with Endpoint([Answer(None, [call("print(6 * 7)")]), DONE]) as e:
        done = place.ask(e, "--verbose")
        answered(done, "It is done.\n")
        for wanted in ("request 1 to scripted", "print(6 * 7)", "stdout:\n42", "request 2"):
            check(wanted in done.stderr, "stderr has " + wanted, done.stderr)


@point
def all_of_it_is_in_the_ledger(place):
    with Endpoint([Answer(None, [call("1/0")]), Answer(None, [call("print(3)")]),
                   DONE]) as e:
        answered(place.ask(e), "It is done.\n")
    requests, runs = place.rows("request"), place.rows("intent")
    same([r["status"] for r in requests], ["exception", "ok", "answer"], "what they led to")
    same([r["run"] for r in requests[:2]], [r["run"] for r in runs], "the runs")
    same({r["name"] for r in requests}, {"scripted"}, "the model")
    same(len({r["code"] for r in requests}), 3, "hashes of prompts")
    same(len({r["session"] for r in requests}), 1, "the question")
    shown = place.run("runs", "show", runs[0]["run"]).stdout
    check("scripted, question %s" % requests[0]["session"] in shown and requests[0]["code"] in shown,
          "a run tells who was asked", shown)
    shown = json.loads(place.run("runs", "show", runs[1]["run"], "--format", "json").stdout)
    same(shown["asked"], {"model": "scripted", "question": requests[0]["session"],
                          "prompt": requests[1]["code"],
                          "prompt_bytes": requests[1]["code_bytes"]}, "as JSON")
    done = place.run("runs", "verify")
    check(done.stdout.startswith("sound"), "the ledger is sound", done.stdout)
    copy = os.path.join(place.home, "copy.db")
    text = place.file("export", place.run("runs", "export").stdout)
    done = place.run("runs", "import", text, "--ledger", copy)
    same(done.returncode, 0, "it can be imported again " + done.stderr)


@point
def an_endpoint_that_knows_no_tools_is_asked_without(place):
    no = Answer("this model does not support tools", status=400)
    with Endpoint([no, Answer(BLOCK % "print(6 * 7)\n"), DONE]) as e:
        done = place.ask(e)
        answered(done, "It is done.\n")
        same(["tools" in r for r in e.requests], [True, False, False], "who is told of a tool")
        check("knows no tools" in done.stderr, "it is said", done.stderr)
        check("42" in last_text(e.requests[2]), "the result", e.requests[2])
    for form in FORMS:
        with Endpoint([DONE]) as e:
            answered(place.ask(e, "--no-tools", "--api", form), "It is done.\n")
            check("tools" not in e.requests[0] and "tool_choice" not in e.requests[0],
                  "no word of tools", e.requests[0].keys())


@point
def thoughts_are_no_answer(place):
    thought = "<think>\nPerhaps\n```python\nprint('thought')\n```\n</think>\n\n"
    with Endpoint([Answer(thought + BLOCK % "print('said')\n"), Answer(thought + "Done.")]) as e:
        answered(place.ask(e), "Done.\n")
        check("stdout:\nsaid\n" in last_text(e.requests[1]), "the result", e.requests[1])
    with Endpoint([Answer("<think>on and on", finish="length"), DONE]) as e:
        answered(place.ask(e), "It is done.\n")
        check("cut off" in last_text(e.requests[1]), "what is said", e.requests[1])


@point
def tokens_of_an_answer_are_limited_in_the_words_of_the_form(place):
    for form in FORMS:
        with Endpoint([DONE]) as e:
            answered(place.ask(e, "--max-tokens", "77", "--api", form), "It is done.\n")
            same(e.requests[0]["max_tokens"], 77, "the limit")
