/* The check room: the rule table, acts, paths, bytes, positions, verdicts, renderings. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fd.h"
#include "check/acts.h"
#include "check/bytes.h"
#include "check/finding.h"
#include "check/path.h"
#include "check/render.h"
#include "check/source.h"

enum { TEXT_MAX = 1 << 22, PATH_MAX_BYTES = 512 };

static struct check_settings
settings_of(enum check_profile profile, enum check_mode mode)
{
    struct check_settings settings = {.mode = mode};
    for (size_t i = 0; i < CHECK_RULES; i++)
        settings.severity[i] = check_rules[i].severity[profile];
    return settings;
}

static void
test_rules_are_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < CHECK_RULES; i++) {
        const struct check_rule *rule = &check_rules[i];
        assert_non_null(rule->id);
        assert_true(strlen(rule->id) > 3 && strlen(rule->id) < 40);
        assert_int_equal(strspn(rule->id, "abcdefghijklmnopqrstuvwxyz-"),
                         strlen(rule->id));
        assert_true(strlen(rule->finds) > 10 && strlen(rule->why) > 10);
        assert_true(strlen(rule->hint) > 10 && rule->hint[strlen(rule->hint) - 1] == '.');
        assert_null(strchr(rule->finds, '|')); /* each is a cell of a table */
        assert_int_equal(check_rule_by_id(span_of(rule->id)), i);
        for (size_t j = 0; j < CHECK_PROFILES; j++)
            assert_true(rule->severity[j] < CHECK_SEVERITIES);
        /* A wider profile is never stricter. */
        assert_true(rule->severity[CHECK_STRICT] <= rule->severity[CHECK_STANDARD]);
        assert_true(rule->severity[CHECK_STANDARD] <= rule->severity[CHECK_OPEN]);
    }
    assert_int_equal(check_rule_by_id(span_of("no-such")), CHECK_RULES);
    assert_int_equal(check_severity_by_name(span_of("off")), CHECK_OFF);
    assert_int_equal(check_severity_by_name(span_of("fatal")), CHECK_SEVERITIES);
}

static void
test_acts_are_sorted_and_sound(void **state)
{
    (void)state;
    for (size_t i = 0; i < check_acts_n; i++) {
        const struct check_act *act = &check_acts[i];
        if (i > 0)
            assert_true(strcmp(check_acts[i - 1].name, act->name) < 0);
        assert_ptr_equal(check_act_by_name(act->name), act);
        assert_true(act->rule < CHECK_RULES);
        bool paths = act->paths[0].access != ACCESS_NONE;
        assert_true(paths == (act->does[0] == '\0')); /* a path, or words for the act */
        assert_true(paths == (act->rule == RULE_FILE_OUTSIDE));
        assert_true(!paths || act->when == ACT_CALLED);
    }
    assert_null(check_act_by_name("os.getcwd"));
    assert_null(check_act_by_name("os.path.join"));
    assert_null(check_act_by_name("shutil.disk_usage"));
    assert_null(check_act_by_name("zzz"));
    assert_non_null(check_attribute_by_name("__globals__"));
    assert_null(check_attribute_by_name("__name__"));
}

static void
test_paths_lead_where_they_do(void **state)
{
    static const char *const reads[] = {"/srv/data", "/usr/lib/python3"};
    static const struct check_folders folders = {"/tmp", "/workspace", reads, 2};
    static const struct {
        const char *path;
        bool prefix, read, write; /* outside for reading, for writing */
        const char *where;
    } rows[] = {
        {"data.csv", false, false, false, "/tmp/data.csv"},
        {"./a//b/../c", false, false, false, "/tmp/a/c"},
        {"/tmp", false, false, false, "/tmp"},
        {"/tmpx/a", false, true, true, "/tmpx/a"},
        {"../etc/passwd", false, true, true, "/etc/passwd"},
        {"a/../../etc/passwd", false, true, true, "/etc/passwd"},
        {"../../../../tmp/x", false, false, false, "/tmp/x"},
        {"/tmp/../etc/x", false, true, true, "/etc/x"},
        {"/", false, true, true, "/"},
        {"/..", false, true, true, "/"},
        {"/srv/data", false, false, true, "/srv/data"},
        {"/srv/data/a.csv", false, false, true, "/srv/data/a.csv"},
        {"/srv/database", false, true, true, "/srv/database"},
        {"/workspace/a", false, false, false, "/workspace/a"},
        {"/workspaces/a", false, true, true, "/workspaces/a"},
        {"/dev/null", false, false, false, "/dev/null"},
        {"/dev/nullx", false, true, true, "/dev/nullx"},
        {"/dev/sda", false, true, true, "/dev/sda"},
        {"/proc/self/status", false, false, true, "/proc/self/status"},
        {"/proc/1/environ", false, true, true, "/proc/1/environ"},
        /* Beginnings: only what cannot lead back in. */
        {"/etc/", true, true, true, "/etc/"},
        {"/home/u", true, true, true, "/home/u"},
        {"/t", true, false, false, "/t"},
        {"/proc/", true, false, true, "/proc/"},
        {"/srv/", true, false, true, "/srv/"},
        {"/tmp/", true, false, false, "/tmp/"},
        {"../", true, false, false, ""},
        {"", false, false, false, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char where[CHECK_PATH_BYTES] = "";
        struct span path = span_of(rows[i].path);
        bool read = check_path_is_outside(&folders, path, rows[i].prefix, false, where);
        bool write = check_path_is_outside(&folders, path, rows[i].prefix, true, where);
        if (read != rows[i].read || write != rows[i].write)
            fail_msg("'%s': read %d, write %d", rows[i].path, read, write);
        assert_string_equal(where, rows[i].where);
    }
    char where[CHECK_PATH_BYTES];
    assert_false(check_path_is_outside(&folders, (struct span){"/etc/\0x", 7}, false,
                                       false, where));
    char deep[4 * CHECK_PATH_BYTES];
    memset(deep, 'a', sizeof(deep));
    deep[0] = '/';
    assert_false(check_path_is_outside(&folders, (struct span){deep, sizeof(deep)}, false,
                                       true, where)); /* no such path can be opened */
}

static void
test_urls_are_no_paths(void **state)
{
    (void)state;
    struct span url = span_of("https://example.org/a.csv");
    assert_true(check_path_is_url(&url));
    struct span file = span_of("file:///etc/passwd");
    assert_false(check_path_is_url(&file));
    assert_true(span_is(file, "/etc/passwd"));
    struct span name = span_of("httpd.conf");
    assert_false(check_path_is_url(&name));
}

static void
test_bytes_name_the_place(void **state)
{
    static const struct {
        const char *text;
        size_t n;
        unsigned rule; /* CHECK_RULES: nothing */
        int line, column;
        const char *part;
    } rows[] = {
#define BYTES(text) text, sizeof(text) - 1
        {BYTES("x = 1\n"), CHECK_RULES, 0, 0, NULL},
        {BYTES(""), CHECK_RULES, 0, 0, NULL},
        {BYTES("a\nb\xc3\xa9\0"), RULE_SOURCE_ENCODING, 2, 3, "NUL"},
        {BYTES("\r\n\xc3\xa9 = '\xff'"), RULE_SOURCE_ENCODING, 2, 6,
         "0xff is not valid UTF-8"},
        {BYTES("\xed\xa0\x80"), RULE_SOURCE_ENCODING, 1, 1, "0xed"},
        {BYTES("\xe2\x82"), RULE_SOURCE_ENCODING, 1, 1, "0xe2"},
        {BYTES("# coding: latin-1\n\xff"), CHECK_RULES, 0, 0, NULL},
        {BYTES("# -*- coding: UTF_8 -*-\n\xc3\xa9"), CHECK_RULES, 0, 0, NULL},
        {BYTES("#!/x\n# vim: set fileencoding=utf-7 :\n"), RULE_OBFUSCATION, 2, 1,
         "utf-7"},
        {BYTES("\n# coding:utf7\n"), RULE_OBFUSCATION, 2, 1, "utf7"},
        {BYTES("x = 1\n# coding: utf-7\n"), CHECK_RULES, 0, 0, NULL},
        {BYTES("\n\n# coding: utf-7\n"), CHECK_RULES, 0, 0, NULL},
        {BYTES("s = 'coding: utf-7'\n"), CHECK_RULES, 0, 0, NULL},
        {BYTES("# coding: klingon\n"), RULE_SOURCE_ENCODING, 1, 1, "klingon"},
        {BYTES("# coding: ascii\n\xc3\xa9"), RULE_SOURCE_ENCODING, 2, 1, "not ASCII"},
        {BYTES("# coding: cp1252\n\x80"), CHECK_RULES, 0, 0, NULL},
        {BYTES("\xef\xbb\xbfx = 1"), CHECK_RULES, 0, 0, NULL},
        {BYTES("\xef\xbb\xbf# coding: latin-1"), RULE_SOURCE_ENCODING, 1, 1,
         "byte order mark"},
        {BYTES("12345678901234567"), RULE_SOURCE_SIZE, 0, 0,
         "17 bytes; the policy takes 16"},
#undef BYTES
    };
    enum { MOST = 16 };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct source source;
        struct finding finding = {.rule = CHECK_RULES};
        bool size = rows[i].rule == RULE_SOURCE_SIZE;
        source_init(&source, (struct span){rows[i].text, rows[i].n});
        bool found = check_bytes(&source, size ? MOST : TEXT_MAX, &finding);
        if (found != (rows[i].rule != CHECK_RULES))
            fail_msg("row %zu: %s", i, finding.text);
        assert_int_equal(finding.rule, rows[i].rule);
        assert_int_equal(finding.at.line, rows[i].line);
        assert_int_equal(finding.at.column, rows[i].column);
        if (rows[i].part && !strstr(finding.text, rows[i].part))
            fail_msg("row %zu: %s", i, finding.text);
        source_done(&source);
    }
}

static void
test_columns_are_characters(void **state)
{
    (void)state;
    struct source source;
    source_init(&source, span_of("a\xc3\xa9\xf0\x9f\x98\x80z\r\nsecond\rthird\n"));
    assert_int_equal(source_column(&source, 1, 0), 1);
    assert_int_equal(source_column(&source, 1, 3), 3);
    assert_int_equal(source_column(&source, 1, 7), 4);
    assert_int_equal(source_column(&source, 2, 6), 7);
    assert_int_equal(source_column(&source, 9, 0), 0);
    struct span line;
    /* Forwards, backwards, and again: with and without the index. */
    static const struct {
        int number;
        const char *text;
    } lines[] = {{3, "third"},
                 {1, "a\xc3\xa9\xf0\x9f\x98\x80z"},
                 {2, "second"},
                 {3, "third"},
                 {4, ""}};
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        assert_true(source_line(&source, lines[i].number, &line));
        assert_true(span_is(line, lines[i].text));
    }
    assert_false(source_line(&source, 5, &line));
    assert_false(source_line(&source, 0, &line));
    source_done(&source);
    source_init(&source, span_of("# coding: latin-1\n\xe4\xe4 = 1"));
    assert_int_equal(source_column(&source, 2, 4), 3); /* two bytes each as UTF-8 */
    source_done(&source);
}

static void
test_excerpts_show_the_place(void **state)
{
    char text[2 * FINDING_EXCERPT_BYTES];
    struct source source;
    struct finding finding = {.at = {.line = 1, .column = 400}};
    (void)state;
    memset(text, 'x', sizeof(text));
    text[399] = '!';
    source_init(&source, (struct span){text, sizeof(text)});
    source_excerpt(&source, &finding);
    assert_int_equal(finding.excerpt[400 - finding.excerpt_from], '!');
    source_done(&source);
}

static void
add(struct findings *findings, const struct check_settings *settings, unsigned rule,
    int line)
{
    struct finding finding = {.rule = (uint8_t)rule, .layer = LAYER_AST, .at.line = line};
    snprintf(finding.text, sizeof(finding.text), "row %d", line);
    assert_int_equal(findings_add(findings, settings, &finding), 0);
}

static void
test_lists_are_bounded_and_each_rule_has_room(void **state)
{
    enum { FLOOD = 5000 };
    (void)state;
    struct findings findings = {0};
    struct check_settings settings = settings_of(CHECK_STANDARD, CHECK_ENFORCE);
    for (int i = 0; i < FLOOD; i++)
        add(&findings, &settings, RULE_DYNAMIC_CODE, i);
    assert_false(check_rejects(&settings, &findings));
    for (unsigned rule = 0; rule < CHECK_RULES; rule++)
        for (int i = 0; i < FLOOD; i++)
            add(&findings, &settings, rule, i);
    assert_true(findings.n <= FINDINGS_MAX);
    assert_int_equal(findings.n + findings.dropped, (CHECK_RULES + 1 - 1) * FLOOD);
    for (unsigned rule = 0; rule < CHECK_RULES; rule++)
        if (settings.severity[rule] != CHECK_OFF)
            assert_true(findings.kept[rule] >= FINDINGS_RESERVED);
    assert_int_equal(findings.kept[RULE_PROCESS_FORK], 0); /* off in standard */
    findings_done(&findings);
}

static void
test_verdicts(void **state)
{
    static const struct {
        enum check_mode mode;
        unsigned rule;
        enum check_severity severity;
        bool rejected;
    } rows[] = {
        {CHECK_ENFORCE, RULE_PROCESS_START, CHECK_ERROR, true},
        {CHECK_ENFORCE, RULE_PROCESS_START, CHECK_WARNING, false},
        {CHECK_ENFORCE, RULE_PROCESS_START, CHECK_NOTE, false},
        {CHECK_ENFORCE, RULE_PROCESS_START, CHECK_OFF, false},
        {CHECK_WARN, RULE_PROCESS_START, CHECK_ERROR, false},
        {CHECK_SILENT, RULE_PROCESS_START, CHECK_ERROR, false},
        {CHECK_ENFORCE, RULE_SYNTAX_ERROR, CHECK_ERROR, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (int counted = 0; counted <= 1; counted++) { /* kept, or only counted */
            struct findings findings = {0};
            struct check_settings settings = settings_of(CHECK_STANDARD, rows[i].mode);
            settings.severity[rows[i].rule] = (uint8_t)rows[i].severity;
            if (counted)
                findings_count(&findings, &settings, rows[i].rule, 3);
            else
                add(&findings, &settings, rows[i].rule, 7);
            assert_int_equal(check_rejects(&settings, &findings), rows[i].rejected);
            findings_done(&findings);
        }
    struct findings none = {0};
    struct check_settings settings = settings_of(CHECK_STRICT, CHECK_ENFORCE);
    assert_false(check_rejects(&settings, &none));
}

static void
test_summaries(void **state)
{
    (void)state;
    char text[256];
    struct findings findings = {0};
    struct check_settings settings = settings_of(CHECK_STANDARD, CHECK_ENFORCE);
    add(&findings, &settings, RULE_DYNAMIC_CODE, 1);
    add(&findings, &settings, RULE_PROCESS_START, 3);
    check_summary(&findings, text, sizeof(text));
    assert_string_equal(text, "line 3: process-start: row 3");
    add(&findings, &settings, RULE_NATIVE_CODE, 4);
    check_summary(&findings, text, sizeof(text));
    assert_string_equal(text, "line 3: process-start: row 3, and 1 more");
    findings_done(&findings);
}

static void
test_text_is_printable(void **state)
{
    static const struct {
        const char *bytes, *shown;
    } rows[] = {
        {"plain", "plain"},
        {"a\tb\nc", "a b?c"},
        {"\x1b[2J", "?[2J"},
        {"\xc2\x9b"
         "31m",
         "?31m"},
        {"\xff\xfe", "??"},
        {"\xe2\x80\xae"
         "abc",
         "?abc"}, /* right-to-left override */
        {"\xc3\xa9\xf0\x9f\x98\x80", "\xc3\xa9\xf0\x9f\x98\x80"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char text[64];
        check_printable(span_of(rows[i].bytes), text, sizeof(text));
        assert_string_equal(text, rows[i].shown);
    }
    char small[4];
    check_printable(span_of("a\xf0\x9f\x98\x80"), small, sizeof(small));
    assert_string_equal(small, "a"); /* cut before a character */
}

static void
fill(struct checked *file)
{
    struct check_settings settings = settings_of(CHECK_STANDARD, CHECK_ENFORCE);
    struct finding finding = {.rule = RULE_FILE_OUTSIDE,
                              .layer = LAYER_AST,
                              .at = {2, 5, 2, 9},
                              .text = "open: '/etc/x' is outside",
                              .excerpt = "x = open('/etc/x')",
                              .excerpt_from = 1};
    *file = (struct checked){.name = "a b.py", .rejected = true};
    assert_int_equal(findings_add(&file->findings, &settings, &finding), 0);
    finding =
        (struct finding){.rule = RULE_SOURCE_SIZE, .layer = LAYER_BYTES, .text = "long"};
    assert_int_equal(findings_add(&file->findings, &settings, &finding), 0);
}

static void
test_text_has_a_caret(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = {.max = TEXT_MAX};
    struct checked file;
    fill(&file);
    assert_int_equal(check_render_text(&file, 1, false, &out), 0);
    assert_non_null(strstr(out.p,
                           "a b.py:2:5: error: open: '/etc/x' is outside [file-outside]\n"
                           "     2 | x = open('/etc/x')\n"
                           "       |     ^~~~\n"));
    assert_non_null(strstr(out.p, "a b.py: error: long [source-size]\n"));
    assert_non_null(strstr(out.p, "a b.py: rejected, 2 errors\n"));
    findings_done(&file.findings);
}

static void
test_findings_come_back_from_json(void **state)
{
    (void)state;
    struct checked file;
    struct findings again = {0};
    fill(&file);
    json_t *list = check_findings_json(&file.findings);
    assert_true(check_findings_take(list, &again));
    assert_int_equal(again.n, file.findings.n);
    for (size_t i = 0; i < again.n; i++) {
        const struct finding *a = &again.list[i], *b = &file.findings.list[i];
        assert_memory_equal(&a->at, &b->at, sizeof(a->at));
        assert_int_equal(a->rule, b->rule);
        assert_int_equal(a->severity, b->severity);
        assert_int_equal(a->layer, b->layer);
        assert_string_equal(a->text, b->text);
        assert_string_equal(a->excerpt, b->excerpt);
        assert_int_equal(a->excerpt_from, b->excerpt_from);
    }
    json_object_set_new(json_array_get(list, 0), "line", json_integer(-1));
    assert_false(check_findings_take(list, &again));
    json_object_set_new(json_array_get(list, 0), "line", json_integer(1));
    json_object_set_new(json_array_get(list, 0), "rule", json_string("none"));
    assert_false(check_findings_take(list, &again));
    json_decref(list);
    findings_done(&again);
    findings_done(&file.findings);
}

static void
test_sarif_percent_encodes_names(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = {.max = TEXT_MAX};
    struct checked file;
    fill(&file);
    assert_int_equal(check_render_sarif(&file, 1, &out), 0);
    json_t *log = json_loadb(out.p, out.n, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(log);
    assert_non_null(strstr(out.p, "\"a%20b.py\""));
    json_t *results =
        json_object_get(json_array_get(json_object_get(log, "runs"), 0), "results");
    assert_int_equal(json_array_size(results), 2);
    json_decref(log);
    findings_done(&file.findings);
}

static void
source_path(const char *name, char path[PATH_MAX_BYTES])
{
    const char *root = getenv("MESON_SOURCE_ROOT");
    static const char here[] = "tests/unit/test_check.c";
    if (root)
        snprintf(path, PATH_MAX_BYTES, "%s/%s", root, name);
    else
        snprintf(path, PATH_MAX_BYTES, "%.*s%s",
                 (int)(strlen(__FILE__) + 1 - sizeof(here)), __FILE__, name);
}

static void
test_manual_holds_the_table(void **state)
{
    static const char begin[] = "<!-- rules -->\n", end[] = "<!-- /rules -->";
    (void)state;
    char path[PATH_MAX_BYTES];
    source_path("docs/VALIDATION.md", path);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail_msg("%s cannot be opened", path);
    AUTO_BUF struct buf manual = {.max = TEXT_MAX};
    AUTO_BUF struct buf table = {.max = TEXT_MAX};
    assert_int_equal(fd_read_all(fd, &manual), 0);
    assert_int_equal(check_markdown(&table), 0);
    char *from = strstr(manual.p, begin), *to = strstr(manual.p, end);
    assert_true(from && to && from < to);
    *to = '\0';
    assert_string_equal(from + sizeof(begin) - 1, table.p); /* adyton check --rules */
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_are_whole),
        cmocka_unit_test(test_acts_are_sorted_and_sound),
        cmocka_unit_test(test_paths_lead_where_they_do),
        cmocka_unit_test(test_urls_are_no_paths),
        cmocka_unit_test(test_bytes_name_the_place),
        cmocka_unit_test(test_columns_are_characters),
        cmocka_unit_test(test_excerpts_show_the_place),
        cmocka_unit_test(test_lists_are_bounded_and_each_rule_has_room),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_summaries),
        cmocka_unit_test(test_text_is_printable),
        cmocka_unit_test(test_text_has_a_caret),
        cmocka_unit_test(test_findings_come_back_from_json),
        cmocka_unit_test(test_sarif_percent_encodes_names),
        cmocka_unit_test(test_manual_holds_the_table),
    };
    return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
