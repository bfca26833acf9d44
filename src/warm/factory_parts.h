/* Between factory.c and factory_cell.c; nobody else's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "warm/factory.h"

/* An init or a zygote that does not answer by then is broken. */
enum { FACTORY_STEP_S = 10 };
/* Network namespaces that are kept for the next cells. */
enum { FACTORY_NETS_MAX = 64 };

struct factory_cell {
    uint32_t id;         /* 0: the row is free */
    pid_t init, program; /* 0: reaped, or not there yet */
    uint32_t stops;      /* of the program, that its tracer has passed on */
    int net;             /* the network namespace that was lent to it; -1: its own */
    bool is_clean;       /* it was made: its namespace was as new */
    bool is_making;      /* its row stays, whatever of it has died already */
    bool is_ended;       /* by the supervisor's wish */
};

struct factory {
    const struct factory_task *task;
    pid_t zygote;
    int zygote_socket;
    int signals;    /* a signalfd: children have changed */
    int proc_fd;    /* the factory's own /proc: identity maps are written through it */
    uint32_t users; /* handed out so far */
    int home_net;   /* our own network namespace */
    int nets[FACTORY_NETS_MAX];
    size_t nets_n; /* that nobody uses now: see factory_net.c */
    struct factory_cell cells[FACTORY_CELLS_MAX];
};

void factory_report(const struct factory_report *report, const int *fds, size_t fds_n);
/* Waits for a word over this socket, and buries the dead of other cells meanwhile: what has
 * ended is told at once, whoever does not answer. */
int factory_await(struct factory *factory, int socket, struct err *err) MUST_USE;
/* The cell that a process belongs to, or NULL. */
struct factory_cell *factory_find(struct factory *factory, pid_t pid);
/* Says so, and forgets the cell, when nothing of it is left. */
void factory_bury(struct factory *factory, struct factory_cell *cell);
void factory_forget(struct factory *factory, struct factory_cell *cell);
struct factory_cell *factory_find_id(struct factory *factory, uint32_t id);
/* Makes a cell and reports that it is made, or why not. */
void factory_make(struct factory *factory, uint32_t id, const int *fds, size_t fds_n);
void factory_kill(struct factory *factory, uint32_t id);
void factory_interrupt(struct factory *factory, uint32_t id);

/* --- factory_clear.c --- */
void factory_clear(struct factory *factory, uint32_t id);

/* --- factory_trace.c --- */
/* Hears of a program's end before its memory is taken down. */
void factory_trace(pid_t program);
/* A traced process has stopped: reports an end, and lets it go on. */
void factory_pass_on(struct factory *factory, pid_t pid, int status);

/* --- factory_net.c --- */
/* Whether cells under this policy may have a network namespace after one another. */
bool factory_net_is_lent(const struct jail_plan *plan);
int factory_net_open_home(struct factory *factory, struct err *err) MUST_USE;
/* Takes a namespace that no living cell has, and enters it: what is cloned next is in it. */
int factory_net_enter(struct factory *factory, struct factory_cell *cell,
                      struct err *err) MUST_USE;
int factory_net_leave(struct factory *factory, struct err *err) MUST_USE;
/* Of a cell of which nothing is left. */
void factory_net_return(struct factory *factory, struct factory_cell *cell);
