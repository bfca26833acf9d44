/*
 * The attack probe: one verb is one attempt, with arguments that do no harm where nothing
 * stops them. The answer tells who spoke: EFAULT, EBADF, EINVAL or success mean that the
 * kernel's own code was reached; ENOSYS, EPERM and EACCES mean that a layer stopped it.
 * The idea is bubblewrap's try-syscall. What each verb must meet in a cell is not known
 * here: expect.c.
 *
 * Built twice: probe.so for Python's ctypes inside a cell, and the programs probe and
 * layers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { AIM_NONE = 0, AIM_OWN = -1 };

struct verb {
    const char *name;
    const char *tries; /* for people */
    long number;       /* the system call, made as it stands when run is NULL */
    long args[6];
    /* The value, or a negative errno. Leaves nothing behind that outlives its process. */
    long (*run)(const struct verb *verb, pid_t target);
    /* Which argument is the process attacked: 1-6, AIM_OWN when run places it, AIM_NONE.
     */
    int aim;
};

struct verb_family {
    const char *name;
    const struct verb *verbs;
    const size_t *verbs_n;
};

extern const struct verb verbs_namespaces[], verbs_mounts[], verbs_process[],
    verbs_network[], verbs_files[], verbs_kernel[], verbs_machine[];
extern const size_t verbs_namespaces_n, verbs_mounts_n, verbs_process_n, verbs_network_n,
    verbs_files_n, verbs_kernel_n, verbs_machine_n;

extern const struct verb_family probe_families[];
extern const size_t probe_families_n;

const struct verb *probe_find(const char *name, size_t n);

/* One system call of a row, -errno on failure; arg 0 is the first. */
long probe_call(const struct verb *verb, pid_t target);

/* A fresh file in TMPDIR or /tmp, the cell's place to write; fills in its name and
 * returns a descriptor, or -errno. */
enum { PROBE_PATH_BYTES = 256 };
int probe_temp(char name[PROBE_PATH_BYTES]);

/* "verb" or "verb=pid": the attempt in a child that is killed after PROBE_SECONDS, or,
 * when the place forbids fork, in this very process. Puts one JSON line without its end
 * into text:
 * {"verb": "bpf", "result": "ok" | "errno" | "signal", "errno": "EPERM", "value": n}.
 * Returns 0, or -1 when there is no such verb or no room for the text. */
enum { PROBE_SECONDS = 2, PROBE_TEXT_BYTES = 256 };
int probe_run(const char *verb, char *text, size_t n);
int probe_run_here(const char *verb, char *text, size_t n);

/* What the host holds while a test runs, for the verbs that reach for it (host.c). */
#define HOST_ABSTRACT "adyton-escape-host"
#define HOST_DATAGRAM "adyton-escape-host-datagram"
#define HOST_FILE     "/tmp/adyton-escape-host"
/* Shown in the cell by the policy's read_paths, and writable by everyone outside: what
 * keeps it from being written is the mount, or Landlock, and never its mode. */
#define HOST_SHARED "/var/tmp/adyton-escape-shared"
#define HOST_SOCKET "/tmp/adyton-escape-host.socket"
#define HOST_QUEUE  "adyton-escape-host"
enum { HOST_KEY = 0x61647974, HOST_PORT = 47113 };
