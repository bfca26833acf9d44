/*
 * Applies one layer alone and tries one verb under it. Three processes: the caller; the
 * warden, in scratch namespaces, which answers the filter's notifications as a supervisor
 * would; and the subject, which applies the layer to itself and makes the attempt.
 */
#include "stand.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/interpreter.h"
#include "kernel/kernel.h"
#include "scratch.h"

enum { WARDEN_MS = 10000 };

/* From the subject: what came of it. The first message of a filtered one is its listener.
 */
struct report {
    struct err err;
    char text[PROBE_TEXT_BYTES];
};

static int
step(const char *name, const struct seal *seal, int *ret_notify, struct err *err)
{
    struct seal_run run = {.seal = seal, .ret_notify_fd = ret_notify};
    for (size_t i = 0; i < jail_seal_steps_n; i++) {
        if (strcmp(jail_seal_steps[i].name, name) == 0)
            return jail_seal_steps[i].run(&run, err);
    }
    return err_set(err, -EINVAL, "the seal has no step %s", name);
}

static int
apply_nothing(const struct stand *stand, int *ret_notify, struct err *err)
{
    (void)stand, (void)ret_notify, (void)err;
    return 0;
}

static int
apply_seccomp(const struct stand *stand, int *ret_notify, struct err *err)
{
    return step("seccomp", &stand->plan.seal, ret_notify, err);
}

/* With every capability in the new user namespace: they come off in another layer. */
static int
apply_namespaces(const struct stand *stand, int *ret_notify, struct err *err)
{
    (void)ret_notify;
    struct jail_entered entered;
    return jail_enter(&stand->plan, &entered, err);
}

/* The ruleset of the isolation that has nothing else around files. */
static int
apply_landlock(const struct stand *stand, int *ret_notify, struct err *err)
{
    struct seal seal = stand->landlock.seal;
    if (setenv("TMPDIR", jail_tmp_dir(&stand->landlock), 1) < 0)
        return err_sys(err, "set TMPDIR");
    int r = jail_landlock_ruleset(&stand->landlock, &seal.landlock_fd, err);
    if (r == 0)
        r = step("no_new_privs", &seal, ret_notify, err);
    return r == 0 ? step("landlock", &seal, ret_notify, err) : r;
}

static int
apply_capabilities(const struct stand *stand, int *ret_notify, struct err *err)
{
    return step("capabilities", &stand->plan.seal, ret_notify, err);
}

static int
apply_rlimits(const struct stand *stand, int *ret_notify, struct err *err)
{
    return step("rlimits", &stand->plan.seal, ret_notify, err);
}

static int
apply_all(const struct stand *stand, int *ret_notify, struct err *err)
{
    struct jail_entered entered;
    int r = jail_enter(&stand->plan, &entered, err);
    if (r < 0)
        return r;
    struct seal seal = stand->plan.seal;
    seal.landlock_fd = entered.landlock_fd;
    return jail_seal(&seal, ret_notify, err);
}

static const struct {
    unsigned layer;
    int (*apply)(const struct stand *stand, int *ret_notify, struct err *err);
} layers[] = {
    {LAYER_NONE, apply_nothing},
    {LAYER_SECCOMP, apply_seccomp},
    {LAYER_NAMESPACES, apply_namespaces},
    {LAYER_LANDLOCK, apply_landlock},
    {LAYER_CAPABILITIES, apply_capabilities},
    {LAYER_RLIMITS, apply_rlimits},
    {LAYER_ALL, apply_all},
};

static int
apply(const struct stand *stand, unsigned layer, int *ret_notify, struct err *err)
{
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        if (layers[i].layer == layer)
            return layers[i].apply(stand, ret_notify, err);
    }
    return err_set(err, -EINVAL, "no layer %u", layer);
}

static void
subject(const struct stand *stand, const struct verb *verb, unsigned layer, int warden)
{
    struct report report = {0};
    char name[64];
    int notify = -1;
    if (verb->aim == AIM_NONE)
        snprintf(name, sizeof(name), "%s", verb->name);
    else
        snprintf(name, sizeof(name), "%s=%d", verb->name, (int)stand->target);

    int r = apply(stand, layer, &notify, &report.err);
    if (r == 0 && notify >= 0)
        r = fd_send(warden, "n", 1, &notify, 1);
    if (r == 0)
        r = probe_run(name, report.text, sizeof(report.text));
    if (r < 0 && report.err.code == 0)
        report.err = (struct err){.code = r, .text = "the attempt could not be made"};
    _exit(fd_send(warden, &report, sizeof(report), NULL, 0) < 0);
}

static int
write_map(pid_t pid, const char *name, uid_t outside)
{
    char path[64], line[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    snprintf(line, sizeof(line), "%d %u 1", JAIL_UID, (unsigned)outside);
    return file_write(AT_FDCWD, path, line);
}

/* A plain fork, but for namespaces: there the jail's own flags, and the maps that a
 * supervisor writes before it lets the child go on. */
static pid_t
fork_subject(const struct stand *stand, unsigned layer, struct err *err)
{
    if (layer != LAYER_NAMESPACES && layer != LAYER_ALL)
        return fork();
    int go[2];
    if (pipe2(go, O_CLOEXEC) < 0)
        return err_sys(err, "make a pipe");
    struct clone_args args = {
        .flags = jail_clone_flags(&stand->plan),
        .exit_signal = SIGCHLD,
    };
    pid_t pid = k_clone3(&args);
    if (pid == 0) {
        char c;
        close(go[1]);
        if (read(go[0], &c, 1) != 1)
            _exit(1);
        return 0;
    }
    close(go[0]);
    uid_t outside = geteuid() == 0 ? jail_host_uid(pid) : geteuid();
    int r = pid < 0 ? -errno : write_map(pid, "uid_map", outside);
    if (r == 0)
        r = write_map(pid, "gid_map", outside);
    if (r == 0)
        r = write(go[1], "", 1) == 1 ? 0 : -errno;
    close(go[1]);
    return r < 0 ? err_set(err, r, "let the subject into its namespaces") : pid;
}

/* Answers one notification as the table says; true when the table would end the cell. */
static bool
answer_notification(const struct stand *stand, int notify)
{
    struct seccomp_notif call;
    memset(&call, 0, sizeof(call));
    if (ioctl(notify, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
        return false;
    uint64_t arguments[6];
    memcpy(arguments, call.data.args, sizeof(arguments));
    const struct syscall_row *row =
        jail_syscall_row(stand->plan.when, call.data.nr, arguments);
    struct seccomp_notif_resp answer = {.id = call.id,
                                        .error = row ? -row->error : -ENOSYS};
    ioctl(notify, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    return row && row->verdict == CALL_END;
}

static int
await_report(const struct stand *stand, int subject_fd, struct report *ret,
             bool *ret_ended, struct err *err)
{
    AUTO_CLOSE int notify = -1;
    for (;;) {
        struct pollfd wait[2] = {{subject_fd, POLLIN, 0}, {notify, POLLIN, 0}};
        int r = poll(wait, 2, WARDEN_MS);
        if (r <= 0)
            return err_set(err, -ETIMEDOUT, "the subject said nothing for %d s",
                           WARDEN_MS / 1000);
        if (wait[1].revents & POLLIN)
            *ret_ended |= answer_notification(stand, notify);
        if (!wait[0].revents)
            continue;
        int fds[1];
        ssize_t n = fd_receive(subject_fd, ret, sizeof(*ret), fds, 1);
        if (n == 1)
            notify = fds[0];
        else if (n == (ssize_t)sizeof(*ret))
            return 0;
        else
            return err_set(err, -EPROTO, "the subject died");
    }
}

static void
take_answer(const struct report *report, bool ended, char answer[ANSWER_BYTES])
{
    static const char key[] = "\"errno\": \"";
    const char *name = strstr(report->text, key);
    if (ended)
        snprintf(answer, ANSWER_BYTES, "ended");
    else if (strstr(report->text, "\"result\": \"ok\"") || !name)
        snprintf(answer, ANSWER_BYTES, "ok");
    else
        snprintf(answer, ANSWER_BYTES, "%.*s", (int)strcspn(name + sizeof(key) - 1, "\""),
                 name + sizeof(key) - 1);
}

/* In a process of its own, because its namespaces are scratch. */
static int
warden(const struct stand *stand, const struct verb *verb, unsigned layer,
       struct report *report, bool *ret_ended, struct err *err)
{
    int pair[2];
    int r = scratch_enter();
    if (r < 0)
        return err_set(err, r, "make scratch namespaces: %s", strerrordesc_np(-r));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "make a socket pair");
    pid_t pid = fork_subject(stand, layer, err);
    if (pid == 0) {
        close(pair[0]);
        subject(stand, verb, layer, pair[1]);
    }
    close(pair[1]);
    r = pid < 0 ? pid : await_report(stand, pair[0], report, ret_ended, err);
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    if (r == 0 && report->err.code < 0) {
        *err = report->err;
        r = report->err.code;
    }
    return r;
}

struct verdict {
    struct err err;
    char answer[ANSWER_BYTES];
};

int
stand_try(const struct stand *stand, const struct verb *verb, unsigned layer,
          char answer[ANSWER_BYTES], struct err *err)
{
    int out[2];
    if (pipe2(out, O_CLOEXEC) < 0)
        return err_sys(err, "make a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        struct report report = {0};
        struct verdict verdict = {0};
        bool ended = false;
        if (warden(stand, verb, layer, &report, &ended, &verdict.err) == 0)
            take_answer(&report, ended, verdict.answer);
        _exit(fd_write_all(out[1], &verdict, sizeof(verdict)) < 0);
    }
    close(out[1]);
    struct verdict verdict;
    ssize_t n = pid < 0 ? -1 : read(out[0], &verdict, sizeof(verdict));
    close(out[0]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    if (n != (ssize_t)sizeof(verdict))
        return err_set(err, -EIO, "the warden died");
    if (verdict.err.code < 0) {
        *err = verdict.err;
        return verdict.err.code;
    }
    memcpy(answer, verdict.answer, ANSWER_BYTES);
    return 0;
}

static int
plan(const struct policy *policy, const struct stand *stand, const char *folder,
     struct jail_plan *ret, struct err *err)
{
    int r = jail_plan_build(policy, &stand->image, folder, true, NULL, ret, err);
    return r < 0 ? r : jail_plan_filter(ret, err);
}

int
stand_init(struct stand *stand, const char *folder, struct err *err)
{
    int r = policy_load(policy_default, &stand->policy, err);
    if (r == 0)
        r = policy_load(policy_default, &stand->unscoped, err);
    if (r == 0)
        r = interpreter_find(NULL, false, &stand->image, err);
    if (r < 0)
        return r;
    stand->policy.read_paths.items[0] = strdup(HOST_SHARED);
    stand->policy.read_paths.n = stand->policy.read_paths.items[0] ? 1 : 0;
    stand->unscoped.isolation = ISOLATION_LANDLOCK;
    r = plan(&stand->policy, stand, folder, &stand->plan, err);
    if (r == 0)
        r = plan(&stand->unscoped, stand, folder, &stand->landlock, err);
    if (r < 0)
        return r;
    snprintf(stand->landlock.scratch_dir, sizeof(stand->landlock.scratch_dir), "%s",
             folder);
    return 0;
}
