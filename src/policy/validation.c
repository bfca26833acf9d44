/*
 * What a policy says of validation: the modules that each profile denies, and what each
 * rule weighs. The rules themselves are the check room's.
 */
#include "policy/internal.h"

#include <errno.h>
#include <stdio.h>

/* As the literal filter that strict is: what reaches files, processes, the network,
 * native code or the import system, and the private modules behind those. */
static const char *const strict_denied[] = {"os",
                                            "posix",
                                            "nt",
                                            "subprocess",
                                            "_posixsubprocess",
                                            "shutil",
                                            "socket",
                                            "_socket",
                                            "ctypes",
                                            "_ctypes",
                                            "multiprocessing",
                                            "_multiprocessing",
                                            "_posixshmem",
                                            "asyncio",
                                            "concurrent",
                                            "socketserver",
                                            "ssl",
                                            "_ssl",
                                            "select",
                                            "selectors",
                                            "http",
                                            "urllib",
                                            "ftplib",
                                            "smtplib",
                                            "poplib",
                                            "imaplib",
                                            "nntplib",
                                            "telnetlib",
                                            "xmlrpc",
                                            "webbrowser",
                                            "requests",
                                            "httpx",
                                            "aiohttp",
                                            "urllib3",
                                            "paramiko",
                                            "cffi",
                                            "_cffi_backend",
                                            "importlib",
                                            "imp",
                                            "_imp",
                                            "pkgutil",
                                            "runpy",
                                            "zipimport",
                                            "code",
                                            "codeop",
                                            "marshal",
                                            "gc",
                                            "builtins",
                                            "pty",
                                            "tty",
                                            "termios",
                                            "fcntl",
                                            "mmap",
                                            "resource",
                                            "signal",
                                            "syslog",
                                            "faulthandler",
                                            "sysconfig",
                                            "ensurepip",
                                            "pip",
                                            "venv",
                                            "_testcapi",
                                            "_interpreters",
                                            "_xxsubinterpreters",
                                            NULL};
/* Uses are judged one by one; these have no ordinary use at all. */
static const char *const standard_denied[] = {"posix",
                                              "nt",
                                              "_posixsubprocess",
                                              "_posixshmem",
                                              "_socket",
                                              "_ctypes",
                                              "_cffi_backend",
                                              "cffi",
                                              "_testcapi",
                                              "_testinternalcapi",
                                              "_interpreters",
                                              "_xxsubinterpreters",
                                              NULL};
static const char *const open_denied[] = {NULL};
_Static_assert(sizeof(strict_denied) / sizeof(char *) <= POLICY_LIST_MAX + 1,
               "as a file may");

static const char *const *const denied[CHECK_PROFILES] = {
    [CHECK_STRICT] = strict_denied,
    [CHECK_STANDARD] = standard_denied,
    [CHECK_OPEN] = open_denied,
};

static size_t
profile_of(const struct policy *policy)
{
    size_t i = 0;
    while (i + 1 < CHECK_PROFILES && strcmp(policy->extends, policy_profiles[i]) != 0)
        i++;
    return i;
}

const char *const *
policy_items(const struct policy *policy, const struct policy_field *field, size_t *ret_n)
{
    const struct policy_list *list = list_peek(policy, field);
    if (field->kind != FIELD_NAMES || list->given) {
        *ret_n = list->n;
        return (const char *const *)list->items;
    }
    const char *const *names = denied[profile_of(policy)];
    for (*ret_n = 0; names[*ret_n];)
        ++*ret_n;
    return names;
}

const char *const *
policy_imports_denied(const struct policy *policy, size_t *ret_n)
{
    return policy_items(policy, policy_field_by_name(span_of("imports_denied")), ret_n);
}

/* What the profile's table says, less what the policy's own fields allow. */
static enum check_severity
default_severity(const struct policy *policy, size_t rule)
{
    uint8_t severity = check_rules[rule].severity[profile_of(policy)];
    if (rule == RULE_PROCESS_START && policy->processes == PROCESSES_EXEC)
        return severity < CHECK_NOTE ? CHECK_NOTE : severity;
    if (rule == RULE_PROCESS_FORK && policy->processes != PROCESSES_NONE)
        return CHECK_OFF;
    if (rule == RULE_NETWORK_USE && policy->network == NETWORK_LOOPBACK)
        return severity < CHECK_WARNING ? CHECK_WARNING : severity;
    return severity;
}

enum check_severity
policy_severity(const struct policy *policy, size_t rule)
{
    return policy->rules[rule] > 0 ? (enum check_severity)(policy->rules[rule] - 1)
                                   : default_severity(policy, rule);
}

void
policy_check_settings(const struct policy *policy, struct check_settings *ret)
{
    *ret = (struct check_settings){.mode = (enum check_mode)policy->validation};
    for (size_t i = 0; i < CHECK_RULES; i++)
        ret->severity[i] = (uint8_t)policy_severity(policy, i);
}

static bool
is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

const char *
name_fault(const struct policy_list *list, struct span name)
{
    bool begins = true;
    if (name.n == 0 || name.n >= POLICY_NAME_BYTES)
        return "is not a module's name of 1 to 63 characters";
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool digit = c >= '0' && c <= '9';
        if (begins ? !is_letter(c) : !is_letter(c) && !digit && c != '.')
            return "is not a module's name like os or http.client";
        begins = c == '.';
    }
    if (begins)
        return "is not a module's name like os or http.client";
    for (size_t i = 0; i < list->n; i++)
        if (span_is(name, list->items[i]))
            return "is there twice";
    return NULL;
}

static const char *
nearest_rule(struct span name)
{
    enum { GUESS_DISTANCE_MAX = 3 };
    const char *guess = NULL;
    size_t nearest = GUESS_DISTANCE_MAX + 1;
    for (size_t i = 0; i < CHECK_RULES; i++) {
        size_t distance = edit_distance(name, span_of(check_rules[i].id));
        if (distance < nearest) {
            nearest = distance;
            guess = check_rules[i].id;
        }
    }
    return guess;
}

int
rule_parse(const char *who, struct span rule, struct span severity, size_t *ret_rule,
           uint64_t *ret, struct err *err)
{
    char shown[QUOTE_BYTES];
    size_t i = check_rule_by_id(rule), j = check_severity_by_name(severity);
    if (i == CHECK_RULES) {
        const char *guess = nearest_rule(rule);
        return err_set(err, -EINVAL, "%s: no rule '%s'%s%s%s", who, quote(rule, shown),
                       guess ? "; did you mean '" : "", guess ? guess : "",
                       guess ? "'?" : "");
    }
    if (j == CHECK_SEVERITIES)
        return err_set(err, -EINVAL,
                       "%s: %s: '%s' is not one of error, warning, note, off", who,
                       check_rules[i].id, quote(severity, shown));
    *ret_rule = i;
    *ret = j + 1;
    return 0;
}

/* Those that differ from what would hold without them: the rest is the profile's. */
static bool
is_changed(const struct policy *policy, size_t rule)
{
    return policy->rules[rule] > 0 &&
           policy->rules[rule] - 1 != (uint64_t)default_severity(policy, rule);
}

int
rules_format(const struct policy *policy, struct buf *out)
{
    int r = 0;
    bool first = true;
    for (size_t i = 0; i < CHECK_RULES && r == 0; i++)
        if (is_changed(policy, i)) {
            r = buf_printf(out, "%s%s=%s", first ? "" : ", ", check_rules[i].id,
                           check_severity_names[policy_severity(policy, i)]);
            first = false;
        }
    return r;
}

/* Every rule is shown; what the profile gives is a comment, so that a copy goes on
 * following the profile and the policy's other fields. */
int
rules_explain(const struct policy *policy, struct buf *out)
{
    bool none = true;
    for (size_t i = 0; i < CHECK_RULES; i++)
        none = none && !is_changed(policy, i);
    int r = buf_printf(out, "rules:%s\n", none ? " {}" : "");
    for (size_t i = 0; i < CHECK_RULES && r == 0; i++) {
        const char *severity = check_severity_names[policy_severity(policy, i)];
        bool off = policy_severity(policy, i) == CHECK_OFF;
        r = buf_printf(out, "%s%s: %s%s%s\n", is_changed(policy, i) ? "  " : "#   ",
                       check_rules[i].id, off ? "\"" : "", severity, off ? "\"" : "");
    }
    return r;
}
