"""Runs in the cell: `inside.py FOLDER HOW VERB…` tries each verb by FOLDER/probe.so
and prints a JSON line for it. HOW is probe_run, or probe_run_here where no fork is."""

import ctypes
import sys

TEXT_BYTES = 256

folder, how, *verbs = sys.argv[1:]
attempt = getattr(ctypes.CDLL(folder + "/probe.so"), how)
text = ctypes.create_string_buffer(TEXT_BYTES)
for verb in verbs:
    if attempt(verb.encode(), text, TEXT_BYTES) != 0:
        sys.exit("no verb " + verb)
    print(text.value.decode(), flush=True)
print('"survived"')
