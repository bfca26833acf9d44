/*
 * A model reads every byte that it is given and pays for it: streams are shown with their
 * beginning and their end, findings and incidents a few at a time.
 */
#include "ask/result.h"

#include <errno.h>
#include <string.h>

#include "base/utf8.h"
#include "check/render.h"
#include "ledger/ledger.h"

enum {
    STREAM_HEAD_BYTES = 12 * 1024,
    STREAM_TAIL_BYTES = 4 * 1024,
    STREAM_TEXT_BYTES_MAX = 64 << 20,
    FINDINGS_SHOWN = 8,
    INCIDENTS_SHOWN = 8,
    FILES_SHOWN = 40,
    VALUE_BYTES = 8 * 1024,
};

/* Valid characters; NUL is one that many endpoints cannot store. */
static int
append_clean(struct buf *out, struct span s)
{
    uint64_t replaced;
    size_t from = out->n;
    int r = utf8_append_valid(out, s, &replaced);
    for (size_t i = from; i < out->n; i++)
        if (out->p[i] == '\0')
            out->p[i] = '?';
    return r;
}

static int
append_bounded(struct buf *out, struct span s)
{
    if (s.n <= STREAM_HEAD_BYTES + STREAM_TAIL_BYTES)
        return append_clean(out, s);
    int r = append_clean(out, (struct span){s.p, STREAM_HEAD_BYTES});
    if (r == 0)
        r = buf_printf(out, "\n[... %zu bytes omitted ...]\n",
                       s.n - STREAM_HEAD_BYTES - STREAM_TAIL_BYTES);
    if (r == 0)
        r = append_clean(out,
                         (struct span){s.p + s.n - STREAM_TAIL_BYTES, STREAM_TAIL_BYTES});
    return r;
}

static int
end_line(struct buf *out)
{
    return out->n > 0 && out->p[out->n - 1] != '\n' ? buf_append(out, "\n", 1) : 0;
}

static int
append_stream(const char *name, const struct stream *stream, size_t from, struct buf *out)
{
    AUTO_BUF struct buf text = {0};
    buf_init(&text, STREAM_TEXT_BYTES_MAX);
    int r = 0;
    struct span head = buf_span(&stream->head);
    from = from < head.n ? from : head.n;
    r = buf_append(&text, head.p + from, head.n - from);
    if (r == 0)
        r = stream_rest(stream, &text);
    if (r == 0 && text.n == 0)
        return 0;
    if (r == 0)
        r = buf_printf(out, "%s:\n", name);
    if (r == 0)
        r = append_bounded(out, buf_span(&text));
    return r < 0 ? r : end_line(out);
}

static int
append_item(const struct display_item *item, struct buf *out)
{
    const struct display_part *text = display_item_part(item, "text/plain");
    int r =
        buf_printf(out, item->is_main ? "value of the last expression:\n" : "shown:\n");
    if (r == 0 && text) {
        struct span s = buf_span(&text->bytes);
        r = append_clean(out, (struct span){s.p, s.n < VALUE_BYTES ? s.n : VALUE_BYTES});
        if (r == 0 && s.n > VALUE_BYTES)
            r = buf_printf(out, "\n[... %zu bytes omitted ...]", s.n - VALUE_BYTES);
    }
    for (size_t i = 0; r == 0 && i < item->parts_n; i++)
        if (strncmp(item->parts[i].mime, "image/", 6) == 0)
            r = buf_printf(out, "%s[%s of %zu bytes]", i > 0 ? "\n" : "",
                           item->parts[i].mime, item->parts[i].bytes.n);
    return r < 0 ? r : end_line(out);
}

static int
append_displays(const struct outcome *outcome, size_t from, struct buf *out)
{
    int r = 0;
    for (size_t i = from; r == 0 && i < outcome->displays.items_n; i++)
        r = append_item(outcome->displays.items[i], out);
    return r;
}

static int
append_findings(const struct outcome *outcome, struct buf *out)
{
    size_t shown = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < outcome->findings.n && shown < FINDINGS_SHOWN; i++) {
        const struct finding *one = &outcome->findings.list[i];
        const struct check_rule *rule = &check_rules[one->rule];
        if (one->severity > CHECK_ERROR && outcome->status != STATUS_REJECTED)
            continue;
        r = buf_printf(out, "line %d, column %d: %s: %s [%s]\n", one->at.line,
                       one->at.column, check_severity_names[one->severity], one->text,
                       rule->id);
        if (r == 0 && one->excerpt[0] != '\0')
            r = buf_printf(out, "    %s\n", one->excerpt);
        if (r == 0 && rule->hint)
            r = buf_printf(out, "    What to do: %s\n", rule->hint);
        shown++;
    }
    if (r == 0 && shown > 0 && outcome->findings.n > shown)
        r = buf_printf(out, "and %zu more\n", outcome->findings.n - shown);
    return r;
}

static int
append_incidents(const struct outcome *outcome, struct buf *out)
{
    int r = 0;
    if (outcome->status == STATUS_REJECTED) /* its incidents are its findings */
        return 0;
    for (size_t i = 0; r == 0 && i < outcome->incidents_n && i < INCIDENTS_SHOWN; i++) {
        const struct incident *one = &outcome->incidents[i];
        const char *remedy = ledger_remedy(one);
        r = buf_printf(out, "%s: ", one->action);
        if (r == 0)
            r = append_clean(out, span_of(one->act));
        if (r == 0)
            r = buf_printf(out, " [%s]%s%s\n", one->rule, remedy ? ": " : "",
                           remedy ? remedy : "");
    }
    return r;
}

static int
append_ending(const struct outcome *outcome, const struct program *program,
              struct buf *out)
{
    static const char rejected[] =
        "The code was refused before it ran; nothing was executed.";
    size_t line = program_first_line(program);
    bool failed = outcome->status != STATUS_OK;
    int r = 0;
    if (outcome->status == STATUS_REJECTED)
        r = buf_printf(out, "%s\n", rejected);
    else if (failed)
        r = buf_printf(out, "The run failed (%s): ", status_name(outcome->status));
    if (r == 0 && failed && outcome->status != STATUS_REJECTED)
        r = append_clean(out, span_of(outcome->message));
    if (r == 0)
        r = end_line(out);
    if (r == 0 && outcome->session == SESSION_LOST)
        r = buf_printf(out,
                       "The session is lost, with its variables and files: what comes "
                       "next begins anew.\n");
    if (r == 0 && failed && line > 1)
        r = buf_printf(
            out,
            "Earlier pieces stand before this one: its first line is line %zu. "
            "What it has assigned is lost; earlier pieces are kept.\n",
            line);
    return r;
}

int
result_text(const struct outcome *outcome, const struct program *program, struct buf *out)
{
    struct program_cut cut;
    program_cut(program, outcome, &cut);
    int r = append_ending(outcome, program, out);
    if (r == 0)
        r = append_findings(outcome, out);
    if (r == 0)
        r = append_stream("stdout", &outcome->out, cut.out_at, out);
    if (r == 0)
        r = append_displays(outcome, cut.displays_at, out);
    if (r == 0)
        r = append_stream("stderr", &outcome->err, cut.err_at, out);
    if (r == 0)
        r = append_incidents(outcome, out);
    if (r == 0 && out->n == 0)
        r = buf_printf(out, "The code ran without an error and printed nothing.\n");
    return r;
}
