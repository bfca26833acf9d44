/*
 * The guest: a CPython extension (limited API, one build for 3.9 and newer) that is the
 * first thing an interpreter in a cell runs. Its one function, main(), takes the setup
 * from the supervisor, seals the process, and becomes the submitted program; it never
 * returns.
 *
 * Must not know: policies, limits, what the supervisor does with claims.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/guest.h"
#include "guest/wire.h"
#include "jail/jail.h"

/* Told to the supervisor, which says it to people: nobody reads a cell's stderr for
 * this. */
static NORETURN void
give_up(const struct err *err)
{
    struct guest_ready ready = {.magic = GUEST_MAGIC, .err = *err};
    (void)!fd_send(GUEST_FD, &ready, sizeof(ready), NULL, 0);
    _exit(EXIT_FAILURE);
}

static int
receive_setup(struct guest_setup *setup, int *ret_claims_fd, struct err *err)
{
    int fds[1];
    ssize_t got = fd_receive(GUEST_FD, setup, sizeof(*setup), fds, 1);
    if (got < 0)
        return err_set(err, (int)got, "receive the setup: %s",
                       strerrordesc_np((int)-got));
    bool whole = got == (ssize_t)sizeof(*setup) && setup->magic == GUEST_MAGIC &&
                 setup->version == GUEST_VERSION && fds[0] >= 0;
    /* No filter, no run: a supervisor that failed to compile one has said so by now. */
    if (!whole || setup->seal.filter_n == 0 || setup->seal.filter_n > SEAL_FILTER_MAX)
        return err_set(err, -EPROTO, "the setup is not one of this build (%zd bytes)",
                       got);
    *ret_claims_fd = fds[0];
    return 0;
}

static struct claims *
map_claims(int fd, struct err *err)
{
    void *memory =
        mmap(NULL, sizeof(struct claims), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED) {
        err_sys(err, "map the claims memory");
        return NULL;
    }
    return memory;
}

/* From here on the process is a cell. Returns the claims memory. */
static struct claims *
become_cell(uint32_t *ret_flags)
{
    struct err err = {0};
    int claims_fd = -1, notify_fd = -1;
    struct guest_setup *setup = malloc(sizeof(*setup));
    if (!setup) {
        err_set(&err, -ENOMEM, "no memory for the setup");
        give_up(&err);
    }
    if (receive_setup(setup, &claims_fd, &err) < 0)
        give_up(&err);
    struct claims *claims = map_claims(claims_fd, &err);
    if (!claims || jail_seal(&setup->seal, &notify_fd, &err) < 0)
        give_up(&err);

    struct guest_ready ready = {.magic = GUEST_MAGIC};
    if (fd_send(GUEST_FD, &ready, sizeof(ready), &notify_fd, notify_fd >= 0 ? 1 : 0) < 0)
        _exit(EXIT_FAILURE); /* nobody is there to watch: nothing may run */
    close(notify_fd);
    if (!(setup->flags & GUEST_CHECK)) /* what follows is validation, which closes it */
        close(GUEST_FD);
    *ret_flags = setup->flags;
    explicit_bzero(setup, sizeof(*setup));
    free(setup);
    return claims;
}

static PyObject *
guest_main(PyObject *module, PyObject *unused)
{
    (void)unused;
    /* The program's __main__ takes the place of ours, which holds the last reference. */
    Py_INCREF(module);
    uint32_t flags;
    struct claims *claims = become_cell(&flags);
    program_run(claims, flags); /* does not return */
    return NULL;
}

static PyMethodDef methods[] = {
    {"main", guest_main, METH_NOARGS,
     "main()\n--\n\nSeal this process and become the submitted program. Does not "
     "return."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_adyton", .m_doc = "The guest of an adyton cell.",
    .m_methods = methods,  .m_slots = slots,
};

PyMODINIT_FUNC PyInit__adyton(void);

PyMODINIT_FUNC
PyInit__adyton(void)
{
    return PyModuleDef_Init(&definition);
}
