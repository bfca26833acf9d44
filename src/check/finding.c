/* The bounded list of findings, and the verdict over it. */
#include "check/finding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static int
decode(const char *p, int length)
{
    static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    int point = (unsigned char)p[0] & first[length];
    for (int i = 1; i < length; i++)
        point = point << 6 | ((unsigned char)p[i] & 0x3f);
    return point;
}

/* Controls (C0, DEL, C1), line and paragraph separators, and what turns the direction of
 * text (Trojan Source). */
static bool
is_shown(int point)
{
    static const struct {
        int from, to;
    } hidden[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x200e, 0x200f},  {0x2028, 0x202e},
                  {0x2066, 0x2069}, {0xfeff, 0xfeff}, {0xe0000, 0xe007f}};
    for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
        if (point >= hidden[i].from && point <= hidden[i].to)
            return false;
    return true;
}

void
check_printable(struct span bytes, char *text, size_t n)
{
    size_t used = 0;
    while (bytes.n > 0) {
        int length = utf8_next(bytes);
        size_t step = length > 0 ? (size_t)length : 1;
        if (used + step >= n)
            break;
        bool shown = length > 0 && is_shown(decode(bytes.p, length));
        if (shown)
            memmove(text + used, bytes.p, step); /* the two may be one buffer */
        else
            text[used] = bytes.p[0] == '\t' ? ' ' : '?';
        used += shown ? step : 1;
        bytes.p += step;
        bytes.n -= step;
    }
    text[used] = '\0';
}

static bool
has_room(const struct findings *findings, unsigned rule)
{
    if (findings->n >= FINDINGS_MAX)
        return false;
    return findings->n < FINDINGS_MAX - FINDINGS_RESERVED * CHECK_RULES ||
           findings->kept[rule] < FINDINGS_RESERVED;
}

static int
grow(struct findings *findings)
{
    if (findings->n < findings->capacity)
        return 0;
    enum { FIRST = 8 };
    size_t capacity = findings->capacity ? findings->capacity * 2 : FIRST;
    struct finding *list = realloc(findings->list, capacity * sizeof(*list));
    if (!list)
        return -ENOMEM;
    findings->list = list;
    findings->capacity = capacity;
    return 0;
}

int
findings_add(struct findings *findings, const struct check_settings *settings,
             const struct finding *finding)
{
    unsigned rule = finding->rule;
    if (rule >= CHECK_RULES || settings->severity[rule] >= CHECK_OFF)
        return 0;
    findings->counts[rule]++;
    if (!has_room(findings, rule)) {
        findings->dropped++;
        return 0;
    }
    int r = grow(findings);
    if (r < 0)
        return r;
    struct finding *row = &findings->list[findings->n++];
    *row = *finding;
    row->severity = settings->severity[rule];
    check_printable(
        (struct span){finding->text, strnlen(finding->text, FINDING_TEXT_BYTES)},
        row->text, sizeof(row->text));
    check_printable(
        (struct span){finding->excerpt, strnlen(finding->excerpt, FINDING_EXCERPT_BYTES)},
        row->excerpt, sizeof(row->excerpt));
    findings->kept[rule]++;
    return 0;
}

void
findings_count(struct findings *findings, const struct check_settings *settings,
               unsigned rule, uint64_t more)
{
    if (rule >= CHECK_RULES || settings->severity[rule] >= CHECK_OFF)
        return;
    findings->counts[rule] += more;
    findings->dropped += more;
}

void
findings_done(struct findings *findings)
{
    free(findings->list);
    *findings = (struct findings){0};
}

bool
check_rejects(const struct check_settings *settings, const struct findings *findings)
{
    if (settings->mode != CHECK_ENFORCE)
        return false;
    for (size_t i = 0; i < CHECK_RULES; i++)
        if (findings->counts[i] > 0 && settings->severity[i] == CHECK_ERROR)
            return true;
    return false;
}

const struct finding *
check_reason(const struct findings *findings)
{
    for (size_t i = 0; i < findings->n; i++)
        if (findings->list[i].severity == CHECK_ERROR)
            return &findings->list[i];
    return NULL;
}

void
check_summary(const struct findings *findings, char *text, size_t n)
{
    const struct finding *reason = check_reason(findings);
    uint64_t errors = 0;
    for (size_t i = 0; i < findings->n; i++)
        errors += findings->list[i].severity == CHECK_ERROR;
    char line[32] = "", more[48] = "";
    if (reason && reason->at.line > 0)
        snprintf(line, sizeof(line), "line %d: ", reason->at.line);
    if (errors > 1)
        snprintf(more, sizeof(more), ", and %llu more", (unsigned long long)errors - 1);
    /* The sentence is cut, not the count behind it. */
    char sentence[FINDING_TEXT_BYTES];
    snprintf(sentence, sizeof(sentence), "%s",
             reason ? reason->text : "see the findings");
    size_t around = strlen(line) + strlen(more) + sizeof("interpreter-tampering: ");
    size_t room = n > around ? n - around : 1;
    check_printable((struct span){sentence, strlen(sentence)}, sentence,
                    room < sizeof(sentence) ? room : sizeof(sentence));
    snprintf(text, n, "%s%s%s%s%s", line, reason ? check_rules[reason->rule].id : "",
             reason ? ": " : "", sentence, more);
}
