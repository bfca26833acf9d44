/*
 * Descriptors: negative means none, born close-on-exec, handed over with fd_take.
 * Everything here retries EINTR and bounds what it reads.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"

/* For AUTO_CLOSE: closes *fd when it is not negative; errno is kept. */
void fd_close(const int *fd);
int fd_take(int *fd);
void ptr_free(void *pointer_to_pointer);

int fd_write_all(int fd, const void *bytes, size_t n) MUST_USE;
/* Reads to the end into buf; -ENOSPC when there is more than buf may hold. */
int fd_read_all(int fd, struct buf *buf) MUST_USE;
int fd_set_nonblocking(int fd) MUST_USE;
/* Moves *fd to exactly `number` (dup2), close-on-exec off when `keep`. */
int fd_move(int *fd, int number) MUST_USE;

/* One message with at most FD_MESSAGE_MAX descriptors (SCM_RIGHTS). */
enum { FD_MESSAGE_MAX = 16 };
int fd_send(int socket, const void *bytes, size_t n, const int *fds,
            size_t fds_n) MUST_USE;
/* Returns bytes read (0 at the end of the stream) or a negative errno; fds beyond what
 * came are set to -1. Received descriptors are close-on-exec. */
ssize_t fd_receive(int socket, void *bytes, size_t n, int *fds, size_t fds_n) MUST_USE;

/* Small kernel files (cgroupfs, procfs), beneath a directory descriptor. */
int file_write(int dir, const char *name, const char *text) MUST_USE;
int file_write_u64(int dir, const char *name, uint64_t value) MUST_USE;
/* Reads at most n - 1 bytes and terminates; returns the count or a negative errno. */
ssize_t file_read(int dir, const char *name, char *text, size_t n) MUST_USE;
int file_read_u64(int dir, const char *name, uint64_t *ret) MUST_USE;
/* Value of `key` in a file of "key value" lines (memory.events, cpu.stat). */
int file_read_keyed_u64(int dir, const char *name, const char *key,
                        uint64_t *ret) MUST_USE;
