/* Walks the rows of expect_rows.c: finds one, judges an answer, prints them all. */
#include "expect.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    const char *answers; /* what it implies; NULL: the row must say */
} decisions[DECISIONS] = {
    [PASSES] = {"passes", NULL},  [REFUSED] = {"refused", "EPERM"},
    [QUIET] = {"quiet", "EPERM"}, [UNKNOWN] = {"unknown", "ENOSYS"},
    [ENDED] = {"ended", ""},      [KILLED] = {"killed", "SIGSYS"},
};

static const struct {
    unsigned layer;
    const char *name;
} layers[LAYERS] = {
    {LAYER_SECCOMP, "seccomp"},   {LAYER_NAMESPACES, "namespaces"},
    {LAYER_LANDLOCK, "landlock"}, {LAYER_CAPABILITIES, "capabilities"},
    {LAYER_RLIMITS, "rlimits"},
};

const char *
layer_name(unsigned layer)
{
    for (size_t i = 0; i < LAYERS; i++) {
        if (layers[i].layer == layer)
            return layers[i].name;
    }
    return "own";
}

const char *
decision_name(enum decision decision)
{
    return decisions[decision].name;
}

const char *
expect_answers(const struct expect *expect)
{
    if (expect->answers)
        return expect->answers;
    const char *implied = decisions[expect->seccomp].answers;
    return implied ? implied : "";
}

static bool
covers(const char *pattern, const char *verb)
{
    size_t n = strlen(pattern);
    if (n > 0 && pattern[n - 1] == '*')
        return strncmp(pattern, verb, n - 1) == 0;
    return strcmp(pattern, verb) == 0;
}

/* A row of the whole name wins over one of its beginning, wherever it stands. */
const struct expect *
expect_find(const char *verb)
{
    const struct expect *found = NULL;
    for (size_t i = 0; i < expects_n; i++) {
        if (strcmp(expects[i].verb, verb) == 0)
            return &expects[i];
        if (!found && covers(expects[i].verb, verb))
            found = &expects[i];
    }
    return found;
}

bool
expect_accepts(const struct expect *expect, const char *answer)
{
    size_t n = strlen(answer);
    for (const char *p = expect_answers(expect); *p; p += strspn(p, " ")) {
        size_t word = strcspn(p, " ");
        if (word == n && memcmp(p, answer, n) == 0)
            return true;
        p += word;
    }
    return false;
}

static void
print_words(const char *words)
{
    const char *comma = "";
    putchar('[');
    for (const char *p = words; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        printf("%s\"%.*s\"", comma, (int)n, p);
        comma = ", ";
        p += n;
    }
    putchar(']');
}

static void
print_layers(unsigned set)
{
    const char *comma = "";
    putchar('[');
    for (size_t i = 0; i < LAYERS; i++) {
        if (!(set & layers[i].layer))
            continue;
        printf("%s\"%s\"", comma, layers[i].name);
        comma = ", ";
    }
    putchar(']');
}

static void
print_text(const char *key, const char *text)
{
    if (text)
        printf(", \"%s\": \"%s\"", key, text);
    else
        printf(", \"%s\": null", key);
}

static void
print_row(const struct verb_family *family, const struct verb *verb,
          const struct expect *row)
{
    printf(" {\"verb\": \"%s\", \"family\": \"%s\", \"aimed\": %s", verb->name,
           family->name, verb->aim != AIM_NONE ? "true" : "false");
    print_text("tries", verb->tries);
    print_text("call", row->call);
    print_text("decision", decision_name(row->seccomp));
    printf(", \"answers\": ");
    print_words(expect_answers(row));
    print_text("layer", layer_name(row->layer));
    printf(", \"alone\": ");
    print_layers(row->alone);
    print_text("control", row->control);
    putchar('}');
}

static int
print_family(const struct verb_family *family, const char **comma)
{
    int missing = 0;
    for (size_t i = 0; i < *family->verbs_n; i++) {
        const struct verb *verb = &family->verbs[i];
        const struct expect *row = expect_find(verb->name);
        if (!row) {
            fprintf(stderr, "verb %s has no row\n", verb->name);
            missing = 1;
            continue;
        }
        fputs(*comma, stdout);
        *comma = ",\n";
        print_row(family, verb, row);
    }
    return missing;
}

static bool
is_used(const struct expect *row)
{
    for (size_t f = 0; f < probe_families_n; f++) {
        for (size_t i = 0; i < *probe_families[f].verbs_n; i++) {
            if (expect_find(probe_families[f].verbs[i].name) == row)
                return true;
        }
    }
    return false;
}

int
expect_print(void)
{
    int wrong = 0;
    const char *comma = "";
    printf("[\n");
    for (size_t f = 0; f < probe_families_n; f++)
        wrong |= print_family(&probe_families[f], &comma);
    printf("\n]\n");
    for (size_t i = 0; i < expects_n; i++) {
        if (!is_used(&expects[i])) {
            /* Rows of another machine's verbs are no mistake. */
            fprintf(stderr, "row %s has no verb on this machine\n", expects[i].verb);
        }
    }
    return wrong;
}
