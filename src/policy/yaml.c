/*
 * Policy files: a mapping of field names to values, read from libyaml's events so that
 * every error can name the line and the column it is about. Of YAML only that much is
 * taken: anchors, aliases, tags and second documents are refused, because a policy must
 * mean what it shows.
 *
 * A file may be wider than what it extends: whoever writes it is the operator. It must
 * not take a built-in profile's name, because the name is what the ledger and the
 * outcomes show.
 */
#include "policy/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <yaml.h>

#include "base/fd.h"
#include "base/units.h"

enum {
    PATH_SHOWN_BYTES = 72, /* the end of the file's path, in errors */
    TEXT_BYTES = 200,
    KEYS_MAX = 64,
    GUESS_DISTANCE_MAX = 2, /* letters between what was written and the name we offer */
};

struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; owned */
    bool has_event;
    const char *path;
    struct span text;
    struct err *err;
};

/* What the file says, before what it extends is known: `extends` may come last. */
struct draft {
    struct policy given;
    size_t line_of[KEYS_MAX]; /* by key: where it stands, 0 when it does not */
};

struct key {
    const char *name;
    int (*take)(struct reader *reader, struct draft *draft);
};

/* "FILE:LINE:COLUMN", the path cut at its front to leave room for the sentence. */
static int
place_error(struct reader *reader, size_t line, size_t column)
{
    const char *path = reader->path, *dots = "";
    size_t n = strlen(path);
    if (n > PATH_SHOWN_BYTES) {
        path += n - PATH_SHOWN_BYTES;
        dots = "...";
        while (((unsigned char)*path & 0xc0) == 0x80)
            path++; /* not into the middle of a character */
    }
    return err_wrap(reader->err, "%s%s:%zu:%zu", dots, path, line + 1, column + 1);
}

PRINTF(3, 4)
static int
fail(struct reader *reader, yaml_mark_t at, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    err_set(reader->err, -EINVAL, "%s", text);
    return place_error(reader, at.line, at.column);
}

/* libyaml tells the byte of a broken character, not its line. */
static yaml_mark_t
locate(struct span text, size_t offset)
{
    yaml_mark_t at = {0};
    for (size_t i = 0; i < offset && i < text.n; i++) {
        if (text.p[i] == '\n') {
            at.line++;
            at.column = 0;
        } else if (((unsigned char)text.p[i] & 0xc0) != 0x80) {
            at.column++;
        }
    }
    return at;
}

static int
fail_parser(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    const char *problem = parser->problem ? parser->problem : "it cannot be read";
    switch (parser->error) {
    case YAML_MEMORY_ERROR:
        return err_set(reader->err, -ENOMEM, "reading a policy file: out of memory");
    case YAML_READER_ERROR:
        return fail(reader, locate(reader->text, parser->problem_offset),
                    "not UTF-8 text: %s", problem);
    default:
        return fail(reader, parser->problem_mark, "not YAML: %s", problem);
    }
}

struct extras {
    const yaml_char_t *anchor;
    const yaml_char_t *tag;
};

static struct extras
extras_of(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return (struct extras){event->data.scalar.anchor, event->data.scalar.tag};
    case YAML_SEQUENCE_START_EVENT:
        return (struct extras){event->data.sequence_start.anchor,
                               event->data.sequence_start.tag};
    case YAML_MAPPING_START_EVENT:
        return (struct extras){event->data.mapping_start.anchor,
                               event->data.mapping_start.tag};
    default:
        return (struct extras){0};
    }
}

/* Steps to the next event, which is one that a policy file may hold. */
static int
next_event(struct reader *reader)
{
    if (reader->has_event)
        yaml_event_delete(&reader->event);
    reader->has_event = false;
    if (!yaml_parser_parse(&reader->parser, &reader->event))
        return fail_parser(reader);
    reader->has_event = true;

    yaml_mark_t at = reader->event.start_mark;
    struct extras extras = extras_of(&reader->event);
    if (reader->event.type == YAML_ALIAS_EVENT)
        return fail(reader, at, "aliases (*name) are not allowed: write the value out");
    if (extras.anchor)
        return fail(reader, at, "anchors (&name) are not allowed: write each value out");
    if (extras.tag)
        return fail(reader, at,
                    "tags (!name) are not allowed: every field has its one type");
    return 0;
}

static struct span
event_text(const struct reader *reader)
{
    return (struct span){(const char *)reader->event.data.scalar.value,
                         reader->event.data.scalar.length};
}

static int
need_scalar(struct reader *reader, const char *name, const char *wanted)
{
    if (reader->event.type == YAML_SCALAR_EVENT)
        return 0;
    return fail(
        reader, reader->event.start_mark, "%s: needs one value, not a %s: %s", name,
        reader->event.type == YAML_SEQUENCE_START_EVENT ? "list" : "mapping", wanted);
}

static bool
is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '-' || c == '_' || c == '.';
}

static int
keep_name(struct reader *reader, struct span text, yaml_mark_t at,
          char ret[POLICY_NAME_BYTES])
{
    char shown[QUOTE_BYTES];
    bool fits = text.n > 0 && text.n < POLICY_NAME_BYTES;
    for (size_t i = 0; i < text.n && fits; i++)
        fits = is_name_byte(text.p[i]);
    if (!fits)
        return fail(
            reader, at,
            "name: '%s' is not 1 to %d letters, digits, '-', '_' and '.' of ASCII",
            quote(text, shown), POLICY_NAME_BYTES - 1);
    if (profile_find(text))
        return fail(
            reader, at,
            "name: '%s' is a built-in profile: give this policy a `name` of its own",
            quote(text, shown));
    memcpy(ret, text.p, text.n);
    ret[text.n] = '\0';
    return 0;
}

static int
take_name(struct reader *reader, struct draft *draft)
{
    int r = need_scalar(reader, "name", "letters, digits, '-', '_' and '.'");
    if (r < 0)
        return r;
    return keep_name(reader, event_text(reader), reader->event.start_mark,
                     draft->given.name);
}

static int
take_extends(struct reader *reader, struct draft *draft)
{
    char shown[QUOTE_BYTES];
    int r = need_scalar(reader, "extends", "the name of a built-in profile");
    if (r < 0)
        return r;
    const struct policy *base = profile_find(event_text(reader));
    if (!base)
        return fail(reader, reader->event.start_mark,
                    "extends: '%s' is not one of %s, %s, %s",
                    quote(event_text(reader), shown), policy_profiles[0],
                    policy_profiles[1], policy_profiles[2]);
    memcpy(draft->given.extends, base->name, sizeof(base->name));
    return 0;
}

static const struct key own_keys[] = {{"name", take_name}, {"extends", take_extends}};
enum { OWN_KEYS = sizeof(own_keys) / sizeof(*own_keys) };

/* Keys by number: our own first, then the fields. */
static const char *
key_name(size_t i)
{
    return i < OWN_KEYS ? own_keys[i].name : policy_fields[i - OWN_KEYS].name;
}

static int
take_items(struct reader *reader, const struct policy_field *field, struct draft *draft)
{
    const char *what = field->kind == FIELD_PATHS ? "absolute path" : "name";
    struct policy_list *list = list_of(&draft->given, field);
    if (reader->event.type != YAML_SEQUENCE_START_EVENT)
        return fail(reader, reader->event.start_mark, "%s: needs a list of %ss",
                    field->name, what);
    list->given = true;
    for (;;) {
        int r = next_event(reader);
        if (r < 0 || reader->event.type == YAML_SEQUENCE_END_EVENT)
            return r;
        if (reader->event.type != YAML_SCALAR_EVENT)
            return fail(reader, reader->event.start_mark,
                        "%s: an item is one %s, nothing deeper", field->name, what);
        r = list_add(list, field, field->name, event_text(reader), reader->err);
        if (r < 0)
            return place_error(reader, reader->event.start_mark.line,
                               reader->event.start_mark.column);
    }
}

static int
take_scalar(struct reader *reader, const struct policy_field *field, struct draft *draft)
{
    char range[POLICY_RANGE_BYTES], shown[QUOTE_BYTES];
    yaml_mark_t at = reader->event.start_mark;
    int r = need_scalar(reader, field->name, policy_range(field, range));
    if (r < 0)
        return r;
    if (field->kind == FIELD_COUNT &&
        reader->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return fail(reader, at, "%s: '%s' is text: a whole number has no quotes, %s",
                    field->name, quote(event_text(reader), shown), range);
    uint64_t value;
    r = value_parse(field, field->name, event_text(reader), &value, reader->err);
    if (r < 0)
        return place_error(reader, at.line, at.column);
    value_set(&draft->given, field, value);
    return 0;
}

/* A mapping of rule: severity. */
static int
take_rules(struct reader *reader, const struct policy_field *field, struct draft *draft)
{
    if (reader->event.type != YAML_MAPPING_START_EVENT)
        return fail(reader, reader->event.start_mark,
                    "%s: needs a mapping of rules to error, warning, note or off",
                    field->name);
    for (;;) {
        char rule_name[POLICY_NAME_BYTES];
        size_t rule;
        uint64_t value;
        int r = next_event(reader);
        if (r < 0 || reader->event.type == YAML_MAPPING_END_EVENT)
            return r;
        yaml_mark_t at = reader->event.start_mark;
        if (reader->event.type != YAML_SCALAR_EVENT)
            return fail(reader, at, "%s: a rule's name must be plain text", field->name);
        struct span name = event_text(reader);
        size_t n = name.n < sizeof(rule_name) - 1 ? name.n : sizeof(rule_name) - 1;
        memcpy(rule_name, name.p, n);
        rule_name[n] = '\0';
        r = next_event(reader);
        if (r == 0)
            r = need_scalar(reader, rule_name, "error, warning, note or off");
        if (r < 0)
            return r;
        r = rule_parse(field->name, span_of(rule_name), event_text(reader), &rule, &value,
                       reader->err);
        if (r < 0)
            return place_error(reader, at.line, at.column);
        if (draft->given.rules[rule] != 0)
            return fail(reader, at, "%s: %s is there twice", field->name, rule_name);
        draft->given.rules[rule] = value;
    }
}

static int
fail_unknown(struct reader *reader, struct span name, size_t keys_n)
{
    char shown[QUOTE_BYTES];
    const char *guess = NULL;
    size_t nearest = GUESS_DISTANCE_MAX + 1;
    for (size_t i = 0; i < keys_n; i++) {
        size_t distance = edit_distance(name, span_of(key_name(i)));
        if (distance < nearest) {
            nearest = distance;
            guess = key_name(i);
        }
    }
    if (guess)
        return fail(reader, reader->event.start_mark,
                    "%s: no such field; did you mean '%s'?", quote(name, shown), guess);
    return fail(reader, reader->event.start_mark,
                "%s: no such field; `adyton policy --help` lists them",
                quote(name, shown));
}

/* The current event is where a key stands. */
static int
take_entry(struct reader *reader, struct draft *draft)
{
    const size_t keys_n = OWN_KEYS + policy_fields_n;
    yaml_mark_t at = reader->event.start_mark;
    assert(keys_n <= KEYS_MAX);
    if (reader->event.type != YAML_SCALAR_EVENT)
        return fail(reader, at, "a field's name must be plain text");
    size_t i = 0;
    while (i < keys_n && !span_is(event_text(reader), key_name(i)))
        i++;
    if (i == keys_n)
        return fail_unknown(reader, event_text(reader), keys_n);
    if (draft->line_of[i] > 0)
        return fail(reader, at, "%s: is there twice, first in line %zu", key_name(i),
                    draft->line_of[i]);
    draft->line_of[i] = at.line + 1;

    int r = next_event(reader);
    if (r < 0)
        return r;
    if (i < OWN_KEYS)
        return own_keys[i].take(reader, draft);
    const struct policy_field *field = &policy_fields[i - OWN_KEYS];
    return field->kind == FIELD_RULES ? take_rules(reader, field, draft)
           : policy_is_scalar(field)  ? take_scalar(reader, field, draft)
                                      : take_items(reader, field, draft);
}

/* Every event is either an entry of the one mapping or checked here to be where it must
 * be. */
static int
read_document(struct reader *reader, struct draft *draft)
{
    int r = next_event(reader); /* the start of the stream */
    if (r == 0)
        r = next_event(reader);
    if (r < 0)
        return r;
    if (reader->event.type == YAML_STREAM_END_EVENT)
        return fail(reader, (yaml_mark_t){0},
                    "the file is empty; `extends: %s` alone is a policy", policy_default);
    r = next_event(reader);
    if (r < 0)
        return r;
    if (reader->event.type != YAML_MAPPING_START_EVENT)
        return fail(reader, reader->event.start_mark,
                    "a policy is a mapping: lines of `field: value`");
    for (;;) {
        r = next_event(reader);
        if (r < 0)
            return r;
        if (reader->event.type == YAML_MAPPING_END_EVENT)
            break;
        r = take_entry(reader, draft);
        if (r < 0)
            return r;
    }
    r = next_event(reader); /* the end of the document */
    if (r == 0)
        r = next_event(reader);
    if (r < 0 || reader->event.type == YAML_STREAM_END_EVENT)
        return r;
    return fail(reader, reader->event.start_mark,
                "a policy file holds one document, not several");
}

/* Without a `name`, the file's own, with what a name may not hold turned into '-'. */
static int
name_by_file(struct reader *reader, char ret[POLICY_NAME_BYTES])
{
    const char *slash = strrchr(reader->path, '/');
    char name[POLICY_NAME_BYTES];
    snprintf(name, sizeof(name), "%s", slash ? slash + 1 : reader->path);
    for (char *p = name; *p; p++)
        if (!is_name_byte(*p))
            *p = '-';
    return keep_name(reader, span_of(name), (yaml_mark_t){0}, ret);
}

/* Lays what the file gives over what it extends; the draft's lists move. */
static int
finish(struct reader *reader, struct draft *draft, struct policy *ret)
{
    struct policy *given = &draft->given;
    if (given->name[0] == '\0') {
        int r = name_by_file(reader, given->name);
        if (r < 0)
            return r;
    }
    const char *extends = given->extends[0] ? given->extends : policy_default;
    struct policy policy = *profile_find(span_of(extends));
    memcpy(policy.name, given->name, sizeof(policy.name));
    for (size_t i = 0; i < policy_fields_n; i++) {
        const struct policy_field *field = &policy_fields[i];
        if (draft->line_of[OWN_KEYS + i] == 0)
            continue;
        if (policy_is_scalar(field)) {
            value_set(&policy, field, policy_scalar(given, field));
        } else if (field->kind == FIELD_RULES) {
            memcpy(policy.rules, given->rules, sizeof(policy.rules));
        } else {
            *list_of(&policy, field) = *list_of(given, field);
            *list_of(given, field) = (struct policy_list){0};
        }
    }
    *ret = policy;
    return 0;
}

static int
read_file(const char *path, struct buf *text, struct err *err)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return err_sys(err, "%s", path);
    int r = fd_read_all(fd, text);
    if (r == -ENOSPC) {
        char most[UNITS_TEXT_BYTES];
        return err_set(err, -EFBIG, "%s: is larger than a policy file may be (%s)", path,
                       format_bytes(POLICY_FILE_BYTES, most));
    }
    if (r < 0) {
        errno = -r;
        return err_sys(err, "%s", path);
    }
    return 0;
}

int
policy_load_file(const char *path, struct policy *ret, struct err *err)
{
    AUTO_BUF struct buf text = {0};
    buf_init(&text, POLICY_FILE_BYTES);
    int r = read_file(path, &text, err);
    if (r < 0)
        return r;

    struct reader reader = {.path = path, .text = buf_span(&text), .err = err};
    struct draft draft = {0};
    if (!yaml_parser_initialize(&reader.parser))
        return err_set(err, -ENOMEM, "reading %s: out of memory", path);
    /* Named, because libyaml would otherwise take UTF-16 as well where a byte order mark
     * asks. */
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const yaml_char_t *)reader.text.p,
                                 reader.text.n);
    r = read_document(&reader, &draft);
    if (r == 0)
        r = finish(&reader, &draft, ret);
    policy_done(&draft.given);
    if (reader.has_event)
        yaml_event_delete(&reader.event);
    yaml_parser_delete(&reader.parser);
    return r;
}
