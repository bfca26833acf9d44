/*
 * Every layer on its own: what expect_rows.c says that it refuses alone, it must refuse
 * with no other there, and the same attempt with no layer at all must meet another
 * answer. So no layer is a passenger, and no point holds because the host would have
 * refused anyway. All layers together must give the row's own answer; with an interpreter
 * in them that is escape.py. TAP.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scratch.h"
#include "stand.h"

enum { SCOPING_ABI = 6 };

struct score {
    int points, failed, skipped;
};

/* What a layer other than seccomp may answer with: its row says it for the whole cell,
 * where another layer may speak first. */
static const struct expect refusal = {
    .answers =
        "EPERM EACCES ESRCH ENOENT EROFS EXDEV ENXIO ECONNREFUSED ENETUNREACH EMFILE "
        "EFBIG",
};

static void
point(struct score *score, bool holds, const char *layer, const char *verb,
      const char *answer, const char *outside, const char *skip)
{
    score->points++;
    printf("%sok %d - %s alone refuses %s: %s, %s without", holds || skip ? "" : "not ",
           score->points, layer, verb, answer, outside);
    printf(skip ? " # SKIP %s\n" : "%s\n", skip ? skip : "");
    score->skipped += skip != NULL;
    score->failed += !holds && !skip;
}

/* Why the attempt without any layer may be refused as well; NULL: it may not. */
static const char *
excuse(const struct stand *stand, const struct expect *row, unsigned layer,
       const char *answer, const char *outside)
{
    if (strcmp(outside, "ENOSYS") == 0)
        return "this kernel has no such call";
    if (layer == LAYER_LANDLOCK && stand->plan.landlock_abi < SCOPING_ABI &&
        strcmp(answer, outside) == 0)
        return "Landlock here scopes neither signals nor abstract sockets";
    bool refused = expect_accepts(&refusal, outside) || expect_accepts(row, outside);
    return refused && strcmp(outside, "ok") != 0 ? row->control : NULL;
}

static bool
refuses(const struct expect *row, unsigned layer, const char *answer)
{
    if (layer != LAYER_SECCOMP)
        return expect_accepts(&refusal, answer);
    if (row->seccomp == ENDED)
        return strcmp(answer, "ended") == 0;
    return expect_accepts(row, answer);
}

static void
try_layer(const struct stand *stand, const struct verb *verb, const struct expect *row,
          unsigned layer, const char *outside, struct score *score)
{
    char answer[ANSWER_BYTES];
    struct err err = {0};
    if (stand_try(stand, verb, layer, answer, &err) < 0) {
        point(score, false, layer_name(layer), verb->name, err.text, outside, NULL);
        return;
    }
    bool holds = refuses(row, layer, answer) && strcmp(answer, outside) != 0;
    const char *skip = holds ? NULL : excuse(stand, row, layer, answer, outside);
    point(score, holds, layer_name(layer), verb->name, answer, outside, skip);
}

/* All layers together, without an interpreter: the row's own answer. */
static void
try_whole(const struct stand *stand, const struct verb *verb, const struct expect *row,
          struct score *score)
{
    char answer[ANSWER_BYTES];
    struct err err = {0};
    bool holds = false;
    if (stand_try(stand, verb, LAYER_ALL, answer, &err) < 0)
        snprintf(answer, sizeof(answer), "%.*s", ANSWER_BYTES - 1, err.text);
    else if (row->seccomp == ENDED)
        holds = strcmp(answer, "ended") == 0;
    else
        holds = expect_accepts(row, answer);
    score->points++;
    score->failed += !holds;
    printf("%sok %d - all layers meet %s: %s\n", holds ? "" : "not ", score->points,
           verb->name, answer);
}

static void
try_verb(const struct stand *stand, const struct verb *verb, struct score *score)
{
    const struct expect *row = expect_find(verb->name);
    char outside[ANSWER_BYTES];
    struct err err = {0};
    if (!row)
        return;
    try_whole(stand, verb, row, score);
    if (row->alone == 0)
        return;
    if (stand_try(stand, verb, LAYER_NONE, outside, &err) < 0) {
        point(score, false, "no layer", verb->name, err.text, "nothing", NULL);
        return;
    }
    for (size_t i = 0; i < LAYERS; i++) {
        if (row->alone & (1U << i))
            try_layer(stand, verb, row, 1U << i, outside, score);
    }
}

/* The process that is attacked, and all it holds; ends with its stdin. */
static pid_t
start_host(int *ret_stdin)
{
    int in[2], out[2];
    char line[64] = "";
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0)
            _exit(1);
        close(in[1]);
        _exit(host_hold());
    }
    close(in[0]);
    close(out[1]);
    ssize_t n = read(out[0], line, sizeof(line) - 1);
    close(out[0]);
    *ret_stdin = in[1];
    return n > 0 && strncmp(line, "holding ", 8) == 0 ? pid : -1;
}

static int
try_all(struct stand *stand, struct score *score)
{
    int host_stdin = -1;
    fflush(stdout);
    stand->target = start_host(&host_stdin);
    if (stand->target < 0) {
        printf("Bail out! the host's half could not be started\n");
        return 1;
    }
    for (size_t f = 0; f < probe_families_n; f++) {
        for (size_t i = 0; i < *probe_families[f].verbs_n; i++) {
            try_verb(stand, &probe_families[f].verbs[i], score);
            fflush(stdout); /* or every fork would print it again */
        }
    }
    close(host_stdin);
    waitpid(stand->target, NULL, 0);
    return 0;
}

int
main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--nothing") == 0)
        return 0;
    if (geteuid() != 0) {
        printf("1..0 # SKIP only root can show what a layer takes away\n");
        return 0;
    }
    char folder[] = "/tmp/adyton-layers-XXXXXX";
    static struct stand stand; /* large: two filters */
    struct score score = {0};
    struct err err = {0};
    if (!mkdtemp(folder) || chmod(folder, 0755) < 0) {
        perror(folder);
        return 1;
    }
    int r = stand_init(&stand, folder, &err);
    if (r < 0)
        printf("Bail out! %s\n", err.text);
    else
        r = try_all(&stand, &score);
    rmdir(folder);
    printf("# %d passed, %d failed, %d skipped\n1..%d\n",
           score.points - score.failed - score.skipped, score.failed, score.skipped,
           score.points);
    policy_done(&stand.policy);
    policy_done(&stand.unscoped);
    return r != 0 || score.failed != 0;
}
