/*
 * A client of the supervisor's socket that costs next to nothing itself: it sends one program
 * again and again over a number of connections, each with one run at a time, and prints how long
 * they took, in microseconds from the request's first byte to the outcome's last.
 *
 *   load SOCKET FILE RUNS [CONNECTIONS [PAUSE_US [each]]]
 *
 * One line of JSON; with `each`, one line for each run. A run that does not end with `ok` ends this program, too.
 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"

enum {
    CONNECTIONS_MAX = 1024,
    FRAME_MAX = 1 << 20,
    HEAD = 4,
    TEXT_MAX = 1 << 16,
    US_PER_S = 1000000,
};

struct connection {
    int fd;
    double began_us;
    size_t n;
    bool busy;
    char bytes[FRAME_MAX];
};

static NORETURN void
fail(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static double
now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * US_PER_S + (double)now.tv_nsec / 1000.0;
}

static void
send_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent < 0)
            fail("send");
        bytes += sent;
        n -= (size_t)sent;
    }
}

/* A frame of docs/PROTOCOL.md. */
static size_t
frame(json_t *value, char *out, size_t max)
{
    size_t n = json_dumpb(value, out + HEAD, max - HEAD, JSON_COMPACT);
    if (n == 0 || n > max - HEAD)
        fail("too long a program");
    for (size_t i = 0; i < HEAD; i++)
        out[i] = (char)(n >> (8 * (HEAD - 1 - i)));
    json_decref(value);
    return n + HEAD;
}

/* The payload's length when a whole frame is there. */
static size_t
whole(const struct connection *connection)
{
    size_t n = 0;
    if (connection->n < HEAD)
        return 0;
    for (size_t i = 0; i < HEAD; i++)
        n = n << 8 | (unsigned char)connection->bytes[i];
    if (n + HEAD > FRAME_MAX)
        fail("too long a frame");
    return connection->n >= n + HEAD ? n : 0;
}

static void
receive(struct connection *connection)
{
    ssize_t n = recv(connection->fd, connection->bytes + connection->n,
                     FRAME_MAX - connection->n, 0);
    if (n <= 0)
        fail("the supervisor has closed the connection");
    connection->n += (size_t)n;
}

static void
consume(struct connection *connection, size_t payload_n)
{
    connection->n -= payload_n + HEAD;
    memmove(connection->bytes, connection->bytes + payload_n + HEAD, connection->n);
}

static void
open_connection(struct connection *connection, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char hello[64];
    if (strlen(path) >= sizeof(address.sun_path))
        fail("too long a path");
    memcpy(address.sun_path, path, strlen(path) + 1);
    connection->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->fd < 0 || connect(connection->fd, (const struct sockaddr *)&address,
                                      sizeof(address)) < 0)
        fail(path);
    send_all(connection->fd, hello,
             frame(json_pack("{s:i}", "adyton", 1), hello, sizeof(hello)));
    size_t n;
    while ((n = whole(connection)) == 0)
        receive(connection);
    consume(connection, n);
}

/* True when a run has ended. */
static bool
take(struct connection *connection)
{
    static const char finished[] = "{\"type\":\"finished\"";
    size_t n = whole(connection);
    if (n == 0)
        return false;
    char *payload = connection->bytes + HEAD;
    bool ended = strncmp(payload, finished, sizeof(finished) - 1) == 0;
    bool accepted = strncmp(payload, "{\"type\":\"accepted\"", 18) == 0;
    char saved = payload[n];
    payload[n] = '\0';
    if (!(ended || accepted) || (ended && !strstr(payload, "\"status\":\"ok\""))) {
        fprintf(stderr, "load: %.2000s\n", payload);
        exit(EXIT_FAILURE);
    }
    payload[n] = saved;
    consume(connection, n);
    return ended ? true : take(connection);
}

static int
ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void
report(double *took_us, size_t n, size_t connections, double all_us, bool each)
{
    if (each) {
        for (size_t i = 0; i < n; i++)
            printf("%.0f\n", took_us[i]);
        return;
    }
    qsort(took_us, n, sizeof(*took_us), ascending);
    printf("{\"runs\": %zu, \"connections\": %zu, \"min\": %.0f, \"p10\": %.0f, "
           "\"p50\": %.0f, \"p90\": %.0f, \"p99\": %.0f, \"max\": %.0f, "
           "\"per_second\": %.1f}\n",
           n, connections, took_us[0], took_us[n / 10], took_us[n / 2],
           took_us[n * 9 / 10], took_us[n * 99 / 100], took_us[n - 1],
           (double)n * US_PER_S / all_us);
}

static size_t
read_program(const char *path, char *request, size_t max)
{
    static char text[TEXT_MAX];
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (n == 0)
        fail(path);
    fclose(file);
    return frame(json_pack("{s:s, s:s, s:s%}", "type", "run", "id", "1", "code", text, n),
                 request, max);
}

int
main(int argc, char **argv)
{
    static char request[TEXT_MAX * 2];
    static struct pollfd polls[CONNECTIONS_MAX];
    if (argc < 4)
        fail("usage: load SOCKET FILE RUNS [CONNECTIONS [PAUSE_US [each]]]");
    size_t runs = strtoul(argv[3], NULL, 10), connections = 1, sent = 0, done = 0;
    useconds_t pause_us = argc > 5 ? (useconds_t)strtoul(argv[5], NULL, 10) : 0;
    if (argc > 4)
        connections = strtoul(argv[4], NULL, 10);
    if (runs == 0 || connections == 0 || connections > CONNECTIONS_MAX)
        fail("nothing to do");
    size_t request_n = read_program(argv[2], request, sizeof(request));
    struct connection *all = calloc(connections, sizeof(*all));
    double *took_us = calloc(runs, sizeof(*took_us));
    if (!all || !took_us)
        fail("memory");
    for (size_t i = 0; i < connections; i++) {
        open_connection(&all[i], argv[1]);
        polls[i] = (struct pollfd){.fd = all[i].fd, .events = POLLIN};
    }
    double began_us = now_us();
    while (done < runs) {
        for (size_t i = 0; i < connections && sent < runs; i++) {
            if (all[i].busy)
                continue;
            if (pause_us > 0)
                usleep(pause_us);
            all[i].busy = true;
            all[i].began_us = now_us();
            send_all(all[i].fd, request, request_n);
            sent++;
        }
        if (poll(polls, connections, -1) < 0)
            fail("poll");
        for (size_t i = 0; i < connections; i++) {
            if (!polls[i].revents)
                continue;
            receive(&all[i]);
            if (!take(&all[i]))
                continue;
            all[i].busy = false;
            took_us[done++] = now_us() - all[i].began_us;
        }
    }
    report(took_us, runs, connections, now_us() - began_us, argc > 6);
    return EXIT_SUCCESS;
}
