/*
 * libevent ends a process that has no descriptor left for its signal pipe: with a status that
 * would be taken for the submitted code's. And it warns on stderr of what its callers tell in
 * their own words.
 */
#include "prog/last_words.h"

#include <event2/event.h>
#include <stdio.h>
#include <unistd.h>

enum { EXIT_OUR_FAULT = 125 };

static void
end(int code)
{
    (void)code;
    fputs("adyton: cannot make an event loop: no descriptor or memory is left\n", stderr);
    _exit(EXIT_OUR_FAULT);
}

static void
keep_silent(int severity, const char *text)
{
    (void)severity;
    (void)text;
}

void
last_words_install(void)
{
    event_set_log_callback(keep_silent);
    event_set_fatal_callback(end);
}
