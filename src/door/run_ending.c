/*
 * The ending in one line, then what was refused on the way. Parts of it come from the
 * cell (the exception, names of files): they pass through terminal_append_line, so that
 * no line can be forged and no terminal is driven.
 */
#include "door/run_ending.h"

#include <inttypes.h>

#include "base/units.h"
#include "check/render.h"
#include "door/terminal.h"

enum { INCIDENT_LINES_MAX = 10 };

static const char *
format_limit(const struct outcome *o, char text[UNITS_TEXT_BYTES])
{
    const struct policy_field *field = policy_field_by_name(span_of(o->limit_name));
    if (field && field->kind == FIELD_MS)
        return format_ms(o->limit_value, text);
    if (field && field->kind == FIELD_BYTES)
        return format_bytes(o->limit_value, text);
    snprintf(text, UNITS_TEXT_BYTES, "%" PRIu64, o->limit_value);
    return text;
}

/* The supervisor's sentence; else the cell's claim; else what the status means. */
static int
append_reason(const struct outcome *o, struct buf *out)
{
    if (o->message[0] != '\0')
        return terminal_append_line(o->message, out);
    if (!o->has_error)
        return terminal_append_line(status_meaning(o->status), out);
    int r = terminal_append_line(o->error_name, out);
    if (r == 0 && o->error_value[0] != '\0')
        r = buf_printf(out, ": ");
    return r < 0 ? r : terminal_append_line(o->error_value, out);
}

static int
append_ending(const struct outcome *o, struct buf *out)
{
    char value[UNITS_TEXT_BYTES];
    int r = buf_printf(out, "adyton: %s: ", status_name(o->status));
    if (r == 0)
        r = append_reason(o, out);
    if (r == 0 && o->limit_name[0] != '\0')
        r = buf_printf(out, " (limit %s=%s)", o->limit_name, format_limit(o, value));
    return r < 0 ? r : buf_append(out, "\n", 1);
}

static int
append_incident(const struct incident *i, struct buf *out)
{
    int r = buf_printf(
        out, "adyton: %s%s: ", i->fact ? "" : "claimed by the cell: ", i->layer);
    if (r == 0)
        r = buf_printf(out, "%s ", i->action);
    if (r == 0)
        r = terminal_append_line(i->act[0] != '\0' ? i->act : i->rule, out);
    if (r == 0 && i->reason[0] != '\0')
        r = buf_printf(out, ": ");
    if (r == 0 && i->reason[0] != '\0')
        r = terminal_append_line(i->reason, out);
    if (r == 0 && i->line > 0)
        r = buf_printf(out, " at line %d", i->line);
    if (r == 0 && i->count > 1)
        r = buf_printf(out, ", %" PRIu64 " times", i->count);
    return r < 0 ? r : buf_append(out, "\n", 1);
}

/* What ended the run is an incident too, and the first line has said it. */
static bool
is_said(const struct outcome *o, const struct incident *i)
{
    return strcmp(i->act, o->message) == 0 || strcmp(i->layer, "ast") == 0 ||
           strcmp(i->layer, "bytes") == 0; /* findings, which are shown themselves */
}

/* Where the code was refused, with its lines and what to write instead. */
static int
append_findings(const struct run_options *options, const struct outcome *o,
                struct buf *out)
{
    enum { SHOWN = 10 };
    bool named = options->file && strcmp(options->file, "-") != 0;
    return check_render_findings(named ? options->file : "main.py", &o->findings, SHOWN,
                                 false, out);
}

static int
append_incidents(const struct outcome *o, struct buf *out)
{
    int r = 0;
    size_t lines = 0, more = 0;
    for (size_t i = 0; r == 0 && i < o->incidents_n; i++) {
        if (is_said(o, &o->incidents[i]))
            continue;
        if (lines++ < INCIDENT_LINES_MAX)
            r = append_incident(&o->incidents[i], out);
        else
            more++;
    }
    if (r == 0 && (more > 0 || o->incidents_dropped > 0))
        r = buf_printf(out, "adyton: and %zu%s other acts\n", more,
                       o->incidents_dropped > 0 ? " or more" : "");
    return r;
}

static int
append_files(const struct run_options *options, const struct outcome *o, struct buf *out)
{
    int r = 0;
    if (options->out_dir && options->verbosity == RUN_VERBOSE)
        r = buf_printf(out, "adyton: files: %zu collected\n", o->files_n);
    if (r == 0 && o->files_skipped > 0) {
        r = buf_printf(out, "adyton: files: %" PRIu64 " not collected%s",
                       o->files_skipped, o->files_note[0] != '\0' ? ": " : "");
        if (r == 0)
            r = terminal_append_line(o->files_note, out);
        if (r == 0)
            r = buf_append(out, "\n", 1);
    }
    return r;
}

static int
append_usage(const struct outcome *o, struct buf *out)
{
    int r = buf_printf(out,
                       "adyton: %s: %.1f ms wall, %.1f ms CPU, %.1f MiB peak, %" PRIu64
                       " process%s; %s start of %s; held by",
                       status_name(o->status), (double)o->wall_us / 1e3,
                       (double)o->cpu_us / 1e3, (double)o->peak_memory_bytes / (1 << 20),
                       o->processes, o->processes == 1 ? "" : "es",
                       o->start[0] != '\0' ? o->start : "no",
                       o->interpreter[0] != '\0' ? o->interpreter : "any interpreter");
    for (size_t i = 0; r == 0 && i < o->isolation_n; i++)
        r = buf_printf(out, "%s %s", i > 0 ? "," : "", o->isolation[i]);
    if (r == 0 && o->isolation_n == 0)
        r = buf_printf(out, " nothing, for the code did not run");
    return r < 0 ? r : buf_append(out, "\n", 1);
}

/* Whoever types sees the traceback or the findings, and has interrupted the code himself. */
static bool
is_told_already(const struct run_options *options, const struct outcome *o)
{
    bool shown = o->status == STATUS_EXCEPTION || o->status == STATUS_EXIT ||
                 (o->status == STATUS_REJECTED && o->findings.n > 0);
    return options->one_of_many && o->session == SESSION_KEPT && shown;
}

int
run_ending_lines(const struct run_options *options, const struct outcome *outcome,
                 struct buf *out)
{
    if (options->verbosity == RUN_QUIET)
        return 0;
    bool verbose = options->verbosity == RUN_VERBOSE;
    bool well = outcome->status == STATUS_OK;
    int r = well || is_told_already(options, outcome) ? 0 : append_ending(outcome, out);
    if (r == 0 && (outcome->status == STATUS_REJECTED || verbose))
        r = append_findings(options, outcome, out);
    if (r == 0 && (!well || verbose))
        r = append_incidents(outcome, out);
    if (r == 0)
        r = append_files(options, outcome, out);
    if (r == 0 && verbose)
        r = append_usage(outcome, out);
    return r;
}
