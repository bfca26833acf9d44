/* `adyton incidents`: how one is shown. The rest is ledger_command.c. */
#include "door/incidents_command.h"

#include <errno.h>
#include <stdio.h>

#include "base/fd.h"
#include "door/incidents_view.h"
#include "door/ledger_command.h"

enum { CODE_BYTES_MAX = 64 * 1024 * 1024, TEXT_BYTES = 160 };

static const char csv_head[] = "id,time,run,session,status,policy,rule,layer,fact,action,"
                               "act,reason,count,line,column,remedy\n";
static const char text_head[] =
    "TIME                  ID                                 "
    "STATUS     RULE             LAYER       BY     COUNT  "
    "LINE  ACT\n";

json_t *
incident_json(const struct ledger_incident *i)
{
    char time[VIEW_TIME_BYTES];
    json_t *line = i->line > 0 ? json_integer(i->line) : json_null();
    json_t *column = i->column > 0 ? json_integer(i->column) : json_null();
    return json_pack("{s:s, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, "
                     "s:I, s:o, s:o, s:o, s:o}",
                     "schema", "adyton.incident/1", "id", view_json_text(i->id), "run",
                     view_json_text(i->run), "session", view_json_text(i->session),
                     "time", view_time(i->time_us, true, time), "status",
                     view_json_text(i->status), "policy", view_json_text(i->policy),
                     "rule", view_json_text(i->rule), "layer", view_json_text(i->layer),
                     "fact", (int)i->fact, "action", view_json_text(i->action), "act",
                     view_json_text(i->act), "reason", view_json_text(i->reason), "count",
                     (json_int_t)i->count, "line", line, "column", column, "code",
                     view_json_hash(i->code), "remedy", view_json_text(i->remedy));
}

static int
incident_csv(struct buf *out, const struct ledger_incident *i)
{
    char time[VIEW_TIME_BYTES];
    view_time(i->time_us, true, time);
    const char *const before[] = {i->id,      time,      i->run,
                                  i->session, i->status, i->policy,
                                  i->rule,    i->layer,  i->fact ? "fact" : "claim",
                                  i->action,  i->act,    i->reason};
    const int64_t numbers[] = {i->count, i->line, i->column};
    int r = 0;
    for (size_t n = 0; n < sizeof(before) / sizeof(*before) && r == 0; n++)
        r = view_csv(out, n == 0, before[n]);
    for (size_t n = 0; n < sizeof(numbers) / sizeof(*numbers) && r == 0; n++)
        r = numbers[n] > 0 ? view_csv_number(out, false, numbers[n])
                           : view_csv(out, false, NULL);
    if (r == 0)
        r = view_csv(out, false, i->remedy);
    return r < 0 ? r : buf_append(out, "\n", 1);
}

int
incident_line(struct buf *out, const struct ledger_incident *i)
{
    char time[VIEW_TIME_BYTES], count[24], line[24];
    snprintf(count, sizeof(count), "%lld", (long long)i->count);
    snprintf(line, sizeof(line), "%lld", (long long)i->line);
    const struct {
        const char *text;
        size_t width;
    } cells[] = {{view_time(i->time_us, false, time), 20},
                 {i->id, 33},
                 {i->status, 9},
                 {i->rule, 15},
                 {i->layer, 10},
                 {i->fact ? "fact" : "claim", 5},
                 {count, 5},
                 {i->line > 0 ? line : NULL, 4},
                 {i->act, 0}};
    int r = 0;
    for (size_t n = 0; n < sizeof(cells) / sizeof(*cells) && r == 0; n++)
        r = view_cell(out, cells[n].text, cells[n].width);
    return r < 0 ? r : buf_append(out, "\n", 1);
}

static int
list_one(void *context, const struct ledger_incident *incident)
{
    struct view_out *out = context;
    int r = view_next(out);
    if (r != 0)
        return r;
    if (out->options->format == VIEW_JSON)
        return view_json_line(&out->text, incident_json(incident));
    if (out->options->format == VIEW_CSV)
        return incident_csv(&out->text, incident);
    r = out->rows == 1 ? buf_printf(&out->text, "%s", text_head) : 0;
    return r < 0 ? r : incident_line(&out->text, incident);
}

static int
list(struct view_out *out, struct err *err)
{
    struct ledger_filter filter = out->options->filter;
    filter.limit = 0; /* view_next counts, and sees that there is more */
    if (out->options->format == VIEW_CSV && buf_printf(&out->text, "%s", csv_head) < 0)
        return err_set(err, -ENOMEM, "no memory for the output");
    return view_result(out,
                       ledger_each_incident(out->ledger, &filter, list_one, out, err));
}

static int
show_code(struct view_out *out, const struct ledger_incident *i)
{
    AUTO_BUF struct buf code = {0};
    struct err err;
    buf_init(&code, CODE_BYTES_MAX + 1);
    if (ledger_code(out->ledger, i->code, &code, &err) < 0)
        return view_field(&out->text, "code", err.text);
    int r = buf_append(&out->text, "\n", 1);
    return r < 0 ? r : view_excerpt(&out->text, buf_span(&code), i->line, i->column);
}

static int
show_text(struct view_out *out, const struct ledger_incident *i)
{
    char time[VIEW_TIME_BYTES], seen[TEXT_BYTES], act[TEXT_BYTES * 3], where[TEXT_BYTES];
    view_time(i->time_us, false, time);
    snprintf(seen, sizeof(seen), "%s (%s)", i->layer ? i->layer : "-",
             i->fact ? "a fact: seen by the kernel or the supervisor"
                     : "a claim: said by the code's own process");
    snprintf(act, sizeof(act), "%s, %s", i->act ? i->act : "-",
             i->action ? i->action : "-");
    if (i->count > 1)
        snprintf(act + strlen(act), sizeof(act) - strlen(act), " %lld times",
                 (long long)i->count);
    snprintf(where, sizeof(where), i->column > 0 ? "line %lld, column %lld" : "line %lld",
             (long long)i->line, (long long)i->column);
    const struct {
        const char *name, *text;
    } fields[] = {{"incident", i->id},   {"time", time},
                  {"run", i->run},       {"session", i->session},
                  {"status", i->status}, {"policy", i->policy},
                  {"rule", i->rule},     {"layer", seen},
                  {"act", act},          {"why", i->reason},
                  {"remedy", i->remedy}, {"where", i->line > 0 ? where : NULL}};
    int r = 0;
    for (size_t n = 0; n < sizeof(fields) / sizeof(*fields) && r == 0; n++)
        r = view_field(&out->text, fields[n].name, fields[n].text);
    return r < 0 ? r : show_code(out, i);
}

static int
show_one(void *context, const struct ledger_incident *incident)
{
    struct view_out *out = context;
    if (out->options->format != VIEW_JSON)
        return show_text(out, incident);
    json_t *object = incident_json(incident);
    if (object)
        json_object_set_new(object, "text", view_json_code(out->ledger, incident->code));
    return view_json_line(&out->text, object);
}

static int
show(struct view_out *out, const char *id, struct err *err)
{
    return view_result(out, ledger_find_incident(out->ledger, id, show_one, out, err));
}

int
incidents_command(int argc, char **argv)
{
    static const struct view view = {"incidents", "incidents", list, show};
    return ledger_command(&view, argc, argv);
}
