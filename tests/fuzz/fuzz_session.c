/*
 * libFuzzer: a session's guest, and the code that shares its process, on all channels at once and in
 * any order: messages on the socket, bytes on the streams, the claims memory, the doorbell, its end.
 * A run ends at most once, what comes of it is whole JSON and bounded, and after the end of the cell
 * nothing is taken for a run any more.
 *
 * The input: a byte, whether runs are validated; then acts, each a byte for its kind, a length of two
 * bytes (little-endian) and so many bytes.
 */
#include <event2/event.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/cell_parts.h"

enum {
    ACTS_MAX = 64,
    JSON_BYTES_MAX = 64 * 1024 * 1024,
    PIPE_BYTES = 4096,
    RUNS_MAX = 16
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct world {
    struct event_base *base;
    struct cell *cell;
    struct outcome outcome;
    struct policy policy;
    struct job job;
    int guest, streams[2]; /* the cell's ends */
    unsigned given, kept;
    bool ended;
};

static const struct image image = {.version = "3.11.2"};

static void
check_outcome(const struct outcome *outcome)
{
    AUTO_BUF struct buf json = {0};
    buf_init(&json, JSON_BYTES_MAX);
    if (outcome_json(outcome, OUTCOME_JSON_COMPACT | OUTCOME_JSON_EXACT, &json) < 0 ||
        outcome->displays.items_n > DISPLAY_ITEMS_MAX ||
        outcome->displays.bytes > DISPLAY_BYTES_MAX ||
        outcome->incidents_n > OUTCOME_INCIDENTS_MAX)
        abort();
}

/* As the pool does. */
static void
on_kept(void *context)
{
    struct world *world = context;
    struct outcome own = world->outcome;
    outcome_init(&world->outcome);
    cell_wait_with(world->cell, &world->outcome);
    world->kept++;
    if (world->kept > world->given || own.session != SESSION_KEPT || world->ended)
        abort();
    check_outcome(&own);
    outcome_done(&own);
}

static void
on_end(void *context)
{
    struct world *world = context;
    world->ended = true;
    if (world->outcome.session != SESSION_LOST || world->outcome.session_note[0] == '\0')
        abort();
    check_outcome(&world->outcome);
}

static struct cell_request
request_of(struct world *world)
{
    return (struct cell_request){.policy = &world->policy,
                                 .job = &world->job,
                                 .image = &image,
                                 .session = &world->policy,
                                 .run = world->given,
                                 .collect_dir = -1,
                                 .on_kept = on_kept,
                                 .on_end = on_end,
                                 .context = world};
}

/* --- acts --- */

static void
hear(struct world *world)
{
    if (world->cell->on_guest && world->cell->cause == CAUSE_NONE)
        cell_on_guest(-1, 0, world->cell);
}

static void
say(struct world *world, const uint8_t *bytes, size_t n)
{
    (void)!send(world->guest, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    hear(world);
}

/* The right words, of which the input changes some. */
static void
say_end(struct world *world, const uint8_t *bytes, size_t n)
{
    struct guest_ended end = {.magic = GUEST_MAGIC,
                              .run = world->cell->request.run,
                              .how = world->cell->refused};
    memcpy(&end.kind, bytes, n < sizeof(end) - 8 ? n : sizeof(end) - 8);
    say(world, (const uint8_t *)&end, sizeof(end));
}

static void
write_stream(struct world *world, const uint8_t *bytes, size_t n)
{
    int at = n > 0 && bytes[0] & 1;
    struct output *output = at ? &world->cell->err : &world->cell->out;
    (void)!write(world->streams[at], bytes, n < PIPE_BYTES ? n : PIPE_BYTES);
    if (!world->cell->rests)
        output_take(output);
}

/* At any place of it. */
static void
write_claims(struct world *world, const uint8_t *bytes, size_t n)
{
    enum { AT_BYTES = 3 };
    struct claims_memory *memory = (struct claims_memory *)world->cell->claims;
    if (n < AT_BYTES || !memory)
        return;
    size_t at = ((size_t)bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16) %
                sizeof(*memory);
    n -= AT_BYTES;
    memcpy((char *)memory + at, bytes + AT_BYTES,
           n < sizeof(*memory) - at ? n : sizeof(*memory) - at);
}

static void
ring(struct world *world, const uint8_t *bytes, size_t n)
{
    struct claims_memory *memory = (struct claims_memory *)world->cell->claims;
    if (!memory)
        return;
    memory->display.turn++;
    memory->display.n = (uint32_t)n;
    memcpy(memory->display.bytes, bytes,
           n < DISPLAY_FRAME_BYTES ? n : DISPLAY_FRAME_BYTES);
    (void)display_rung(world->cell);
}

/* The supervisor's side, and what of it the guest takes. */
static void
next_run(struct world *world, const uint8_t *bytes, size_t n)
{
    char taken[64];
    struct err err;
    (void)bytes, (void)n;
    while (recv(world->guest, taken, sizeof(taken), MSG_DONTWAIT) > 0)
        continue;
    if (!world->cell->rests || world->given == RUNS_MAX)
        return;
    world->given++;
    const struct cell_request request = request_of(world);
    if (cell_next(world->cell, &request, &world->outcome, &err) < 0)
        world->given--;
}

static void
hang_up(struct world *world, const uint8_t *bytes, size_t n)
{
    (void)bytes, (void)n;
    fd_close(&world->guest);
    world->guest = -1;
    hear(world);
}

static void (*const acts[])(struct world *world, const uint8_t *bytes, size_t n) = {
    say, say_end, write_stream, write_claims, ring, next_run, hang_up};

static void
act(struct world *world, const uint8_t *bytes, size_t n)
{
    for (int i = 0; i < ACTS_MAX && n >= 3; i++) {
        unsigned kind = bytes[0] % (sizeof(acts) / sizeof(*acts));
        size_t length = (size_t)bytes[1] | (size_t)bytes[2] << 8;
        bytes += 3;
        n -= 3;
        length = length < n ? length : n;
        acts[kind](world, bytes, length);
        bytes += length;
        n -= length;
    }
}

/* --- the world --- */

static int
pipe_into(struct output *output)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        abort();
    output->fd = ends[0];
    return ends[1];
}

static void
make(struct world *world)
{
    static const char code[] = "print(1)\n";
    struct err err = {0};
    int ends[2];
    job_init(&world->job);
    buf_init(&world->job.code, sizeof(code));
    outcome_init(&world->outcome);
    world->base = event_base_new();
    world->cell = world->base ? cell_new(world->base) : NULL;
    if (!world->cell || policy_load(policy_default, &world->policy, &err) < 0 ||
        buf_append(&world->job.code, code, sizeof(code) - 1) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ||
        fd_set_nonblocking(ends[0]) < 0)
        abort();
    struct cell *cell = world->cell;
    void *claims = mmap(NULL, sizeof(struct claims_memory), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (claims == MAP_FAILED)
        abort();
    cell->plan = cell->own_plan = calloc(1, sizeof(*cell->own_plan));
    if (!cell->plan)
        abort();
    cell->guest = ends[0];
    world->guest = ends[1];
    cell->claims = claims;
    cell->display = &((struct claims_memory *)claims)->display;
    world->streams[0] = pipe_into(&cell->out);
    world->streams[1] = pipe_into(&cell->err);
    cell->sealed = cell->given = true;
    cell->start = "warm";
}

static void
begin(struct world *world, bool validates)
{
    struct err err;
    struct cell *cell = world->cell;
    world->policy.validation = validates ? VALIDATION_ENFORCE : VALIDATION_OFF;
    world->given = 1;
    const struct cell_request request = request_of(world);
    cell_assign(cell, &request, &world->outcome);
    if (cell_watch_streams(cell, &err) < 0)
        abort();
    cell->on_guest =
        cell_watch(cell, cell->guest, EV_READ | EV_PERSIST, cell_on_guest, 0);
    cell->on_wall = cell_watch(cell, -1, 0, cell_on_wall, 0);
    if (validation_is_on(cell))
        cell_validate(cell);
    else
        cell_go(cell, false);
}

static void
finish(struct world *world)
{
    if (world->cell->cause == CAUSE_NONE)
        cell_end(world->cell, CAUSE_ABANDON);
    cell_finish(world->cell);
    cell_free(world->cell);
    if (!world->ended)
        abort();
    for (size_t i = 0; i < 2; i++)
        fd_close(&world->streams[i]);
    fd_close(&world->guest);
    outcome_done(&world->outcome);
    job_done(&world->job);
    policy_done(&world->policy);
    event_base_free(world->base);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct world world = {.guest = -1};
    if (n == 0)
        return 0;
    make(&world);
    begin(&world, bytes[0] & 1);
    act(&world, bytes + 1, n - 1);
    finish(&world);
    return 0;
}
