/* Between factory.c and factory_cell.c; nobody else's. */
#pragma once

#include <stddef.h>

#include "warm/factory.h"

/* An init or a zygote that does not answer by then is broken. */
enum { FACTORY_STEP_S = 10 };

struct factory_cell {
    uint32_t id;         /* 0: the row is free */
    pid_t init, program; /* 0: reaped, or not there yet */
};

struct factory {
    const struct factory_task *task;
    pid_t zygote;
    int zygote_socket;
    int proc_fd;    /* the factory's own /proc: identity maps are written through it */
    uint32_t users; /* handed out so far */
    struct factory_cell cells[FACTORY_CELLS_MAX];
};

void factory_report(const struct factory_report *report, const int *fds, size_t fds_n);
/* The cell that a process belongs to, or NULL. */
struct factory_cell *factory_find(struct factory *factory, pid_t pid);
/* Makes a cell and reports that it is made, or why not. */
void factory_make(struct factory *factory, uint32_t id, const int *fds, size_t fds_n);
void factory_kill(struct factory *factory, uint32_t id);
