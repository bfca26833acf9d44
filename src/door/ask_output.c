/*
 * All text of the model and of its code passes a filter on the way to a terminal. To a pipe or a
 * file it goes as it is: who reads that wants the bytes.
 */
#include "door/ask_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ask/result.h"
#include "base/fd.h"
#include "check/render.h"
#include "door/ask_text.h"

enum { PAGE_BYTES_MAX = 64 << 20, FINDINGS_SHOWN = 20, ANSWER_BYTES = 64 };

void
ask_output_init(struct ask_output *output, const struct ask_options *options)
{
    *output = (struct ask_output){.options = options,
                                  .out_is_terminal = isatty(STDOUT_FILENO) == 1,
                                  .err_is_terminal = isatty(STDERR_FILENO) == 1};
    bool quiet = options->run.verbosity == RUN_QUIET;
    output->is_live = output->out_is_terminal && !options->json && !options->dry_run;
    output->results.folder = options->run.out_dir;
    output->results.is_terminal = output->out_is_terminal;
    output->results.may_make = output->err_is_terminal && !quiet && !options->json;
}

/* stderr is for people and may be a terminal at any time (`2>&1 | less -R`): it is always
 * filtered. */
static void
say(struct span text)
{
    AUTO_BUF struct buf page = {0};
    buf_init(&page, PAGE_BYTES_MAX);
    int r = ask_text_append(text, &page);
    if (r == 0 && page.n > 0 && page.p[page.n - 1] != '\n')
        r = buf_append(&page, "\n", 1);
    if (r == 0)
        (void)!fd_write_all(STDERR_FILENO, page.p, page.n);
}

static void
say_line(const char *line)
{
    char text[400];
    int n = snprintf(text, sizeof(text), "adyton ask: %s", line);
    if (n > 0)
        say((struct span){text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1});
}

void
ask_output_text(struct ask_output *output, struct span text)
{
    AUTO_BUF struct buf page = {0};
    buf_init(&page, PAGE_BYTES_MAX);
    if (text.n == 0 || ask_text_append(text, &page) < 0)
        return;
    (void)!fd_write_all(STDOUT_FILENO, page.p, page.n);
    output->is_mid_line = text.p[text.n - 1] != '\n';
}

static void
end_text(struct ask_output *output)
{
    if (output->is_mid_line)
        (void)!fd_write_all(STDOUT_FILENO, "\n", 1);
    output->is_mid_line = false;
}

static bool
is_verbose(const struct ask_output *output)
{
    return output->options->run.verbosity == RUN_VERBOSE;
}

void
ask_output_step(struct ask_output *output, const char *line)
{
    end_text(output);
    if (is_verbose(output))
        say_line(line);
}

void
ask_output_wait(struct ask_output *output, const char *line)
{
    end_text(output);
    if (output->options->run.verbosity != RUN_QUIET)
        say_line(line);
}

static bool
asks(const struct ask_output *output)
{
    const struct ask_options *o = output->options;
    return o->confirm == CONFIRM_ALWAYS ||
           (o->confirm == CONFIRM_ON_TERMINAL && output->err_is_terminal &&
            isatty(STDIN_FILENO) == 1);
}

void
ask_output_code(struct ask_output *output, struct span code)
{
    end_text(output);
    if (is_verbose(output) || asks(output))
        say(code);
}

static void
say_findings(const struct outcome *outcome)
{
    AUTO_BUF struct buf text = {0};
    buf_init(&text, PAGE_BYTES_MAX);
    if (check_render_findings("main.py", &outcome->findings, FINDINGS_SHOWN, false,
                              &text) == 0 &&
        text.n > 0)
        say(buf_span(&text));
}

/* Images that the new piece has shown: they are the person's, whatever the model says of them. */
static void
show_images(struct ask_output *output, const struct outcome *outcome)
{
    AUTO_BUF struct buf out = {0}, lines = {0};
    struct program_cut cut;
    buf_init(&out, PAGE_BYTES_MAX);
    buf_init(&lines, PAGE_BYTES_MAX);
    program_cut(output->program, outcome, &cut);
    for (size_t i = cut.displays_at; i < outcome->displays.items_n; i++) {
        const struct display_item *item = outcome->displays.items[i];
        if (!display_item_part(item, "image/png"))
            continue;
        if (output->out_is_terminal && !output->options->json && !output->asked_terminal)
            output->results.protocol = images_ask(STDOUT_FILENO);
        output->asked_terminal = true;
        if (results_show(&output->results, item, &out, &lines) < 0)
            return;
    }
    if (!output->options->json) /* made for a terminal, by the results' own filter */
        (void)!fd_write_all(STDOUT_FILENO, out.p ? out.p : "", out.n);
    if (output->options->run.verbosity != RUN_QUIET && lines.n > 0)
        say(buf_span(&lines));
}

void
ask_output_outcome(struct ask_output *output, const struct outcome *outcome,
                   bool validated_only)
{
    AUTO_BUF struct buf text = {0};
    buf_init(&text, RESULT_BYTES_MAX);
    if (validated_only) {
        if (output->options->dry_run)
            say_findings(outcome);
        return;
    }
    if (is_verbose(output) && result_text(outcome, output->program, &text) == 0)
        say(buf_span(&text));
    if (outcome->status == STATUS_OK)
        show_images(output, outcome);
}

/* The terminal itself: stdin may be the question. */
static bool
read_yes(void)
{
    char line[ANSWER_BYTES];
    AUTO_CLOSE int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, line, sizeof(line));
    return n >= 2 && (line[0] == 'y' || line[0] == 'Y') &&
           (line[1] == '\n' || strncmp(line + 1, "es\n", (size_t)n - 1) == 0);
}

bool
ask_output_may_run(struct ask_output *output, const struct outcome *verdict)
{
    static const char question[] = "Run this? [y/N] ";
    if (!asks(output))
        return true;
    say_findings(verdict);
    (void)!fd_write_all(STDERR_FILENO, question, sizeof(question) - 1);
    return read_yes();
}

/* ---- at the end ---- */

static int
write_out(const struct ask_output *output, struct span text, struct err *err)
{
    AUTO_BUF struct buf page = {0};
    buf_init(&page, PAGE_BYTES_MAX);
    int r = output->out_is_terminal ? ask_text_append(text, &page)
                                    : buf_append(&page, text.p, text.n);
    if (r == 0 && text.n > 0 && text.p[text.n - 1] != '\n')
        r = buf_append(&page, "\n", 1);
    if (r == 0 && page.n > 0)
        r = fd_write_all(STDOUT_FILENO, page.p, page.n);
    return r < 0 ? err_set(err, r, "the answer cannot be written to stdout") : 0;
}

static json_t *
outcome_value(const struct ask_answer *answer)
{
    AUTO_BUF struct buf text = {0};
    buf_init(&text, PAGE_BYTES_MAX * 4);
    if (!answer->has_outcome ||
        outcome_json(&answer->outcome, OUTCOME_JSON_COMPACT, &text) < 0)
        return json_null();
    json_t *value = json_loadb(text.p, text.n, JSON_ALLOW_NUL, NULL);
    return value ? value : json_null();
}

static int
write_json(const struct ask_output *output, const struct ask_answer *answer,
           struct err *err)
{
    const struct ask_options *o = output->options;
    struct span text = buf_span(&answer->text),
                program = buf_span(&answer->program.pieces);
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s%, s:s%, s:O, s:i, s:i, s:{s:I, s:I}, s:o}",
        "schema", "adyton.ask/1", "id", answer->id, "api", o->form->name, "model",
        o->model, "end", ask_end_name(answer->end), "reason", answer->reason, "answer",
        text.p, text.n, "program", program.p, program.n, "steps", answer->steps,
        "requests", (int)answer->requests, "runs", (int)answer->runs, "tokens", "input",
        (json_int_t)answer->input_tokens, "output", (json_int_t)answer->output_tokens,
        "outcome", outcome_value(answer));
    char *document =
        root ? json_dumps(root, output->out_is_terminal ? JSON_INDENT(2) : JSON_COMPACT)
             : NULL;
    json_decref(root);
    if (!document)
        return err_set(err, -ENOMEM, "no memory for the JSON document");
    int r = write_out(output, span_of(document), err);
    free(document);
    return r;
}

static int
save(const char *path, const struct program *program, struct err *err)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    struct span text = buf_span(&program->pieces);
    if (fd < 0)
        return err_sys(err, "--save: cannot open '%.120s'", path);
    int r = fd_write_all(fd, text.p, text.n);
    return r < 0 ? err_set(err, r, "--save: cannot write '%.120s'", path) : 0;
}

static void
say_sum(const struct ask_answer *answer)
{
    char line[200];
    snprintf(line, sizeof(line), "%s: %u requests, %u runs, %llu + %llu tokens",
             answer->id, answer->requests, answer->runs,
             (unsigned long long)answer->input_tokens,
             (unsigned long long)answer->output_tokens);
    say_line(line);
}

static void
say_ending(const struct ask_output *output, const struct ask_answer *answer)
{
    char line[200];
    if (answer->reason[0] != '\0')
        say_line(answer->reason);
    snprintf(line, sizeof(line),
             "images that were shown and not kept: %llu; give --out DIR",
             (unsigned long long)output->results.unsaved);
    if (output->results.unsaved > 0)
        say_line(line);
}

int
ask_output_finish(struct ask_output *output, const struct ask_answer *answer,
                  struct err *err)
{
    const struct ask_options *o = output->options;
    const struct buf *text =
        answer->end == ASK_SHOWN ? &answer->program.pieces : &answer->text;
    end_text(output);
    int r = o->save ? save(o->save, &answer->program, err) : 0;
    if (r == 0 && o->json)
        r = write_json(output, answer, err);
    else if (r == 0 && !output->is_live)
        r = write_out(output, buf_span(text), err);
    if (r == 0 && o->run.verbosity != RUN_QUIET)
        say_ending(output, answer);
    if (r == 0 && is_verbose(output))
        say_sum(answer);
    return r;
}
