/* Policy files: every kind of error at its line and column, and what is taken; the schema and
 * the manual, which tell of them. */
#include "policy_texts.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

struct bad_file {
    const char *text;
    const char *expected; /* after "FILE:" */
};

#define RANGE_MEMORY "8M to 1T"

static const struct bad_file bad_files[] = {
    /* Names. */
    {"extends: open\nmemmory: 1G\n",
     "2:1: memmory: no such field; did you mean 'memory'?"},
    {"cpu-time: 1s\n", "1:1: cpu-time: no such field; did you mean 'cpu_time'?"},
    {"extend: open\n", "1:1: extend: no such field; did you mean 'extends'?"},
    {"frobnicate: 1\n",
     "1:1: frobnicate: no such field; `adyton policy --help` lists them"},
    {"<<: 1\n", "1:1: <<: no such field; `adyton policy --help` lists them"},
    {"[memory]: 1G\n", "1:1: a field's name must be plain text"},
    {"pids: 2\nmemory: 1G\npids: 3\n", "3:1: pids: is there twice, first in line 1"},
    {"name: a\nname: b\n", "2:1: name: is there twice, first in line 1"},
    /* Types. */
    {"- memory\n", "1:1: a policy is a mapping: lines of `field: value`"},
    {"memory\n", "1:1: a policy is a mapping: lines of `field: value`"},
    {"memory: [1G]\n", "1:9: memory: needs one value, not a list: " RANGE_MEMORY},
    {"memory:\n  max: 1G\n",
     "2:3: memory: needs one value, not a mapping: " RANGE_MEMORY},
    {"memory:\n", "1:8: memory: '' is not a size: 8M to 1T, like 256M"},
    {"pids: \"64\"\n",
     "1:7: pids: '64' is text: a whole number has no quotes, 1 to 32768"},
    {"name: [a]\n",
     "1:7: name: needs one value, not a list: letters, digits, '-', '_' and '.'"},
    {"read_paths: /srv\n", "1:13: read_paths: needs a list of absolute paths"},
    {"read_paths:\n  - [/srv]\n",
     "2:5: read_paths: an item is one absolute path, nothing deeper"},
    /* Units, ranges, choices. */
    {"timeout: 1s\nmemory: 5s\n", "2:9: memory: '5s' is not a size: 8M to 1T, like 256M"},
    {"timeout: 256M\n", "1:10: timeout: '256M' is not a time: 10ms to 24h, like 5s"},
    {"memory:   1K\n", "1:11: memory: 1K is out of range: 8M to 1T"},
    {"pids: 0\n", "1:7: pids: 0 is out of range: 1 to 32768"},
    {"pids: 0x10\n", "1:7: pids: '0x10' is not a whole number: 1 to 32768, like 64"},
    {"processes: all\n", "1:12: processes: 'all' is not one of none, fork, exec"},
    {"extends: lax\n", "1:10: extends: 'lax' is not one of strict, standard, open"},
    {"name: strict\n",
     "1:7: name: 'strict' is a built-in profile: give this policy a `name` of its own"},
    {"name: a b\n",
     "1:7: name: 'a b' is not 1 to 63 letters, digits, '-', '_' and '.' of ASCII"},
    {"name: ''\n",
     "1:7: name: '' is not 1 to 63 letters, digits, '-', '_' and '.' of ASCII"},
    /* Paths. */
    {"read_paths: [srv]\n",
     "1:14: read_paths: 'srv' is not an absolute path without '.', '..', "
     "'//' or a '/' at the end"},
    {"read_paths: [/srv/../etc]\n",
     "1:14: read_paths: '/srv/../etc' is not an absolute path "
     "without '.', '..', '//' or a '/' at the end"},
    {"read_paths: [/srv/]\n",
     "1:14: read_paths: '/srv/' is not an absolute path without '.', "
     "'..', '//' or a '/' at the end"},
    {"read_paths: [/]\n",
     "1:14: read_paths: '/' would show the whole host: name what the code needs"},
    {"read_paths: [/proc/1]\n", "1:14: read_paths: '/proc/1' is in the cell's own /proc"},
    {"read_paths: [/tmp]\n", "1:14: read_paths: '/tmp' is in the cell's own /tmp"},
    {"data_paths: [/dev/shm]\n",
     "1:14: data_paths: '/dev/shm' is in the cell's own /dev"},
    {"data_paths: [/]\n",
     "1:14: data_paths: '/' would show the whole host: name what the code needs"},
    {"read_paths: [/srv, /srv]\n", "1:20: read_paths: '/srv' is there twice"},
    {"read_paths: [\"/srv\\0x\"]\n", "1:14: read_paths: '/srv?x' is not printable UTF-8"},
    /* YAML that a policy has no use for. */
    {"memory: &m 1G\n", "1:9: anchors (&name) are not allowed: write each value out"},
    {"&m memory: 1G\n", "1:1: anchors (&name) are not allowed: write each value out"},
    {"memory: *m\n", "1:9: aliases (*name) are not allowed: write the value out"},
    {"memory: !!str 1G\n",
     "1:9: tags (!name) are not allowed: every field has its one type"},
    {"!policy\nmemory: 1G\n",
     "1:1: tags (!name) are not allowed: every field has its one type"},
    {"read_paths: !x [/srv]\n",
     "1:13: tags (!name) are not allowed: every field has its one type"},
    {"pids: 2\n---\npids: 3\n", "2:1: a policy file holds one document, not several"},
    {"", "1:1: the file is empty; `extends: standard` alone is a policy"},
    {"# nothing\n", "1:1: the file is empty; `extends: standard` alone is a policy"},
    /* Not YAML, not text. */
    {"memory: 1G: 2\n", "1:11: not YAML: mapping values are not allowed in this context"},
    {"memory: 1G\n\tpids: 2\n",
     "2:1: not YAML: found a tab character that violates indentation"},
    {"memory: \"1G\n", "2:1: not YAML: found unexpected end of stream"},
    {"# caf\xc3\xa9\nname: \xc3\xa9\xff\n",
     "2:8: not UTF-8 text: invalid leading UTF-8 octet"},
    {"pids: 2\nname: \xc0\xaf\n",
     "2:7: not UTF-8 text: invalid length of a UTF-8 sequence"},
    {"name: a\x01\n", "1:8: not UTF-8 text: control characters are not allowed"},
    {"\xff\xfep\0i\0d\0s\0", "1:1: not UTF-8 text: invalid leading UTF-8 octet"},
};

static void
assert_bad(struct span text, const char *expected)
{
    struct policy policy, untouched;
    struct err err = {0};
    char path[PATH_MAX_BYTES], sentence[PATH_MAX_BYTES * 2];
    memset(&policy, 0x5a, sizeof(policy));
    memset(&untouched, 0x5a, sizeof(untouched));
    int r = load_text(text, &policy, &err, path);
    if (r >= 0)
        fail_msg("'%.*s' was taken", (int)text.n, text.p);
    assert_int_equal(r, err.code);
    snprintf(sentence, sizeof(sentence), "%s:%s", path, expected);
    assert_string_equal(err.text, sentence);
    assert_memory_equal(&policy, &untouched, sizeof(policy));
}

static void
test_bad_files_are_refused_at_a_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad_files) / sizeof(*bad_files); i++)
        assert_bad(span_of(bad_files[i].text), bad_files[i].expected);
    assert_bad((struct span){"a: \0b\n", 6},
               "1:4: not UTF-8 text: control characters are not allowed");
}

/* Depth, number and size of what a file holds end in an error, never in a deep stack. */
static void
test_excess_is_refused(void **state)
{
    (void)state;
    AUTO_BUF struct buf text = {.max = TEXT_MAX};
    assert_int_equal(buf_printf(&text, "read_paths: "), 0);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(buf_append(&text, "[", 1), 0);
    assert_bad(buf_span(&text),
               "1:14: read_paths: an item is one absolute path, nothing deeper");

    buf_done(&text);
    for (int i = 0; i <= POLICY_LIST_MAX; i++)
        assert_int_equal(
            buf_printf(&text, "%s  - /srv/%d\n", i == 0 ? "read_paths:\n" : "", i), 0);
    assert_bad(buf_span(&text), "66:5: read_paths: more than 64 paths");

    struct policy policy = {0};
    struct err err = {0};
    buf_done(&text);
    assert_int_equal(buf_printf(&text, "pids: 2 #%*s", POLICY_FILE_BYTES, ""), 0);
    assert_int_equal(load_text(buf_span(&text), &policy, &err, NULL), -EFBIG);
    assert_contains(err.text, "is larger than a policy file may be (256K)");
    text.n = POLICY_FILE_BYTES;
    assert_int_equal(load_text(buf_span(&text), &policy, &err, NULL), 0);
}

/* What is right in unusual clothes. */
static void
test_good_files_are_taken(void **state)
{
    static const struct {
        const char *text, *field, *value;
    } rows[] = {
        {"{}", "memory", "256M"},
        {"\xef\xbb\xbfmemory: 1G\n", "memory", "1G"},
        {"%YAML 1.1\n---\nmemory: '1.5GiB'\n...\n", "memory", "1536M"},
        {"memory: 268435456\n", "memory", "256M"},
        {"memory: 10M\nextends: open\n", "pids", "256"}, /* `extends` may come last */
        {"memory: 10M\nextends: open\n", "memory", "10M"},
        {"timeout: 1.5\n", "timeout", "1500ms"},
        {"timeout: 90 s\n", "timeout", "90s"},
        {"validation: off\n", "validation", "off"},
        {"validation: \"off\"\n", "validation", "off"},
        {"extends: strict\nmemory: 1T\n", "memory", "1T"}, /* a file may widen */
        {"read_paths: []\n", "read_paths", ""},
        {"read_paths: [/etcetera, /tmpfoo]\n", "read_paths", "/etcetera, /tmpfoo"},
        {"data_paths: [/tmp/sets, /srv]\n", "data_paths", "/tmp/sets, /srv"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        AUTO_POLICY struct policy policy = {0};
        struct err err = {0};
        if (load_text(span_of(rows[i].text), &policy, &err, NULL) < 0)
            fail_msg("%s", err.text);
        assert_field(&policy, rows[i].field, rows[i].value);
    }
}

static void
write_file(const char *path, const char *text)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void
test_names_come_from_the_file(void **state)
{
    (void)state;
    char folder[] = "/tmp/adyton-policy-XXXXXX", path[PATH_MAX_BYTES];
    AUTO_POLICY struct policy policy = {0};
    struct err err = {0};
    assert_non_null(mkdtemp(folder));

    snprintf(path, sizeof(path), "%s/my lab.yaml", folder);
    write_file(path, "memory: 1G\n");
    assert_int_equal(policy_load(path, &policy, &err), 0);
    assert_string_equal(policy.name, "my-lab.yaml");
    assert_string_equal(policy.extends, "standard");
    write_file(path, "name: lab.7\n");
    assert_int_equal(policy_load(path, &policy, &err), 0);
    assert_string_equal(policy.name, "lab.7");
    unlink(path);

    /* A file that is called as a profile is must not pass for it. */
    snprintf(path, sizeof(path), "%s/strict", folder);
    write_file(path, "memory: 1T\n");
    assert_true(policy_load(path, &policy, &err) < 0);
    assert_contains(err.text, "strict:1:1: name: 'strict' is a built-in profile");
    unlink(path);

    /* A long path loses its front, never the sentence. */
    char long_name[200];
    memset(long_name, 'x', sizeof(long_name));
    snprintf(path, sizeof(path), "%s/%.*s.yml", folder, (int)sizeof(long_name),
             long_name);
    write_file(path, "pids: none\n");
    assert_true(policy_load(path, &policy, &err) < 0);
    assert_contains(err.text,
                    "xxx.yml:1:7: pids: 'none' is not a whole number: 1 to 32768, "
                    "like 64");
    assert_int_equal(strncmp(err.text, "...xxx", 6), 0);
    unlink(path);
    rmdir(folder);
}

static void
test_what_is_not_there(void **state)
{
    (void)state;
    struct policy policy = {0};
    struct err err = {0};
    assert_int_equal(policy_load("lax", &policy, &err), -ENOENT);
    assert_string_equal(
        err.text, "no policy 'lax': the profiles are strict, standard and open; a file "
                  "has a '/' in its name or ends in .yaml or .yml");
    assert_int_equal(policy_load("no-such-file.yaml", &policy, &err), -ENOENT);
    assert_string_equal(err.text, "no-such-file.yaml: No such file or directory");
    assert_int_equal(policy_load("/", &policy, &err), -EISDIR);
}

static void
test_schema_names_every_field(void **state)
{
    (void)state;
    AUTO_BUF struct buf text = {.max = TEXT_MAX};
    assert_int_equal(policy_schema(&text), 0);
    json_error_t error;
    json_t *schema = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, &error);
    if (!schema)
        fail_msg("line %d: %s", error.line, error.text);
    assert_string_equal(json_string_value(json_object_get(schema, "$schema")),
                        "https://json-schema.org/draft/2020-12/schema");
    assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
    json_t *properties = json_object_get(schema, "properties");
    assert_int_equal(json_object_size(properties),
                     policy_fields_n + 2); /* name, extends */
    for (size_t i = 0; i < policy_fields_n; i++) {
        const struct policy_field *field = &policy_fields[i];
        json_t *property = json_object_get(properties, field->name);
        json_t *names = json_object_get(property, "enum");
        assert_contains(json_string_value(json_object_get(property, "description")),
                        field->help);
        assert_non_null(json_object_get(property, "default"));
        /* "true" and "false" are in it as truth values too. */
        size_t twice = strcmp(field->name, "keep_code") == 0 ? 2 : 0;
        assert_int_equal(json_array_size(names),
                         field->kind == FIELD_CHOICE ? field->max + 1 + twice : 0);
    }
    json_decref(schema);
}

/* Where the sources are: told by the build, else by how the compiler named this file. */
static void
source_path(const char *name, char path[PATH_MAX_BYTES])
{
    const char *root = getenv("MESON_SOURCE_ROOT");
    static const char here[] = "tests/unit/test_policy_file.c";
    if (root)
        snprintf(path, PATH_MAX_BYTES, "%s/%s", root, name);
    else
        snprintf(path, PATH_MAX_BYTES, "%.*s%s",
                 (int)(strlen(__FILE__) + 1 - sizeof(here)), __FILE__, name);
}

static void
test_manual_holds_the_table(void **state)
{
    static const char begin[] = "<!-- fields -->\n", end[] = "<!-- /fields -->";
    (void)state;
    char path[PATH_MAX_BYTES];
    source_path("docs/POLICY.md", path);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail_msg("%s cannot be opened", path);
    AUTO_BUF struct buf manual = {.max = TEXT_MAX};
    AUTO_BUF struct buf tables = {.max = TEXT_MAX};
    assert_int_equal(fd_read_all(fd, &manual), 0);
    assert_int_equal(policy_markdown(&tables), 0);
    char *from = strstr(manual.p, begin), *to = strstr(manual.p, end);
    assert_true(from && to && from < to);
    *to = '\0';
    assert_string_equal(from + sizeof(begin) - 1, tables.p); /* adyton policy markdown */
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_files_are_refused_at_a_place),
        cmocka_unit_test(test_excess_is_refused),
        cmocka_unit_test(test_good_files_are_taken),
        cmocka_unit_test(test_names_come_from_the_file),
        cmocka_unit_test(test_what_is_not_there),
        cmocka_unit_test(test_schema_names_every_field),
        cmocka_unit_test(test_manual_holds_the_table),
    };
    return cmocka_run_group_tests_name("policy_file", tests, NULL, NULL);
}
