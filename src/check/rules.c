/* The table of rules. What each looks for in detail is data too: acts.c, for the
 * validator. */
#include "check/rules.h"

const char *const check_severity_names[CHECK_SEVERITIES + 1] = {"error", "warning",
                                                                "note", "off", NULL};

#define E CHECK_ERROR
#define W CHECK_WARNING
#define N CHECK_NOTE
#define X CHECK_OFF

/* clang-format off */
const struct check_rule check_rules[CHECK_RULES] = {
    [RULE_SOURCE_SIZE] = {"source-size",
     "source longer than the policy's source_size",
     "every step of a run costs time and memory in proportion to the source",
     "Put data into a file that is passed along with the code, and read it from there.",
     {E, E, E}},
    [RULE_SOURCE_ENCODING] = {"source-encoding",
     "NUL bytes, bytes that are not text in the declared encoding, an encoding that is not taken",
     "what a reader sees and what the interpreter runs must be the same text",
     "Write the source as UTF-8 without NUL bytes and without a coding comment.",
     {E, E, E}},
    [RULE_SYNTAX_ERROR] = {"syntax-error",
     "source that this CPython cannot compile, with its own message",
     "nothing of such a program would run",
     "Correct the syntax at the named line and column; nothing was executed.",
     {E, E, E}},
    [RULE_PARSER_EXHAUSTED] = {"parser-exhausted",
     "source on which CPython's parser crashes, or runs out of memory, recursion or time",
     "the parser is code that meets hostile text first",
     "Nest less deeply, split long expressions, and move large literals into a data file.",
     {E, E, E}},
    [RULE_IMPORT_DENIED] = {"import-denied",
     "an import of a module on the policy's imports_denied list",
     "a policy may refuse whole modules, whatever is used of them",
     "Do without this module: compute with the language itself and with libraries that the "
     "policy allows.",
     {E, E, N}},
    [RULE_PROCESS_START] = {"process-start",
     "calls that execute programs or shells (os.system, subprocess, os.exec*, pty.spawn)",
     "the cell executes no programs unless the policy's processes field says exec",
     "Do it in Python: there is no shell and no other program in the cell.",
     {E, E, N}},
    [RULE_PROCESS_FORK] = {"process-fork",
     "calls that fork (os.fork, multiprocessing, ProcessPoolExecutor)",
     "under processes: none the kernel refuses every second process",
     "Do the work in one process.",
     {E, X, X}},
    [RULE_FILE_OUTSIDE] = {"file-outside",
     "constant or folded paths given to open, os, shutil, pathlib, pandas, numpy, sqlite3 and "
     "others that resolve outside the folders which may be read or written",
     "only /tmp and a workspace can be written, and only they, data folders and the "
     "policy's read_paths can be read",
     "Use paths relative to the working folder, which is the only writable place.",
     {E, E, W}},
    [RULE_NETWORK_USE] = {"network-use",
     "sockets, HTTP and mail clients, and URLs given to readers of data",
     "the cell has no network",
     "Work on data that is passed along with the code; nothing can be fetched or sent.",
     {E, E, W}},
    [RULE_NATIVE_CODE] = {"native-code",
     "ctypes libraries and raw memory, cffi, loading of extension files",
     "native code is below every check that Python itself makes",
     "Use Python and the installed libraries instead of native calls.",
     {E, E, W}},
    [RULE_DYNAMIC_CODE] = {"dynamic-code",
     "eval, exec, compile, __import__, importlib; text given to them is checked too when it is "
     "known",
     "what is made at run time cannot be read beforehand",
     "Write the code out; to read data use ast.literal_eval or json.loads.",
     {E, W, N}},
    [RULE_INTROSPECTION_ESCAPE] = {"introspection-escape",
     "walks from ordinary objects to modules and builtins: subclasses of object, __globals__, "
     "frames' globals and builtins, gc",
     "such walks have one use: to reach what the program was not given",
     "Import what you need by its name, and pass values as arguments.",
     {E, E, W}},
    [RULE_INTROSPECTION] = {"introspection",
     "looking at frames, local variables of callers, __builtins__, trace hooks",
     "often harmless (logging, debugging), and the first step of a walk",
     "Pass values as arguments instead of looking into frames.",
     {W, N, X}},
    [RULE_INTERPRETER_TAMPERING] = {"interpreter-tampering",
     "replacing builtins, import machinery, core modules or code objects",
     "it changes what all later code means, the standard library's too",
     "Give your own functions and variables names of their own.",
     {E, E, W}},
    [RULE_RESOURCE_BOMB] = {"resource-bomb",
     "constants whose size is beyond the limits (10**10**8, [0] * 10**10), endless loops that "
     "only allocate or fork",
     "the run would end at its limit and give nothing",
     "Choose sizes that fit the memory limit, and give every loop an end.",
     {E, E, W}},
    [RULE_OBFUSCATION] = {"obfuscation",
     "encodings that hide text (utf-7), decoded data given to exec, exec as a decorator",
     "no honest program hides what it does",
     "Write the code in plain text.",
     {E, E, W}},
};
/* clang-format on */

size_t
check_rule_by_id(struct span id)
{
    size_t i = 0;
    while (i < CHECK_RULES && !span_is(id, check_rules[i].id))
        i++;
    return i;
}

size_t
check_severity_by_name(struct span name)
{
    size_t i = 0;
    while (i < CHECK_SEVERITIES && !span_is(name, check_severity_names[i]))
        i++;
    return i;
}
