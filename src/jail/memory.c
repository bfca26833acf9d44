/* Reads what the kernel says of memory: see memory.h. */
#include "jail/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fd.h"

enum { KIB = 1024, MEMINFO_BYTES = 4096 };

/* 150 ms of stalls within 2 s: the window that an ordinary user may ask for. */
static const char psi_wish[] = "some 150000 2000000";

/* What a group's limit is called, with v2 and v1: the kernel has one of the two. */
static const struct files {
    const char *limit, *usage, *inactive_file, *active_file;
} versions[] = {
    {"memory.max", "memory.current", "inactive_file", "active_file"},
    {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
     "total_active_file"},
};

void
memory_watch_init(struct memory_watch *watch)
{
    *watch = (struct memory_watch){0};
    if (cgroup_find_own_memory(watch->folder, watch->top) < 0)
        watch->folder[0] = watch->top[0] = '\0';
}

static uint64_t
kib_of(const char *text, const char *name)
{
    unsigned long long kib = 0;
    const char *at = strstr(text, name);
    return at && sscanf(at + strlen(name), " %llu", &kib) == 1 ? kib * KIB : 0;
}

static size_t
look_at_host(struct memory_room *ret)
{
    char text[MEMINFO_BYTES];
    if (file_read(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) < 0)
        return 0;
    snprintf(ret->where, sizeof(ret->where), "host");
    ret->total_bytes = kib_of(text, "MemTotal:");
    ret->available_bytes = kib_of(text, "MemAvailable:");
    return ret->total_bytes > 0 ? 1 : 0;
}

/* Pages of files go when they are in the way; those of a tmpfs do not, and are not among them. */
static size_t
look_at_group(const char *folder, uint64_t host_bytes, struct memory_room *ret)
{
    AUTO_CLOSE int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; dir >= 0 && i < sizeof(versions) / sizeof(*versions); i++) {
        const struct files *files = &versions[i];
        uint64_t limit, usage, inactive = 0, active = 0;
        if (file_read_u64(dir, files->limit, &limit) < 0 || limit >= host_bytes ||
            file_read_u64(dir, files->usage, &usage) < 0)
            continue; /* "max", or so large a number that the host is the limit */
        (void)!file_read_keyed_u64(dir, "memory.stat", files->inactive_file, &inactive);
        (void)!file_read_keyed_u64(dir, "memory.stat", files->active_file, &active);
        uint64_t held = usage > inactive + active ? usage - inactive - active : 0;
        snprintf(ret->where, sizeof(ret->where), "%s", folder);
        ret->total_bytes = limit;
        ret->available_bytes = limit > held ? limit - held : 0;
        return 1;
    }
    return 0;
}

size_t
memory_look(const struct memory_watch *watch, struct memory_room rooms[MEMORY_ROOMS_MAX])
{
    char folder[CGROUP_PATH_BYTES];
    size_t top_n = strlen(watch->top), n = look_at_host(&rooms[0]);
    uint64_t host_bytes = n > 0 ? rooms[0].total_bytes : UINT64_MAX;
    snprintf(folder, sizeof(folder), "%s", watch->folder);
    while (n < MEMORY_ROOMS_MAX && top_n > 0 && strlen(folder) > top_n) {
        n += look_at_group(folder, host_bytes, &rooms[n]);
        *strrchr(folder, '/') = '\0'; /* it is below the top, which has one */
    }
    return n;
}

/* A trigger tells by POLLPRI, which event loops do not watch for: an epoll in between makes of it
 * something to read. */
void
memory_psi_open(struct memory_psi *ret)
{
    *ret = (struct memory_psi){-1, -1};
    AUTO_CLOSE int trigger =
        open("/proc/pressure/memory", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    AUTO_CLOSE int poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLPRI};
    if (trigger < 0 || poll < 0 || write(trigger, psi_wish, sizeof(psi_wish)) < 0 ||
        epoll_ctl(poll, EPOLL_CTL_ADD, trigger, &event) < 0)
        return;
    *ret = (struct memory_psi){fd_take(&poll), fd_take(&trigger)};
}

void
memory_psi_take(const struct memory_psi *psi)
{
    struct epoll_event event;
    (void)!epoll_wait(psi->poll, &event, 1, 0);
}

void
memory_psi_close(struct memory_psi *psi)
{
    fd_close(&psi->poll);
    fd_close(&psi->trigger);
    *psi = (struct memory_psi){-1, -1};
}
