/* Events of a run in the one form that the socket and `adyton run --stream` share. */
#include "job/run_event.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fd.h"

uint64_t
run_event_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000U + (uint64_t)t.tv_nsec / 1000U;
}

const char *
run_event_time(uint64_t time_us, char text[RUN_EVENT_TIME_BYTES])
{
    struct tm day;
    time_t seconds = (time_t)(time_us / 1000000U);
    char date[24];
    if (!gmtime_r(&seconds, &day) ||
        strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &day) == 0)
        date[0] = '\0';
    snprintf(text, RUN_EVENT_TIME_BYTES, "%s.%06uZ", date,
             (unsigned)(time_us % 1000000U));
    return text;
}

static json_t *
started_json(const struct run_event *event)
{
    return json_pack("{s:s, s:s}", "run", event->run_id ? event->run_id : "", "start",
                     event->start ? event->start : "");
}

static json_t *
incident_event_json(const struct run_event *event)
{
    return json_pack("{s:o}", "incident", outcome_incident_json(event->incident));
}

static json_t *
usage_json(const struct run_event *event)
{
    return json_pack("{s:{s:f, s:f, s:I}}", "usage", "wall_ms",
                     (double)event->wall_us / 1e3, "cpu_ms", (double)event->cpu_us / 1e3,
                     "memory_bytes", (json_int_t)event->memory_bytes);
}

static const struct {
    const char *type;
    json_t *(*rest)(const struct run_event *event);
} kinds[] = {
    [RUN_STARTED] = {"started", started_json},
    [RUN_INCIDENT] = {"incident", incident_event_json},
    [RUN_USAGE] = {"usage", usage_json},
};

json_t *
run_event_json(const struct run_event *event, const char *id)
{
    char time[RUN_EVENT_TIME_BYTES];
    json_t *head = json_pack("{s:s}", "type", kinds[event->kind].type);
    json_t *rest = kinds[event->kind].rest(event);
    int r = head && rest ? 0 : -ENOMEM;
    if (r == 0 && id)
        r = json_object_set_new(head, "id", json_string(id));
    if (r == 0)
        r = json_object_set_new(head, "time",
                                json_string(run_event_time(event->time_us, time)));
    if (r == 0)
        r = json_object_update(head, rest);
    json_decref(rest);
    if (r == 0)
        return head;
    json_decref(head);
    return NULL;
}

int
run_event_put(const struct run_event *event, const char *id, struct buf *out)
{
    enum { REAL_DIGITS = 15 };
    json_t *message = run_event_json(event, id);
    AUTO_FREE char *text =
        message ? json_dumps(message, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS))
                : NULL;
    json_decref(message);
    return text ? buf_append(out, text, strlen(text)) : -ENOMEM;
}
