/*
 * Forgetting from the old end. The chain stays one: its anchor moves to the last row that
 * was removed, whose hash the first remaining row follows. One batch at a time, so that
 * no writer waits long.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "ledger/ledger_parts.h"

enum { BATCH_ROWS = 512 };

static const int64_t day_us = 24LL * 3600 * 1000000;

/* One row of integers, NULL as 0. */
static int
read_numbers(struct ledger *ledger, const char *sql, int64_t a, int64_t b, int64_t *ret,
             int ret_n, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *query = NULL;
    int r = ledger_prepare(ledger, sql, &query, err);
    if (r < 0)
        return r;
    int wanted = sqlite3_bind_parameter_count(query);
    if (wanted > 0)
        sqlite3_bind_int64(query, 1, a);
    if (wanted > 1)
        sqlite3_bind_int64(query, 2, b);
    if (sqlite3_step(query) != SQLITE_ROW)
        return ledger_fail(ledger, "find what is old in it", err);
    for (int i = 0; i < ret_n; i++)
        ret[i] = sqlite3_column_int64(query, i);
    return 0;
}

static int
change(struct ledger *ledger, const char *sql, int64_t a, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *s = NULL;
    int r = ledger_prepare(ledger, sql, &s, err);
    if (r < 0)
        return r;
    sqlite3_bind_int64(s, 1, a);
    return sqlite3_step(s) == SQLITE_DONE ? 0
                                          : ledger_fail(ledger, "remove old rows", err);
}

/* What is in use: free pages are used again before the file grows. */
static int
bytes_in_use(struct ledger *ledger, uint64_t *ret, struct err *err)
{
    int64_t pages[3];
    int r = read_numbers(ledger,
                         "SELECT (SELECT page_count FROM pragma_page_count), "
                         "(SELECT freelist_count FROM pragma_freelist_count), "
                         "(SELECT page_size FROM pragma_page_size)",
                         0, 0, pages, 3, err);
    if (r == 0)
        *ret = (uint64_t)(pages[0] - pages[1]) * (uint64_t)pages[2];
    return r;
}

/* The last row that may go: not a run that goes on, not the newest one. */
static int
find_cut(struct ledger *ledger, const struct ledger_retention *retention,
         int64_t *ret_anchor, int64_t *ret_cut, struct err *err)
{
    int64_t anchor, keep[2], old = 0;
    uint64_t used;
    int r = read_numbers(ledger, "SELECT anchor_seq FROM chain", 0, 0, &anchor, 1, err);
    if (r == 0)
        r = read_numbers(ledger,
                         "SELECT (SELECT seq FROM entry WHERE kind = 'intent' "
                         "ORDER BY seq DESC LIMIT 1), (SELECT min(intent) FROM open)",
                         0, 0, keep, 2, err);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t days_us =
        retention->days < 100000 ? (int64_t)retention->days * day_us : INT64_MAX;
    int64_t since_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    since_us = since_us > days_us ? since_us - days_us : 0;
    /* The first row that is young ends it: clocks are set back now and then. */
    if (r == 0)
        r = read_numbers(
            ledger,
            "SELECT coalesce((SELECT min(seq) FROM (SELECT seq, time_us FROM "
            "entry WHERE seq > ?1 ORDER BY seq LIMIT 513) WHERE time_us >= ?2), "
            "?1 + 513) - 1",
            anchor, since_us, &old, 1, err);
    if (r == 0)
        r = bytes_in_use(ledger, &used, err);
    if (r < 0)
        return r;
    int64_t cut = used > retention->bytes ? anchor + BATCH_ROWS : old;
    int64_t most = keep[0] - 1;
    if (keep[1] > 0 && keep[1] - 1 < most)
        most = keep[1] - 1;
    cut = cut < anchor + BATCH_ROWS ? cut : anchor + BATCH_ROWS;
    *ret_cut = cut < most ? cut : most;
    *ret_anchor = anchor;
    return 0;
}

static int
remove_to(struct ledger *ledger, int64_t cut, struct err *err)
{
    static const char *const steps[] = {
        /* A text that a later intent names stays. */
        "DELETE FROM code WHERE last <= ?1 AND hash IN (SELECT code FROM entry WHERE "
        "seq <= ?1 AND kind = 'intent')",
        "UPDATE chain SET anchor_seq = ?1, anchor_hash = (SELECT hash FROM entry WHERE "
        "seq = ?1)",
        "DELETE FROM entry WHERE seq <= ?1",
    };
    int r = 0;
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps) && r == 0; i++)
        r = change(ledger, steps[i], cut, err);
    return r;
}

int
ledger_prune(struct ledger *ledger, const struct ledger_retention *retention,
             uint64_t *ret_rows, struct err *err)
{
    int64_t anchor, cut;
    *ret_rows = 0;
    int r = find_cut(ledger, retention, &anchor, &cut, err);
    if (r < 0 || cut <= anchor)
        return r;
    r = chain_begin(ledger, err);
    if (r < 0)
        return r;
    r = find_cut(ledger, retention, &anchor, &cut, err); /* under the lock now */
    if (r == 0 && cut > anchor)
        r = remove_to(ledger, cut, err);
    if (r == 0)
        r = chain_commit(ledger, false, err);
    if (r < 0) {
        chain_abandon(ledger);
        return r;
    }
    *ret_rows = cut > anchor ? (uint64_t)(cut - anchor) : 0;
    return ledger_exec(ledger, "PRAGMA incremental_vacuum(256)", "give space back", err);
}

/* A batch takes away more than what fills a journal adds. */
int
ledger_tidy(struct ledger *ledger, const struct ledger_retention *retention,
            struct err *err)
{
    uint64_t rows;
    if (ledger->frames_since_tidy < LEDGER_CHECKPOINT_FRAMES)
        return 0;
    ledger->frames_since_tidy = 0;
    return ledger_prune(ledger, retention, &rows, err);
}
