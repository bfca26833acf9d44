/*
 * What can be done about an incident, in words for who wrote the code, which is often a
 * model. The first row whose rule and whose beginning of the act agree is the one; rules
 * of validation bring their own.
 */
#include <string.h>

#include "check/rules.h"
#include "ledger/ledger_parts.h"

#define NO_PROGRAMS                                                                      \
    "No program can be started in this cell. Do it in Python: the standard library, "    \
    "numpy "                                                                             \
    "and pandas are there."
#define NO_NETWORK                                                                       \
    "There is no network in this cell. Ask for the data as a file beside the script "    \
    "(--file), and read it from the current folder."

static const struct remedy_row {
    const char *rule, *act; /* "": any */
    const char *text;
} remedies[] = {
    {"system-call", "socket", NO_NETWORK},
    {"system-call", "connect", NO_NETWORK},
    {"system-call", "bind", NO_NETWORK},
    {"system-call", "execve", NO_PROGRAMS},
    {"system-call", "fork",
     "This policy allows one process. Do the work in one, without "
     "multiprocessing or threads."},
    {"system-call", "clone",
     "This policy does not allow that kind of process or thread. Do "
     "the work in one process."},
    {"system-call", "mount",
     "A cell's file systems stay as they are. Write beneath /tmp."},
    {"system-call", "",
     "Do without this call: ordinary Python code does not need it, and no "
     "argument makes it allowed in a cell."},
    {"memory-limit", "",
     "Use less memory at one time: read in pieces (chunksize), choose "
     "smaller types, delete what is no longer needed; or ask for a policy "
     "with more memory."},
    {"wall-limit", "",
     "Finish sooner: smaller input, a better algorithm, no sleeping and no "
     "waiting for input; or ask for a policy with a longer timeout."},
    {"cpu-limit", "",
     "Compute less: smaller input, a better algorithm, numpy in place of "
     "loops; or ask for a policy with more cpu_time."},
    {"output-limit", "",
     "Print less: a summary or the first rows; write the rest to a file "
     "beneath /tmp."},
    {"disk-limit", "",
     "Keep less in /tmp: delete files that are done with, or do not write "
     "them; or ask for a policy with more disk."},
    {"pids-limit", "",
     "Start fewer processes and threads at one time, and wait for those "
     "that were started."},
};

const char *
ledger_remedy(const struct incident *incident)
{
    for (size_t i = 0; i < sizeof(remedies) / sizeof(*remedies); i++)
        if (strcmp(remedies[i].rule, incident->rule) == 0 &&
            strncmp(remedies[i].act, incident->act, strlen(remedies[i].act)) == 0)
            return remedies[i].text;
    size_t rule = check_rule_by_id(span_of(incident->rule));
    return rule < CHECK_RULES ? check_rules[rule].hint : NULL;
}
