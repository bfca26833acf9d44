/* Steps that every run takes, whichever process its cell is made in. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check/bytes.h"
#include "engine/engine_parts.h"

int
engine_find_guest(char path[ENGINE_GUEST_BYTES], struct err *err)
{
    static const char *const places[] = {"src/guest", "guest", "../lib/adyton",
                                         "../lib/x86_64-linux-gnu/adyton",
                                         "../lib/aarch64-linux-gnu/adyton"};
    char program[ENGINE_GUEST_BYTES];
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (n < 0)
        return err_sys(err, "find out where adyton itself is");
    program[n] = '\0';
    char *slash = strrchr(program, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        char candidate[2 * ENGINE_GUEST_BYTES];
        snprintf(candidate, sizeof(candidate), "%s/%s/_adyton.abi3.so", program,
                 places[i]);
        if (access(candidate, R_OK) == 0 && strlen(candidate) < ENGINE_GUEST_BYTES) {
            snprintf(path, ENGINE_GUEST_BYTES, "%.*s", ENGINE_GUEST_BYTES - 1, candidate);
            return 0;
        }
    }
    return err_set(err, -ENOENT,
                   "the guest extension _adyton.abi3.so is not beside %s nor in "
                   "its ../lib/adyton: build or install adyton again",
                   program);
}

bool
engine_judge_bytes(const struct policy *policy, const struct job *job, bool validate_only,
                   struct outcome *outcome)
{
    struct check_settings settings;
    struct finding finding;
    struct source source;
    policy_check_settings(policy, &settings);
    source_init(&source, buf_span(&job->code));
    bool looks = validate_only || policy->validation != VALIDATION_OFF;
    bool is_long = check_size(source.text, policy->source_bytes, &finding);
    if (is_long) { /* a limit, in every mode and whatever the rules say */
        settings.mode = CHECK_ENFORCE;
        settings.severity[RULE_SOURCE_SIZE] = CHECK_ERROR;
    }
    bool found =
        is_long || (looks && check_bytes(&source, policy->source_bytes, &finding));
    source_done(&source);
    if (!found || findings_add(&outcome->findings, &settings, &finding) < 0)
        return false;
    if (!check_rejects(&settings, &outcome->findings))
        return false;
    outcome_reject(outcome);
    return true;
}
