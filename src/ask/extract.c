/*
 * Fences as in CommonMark: three or more ` or ~, up to three blanks before them, the language
 * behind them; a fence of the same sign, as long or longer, ends the block. Blocks that say they
 * are Python are joined in their order, as cells of a notebook are; ones that say nothing count
 * when no other does. A block in another programming language is no code of ours, and is said
 * to be none; output and data in fences are just text.
 */
#include "ask/extract.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { FENCE_MIN = 3, INDENT_MAX = 3, LANGUAGE_BYTES = 24 };

enum language { LANGUAGE_NONE, LANGUAGE_PYTHON, LANGUAGE_OTHER, LANGUAGE_TEXT };

static const char *const python_names[] = {"python",  "python3",  "py",     "py3",
                                           "ipython", "ipython3", "jupyter"};
static const char *const other_names[] = {
    "bash",       "sh",     "shell",  "zsh",        "powershell", "bat",  "cmd",
    "javascript", "js",     "jsx",    "typescript", "ts",         "tsx",  "java",
    "kotlin",     "scala",  "c",      "cpp",        "c++",        "cc",   "csharp",
    "c#",         "cs",     "fsharp", "go",         "golang",     "rust", "rs",
    "ruby",       "rb",     "perl",   "pl",         "php",        "r",    "julia",
    "jl",         "lua",    "swift",  "matlab",     "octave",     "sql",  "haskell",
    "hs",         "elixir", "erlang", "clojure",    "dart",       "vb",   "vba",
};

struct block {
    enum language language;
    char name[LANGUAGE_BYTES];
    size_t begin, end; /* of its text */
    bool open;         /* no fence ended it */
};

struct fence {
    char sign;
    size_t n;
    size_t indent;
    struct span rest;
};

void
extract_init(struct extract *extract)
{
    *extract = (struct extract){0};
    buf_init(&extract->code, EXTRACT_CODE_BYTES_MAX);
}

void
extract_done(struct extract *extract)
{
    buf_done(&extract->code);
}

/* ---- fences ---- */

static bool
read_fence(struct span line, struct fence *ret)
{
    size_t at = 0, n = 0;
    while (at < line.n && at <= INDENT_MAX && line.p[at] == ' ')
        at++;
    if (at > INDENT_MAX || at >= line.n || (line.p[at] != '`' && line.p[at] != '~'))
        return false;
    while (at + n < line.n && line.p[at + n] == line.p[at])
        n++;
    *ret = (struct fence){line.p[at], n, at, {line.p + at + n, line.n - at - n}};
    /* `code` in a sentence is no fence. */
    return n >= FENCE_MIN && !(ret->sign == '`' && memchr(ret->rest.p, '`', ret->rest.n));
}

static bool
is_blank(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!strchr(" \t\r", s.p[i]) || s.p[i] == '\0')
            return false;
    return true;
}

static bool
is_among(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

static void
read_language(struct span info, struct block *block)
{
    size_t n = 0;
    while (info.n > 0 && strchr(" \t{.", info.p[0]) && info.p[0] != '\0') {
        info.p++;
        info.n--;
    }
    while (n < info.n && n < sizeof(block->name) - 1 && info.p[n] > 0x20 &&
           info.p[n] < 0x7F && !strchr(",:{}=\"", info.p[n]))
        n++;
    snprintf(block->name, sizeof(block->name), "%.*s", (int)n, info.p);
    if (n == 0)
        block->language = LANGUAGE_NONE;
    else if (is_among(block->name, python_names,
                      sizeof(python_names) / sizeof(*python_names)))
        block->language = LANGUAGE_PYTHON;
    else if (is_among(block->name, other_names,
                      sizeof(other_names) / sizeof(*other_names)))
        block->language = LANGUAGE_OTHER;
    else
        block->language = LANGUAGE_TEXT;
}

static struct span
line_at(struct span text, size_t at)
{
    const char *end = memchr(text.p + at, '\n', text.n - at);
    return (struct span){text.p + at, end ? (size_t)(end - text.p) - at : text.n - at};
}

/* The next block at or after *at; false: none. *at moves behind it. */
static bool
next_block(struct span text, size_t *at, struct block *ret, struct fence *ret_fence)
{
    bool inside = false;
    while (*at < text.n) {
        struct fence fence;
        struct span line = line_at(text, *at);
        size_t begin = *at;
        *at += line.n + (*at + line.n < text.n ? 1 : 0);
        if (!read_fence(line, &fence))
            continue;
        if (!inside) {
            inside = true;
            *ret = (struct block){.begin = *at, .end = text.n, .open = true};
            *ret_fence = fence;
            read_language(fence.rest, ret);
        } else if (fence.sign == ret_fence->sign && fence.n >= ret_fence->n &&
                   is_blank(fence.rest)) {
            ret->end = begin;
            ret->open = false;
            return true;
        }
    }
    return inside;
}

/* Lines of a block lose the blanks that its fence is moved in by. */
static int
append_block(struct buf *out, struct span text, size_t indent)
{
    int r = out->n > 0 && out->p[out->n - 1] != '\n' ? buf_append(out, "\n", 1) : 0;
    for (size_t at = 0; r == 0 && at < text.n;) {
        struct span line = line_at(text, at);
        size_t skip = 0;
        while (skip < indent && skip < line.n && line.p[skip] == ' ')
            skip++;
        size_t end = at + line.n < text.n ? 1 : 0;
        r = buf_append(out, line.p + skip, line.n - skip + end);
        at += line.n + end;
    }
    return r;
}

struct seen {
    size_t python, unnamed, other;
    bool open;
    char other_name[LANGUAGE_BYTES];
};

static void
see(struct seen *seen, const struct block *block)
{
    seen->python += block->language == LANGUAGE_PYTHON;
    seen->unnamed += block->language == LANGUAGE_NONE;
    seen->open = block->open && block->language != LANGUAGE_TEXT;
    if (block->language == LANGUAGE_OTHER && seen->other++ == 0)
        snprintf(seen->other_name, sizeof(seen->other_name), "%s", block->name);
}

static int
problem(struct extract *ret, const char *text, const char *name)
{
    ret->kind = EXTRACT_PROBLEM;
    snprintf(ret->problem, sizeof(ret->problem), "%s%s%s", text, name ? ": " : "",
             name ? name : "");
    return 0;
}

static int
join(struct span text, enum language language, struct extract *ret, struct err *err)
{
    struct block block;
    struct fence fence;
    size_t at = 0;
    while (next_block(text, &at, &block, &fence)) {
        if (block.language != language)
            continue;
        struct span body = {text.p + block.begin, block.end - block.begin};
        if (append_block(&ret->code, body, fence.indent) < 0)
            return err_set(err, -ENOSPC, "the model's code has more than %d bytes",
                           EXTRACT_CODE_BYTES_MAX);
        ret->blocks++;
    }
    ret->kind = EXTRACT_CODE;
    return ret->code.n > 0 ? 0 : problem(ret, "there is no code in the block", NULL);
}

static const char cut_off[] = "the answer was cut off before its end, and nothing of it "
                              "was run: write shorter code, "
                              "and less text around it";

int
extract_text(struct span text, bool cut, struct extract *ret, struct err *err)
{
    struct seen seen = {0};
    struct block block;
    struct fence fence;
    size_t at = 0, blocks = 0;
    while (next_block(text, &at, &block, &fence)) {
        if (++blocks > EXTRACT_BLOCKS_MAX)
            return problem(ret, "the answer has too many blocks: give one", NULL);
        see(&seen, &block);
    }
    /* Only the last one can be open: what was cut is part of it, or comes after all. */
    if (cut && seen.open)
        return problem(ret, cut_off, NULL);
    if (seen.python > 0)
        return join(text, LANGUAGE_PYTHON, ret, err);
    if (seen.other > 0)
        return problem(
            ret,
            "only Python can be run here, and nothing of the answer was: write "
            "it in Python. The code was marked as",
            seen.other_name);
    if (seen.unnamed > 0)
        return join(text, LANGUAGE_NONE, ret, err);
    return 0;
}

/* ---- arguments ---- */

/* Some put the code of a call into a fence. */
static int
take_code(struct span code, struct extract *ret, struct err *err)
{
    struct block block;
    struct fence fence;
    size_t at = 0;
    if (read_fence(line_at(code, 0), &fence) && next_block(code, &at, &block, &fence) &&
        (block.language == LANGUAGE_PYTHON || block.language == LANGUAGE_NONE) &&
        is_blank((struct span){code.p + at, code.n - at}))
        return join(code, block.language, ret, err);
    if (buf_append(&ret->code, code.p, code.n) < 0)
        return err_set(err, -ENOSPC, "the model's code has more than %d bytes",
                       EXTRACT_CODE_BYTES_MAX);
    ret->kind = EXTRACT_CODE;
    ret->blocks = 1;
    return 0;
}

static json_t *
load_object(struct span text)
{
    json_t *value = json_loadb(text.p, text.n, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    if (!json_is_string(value))
        return value;
    /* JSON in JSON: some wrap it twice. */
    json_t *inner = json_loadb(json_string_value(value), json_string_length(value),
                               JSON_ALLOW_NUL, NULL);
    json_decref(value);
    return inner;
}

int
extract_arguments(struct span arguments, bool cut, struct extract *ret, struct err *err)
{
    json_t *root = load_object(arguments);
    const json_t *code = json_object_get(root, "code");
    int r = 0;
    if (json_is_string(code) && json_string_length(code) > 0)
        r = take_code((struct span){json_string_value(code), json_string_length(code)},
                      ret, err);
    else if (json_is_object(root))
        problem(ret, "the call has no text in 'code': nothing was run", NULL);
    else if (cut)
        problem(ret, cut_off, NULL);
    else
        problem(ret,
                "the arguments are no JSON object, and nothing was run: call again with "
                "{\"code\": \"...\"}, and with line ends and quotes in the code escaped",
                NULL);
    json_decref(root);
    return r;
}
