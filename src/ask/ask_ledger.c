/* One row for each answer of a model and each piece of code in it: which prompt, by its hash, which
 * model, what it led to. Neither the prompt nor the key is kept. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "ask/ask_parts.h"
#include "ledger/ledger.h"

void
ask_step(const struct asking *a, const char *format, ...)
{
    char line[320];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (a->q->hooks.on_step)
        a->q->hooks.on_step(a->q->context, line);
}

int
ask_record(struct asking *a, const char *run, const char *verdict, const char *message,
           struct err *err)
{
    AUTO_LEDGER struct ledger *ledger = NULL;
    const struct ledger_request row = {.ask = a->answer->id,
                                       .run = run,
                                       .model = a->q->endpoint->model,
                                       .policy = a->q->policy->name,
                                       .prompt = buf_span(&a->body),
                                       .verdict = verdict,
                                       .message = message};
    int r = ledger_open(a->q->ledger_path, LEDGER_WRITE, &ledger, err);
    if (r == 0)
        r = ledger_request(ledger, &row, a->q->policy->sync == SYNC_FULL, err);
    if (r < 0)
        return r;
    json_t *step = json_pack("{s:i, s:s?, s:s, s:s}", "request", (int)a->answer->requests,
                             "run", run, "verdict", verdict, "message", message);
    if (json_array_append_new(a->answer->steps, step) < 0)
        return err_set(err, -ENOMEM, "no memory for the steps of an answer");
    return 0;
}
