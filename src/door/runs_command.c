/* `adyton runs`: how one is shown. The rest is ledger_command.c. */
#include "door/runs_command.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "door/incidents_view.h"
#include "door/ledger_command.h"

enum { CODE_BYTES_MAX = 64 * 1024 * 1024, TEXT_BYTES = 200, ASKED_BYTES = 512 };

static const char csv_head[] =
    "id,time,ended,session,status,exit_code,signal,limit,message,policy,name,code_bytes,"
    "wall_ms,cpu_ms,peak_memory_bytes,processes,stdout_bytes,stderr_bytes,incidents\n";
static const char text_head[] =
    "TIME                  ID                              STATUS     POLICY    "
    "WALL        INCIDENTS  NAME             MESSAGE\n";

static double
ms(int64_t us)
{
    return (double)us / 1000.0;
}

static json_t *
json_or_null(bool there, int64_t value)
{
    return there ? json_integer(value) : json_null();
}

/* The layers stand in one column with commas between them. */
static json_t *
layers_json(const char *layers)
{
    json_t *list = json_array();
    while (layers && *layers != '\0') {
        size_t n = strcspn(layers, ",");
        json_array_append_new(list, json_stringn(layers, n));
        layers += n + (layers[n] == ',');
    }
    return list;
}

static json_t *
outcome_part(const struct ledger_run *run)
{
    char ended[VIEW_TIME_BYTES] = "";
    bool is_over = run->ended_us != 0;
    json_t *limit = run->limit_name
                        ? json_pack("{s:o, s:I}", "name", view_json_text(run->limit_name),
                                    "value", (json_int_t)run->limit_value)
                        : json_null();
    if (is_over)
        view_time(run->ended_us, true, ended);
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:{s:f, s:f, s:I, s:I}, s:I, s:I, s:o,"
        " s:o, s:{s:o, s:o}}",
        "ended", view_json_text(is_over ? ended : NULL), "exit_code",
        json_or_null(run->has_exit_code, run->exit_code), "signal",
        json_or_null(run->signal != 0, run->signal), "limit", limit, "message",
        view_json_text(run->message), "error", view_json_text(run->error), "usage",
        "wall_ms", ms(run->wall_us), "cpu_ms", ms(run->cpu_us), "peak_memory_bytes",
        (json_int_t)run->peak_memory_bytes, "processes", (json_int_t)run->processes,
        "stdout_bytes", (json_int_t)run->stdout_bytes, "stderr_bytes",
        (json_int_t)run->stderr_bytes, "incidents", json_or_null(is_over, run->incidents),
        "isolation", layers_json(run->isolation), "engine", "interpreter",
        view_json_text(run->interpreter), "start", view_json_text(run->start));
}

static json_t *
run_json(const struct ledger_run *run)
{
    char time[VIEW_TIME_BYTES];
    json_t *object = json_pack(
        "{s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:I, s:b, s:I}", "schema",
        "adyton.run/1", "id", view_json_text(run->id), "session",
        view_json_text(run->session), "time", view_time(run->time_us, true, time),
        "status", view_json_text(run->status), "policy", view_json_text(run->policy),
        "name", view_json_text(run->name), "code", view_json_hash(run->code),
        "code_bytes", (json_int_t)run->code_bytes, "code_kept", (int)run->code_kept,
        "pid", (json_int_t)run->pid);
    json_t *rest = outcome_part(run);
    if (object && rest)
        json_object_update(object, rest);
    json_decref(rest);
    return object;
}

static int
run_csv(struct buf *out, const struct ledger_run *run)
{
    char time[VIEW_TIME_BYTES], ended[VIEW_TIME_BYTES] = "";
    view_time(run->time_us, true, time);
    if (run->ended_us != 0)
        view_time(run->ended_us, true, ended);
    const char *const first[] = {run->id, time, ended, run->session, run->status};
    const char *const then[] = {run->limit_name, run->message, run->policy, run->name};
    int r = 0;
    for (size_t i = 0; i < sizeof(first) / sizeof(*first) && r == 0; i++)
        r = view_csv(out, i == 0, first[i]);
    if (r == 0)
        r = run->has_exit_code ? view_csv_number(out, false, run->exit_code)
                               : view_csv(out, false, NULL);
    if (r == 0)
        r = run->signal != 0 ? view_csv_number(out, false, run->signal)
                             : view_csv(out, false, NULL);
    for (size_t i = 0; i < sizeof(then) / sizeof(*then) && r == 0; i++)
        r = view_csv(out, false, then[i]);
    return r < 0 ? r
                 : buf_printf(out, ",%lld,%.3f,%.3f,%lld,%lld,%lld,%lld,%lld\n",
                              (long long)run->code_bytes, ms(run->wall_us),
                              ms(run->cpu_us), (long long)run->peak_memory_bytes,
                              (long long)run->processes, (long long)run->stdout_bytes,
                              (long long)run->stderr_bytes, (long long)run->incidents);
}

static int
run_line(struct buf *out, const struct ledger_run *run)
{
    char time[VIEW_TIME_BYTES], wall[32], incidents[24];
    snprintf(wall, sizeof(wall), "%.1f ms", ms(run->wall_us));
    snprintf(incidents, sizeof(incidents), "%lld", (long long)run->incidents);
    bool is_over = run->ended_us != 0;
    const struct {
        const char *text;
        size_t width;
    } cells[] = {{view_time(run->time_us, false, time), 20},
                 {run->id, 30},
                 {run->status, 9},
                 {run->policy, 8},
                 {is_over ? wall : NULL, 10},
                 {is_over ? incidents : NULL, 9},
                 {run->name, 15},
                 {run->message, 0}};
    int r = 0;
    for (size_t i = 0; i < sizeof(cells) / sizeof(*cells) && r == 0; i++)
        r = view_cell(out, cells[i].text, cells[i].width);
    return r < 0 ? r : buf_append(out, "\n", 1);
}

static int
list_one(void *context, const struct ledger_run *run)
{
    struct view_out *out = context;
    int r = view_next(out);
    if (r != 0)
        return r;
    if (out->options->format == VIEW_JSON)
        return view_json_line(&out->text, run_json(run));
    if (out->options->format == VIEW_CSV)
        return run_csv(&out->text, run);
    r = out->rows == 1 ? buf_printf(&out->text, "%s", text_head) : 0;
    return r < 0 ? r : run_line(&out->text, run);
}

static int
list(struct view_out *out, struct err *err)
{
    struct ledger_filter filter = out->options->filter;
    filter.limit = 0; /* view_next counts, and sees that there is more */
    if (out->options->format == VIEW_CSV && buf_printf(&out->text, "%s", csv_head) < 0)
        return err_set(err, -ENOMEM, "no memory for the output");
    return view_result(out, ledger_each_run(out->ledger, &filter, list_one, out, err));
}

/* --- show --- */

static int
show_incident(void *context, const struct ledger_incident *incident)
{
    return incident_line(context, incident);
}

static int
show_incidents(struct view_out *out, const struct ledger_run *run)
{
    struct err err;
    const struct ledger_filter filter = {.run = run->id};
    if (run->incidents == 0)
        return 0;
    int r = buf_append(&out->text, "\n", 1);
    return r < 0 ? r
                 : ledger_each_incident(out->ledger, &filter, show_incident, &out->text,
                                        &err);
}

static int
show_code(struct view_out *out, const struct ledger_run *run)
{
    AUTO_BUF struct buf code = {0};
    struct err err;
    buf_init(&code, CODE_BYTES_MAX + 1);
    if (ledger_code(out->ledger, run->code, &code, &err) < 0)
        return view_field(&out->text, "text", err.text);
    int r = buf_append(&out->text, "\n", 1);
    return r < 0 ? r : view_excerpt(&out->text, buf_span(&code), 0, 0);
}

/* "MODEL, question a_…, prompt of 3003 bytes, blake2b …"; "" when no model was asked. */
static void
asked_text(struct view_out *out, const struct ledger_run *run, char text[ASKED_BYTES])
{
    struct err err;
    struct ledger_asked asked;
    char hash[2 * LEDGER_HASH_BYTES + 1];
    text[0] = '\0';
    if (ledger_asked(out->ledger, run, &asked, &err) < 0)
        return;
    sodium_bin2hex(hash, sizeof(hash), asked.prompt, sizeof(asked.prompt));
    snprintf(text, ASKED_BYTES, "%s, question %s, prompt of %lld bytes, blake2b %s",
             asked.model, asked.ask, (long long)asked.prompt_bytes, hash);
}

static json_t *
asked_json(struct view_out *out, const struct ledger_run *run)
{
    struct err err;
    struct ledger_asked asked;
    char hash[2 * LEDGER_HASH_BYTES + 1];
    if (ledger_asked(out->ledger, run, &asked, &err) < 0)
        return json_null();
    sodium_bin2hex(hash, sizeof(hash), asked.prompt, sizeof(asked.prompt));
    return json_pack("{s:o, s:o, s:s, s:I}", "model", view_json_text(asked.model),
                     "question", view_json_text(asked.ask), "prompt", hash,
                     "prompt_bytes", (json_int_t)asked.prompt_bytes);
}

struct texts {
    char time[VIEW_TIME_BYTES], status[TEXT_BYTES * 2], usage[TEXT_BYTES],
        code[TEXT_BYTES], output[TEXT_BYTES];
};

static void
make_texts(const struct ledger_run *run, struct texts *t)
{
    char hash[2 * LEDGER_HASH_BYTES + 1];
    sodium_bin2hex(hash, sizeof(hash), run->code, sizeof(run->code));
    view_time(run->time_us, false, t->time);
    snprintf(t->status, sizeof(t->status), "%s%s%s", run->status ? run->status : "-",
             run->message ? ": " : "", run->message ? run->message : "");
    snprintf(t->code, sizeof(t->code), "%s, %lld bytes, blake2b %s",
             run->name ? run->name : "-", (long long)run->code_bytes, hash);
    snprintf(t->usage, sizeof(t->usage),
             "%.1f ms wall, %.1f ms CPU, %.1f MiB peak, %lld processes", ms(run->wall_us),
             ms(run->cpu_us), (double)run->peak_memory_bytes / (1 << 20),
             (long long)run->processes);
    snprintf(t->output, sizeof(t->output), "%lld bytes of stdout, %lld of stderr",
             (long long)run->stdout_bytes, (long long)run->stderr_bytes);
}

static int
show_text(struct view_out *out, const struct ledger_run *run)
{
    struct texts t;
    char asked[ASKED_BYTES];
    make_texts(run, &t);
    asked_text(out, run, asked);
    bool is_over = run->ended_us != 0;
    const struct {
        const char *name, *text;
    } fields[] = {{"run", run->id},
                  {"time", t.time},
                  {"session", run->session},
                  {"asked of", asked[0] != '\0' ? asked : NULL},
                  {"status", t.status},
                  {"error", run->error},
                  {"policy", run->policy},
                  {"held by", run->isolation},
                  {"engine", run->interpreter},
                  {"start", run->start},
                  {"usage", is_over ? t.usage : NULL},
                  {"output", is_over ? t.output : NULL},
                  {"code", t.code}};
    int r = 0;
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields) && r == 0; i++)
        r = view_field(&out->text, fields[i].name, fields[i].text);
    if (r == 0)
        r = show_incidents(out, run);
    return r < 0 ? r : show_code(out, run);
}

static int
collect_incident(void *context, const struct ledger_incident *incident)
{
    return json_array_insert_new(context, 0, incident_json(incident)) < 0 ? -ENOMEM : 0;
}

static int
show_json(struct view_out *out, const struct ledger_run *run)
{
    struct err err;
    const struct ledger_filter filter = {.run = run->id};
    json_t *object = run_json(run), *incidents = json_array();
    int r = ledger_each_incident(out->ledger, &filter, collect_incident, incidents, &err);
    if (r < 0 || !object) {
        json_decref(object);
        json_decref(incidents);
        return r < 0 ? r : -ENOMEM;
    }
    json_object_set_new(object, "incidents", incidents);
    json_object_set_new(object, "asked", asked_json(out, run));
    json_object_set_new(object, "text", view_json_code(out->ledger, run->code));
    return view_json_line(&out->text, object);
}

static int
show_one(void *context, const struct ledger_run *run)
{
    struct view_out *out = context;
    return out->options->format == VIEW_JSON ? show_json(out, run) : show_text(out, run);
}

static int
show(struct view_out *out, const char *id, struct err *err)
{
    return view_result(out, ledger_find_run(out->ledger, id, show_one, out, err));
}

int
runs_command(int argc, char **argv)
{
    static const struct view view = {"runs", "runs", list, show};
    return ledger_command(&view, argc, argv);
}
