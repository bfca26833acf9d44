/*
 * BLAS in warm cells. A zygote must have one thread, so its libraries have read at their start that
 * they may have no other; a cell may have as many as its policy leaves, as a cold one has. OpenBLAS
 * can be told: the others keep to one (docs/WARM.md).
 *
 * Which library it is, is found in the zygote, once. Threads cost a cell some 50 µs and a few pages,
 * so they are started for a program whose text names a library that computes with it.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "guest/threads.h"

/* As built by distributions, and by the wheels of numpy and scipy. */
static const char *const functions[] = {
    "openblas_set_num_threads", "openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads", "scipy_openblas_set_num_threads64_"};

static const char *const users[] = {"numpy", "pandas", "scipy", "sklearn", "statsmodels"};

static int
look(struct dl_phdr_info *library, size_t size, void *context)
{
    (void)size;
    struct threads *threads = context;
    if (threads->n == THREADS_LIBRARIES_MAX || !strstr(library->dlpi_name, "openblas"))
        return 0;
    void *handle = dlopen(library->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    for (size_t i = 0; handle && i < sizeof(functions) / sizeof(*functions); i++) {
        void *function = dlsym(handle, functions[i]);
        if (!function)
            continue;
        memcpy(&threads->set[threads->n++], &function, sizeof(function));
        break;
    }
    if (handle)
        dlclose(handle);
    return 0;
}

/* A thread of OpenBLAS that waits for work spins for 2^26 cycles before it sleeps, and one is started
 * in every cell that computes: outside, an import takes longer than that, here a whole run is shorter,
 * and would be charged for the spinning of a thread that it has no use for. With 2^20, a third of a
 * millisecond, calls that follow one another still find it awake. */
static const char spin_variable[] = "OPENBLAS_THREAD_TIMEOUT", spin_bits[] = "20";

void
threads_expect(void)
{
    setenv(spin_variable, spin_bits, 1); /* of C only: os.environ was made before */
}

void
threads_prepare(struct threads *threads)
{
    *threads = (struct threads){0};
    unsetenv(spin_variable);
    dl_iterate_phdr(look, threads);
}

void
threads_allow(const struct threads *threads, uint32_t n, const char *code, size_t code_n)
{
    bool uses = false;
    for (size_t i = 0; i < sizeof(users) / sizeof(*users) && !uses && threads->n > 0; i++)
        uses = memmem(code, code_n, users[i], strlen(users[i])) != NULL;
    for (size_t i = 0; i < threads->n && uses && n > 1; i++)
        threads->set[i]((int)n);
}
