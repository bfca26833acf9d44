/* The client for event loops, against a supervisor that says what the test wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/call_parts.h"
#include "engine/client.h"

enum { HEARD_MAX = 64, TEXT_BYTES = 64, PATIENCE_S = 20 };

static struct {
    char folder[64], path[96];
    struct event_base *base;
    struct client *client;
    struct call peer; /* in the supervisor's process */
    pid_t server;
    char heard[HEARD_MAX][TEXT_BYTES];
    size_t heard_n;
    bool gone;
    char why[256];
} at;

/* --- the supervisor: a process that plays one script --- */

static void
send_text(const char *text)
{
    unsigned char head[4] = {0};
    size_t n = strlen(text);
    head[3] = (unsigned char)n;
    if (fd_write_all(at.peer.fd, head, 4) < 0 || fd_write_all(at.peer.fd, text, n) < 0)
        _exit(EXIT_FAILURE);
}

static void
say(const char *type, const char *id)
{
    char text[256];
    snprintf(text, sizeof(text), "{\"type\":\"%s\",\"id\":\"%s\"}", type, id);
    send_text(text);
}

/* The next request's id. */
static void
expect(const char *type, char id[TEXT_BYTES])
{
    struct err err;
    json_t *message;
    if (call_receive(&at.peer, &message, &err) < 0 ||
        strcmp(call_text(message, "type"), type) != 0)
        _exit(EXIT_FAILURE);
    snprintf(id, TEXT_BYTES, "%s", call_text(message, "id"));
    json_decref(message);
}

static void
greet(void)
{
    struct err err;
    json_t *message;
    if (call_receive(&at.peer, &message, &err) < 0 || !json_object_get(message, "adyton"))
        _exit(EXIT_FAILURE);
    json_decref(message);
    send_text("{\"adyton\":1,\"program\":\"0\"}");
}

static void
serve(void (*script)(void))
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, at.path, strlen(at.path) + 1);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 1), 0);
    at.server = fork();
    if (at.server == 0) {
        alarm(PATIENCE_S);
        at.peer.fd = accept(listener, NULL, NULL);
        buf_init(&at.peer.in, 1 << 20);
        greet();
        script();
        _exit(EXIT_SUCCESS);
    }
    close(listener);
}

/* --- the client --- */

static void
hear(void *context, const json_t *message, bool last)
{
    assert_true(at.heard_n < HEARD_MAX);
    snprintf(at.heard[at.heard_n++], TEXT_BYTES, "%s %s%s", (const char *)context,
             message ? call_text(message, "type") : "nothing", last ? "." : "");
}

static void
on_gone(void *context, const struct err *err)
{
    (void)context;
    at.gone = true;
    snprintf(at.why, sizeof(at.why), "%s", err->text);
    event_base_loopbreak(at.base);
}

static void
connect_it(void)
{
    const struct client_options options = {.socket = at.path, .on_gone = on_gone};
    struct err err;
    if (client_open(at.base, &options, &at.client, &err) < 0)
        fail_msg("%s", err.text);
    assert_false(client_carries(at.client));
}

static uint64_t
ask(const char *name, client_hear *heard)
{
    struct err err;
    uint64_t number;
    json_t *request = json_pack("{s:s}", "type", "run");
    if (client_ask(at.client, request, -1, heard, (void *)(uintptr_t)name, &number,
                   &err) < 0)
        fail_msg("%s", err.text);
    json_decref(request);
    return number;
}

static void
loop_until_gone(void)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    event_base_loopexit(at.base, &patience);
    event_base_dispatch(at.base);
    assert_true(at.gone);
}

static void
assert_heard(const char *const *lines)
{
    size_t n = 0;
    for (; lines[n]; n++) {
        assert_true(n < at.heard_n);
        assert_string_equal(at.heard[n], lines[n]);
    }
    assert_int_equal(at.heard_n, n);
}

static int
set_up(void **state)
{
    (void)state;
    memset(&at, 0, sizeof(at));
    signal(SIGPIPE, SIG_IGN);
    snprintf(at.folder, sizeof(at.folder), "/tmp/adyton-client-XXXXXX");
    if (!mkdtemp(at.folder))
        return -1;
    snprintf(at.path, sizeof(at.path), "%s/s", at.folder);
    at.base = event_base_new();
    return at.base ? 0 : -1;
}

static int
tear_down(void **state)
{
    (void)state;
    int status = 0;
    client_close(at.client);
    if (at.server > 0)
        waitpid(at.server, &status, 0);
    event_base_free(at.base);
    unlink(at.path);
    rmdir(at.folder);
    return status == 0 ? 0 : -1; /* the script was played to its end */
}

/* --- what is told to whom --- */

static void
out_of_order(void)
{
    char first[TEXT_BYTES], second[TEXT_BYTES];
    expect("run", first);
    expect("run", second);
    say("accepted", first);
    say("accepted", second);
    say("stdout", second);
    say("finished", second);
    say("busy", first);
}

static void
test_answers_go_to_whoever_asked(void **state)
{
    (void)state;
    serve(out_of_order);
    connect_it();
    ask("a", hear);
    ask("b", hear);
    loop_until_gone();
    assert_heard((const char *[]){"a accepted", "b accepted", "b stdout", "b finished.",
                                  "a busy.", NULL});
}

static void
hang_up(void)
{
    char id[TEXT_BYTES];
    expect("run", id);
    expect("run", id);
    say("accepted", id);
}

static void
test_the_end_of_the_supervisor_is_told_to_all(void **state)
{
    (void)state;
    struct err err;
    uint64_t number;
    serve(hang_up);
    connect_it();
    ask("a", hear);
    ask("b", hear);
    loop_until_gone();
    assert_heard((const char *[]){"b accepted", "b nothing.", "a nothing.", NULL});
    assert_non_null(strstr(at.why, "is gone"));
    json_t *request = json_pack("{s:s}", "type", "run");
    assert_int_equal(client_ask(at.client, request, -1, hear, NULL, &number, &err),
                     -ECONNRESET);
    json_decref(request);
}

static void
cancelled(void)
{
    char id[TEXT_BYTES], other[TEXT_BYTES];
    expect("run", id);
    expect("cancel", other);
    if (strcmp(id, other) != 0)
        _exit(EXIT_FAILURE);
    say("stdout", id);
    say("finished", id);
    expect("run", id);
    say("finished", id);
}

static void
test_who_forgets_hears_no_more(void **state)
{
    (void)state;
    serve(cancelled);
    connect_it();
    client_forget(at.client, ask("a", hear));
    client_forget(at.client, 99); /* of nobody */
    ask("b", hear);
    loop_until_gone();
    assert_heard((const char *[]){"b finished.", NULL});
}

static void
in_pieces(void)
{
    static const char text[] = "{\"type\":\"finished\",\"id\":\"1\"}";
    char id[TEXT_BYTES], bytes[sizeof(text) + 4] = {0};
    expect("run", id);
    bytes[3] = sizeof(text) - 1;
    memcpy(bytes + 4, text, sizeof(text));
    for (size_t i = 0; i < sizeof(text) - 1 + 4; i++) {
        if (fd_write_all(at.peer.fd, bytes + i, 1) < 0)
            _exit(EXIT_FAILURE);
        usleep(200);
    }
}

static void
test_messages_come_in_pieces(void **state)
{
    (void)state;
    serve(in_pieces);
    connect_it();
    ask("a", hear);
    loop_until_gone();
    assert_heard((const char *[]){"a finished.", NULL});
}

static void
garbage(void)
{
    char id[TEXT_BYTES];
    expect("run", id);
    send_text("{\"type\":\"accepted\",");
    expect("run", id); /* never: it is closed */
}

static void
test_what_cannot_be_understood_is_the_end(void **state)
{
    (void)state;
    serve(garbage);
    connect_it();
    ask("a", hear);
    loop_until_gone();
    assert_heard((const char *[]){"a nothing.", NULL});
    client_close(at.client);
    at.client = NULL;
    waitpid(at.server, NULL, 0);
    at.server = 0;
}

static void
close_it(void *context, const json_t *message, bool last)
{
    hear(context, message, last);
    client_close(at.client);
    at.client = NULL;
    event_base_loopbreak(at.base);
}

static void
several(void)
{
    char id[TEXT_BYTES];
    expect("run", id);
    for (int i = 0; i < 4; i++)
        say("usage", id);
}

static void
test_it_may_be_closed_while_it_tells(void **state)
{
    (void)state;
    serve(several);
    connect_it();
    ask("a", close_it);
    event_base_dispatch(at.base);
    assert_heard((const char *[]){"a usage", NULL});
    waitpid(at.server, NULL, 0); /* it may have met a closed socket */
    at.server = 0;
}

static void
go_on(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what, (void)context;
    hear((void *)(uintptr_t) "pause", NULL, false);
    client_pause(at.client, false);
}

static void
pause_it(void *context, const json_t *message, bool last)
{
    const struct timeval soon = {.tv_usec = 50 * 1000};
    hear(context, message, last);
    if (at.heard_n > 1)
        return;
    client_pause(at.client, true);
    event_base_once(at.base, -1, EV_TIMEOUT, go_on, NULL, &soon);
}

static void
test_a_pause_holds_messages_back(void **state)
{
    (void)state;
    serve(several);
    connect_it();
    ask("a", pause_it);
    loop_until_gone();
    assert_heard((const char *[]){"a usage", "pause nothing", "a usage", "a usage",
                                  "a usage", "a nothing.", NULL});
}

static void
refuse(void)
{
    send_text("{\"type\":\"error\",\"code\":\"clients\",\"message\":\"too many\"}");
}

static void
test_an_error_of_nobody_ends_the_connection(void **state)
{
    (void)state;
    serve(refuse);
    connect_it();
    ask("a", hear);
    loop_until_gone();
    assert_heard((const char *[]){"a nothing.", NULL});
    assert_string_equal(at.why, "too many");
}

static void
test_nobody_listens(void **state)
{
    (void)state;
    const struct client_options options = {.socket = at.path};
    struct err err;
    assert_int_equal(client_open(at.base, &options, &at.client, &err), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_answers_go_to_whoever_asked),
        TEST(test_the_end_of_the_supervisor_is_told_to_all),
        TEST(test_who_forgets_hears_no_more),
        TEST(test_messages_come_in_pieces),
        TEST(test_what_cannot_be_understood_is_the_end),
        TEST(test_it_may_be_closed_while_it_tells),
        TEST(test_a_pause_holds_messages_back),
        TEST(test_an_error_of_nobody_ends_the_connection),
        TEST(test_nobody_listens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
