/*
 * `adyton incidents` and `adyton runs`: command line, ledger, verb, output. The exit
 * status is 0 when it was done, 1 when the ledger is not sound or has no such row, 2 for
 * wrong usage, 125 when the ledger cannot be read.
 */
#include "door/ledger_command.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "door/help.h"
#include "door/terminal.h"

enum {
    EXIT_DONE = 0,
    EXIT_NOT_SOUND = 1,
    EXIT_USAGE = 2,
    EXIT_OUR_FAULT = 125,
    OUT_BYTES_MAX = 1 << 30,
    OUT_FLUSH_BYTES = 64 * 1024,
    ROWS_ON_A_PAGE = 50,
    LINE_BYTES = 4096,
};

/* --- output --- */

/* What a terminal obeys in a JSON string or a CSV cell is shown too. */
static int
write_out(struct view_out *out, size_t least, struct err *err)
{
    AUTO_BUF struct buf shown = {0};
    if (out->text.n < least || out->text.n == 0)
        return 0;
    struct buf *text = &out->text;
    buf_init(&shown, OUT_BYTES_MAX);
    if (isatty(STDOUT_FILENO) == 1) {
        struct terminal terminal = {0};
        if (terminal_append(&terminal, buf_span(text), &shown) < 0 ||
            terminal_finish(&terminal, &shown) < 0)
            return err_set(err, -ENOMEM, "no memory for the output");
        text = &shown;
    }
    int r = fd_write_all(STDOUT_FILENO, text->p, text->n);
    out->text.n = 0;
    if (r == 0)
        return 0;
    errno = -r;
    return err_sys(err, "cannot write to stdout");
}

int
view_next(struct view_out *out)
{
    if (out->rows == out->rows_max) {
        out->has_more = true;
        return 1;
    }
    out->rows++;
    return write_out(out, OUT_FLUSH_BYTES, out->err);
}

int
view_result(struct view_out *out, int r)
{
    if (r < 0 && out->err->code == 0)
        return err_set(out->err, r, "no memory for the output");
    return r < 0 ? r : 0;
}

static int
complain(const struct view *view, const struct err *err, int exit_status)
{
    AUTO_BUF struct buf line = {0};
    buf_init(&line, LINE_BYTES);
    if (terminal_append_line(err->text, &line) == 0)
        fprintf(stderr, "adyton %s: %s\n", view->name, line.p);
    return exit_status;
}

/* --- verbs --- */

static int
open_ledger(struct view_out *out, struct err *err)
{
    return ledger_open(out->options->ledger, LEDGER_READ, &out->ledger, err);
}

static int
list(const struct view *view, struct view_out *out, struct err *err)
{
    int r = open_ledger(out, err);
    if (r == -ENOENT && out->options->format == VIEW_TEXT) {
        fprintf(stderr, "adyton %s: nothing is recorded yet\n", view->name);
        return EXIT_DONE;
    }
    const struct view_options *o = out->options;
    out->rows_max = o->has_limit && o->filter.limit > 0 ? o->filter.limit : UINT64_MAX;
    if (!o->has_limit && o->format == VIEW_TEXT)
        out->rows_max = ROWS_ON_A_PAGE;
    if (r == 0)
        r = view->list(out, err);
    if (r == 0)
        r = write_out(out, 0, err);
    if (r < 0)
        return complain(view, err, EXIT_OUR_FAULT);
    if (o->format == VIEW_TEXT && out->rows == 0)
        fprintf(stderr, "adyton %s: no %s\n", view->name, view->what);
    if (out->has_more && o->format == VIEW_TEXT && !o->has_limit)
        fprintf(stderr, "adyton %s: the newest %d are shown; --limit 0 shows all\n",
                view->name, ROWS_ON_A_PAGE);
    return EXIT_DONE;
}

static int
show(const struct view *view, struct view_out *out, struct err *err)
{
    int r = open_ledger(out, err);
    if (r == 0)
        r = view->show(out, out->options->operand, err);
    if (r == 0)
        r = write_out(out, 0, err);
    if (r == 0)
        return EXIT_DONE;
    return complain(view, err,
                    r == -ENOENT || r == -EINVAL ? EXIT_NOT_SOUND : EXIT_OUR_FAULT);
}

static int
export_all(const struct view *view, struct view_out *out, struct err *err)
{
    int r = open_ledger(out, err);
    if (r == 0)
        r = ledger_export(out->ledger, STDOUT_FILENO, err);
    return r < 0 ? complain(view, err, EXIT_OUR_FAULT) : EXIT_DONE;
}

static int
import_file(const struct view *view, struct view_out *out, struct err *err)
{
    const struct view_options *o = out->options;
    if (!o->ledger) {
        err_set(err, -EINVAL, "import needs --ledger with the name of a new file");
        return complain(view, err, EXIT_USAGE);
    }
    AUTO_CLOSE int fd = strcmp(o->operand, "-") == 0
                            ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                            : open(o->operand, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        err_sys(err, "cannot open '%.160s'", o->operand);
        return complain(view, err, EXIT_OUR_FAULT);
    }
    int r = ledger_import(o->ledger, fd, err);
    if (r < 0)
        return complain(view, err, r == -EBADMSG ? EXIT_NOT_SOUND : EXIT_OUR_FAULT);
    return EXIT_DONE;
}

static int
parse_head(const char *text, struct ledger_head *ret, struct err *err)
{
    const char *colon = strchr(text, ':');
    uint64_t seq;
    size_t n = 0;
    if (!colon || parse_u64((struct span){text, (size_t)(colon - text)}, &seq) < 0 ||
        seq > INT64_MAX ||
        sodium_hex2bin(ret->hash, sizeof(ret->hash), colon + 1, strlen(colon + 1), NULL,
                       &n, NULL) < 0 ||
        n != sizeof(ret->hash))
        return err_set(err, -EINVAL,
                       "--head: '%.80s' is not what verify prints: ROW:HASH", text);
    ret->seq = (int64_t)seq;
    return 0;
}

static json_t *
head_json(const struct ledger_head *head)
{
    return json_pack("{s:I, s:o}", "row", (json_int_t)head->seq, "hash",
                     view_json_hash(head->hash));
}

static int
verdict_json(const struct ledger_verdict *v, struct buf *out)
{
    json_t *bad = v->sound
                      ? json_null()
                      : json_pack("{s:s, s:I, s:o}", "table", v->table, "row",
                                  (json_int_t)v->row, "message", view_json_text(v->text));
    return view_json_line(
        out, json_pack("{s:s, s:b, s:I, s:I, s:o, s:o, s:o}", "schema", "adyton.verify/1",
                       "sound", (int)v->sound, "rows", (json_int_t)v->rows, "open",
                       (json_int_t)v->open, "anchor", head_json(&v->anchor), "head",
                       head_json(&v->head), "bad", bad));
}

static int
verdict_text(const struct ledger_verdict *v, struct buf *out)
{
    char hash[2 * LEDGER_HASH_BYTES + 1];
    if (!v->sound) {
        int r = buf_printf(out, "not sound: %s row %lld: ", v->table, (long long)v->row);
        if (r == 0)
            r = terminal_append_line(v->text, out);
        return r < 0 ? r : buf_append(out, "\n", 1);
    }
    sodium_bin2hex(hash, sizeof(hash), v->head.hash, sizeof(v->head.hash));
    return buf_printf(out, "sound: %llu rows after row %lld, %llu open\nhead: %lld:%s\n",
                      (unsigned long long)v->rows, (long long)v->anchor.seq,
                      (unsigned long long)v->open, (long long)v->head.seq, hash);
}

static int
verify(const struct view *view, struct view_out *out, struct err *err)
{
    struct ledger_head noted;
    struct ledger_verdict verdict;
    const struct view_options *o = out->options;
    if (o->head && parse_head(o->head, &noted, err) < 0)
        return complain(view, err, EXIT_USAGE);
    int r = open_ledger(out, err);
    if (r == 0)
        r = ledger_verify(out->ledger, o->head ? &noted : NULL, &verdict, err);
    if (r == 0 && (o->format == VIEW_JSON ? verdict_json(&verdict, &out->text)
                                          : verdict_text(&verdict, &out->text)) < 0)
        r = err_set(err, -ENOMEM, "no memory for the output");
    if (r == 0)
        r = write_out(out, 0, err);
    if (r < 0)
        return complain(view, err, EXIT_OUR_FAULT);
    return verdict.sound ? EXIT_DONE : EXIT_NOT_SOUND;
}

static const struct verb {
    const char *name, *operand, *help; /* operand NULL: it takes none */
    int (*run)(const struct view *view, struct view_out *out, struct err *err);
} verbs[] = {
    {"list", NULL, "The newest first; what is done when no verb is given.", list},
    {"show", "ID", "One of them, with its code.", show},
    {"verify", NULL, "Whether the ledger is what was written; prints its head.", verify},
    {"export", NULL, "The whole ledger, as lines of JSON that import takes.", export_all},
    {"import", "FILE", "A new ledger (--ledger) from an export, if that is sound.",
     import_file},
};
enum { VERBS = sizeof(verbs) / sizeof(*verbs) };

/* --- the command --- */

static int
print_help(const struct view *view)
{
    printf("usage: adyton %s [VERB] [OPTION…]\n\n"
           "Shows the %s that the ledger holds.\n\nverbs:\n",
           view->name, view->what);
    for (size_t i = 0; i < VERBS; i++) {
        char left[32];
        snprintf(left, sizeof(left), "%s%s%s", verbs[i].name, verbs[i].operand ? " " : "",
                 verbs[i].operand ? verbs[i].operand : "");
        help_print_row(left, verbs[i].help);
    }
    puts("\noptions:");
    view_options_help();
    help_print_row("--help", "Show this page.");
    return fflush(stdout) == 0 ? EXIT_DONE : EXIT_OUR_FAULT;
}

static const struct verb *
find_verb(const char *name)
{
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

static int
parse(int argc, char **argv, const struct verb **ret_verb, struct view_options *o,
      struct err *err)
{
    int at = 1;
    *ret_verb = &verbs[0];
    if (argc > 1 && argv[1][0] != '-') {
        *ret_verb = find_verb(argv[1]);
        at = 2;
        if (!*ret_verb)
            return err_set(err, -EINVAL,
                           "no such verb: '%.40s'; there are list, show, verify, export "
                           "and import",
                           argv[1]);
    }
    for (; at < argc; at++) {
        bool operand = argv[at][0] != '-' || argv[at][1] == '\0';
        if (operand && (!(*ret_verb)->operand || o->operand))
            return err_set(err, -EINVAL, "unexpected '%.80s'", argv[at]);
        if (operand)
            o->operand = argv[at];
        else if (view_option(argc, argv, &at, o, err) < 0)
            return err->code;
    }
    if ((*ret_verb)->operand && !o->operand)
        return err_set(err, -EINVAL, "%s needs %s", (*ret_verb)->name,
                       (*ret_verb)->operand);
    return 0;
}

int
ledger_command(const struct view *view, int argc, char **argv)
{
    struct view_options options = {0};
    const struct verb *verb;
    struct err err = {0};
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return print_help(view);
    if (parse(argc, argv, &verb, &options, &err) < 0) {
        complain(view, &err, EXIT_USAGE);
        fprintf(stderr, "Try 'adyton %s --help'.\n", view->name);
        return EXIT_USAGE;
    }
    struct view_out out = {.options = &options, .err = &err};
    buf_init(&out.text, OUT_BYTES_MAX);
    int status = verb->run(view, &out, &err);
    buf_done(&out.text);
    ledger_free(out.ledger);
    return status;
}
