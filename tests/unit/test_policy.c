/* The policy room: every row of the field table, narrowing, printing, the schema. */
#include "policy_texts.h"

#include <errno.h>
#include <stdlib.h>

/* "FIELD: VALUE\n" in a file of its own. */
static int
load_line(const char *field, const char *value, struct policy *ret, struct err *err)
{
    char text[PATH_MAX_BYTES];
    snprintf(text, sizeof(text), "%s: %s\n", field, value);
    return load_text(span_of(text), ret, err, NULL);
}

static void
assert_same_fields(const struct policy *a, const struct policy *b)
{
    for (size_t i = 0; i < policy_fields_n; i++) {
        AUTO_BUF struct buf text = {.max = TEXT_MAX};
        assert_int_equal(policy_format(a, &policy_fields[i], &text), 0);
        assert_field(b, policy_fields[i].name, text.p ? text.p : "");
    }
}

/* The table of the design, and what it leaves open. */
static void
test_profiles_hold_what_was_decided(void **state)
{
    static const char *const rows[][4] = {
        {"timeout", "5s", "5s", "1min"},
        {"cpu_time", "5s", "5s", "1min"},
        {"memory", "256M", "256M", "2G"},
        {"pids", "1", "64", "256"},
        {"disk", "64M", "64M", "1G"},
        {"disk_inodes", "4096", "4096", "65536"},
        {"output", "1M", "1M", "16M"},
        {"file_size", "64M", "64M", "1G"},
        {"open_files", "256", "256", "1024"},
        {"source_size", "1M", "1M", "1M"},
        {"cpus", "0", "0", "0"},
        {"session_idle", "30min", "30min", "30min"},
        {"session_age", "24h", "24h", "24h"},
        {"session_grace", "500ms", "500ms", "500ms"},
        {"session_background", "keep", "keep", "keep"},
        {"session_pressure", "close", "close", "close"},
        {"collect_files", "1000", "1000", "1000"},
        {"collect_size", "64M", "64M", "1G"},
        {"validation", "enforce", "enforce", "warn"},
        {"imports_denied", NULL, NULL, ""}, /* asked for below */
        {"rules", "", "", ""},
        {"processes", "none", "fork", "exec"},
        {"network", "none", "none", "none"},
        {"read_paths", "", "", ""},
        {"data_paths", "", "", ""},
        {"workspaces", "none", "none", "none"},
        {"workspace_size", "64M", "64M", "1G"},
        {"isolation", "namespaces", "namespaces", "namespaces"},
        {"cgroup", "required", "required", "required"},
        {"sync", "normal", "normal", "normal"},
        {"keep_code", "true", "true", "true"},
        {"ledger_days", "90", "90", "90"},
        {"ledger_bytes", "256M", "256M", "256M"},
    };
    (void)state;
    assert_int_equal(sizeof(rows) / sizeof(*rows), policy_fields_n);
    for (size_t i = 0; policy_profiles[i]; i++) {
        struct policy policy = profile(policy_profiles[i]);
        assert_string_equal(policy.name, policy_profiles[i]);
        assert_string_equal(policy.extends, policy_profiles[i]);
        for (size_t j = 0; j < policy_fields_n; j++)
            if (rows[j][i + 1])
                assert_field(&policy, rows[j][0], rows[j][i + 1]);
    }
    assert_string_equal(policy_default, "standard");
}

/* Rows stand in the order of the members and cover them without a gap: none is read
 * through another one's row, and none has no row. */
static void
test_rows_cover_the_struct(void **state)
{
    (void)state;
    size_t offset = offsetof(struct policy, wall_ms);
    for (size_t i = 0; i < policy_fields_n; i++) {
        assert_int_equal(policy_fields[i].offset, offset);
        offset += policy_is_scalar(&policy_fields[i]) ? sizeof(uint64_t)
                  : policy_fields[i].kind == FIELD_RULES
                      ? sizeof(((struct policy *)NULL)->rules)
                      : sizeof(struct policy_list);
    }
    assert_int_equal(offset, sizeof(struct policy));
}

/* What the rest of the room takes for granted about a row. */
static void
test_rows_are_sound(void **state)
{
    (void)state;
    for (size_t i = 0; i < policy_fields_n; i++) {
        const struct policy_field *field = &policy_fields[i];
        char range[POLICY_RANGE_BYTES];
        assert_non_null(field->help);
        assert_ptr_equal(policy_field_by_name(span_of(field->name)), field);
        if (field->option)
            assert_ptr_equal(policy_field_by_option(field->option), field);
        assert_true(strlen(policy_range(field, range)) > 0);
        assert_true(strlen(range) < POLICY_RANGE_BYTES - 1);
        assert_true((field->kind == FIELD_CHOICE) == (field->choices != NULL));
        if (field->kind == FIELD_CHOICE) {
            assert_int_equal(field->min, 0);
            assert_non_null(field->choices[field->max]);
            assert_null(field->choices[field->max + 1]);
        }
        for (size_t j = 0; policy_profiles[j] && policy_is_scalar(field); j++) {
            struct policy policy = profile(policy_profiles[j]);
            assert_in_range(policy_scalar(&policy, field), field->min, field->max);
        }
    }
    assert_null(policy_field_by_name(span_of("memor")));
    assert_null(policy_field_by_option("memory"));
}

static void
explain_and_load(const struct policy *policy, struct policy *ret)
{
    AUTO_BUF struct buf text = {.max = TEXT_MAX};
    struct err err = {0};
    assert_int_equal(policy_explain(policy, &text), 0);
    for (size_t i = 0; i < policy_fields_n; i++) /* each is there, and is explained */
        assert_contains(text.p, policy_fields[i].help);
    if (load_text(buf_span(&text), ret, &err, NULL) < 0)
        fail_msg("%s in:\n%s", err.text, text.p);
}

/* Extends `base` with every field set to its least or its greatest value. */
static void
load_extreme(bool greatest, const char *base, struct policy *ret)
{
    AUTO_BUF struct buf text = {.max = TEXT_MAX};
    struct err err = {0};
    assert_int_equal(buf_printf(&text, "name: extreme\nextends: %s\n", base), 0);
    for (size_t i = 0; i < policy_fields_n; i++) {
        const struct policy_field *field = &policy_fields[i];
        unsigned long long value = greatest ? field->max : field->min;
        int r = 0;
        if (field->kind == FIELD_CHOICE)
            r = buf_printf(&text, "%s: %s\n", field->name, field->choices[value]);
        else if (field->kind == FIELD_PATHS)
            r = buf_printf(&text, "%s: ['/srv/a \"b\" \\ c: #d', /opt/caf\xc3\xa9]\n",
                           field->name);
        else if (field->kind == FIELD_NAMES)
            r = buf_printf(&text, "%s: [os, http.client]\n", field->name);
        else if (field->kind == FIELD_RULES)
            r = buf_printf(&text, "%s: {dynamic-code: \"off\", introspection: error}\n",
                           field->name);
        else
            r = buf_printf(&text, "%s: %llu%s\n", field->name, value,
                           field->kind == FIELD_MS ? "ms" : "");
        assert_int_equal(r, 0);
    }
    if (load_text(buf_span(&text), ret, &err, NULL) < 0)
        fail_msg("%s in:\n%s", err.text, text.p);
    for (size_t i = 0; i < policy_fields_n; i++)
        if (policy_is_scalar(&policy_fields[i]))
            assert_int_equal(policy_scalar(ret, &policy_fields[i]),
                             greatest ? policy_fields[i].max : policy_fields[i].min);
}

static void
test_explained_profiles_load_again(void **state)
{
    (void)state;
    for (size_t i = 0; policy_profiles[i]; i++) {
        struct policy before = profile(policy_profiles[i]);
        AUTO_POLICY struct policy after = {0};
        explain_and_load(&before, &after);
        assert_same_fields(&before, &after);
        assert_string_equal(after.extends, policy_profiles[i]);
        assert_string_not_equal(after.name, policy_profiles[i]);
    }
}

/* To a reader of YAML 1.1 a bare off is the value false. */
static void
test_explain_quotes_truth_words(void **state)
{
    (void)state;
    AUTO_BUF struct buf text = {.max = TEXT_MAX};
    struct policy policy = profile("open");
    policy.validation = VALIDATION_OFF;
    assert_int_equal(policy_explain(&policy, &text), 0);
    assert_contains(text.p, "\nvalidation: \"off\"\n");
}

/* From a base that differs: a field which explain forgot would come back wrong. */
static void
test_extreme_policies_round_trip(void **state)
{
    (void)state;
    for (int greatest = 0; greatest <= 1; greatest++) {
        AUTO_POLICY struct policy before = {0};
        AUTO_POLICY struct policy after = {0};
        load_extreme(greatest, greatest ? "strict" : "open", &before);
        assert_field(&before, "read_paths", "/srv/a \"b\" \\ c: #d, /opt/caf\xc3\xa9");
        explain_and_load(&before, &after);
        assert_same_fields(&before, &after);
        assert_string_equal(after.name, "extreme");
        assert_string_equal(after.extends, greatest ? "strict" : "open");
    }
}

/* One below the least and one above the greatest, in a file and as an option. */
static void
test_ranges_end_where_they_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < policy_fields_n; i++) {
        const struct policy_field *field = &policy_fields[i];
        if (field->kind == FIELD_CHOICE || !policy_is_scalar(field))
            continue;
        const char *unit = field->kind == FIELD_MS ? "ms" : "";
        char range[POLICY_RANGE_BYTES], value[64];
        for (int above = 0; above <= 1; above++) {
            if (!above && field->min == 0)
                continue;
            struct policy policy = profile("open");
            struct err err = {0};
            snprintf(value, sizeof(value), "%llu%s",
                     (unsigned long long)(above ? field->max + 1 : field->min - 1), unit);
            assert_int_equal(policy_narrow(&policy, field, "--x", span_of(value), &err),
                             -ERANGE);
            assert_contains(err.text, policy_range(field, range));
            err = (struct err){0};
            assert_int_equal(load_line(field->name, value, &policy, &err), -ERANGE);
            assert_contains(err.text, range);
        }
        struct policy policy = profile("open");
        struct err err = {0};
        assert_int_equal(policy_narrow(&policy, field, "--x",
                                       span_of("99999999999999999999999999"), &err),
                         -ERANGE);
    }
}

static void
assert_narrow(struct policy *policy, const struct policy_field *field, const char *text,
              int expected)
{
    struct err err = {0};
    AUTO_BUF struct buf before = {.max = TEXT_MAX};
    assert_int_equal(policy_format(policy, field, &before), 0);
    int r = policy_narrow(policy, field, field->name, span_of(text), &err);
    if (r != expected)
        fail_msg("%s %s: %d (%s), not %d", field->name, text, r, err.text, expected);
    assert_field(policy, field->name, r == 0 ? text : before.p);
}

/* Each field from a value in its middle: to itself, down, and up again. */
static void
test_narrowing_goes_one_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < policy_fields_n; i++) {
        const struct policy_field *field = &policy_fields[i];
        if (!policy_is_scalar(field) || field->zero_is_widest)
            continue;
        AUTO_POLICY struct policy least = {0};
        AUTO_POLICY struct policy most = {0};
        AUTO_BUF struct buf low = {.max = TEXT_MAX};
        AUTO_BUF struct buf high = {.max = TEXT_MAX};
        load_extreme(false, "open", &least);
        load_extreme(true, "open", &most);
        assert_int_equal(policy_format(&least, field, &low), 0);
        assert_int_equal(policy_format(&most, field, &high), 0);

        assert_narrow(&most, field, high.p, 0);
        assert_narrow(&most, field, low.p, 0);
        assert_narrow(&most, field, high.p, field->authority == BY_OPERATOR ? 0 : -EPERM);
    }
}

static void
test_operator_fields_are_the_ones_meant(void **state)
{
    static const char *const names[] = {"validation", "imports_denied", "rules",
                                        "read_paths", "data_paths",     "workspaces",
                                        "isolation",  "cgroup",         "sync",
                                        "keep_code",  "ledger_days",    "ledger_bytes"};
    (void)state;
    size_t found = 0;
    for (size_t i = 0; i < policy_fields_n; i++)
        found += policy_fields[i].authority == BY_OPERATOR;
    assert_int_equal(found, sizeof(names) / sizeof(*names));
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        assert_int_equal(policy_field_by_name(span_of(names[i]))->authority, BY_OPERATOR);
}

/* 0 means "as many as there are": every number is narrower, and nothing leads back. */
static void
test_cpus_zero_is_the_widest(void **state)
{
    (void)state;
    struct policy policy = profile("standard");
    const struct policy_field *cpus = policy_field_by_name(span_of("cpus"));
    assert_narrow(&policy, cpus, "0", 0);
    assert_narrow(&policy, cpus, "8", 0);
    assert_narrow(&policy, cpus, "2", 0);
    assert_narrow(&policy, cpus, "4", -EPERM);
    assert_narrow(&policy, cpus, "0", -EPERM);
}

struct sentence {
    const char *field;
    const char *who;
    const char *text;
    int code;
    const char *expected;
};

static void
test_sentences_of_the_command_line(void **state)
{
    static const struct sentence rows[] = {
        {"memory", "--memory", "12Q", -EINVAL,
         "--memory: '12Q' is not a size: 8M to 1T, like 256M"},
        {"memory", "--memory", "512M", -EPERM,
         "--memory: 512M is more than policy 'standard' allows (256M); "
         "choose a policy that allows it with --policy"},
        {"memory", "--memory", "1K", -ERANGE, "--memory: 1K is out of range: 8M to 1T"},
        {"memory", "--memory", "", -EINVAL,
         "--memory: '' is not a size: 8M to 1T, like 256M"},
        {"memory", "--memory", "-1", -EINVAL,
         "--memory: '-1' is not a size: 8M to 1T, like 256M"},
        {"timeout", "--timeout", "soon", -EINVAL,
         "--timeout: 'soon' is not a time: 10ms to 24h, like 5s"},
        {"timeout", "--timeout", "1M", -EINVAL,
         "--timeout: '1M' is not a time: 10ms to 24h, like 5s"},
        {"pids", "--pids", "010", -EINVAL,
         "--pids: '010' is not a whole number: 1 to 32768, like 64"},
        {"pids", "--pids", "8K", -EINVAL,
         "--pids: '8K' is not a whole number: 1 to 32768, like 64"},
        {"processes", "--processes", "all", -EINVAL,
         "--processes: 'all' is not one of none, fork, exec"},
        {"imports_denied", "x", "os, 1a", -EINVAL,
         "x: '1a' is not a module's name like os or http.client"},
        {"imports_denied", "x", "os, os", -EINVAL, "x: 'os' is there twice"},
        {"imports_denied", "x", "os.", -EINVAL,
         "x: 'os.' is not a module's name like os or http.client"},
        {"network", "--network", "loopback", -EPERM,
         "--network: loopback is more than policy 'standard' allows (none); "
         "choose a policy that allows it with --policy"},
        {"memory", "--memory", "\x1b[2J\xff\xc2\x9b", -EINVAL,
         "--memory: '?[2J?\?' is not a size: 8M to 1T, like 256M"},
        {"memory", "--memory",
         "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac",
         -EINVAL,
         "--memory: 'aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd\xe2\x82\xac...' is not a "
         "size: "
         "8M to 1T, like 256M"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct policy policy = profile("standard");
        struct err err = {0};
        const struct policy_field *field = policy_field_by_name(span_of(rows[i].field));
        assert_int_equal(
            policy_narrow(&policy, field, rows[i].who, span_of(rows[i].text), &err),
            rows[i].code);
        assert_string_equal(err.text, rows[i].expected);
        assert_int_equal(err.code, rows[i].code);
    }
}

/* Every beginning of a real file is a policy or a sentence. */
static void
test_truncated_files_never_surprise(void **state)
{
    enum { STEP = 37 };
    (void)state;
    AUTO_BUF struct buf text = {.max = TEXT_MAX};
    AUTO_POLICY struct policy extreme = {0};
    load_extreme(true, "open", &extreme);
    assert_int_equal(policy_explain(&extreme, &text), 0);
    for (size_t n = 0; n < text.n; n += STEP) {
        AUTO_POLICY struct policy policy = {0};
        struct err err = {0};
        int r = load_text((struct span){text.p, n}, &policy, &err, NULL);
        assert_true(r == 0 ? policy.name[0] != '\0' : err.text[0] != '\0');
    }
}

static void
test_lists_are_replaced_as_one(void **state)
{
    (void)state;
    const struct policy_field *paths = policy_field_by_name(span_of("read_paths"));
    AUTO_POLICY struct policy policy = profile("standard");
    struct err err = {0};
    assert_int_equal(policy_narrow(&policy, paths, "x", span_of("/srv/a, /srv/b"), &err),
                     0);
    assert_field(&policy, "read_paths", "/srv/a, /srv/b");
    assert_int_equal(policy_narrow(&policy, paths, "x", span_of("/opt, /dev/mem"), &err),
                     -EINVAL);
    assert_string_equal(err.text, "x: '/dev/mem' is in the cell's own /dev");
    assert_field(&policy, "read_paths", "/srv/a, /srv/b");
    assert_int_equal(policy_narrow(&policy, paths, "x", span_of(""), &err), 0);
    assert_field(&policy, "read_paths", "");
}

static bool
denies(const struct policy *policy, const char *name)
{
    size_t n;
    const char *const *names = policy_imports_denied(policy, &n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* strict is the literal filter, standard judges uses, open refuses nothing by name. */
static void
test_profiles_deny_imports(void **state)
{
    (void)state;
    struct policy strict = profile("strict"), standard = profile("standard"),
                  open = profile("open");
    for (const char *const *name =
             (const char *const[]){"os", "subprocess", "shutil", "socket", "ctypes",
                                   "multiprocessing", NULL};
         *name; name++) {
        assert_true(denies(&strict, *name));
        assert_false(denies(&standard, *name));
    }
    assert_true(denies(&standard, "_posixsubprocess"));
    assert_false(denies(&open, "_posixsubprocess"));
}

/* A severity follows what the other fields allow until the file names one. */
static void
test_severities_follow_the_policy(void **state)
{
    static const struct {
        const char *text;
        enum check_rule_id rule;
        enum check_severity severity;
    } rows[] = {
        {"extends: standard\n", RULE_PROCESS_START, CHECK_ERROR},
        {"processes: exec\n", RULE_PROCESS_START, CHECK_NOTE},
        {"processes: exec\nrules: {process-start: error}\n", RULE_PROCESS_START,
         CHECK_ERROR},
        {"extends: strict\n", RULE_PROCESS_FORK, CHECK_ERROR},
        {"extends: strict\nprocesses: fork\n", RULE_PROCESS_FORK, CHECK_OFF},
        {"network: loopback\n", RULE_NETWORK_USE, CHECK_WARNING},
        {"rules:\n  dynamic-code: off\n", RULE_DYNAMIC_CODE, CHECK_OFF},
        {"rules:\n  dynamic-code: note\n", RULE_FILE_OUTSIDE, CHECK_ERROR},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        AUTO_POLICY struct policy policy = {0};
        struct check_settings settings;
        struct err err = {0};
        if (load_text(span_of(rows[i].text), &policy, &err, NULL) < 0)
            fail_msg("%s in %s", err.text, rows[i].text);
        assert_int_equal(policy_severity(&policy, rows[i].rule), rows[i].severity);
        policy_check_settings(&policy, &settings);
        assert_int_equal(settings.severity[rows[i].rule], rows[i].severity);
        assert_int_equal(settings.mode, CHECK_ENFORCE);
    }
}

static void
test_wrong_rules_are_told(void **state)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"rules: [a]\n",
         "rules: needs a mapping of rules to error, warning, note or off"},
        {"rules: {dynamic-cod: off}\n",
         "no rule 'dynamic-cod'; did you mean 'dynamic-code'?"},
        {"rules: {dynamic-code: fatal}\n",
         "'fatal' is not one of error, warning, note, off"},
        {"rules: {dynamic-code: [off]}\n", "dynamic-code: needs one value, not a list"},
        {"rules:\n  dynamic-code: off\n  dynamic-code: note\n",
         "dynamic-code is there twice"},
        {"imports_denied: os\n", "imports_denied: needs a list of names"},
        {"imports_denied: [/etc]\n", "'/etc' is not a module's name"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct policy policy = {0};
        struct err err = {0};
        assert_int_equal(load_text(span_of(rows[i].text), &policy, &err, NULL), -EINVAL);
        assert_contains(err.text, rows[i].expected);
    }
}

/* Copied from `policy show`, a policy still follows its processes field. */
static void
test_explained_rules_are_not_frozen(void **state)
{
    (void)state;
    AUTO_BUF struct buf text = {.max = TEXT_MAX};
    AUTO_POLICY struct policy copy = {0};
    struct policy standard = profile("standard");
    struct err err = {0};
    assert_int_equal(policy_explain(&standard, &text), 0);
    for (size_t i = 0; i < CHECK_RULES; i++)
        assert_contains(text.p, check_rules[i].id);
    assert_int_equal(load_text(buf_span(&text), &copy, &err, NULL), 0);
    copy.processes = PROCESSES_EXEC;
    assert_int_equal(policy_severity(&copy, RULE_PROCESS_START), CHECK_NOTE);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_profiles_hold_what_was_decided),
        cmocka_unit_test(test_rows_are_sound),
        cmocka_unit_test(test_rows_cover_the_struct),
        cmocka_unit_test(test_explained_profiles_load_again),
        cmocka_unit_test(test_explain_quotes_truth_words),
        cmocka_unit_test(test_extreme_policies_round_trip),
        cmocka_unit_test(test_ranges_end_where_they_say),
        cmocka_unit_test(test_narrowing_goes_one_way),
        cmocka_unit_test(test_operator_fields_are_the_ones_meant),
        cmocka_unit_test(test_cpus_zero_is_the_widest),
        cmocka_unit_test(test_sentences_of_the_command_line),
        cmocka_unit_test(test_truncated_files_never_surprise),
        cmocka_unit_test(test_lists_are_replaced_as_one),
        cmocka_unit_test(test_profiles_deny_imports),
        cmocka_unit_test(test_severities_follow_the_policy),
        cmocka_unit_test(test_wrong_rules_are_told),
        cmocka_unit_test(test_explained_rules_are_not_frozen),
    };
    return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
