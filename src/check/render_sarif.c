/*
 * Findings for code scanners: SARIF 2.1.0 (OASIS standard). One run, every rule of the
 * table as a reportingDescriptor, one result a finding. Columns are characters, as
 * columnKind says.
 */
#include "check/render.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SARIF_SCHEMA                                                                     \
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"                \
    "sarif-schema-2.1.0.json"

/* SARIF's words for severities. */
static const char *const levels[CHECK_SEVERITIES] = {"error", "warning", "note", "none"};

static json_t *
text_json(const char *text)
{
    return json_pack("{s:s}", "text", text);
}

static json_t *
rule_json(const struct check_rule *rule)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:{s:s}, s:{s:s, s:s, s:s}}", "id", rule->id,
                     "shortDescription", text_json(rule->finds), "fullDescription",
                     text_json(rule->why), "help", text_json(rule->hint),
                     "defaultConfiguration", "level",
                     levels[rule->severity[CHECK_STANDARD]], "properties", "strict",
                     check_severity_names[rule->severity[CHECK_STRICT]], "standard",
                     check_severity_names[rule->severity[CHECK_STANDARD]], "open",
                     check_severity_names[rule->severity[CHECK_OPEN]]);
}

static json_t *
rules_json(void)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < CHECK_RULES; i++)
        json_array_append_new(list, rule_json(&check_rules[i]));
    return list;
}

/* A path as a URI reference (RFC 3986): what is not plain is percent-encoded. */
static void
uri_of(const char *path, char *uri, size_t n)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789-._~/";
    static const char hex[] = "0123456789ABCDEF";
    size_t used = 0;
    if (strcmp(path, "-") == 0)
        path = "stdin";
    for (; *path && used + 4 < n; path++) {
        if (strchr(plain, *path)) {
            uri[used++] = *path;
            continue;
        }
        uri[used++] = '%';
        uri[used++] = hex[(unsigned char)*path >> 4];
        uri[used++] = hex[(unsigned char)*path & 15];
    }
    uri[used] = '\0';
}

/* A member is left out when it is not known: SARIF's numbers begin at 1. */
static int
put_number(json_t *object, const char *key, int number)
{
    return number > 0 ? json_object_set_new(object, key, json_integer(number)) : 0;
}

static json_t *
region_json(const struct finding *finding)
{
    json_t *region = json_object();
    bool backwards = finding->at.end_line < finding->at.line;
    if (!region || put_number(region, "startLine", finding->at.line) < 0 ||
        put_number(region, "startColumn", finding->at.column) < 0)
        return region;
    if (!backwards) {
        put_number(region, "endLine", finding->at.end_line);
        put_number(region, "endColumn", finding->at.end_column);
    }
    if (finding->excerpt[0] != '\0')
        json_object_set_new(region, "snippet", text_json(finding->excerpt));
    return region;
}

static json_t *
location_json(const char *uri, const struct finding *finding)
{
    json_t *place = json_pack("{s:{s:s}}", "artifactLocation", "uri", uri);
    if (place && finding->at.line > 0)
        json_object_set_new(place, "region", region_json(finding));
    return json_pack("{s:o}", "physicalLocation", place);
}

static json_t *
result_json(const char *uri, const struct finding *finding)
{
    return json_pack("{s:s, s:i, s:s, s:o, s:[o]}", "ruleId",
                     check_rules[finding->rule].id, "ruleIndex", (int)finding->rule,
                     "level", levels[finding->severity], "message",
                     text_json(finding->text), "locations", location_json(uri, finding));
}

/* What is not a result: a file that could not be checked, findings that were not kept. */
static int
add_notification(json_t *list, const char *uri, const char *level, const char *text)
{
    return json_array_append_new(list, json_pack("{s:s, s:o, s:[{s:{s:{s:s}}}]}", "level",
                                                 level, "message", text_json(text),
                                                 "locations", "physicalLocation",
                                                 "artifactLocation", "uri", uri));
}

static int
add_file(const struct checked *file, json_t *results, json_t *notifications)
{
    char uri[4096], text[96];
    int r = 0;
    uri_of(file->name, uri, sizeof(uri));
    if (file->failure[0] != '\0')
        r = add_notification(notifications, uri, "error", file->failure);
    for (size_t i = 0; r == 0 && i < file->findings.n; i++)
        r = json_array_append_new(results, result_json(uri, &file->findings.list[i]));
    if (r == 0 && file->findings.dropped > 0) {
        snprintf(text, sizeof(text), "%llu more findings are not listed",
                 (unsigned long long)file->findings.dropped);
        r = add_notification(notifications, uri, "warning", text);
    }
    return r;
}

int
check_render_sarif(const struct checked *files, size_t n, struct buf *out)
{
    json_t *results = json_array(), *notifications = json_array();
    bool whole = true;
    int r = results && notifications ? 0 : -1;
    for (size_t i = 0; r == 0 && i < n; i++) {
        r = add_file(&files[i], results, notifications);
        whole = whole && files[i].failure[0] == '\0';
    }
    if (r < 0) {
        json_decref(results);
        json_decref(notifications);
        return -ENOMEM;
    }
    json_t *run =
        json_pack("{s:{s:{s:s, s:s, s:s, s:o}}, s:s, s:[{s:b, s:o}], s:o}", "tool",
                  "driver", "name", "adyton", "version", ADYTON_VERSION,
                  "semanticVersion", ADYTON_VERSION, "rules", rules_json(), "columnKind",
                  "unicodeCodePoints", "invocations", "executionSuccessful", (int)whole,
                  "toolExecutionNotifications", notifications, "results", results);
    return check_append_json(json_pack("{s:s, s:s, s:[o]}", "$schema", SARIF_SCHEMA,
                                       "version", "2.1.0", "runs", run),
                             out);
}
