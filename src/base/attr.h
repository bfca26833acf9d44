/* Compiler attributes used everywhere, under short names. Job: nothing else. */
#pragma once

#define MUST_USE     __attribute__((warn_unused_result))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#define NORETURN     __attribute__((noreturn))
/* A large buffer that is written before it is read: the compiler need not clear it first. */
#define UNCLEARED __attribute__((uninitialized))

/* Released at the end of the scope; the release stands on the line of the acquisition. */
#define AUTO_CLOSE __attribute__((cleanup(fd_close)))
#define AUTO_FREE  __attribute__((cleanup(ptr_free)))
