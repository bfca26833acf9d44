/* What the supervisor knows of itself, in numbers: for `adyton status`, and for the hint
 * that comes with "busy". */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "engine/serve_parts.h"

enum {
    US_PER_MS = 1000,
    US_PER_S = 1000 * 1000,
    RETRY_MS_MIN = 10,
    RETRY_MS_MAX = 5000,
    RATE_SHORT_S = 10,
    RATE_LONG_S = 60,
};

/* Slots of seconds in which nothing ended are emptied as time passes them. */
static void
move_to(struct serve_rates *rates, uint64_t second)
{
    uint64_t steps = second - rates->second;
    for (uint64_t i = 1; i <= steps && i <= SERVE_RATE_SECONDS; i++)
        rates->ended[(rates->second + i) % SERVE_RATE_SECONDS] = 0;
    rates->second = second;
}

void
serve_count_run(struct serve *serve, uint64_t took_us)
{
    static const double weight = 0.1;
    struct serve_rates *rates = &serve->rates;
    double ms = (double)took_us / US_PER_MS;
    rates->run_ms =
        rates->run_ms > 0 ? rates->run_ms + weight * (ms - rates->run_ms) : ms;
    move_to(rates, clock_now_us() / US_PER_S);
    rates->ended[rates->second % SERVE_RATE_SECONDS]++;
}

/* Over whole seconds: the one that is going on does not count. */
static double
rate_over(struct serve *serve, uint64_t seconds)
{
    struct serve_rates *rates = &serve->rates;
    uint64_t ended = 0, now = clock_now_us() / US_PER_S;
    uint64_t lived = now - serve->started_us / US_PER_S;
    uint64_t n = lived < seconds ? lived : seconds;
    move_to(rates, now);
    for (uint64_t i = 1; i <= n; i++)
        ended += rates->ended[(now - i) % SERVE_RATE_SECONDS];
    return n > 0 ? (double)ended / (double)n : 0;
}

/* When those that are here now should be through. */
uint64_t
serve_retry_ms(const struct serve *serve)
{
    static const double unknown_ms = 50;
    const struct queue *queue = &serve->queue;
    double run_ms = serve->rates.run_ms > 0 ? serve->rates.run_ms : unknown_ms;
    double turns =
        (double)(queue->waiting + queue->running + 1) / (double)queue->running_max;
    double ms = serve->draining ? RETRY_MS_MAX : run_ms * turns;
    if (ms < RETRY_MS_MIN)
        return RETRY_MS_MIN;
    return ms < RETRY_MS_MAX ? (uint64_t)ms : RETRY_MS_MAX;
}

static uint64_t
own_memory_bytes(void)
{
    char text[128];
    unsigned long long pages = 0;
    if (file_read(AT_FDCWD, "/proc/self/statm", text, sizeof(text)) < 0 ||
        sscanf(text, "%*u %llu", &pages) != 1)
        return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int
put_kinds(const struct pool_status *pool, struct buf *out)
{
    int r = buf_printf(out, ",\"pool\":[");
    for (size_t i = 0; r == 0 && i < pool->kinds_n; i++) {
        const struct pool_kind *kind = &pool->kinds[i];
        r = buf_printf(
            out,
            "%s{\"policy\":\"%s\",\"ready\":%s,\"given_back\":%s,\"idle\":%" PRIu64
            ",\"making\":%" PRIu64 ",\"busy\":%" PRIu64 ",\"cells\":%" PRIu64
            ",\"age_ms\":%" PRIu64 ",\"memory_bytes\":%" PRIu64 "}",
            i > 0 ? "," : "", kind->policy, kind->ready ? "true" : "false",
            kind->rests ? "true" : "false", kind->idle, kind->making, kind->busy,
            kind->cells, kind->age_ms, kind->memory_bytes);
    }
    return r < 0 ? r : buf_append(out, "]", 1);
}

static int
put_sessions(const struct serve *serve, struct buf *out)
{
    size_t idle;
    serve_session_count(serve, &idle);
    return buf_printf(out,
                      ",\"sessions\":{\"open\":%zu,\"idle\":%zu,\"max\":%zu,"
                      "\"idle_bytes\":%" PRIu64 "}",
                      serve->sessions_n, idle, serve_session_max(serve),
                      serve->queue.held_bytes);
}

static int
put_pressure(const struct serve *serve, struct buf *out)
{
    const struct pressure *pressure = &serve->pressure;
    int r = buf_printf(out, ",\"pressure\":{\"level\":\"%s\",\"where\":",
                       pressure_names[pressure->level]);
    if (r == 0)
        r = protocol_put_text(out, span_of(pressure->room.where));
    return r < 0 ? r
                 : buf_printf(out,
                              ",\"total_bytes\":%" PRIu64 ",\"available_bytes\":%" PRIu64
                              ",\"told_by_kernel\":%s,\"given_back\":{\"cells\":%" PRIu64
                              ",\"zygotes\":%" PRIu64 ",\"sessions\":%" PRIu64 "}}",
                              pressure->room.total_bytes, pressure->room.available_bytes,
                              pressure->told_by_kernel ? "true" : "false",
                              serve->given[SERVE_GIVEN_CELLS],
                              serve->given[SERVE_GIVEN_ZYGOTES],
                              serve->given[SERVE_GIVEN_SESSIONS]);
}

static int
put_policies(const struct serve *serve, struct buf *out)
{
    int r = buf_printf(out, ",\"policies\":[");
    for (size_t i = 0; r == 0 && i < serve->policies_n; i++)
        r = buf_printf(out, "%s\"%s\"", i > 0 ? "," : "",
                       serve->policies[i]->policy.name);
    return r < 0 ? r : buf_append(out, "]", 1);
}

int
serve_status_json(struct serve *serve, struct buf *out)
{
    struct pool_status pool;
    const struct queue *queue = &serve->queue;
    pool_status(serve->pool, &pool);
    int r = buf_printf(out,
                       "{\"type\":\"status\",\"schema\":\"adyton.status/1\","
                       "\"program\":\"%s\",\"pid\":%ld,\"uptime_ms\":%" PRIu64
                       ",\"draining\":%s,\"clients\":%zu",
                       ADYTON_VERSION, (long)getpid(),
                       (clock_now_us() - serve->started_us) / US_PER_MS,
                       serve->draining ? "true" : "false", serve->clients_n);
    if (r == 0)
        r = buf_printf(out,
                       ",\"cells\":{\"zygotes\":%" PRIu64 ",\"idle\":%" PRIu64
                       ",\"busy\":%" PRIu64 "}",
                       pool.zygotes, pool.idle, pool.busy);
    if (r == 0)
        r = buf_printf(out,
                       ",\"queue\":{\"waiting\":%zu,\"waiting_max\":%zu,"
                       "\"running\":%zu,\"running_max\":%zu}",
                       queue->waiting, queue->waiting_max, queue->running,
                       queue->running_max);
    if (r == 0)
        r = buf_printf(out,
                       ",\"runs\":{\"started\":%" PRIu64 ",\"cold\":%" PRIu64
                       ",\"failed\":%" PRIu64 ",\"busy\":%" PRIu64
                       ",\"per_second_10s\":%.2f,\"per_second_60s\":%.2f,"
                       "\"average_ms\":%.3f}",
                       pool.runs, pool.runs_cold, pool.failed, serve->refused,
                       rate_over(serve, RATE_SHORT_S), rate_over(serve, RATE_LONG_S),
                       serve->rates.run_ms);
    if (r == 0)
        r = buf_printf(out,
                       ",\"memory\":{\"supervisor_bytes\":%" PRIu64
                       ",\"pool_bytes\":%" PRIu64 ",\"reserved_bytes\":%" PRIu64
                       ",\"budget_bytes\":%" PRIu64 ",\"jobs_bytes\":%" PRIu64
                       ",\"unread_bytes\":%" PRIu64 "}",
                       own_memory_bytes(), pool.memory_bytes, queue->memory_bytes,
                       queue->memory_max_bytes, serve->held_bytes, serve->pending_bytes);
    if (r == 0)
        r = put_sessions(serve, out);
    if (r == 0)
        r = put_pressure(serve, out);
    if (r == 0)
        r = put_kinds(&pool, out);
    if (r == 0)
        r = put_policies(serve, out);
    return r < 0 ? r : buf_append(out, "}", 1);
}
