/*
 * libcurl's functions are looked up by name; their types come from its header. It is kept out of
 * the program's own list of libraries because it brings some thirty others, whose loading would be
 * a large part of every `adyton run`.
 */
#include "ask/http.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#undef curl_easy_setopt
#undef curl_easy_getinfo

#include "base/units.h"

enum {
    CONNECT_MS = 30 * 1000,
    SILENCE_S = 300, /* a large model on a small machine reads for minutes */
    RETRY_MS_MAX = 24 * 60 * 60 * 1000,
    HEADER_BYTES = 512,
};

struct functions {
    __typeof__(&curl_global_init) global_init;
    __typeof__(&curl_easy_init) easy_init;
    __typeof__(&curl_easy_setopt) setopt;
    __typeof__(&curl_easy_getinfo) getinfo;
    __typeof__(&curl_easy_perform) perform;
    __typeof__(&curl_easy_reset) reset;
    __typeof__(&curl_easy_cleanup) cleanup;
    __typeof__(&curl_slist_append) slist_append;
    __typeof__(&curl_slist_free_all) slist_free_all;
    __typeof__(&curl_getdate) getdate;
};

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
    {"curl_global_init", offsetof(struct functions, global_init)},
    {"curl_easy_init", offsetof(struct functions, easy_init)},
    {"curl_easy_setopt", offsetof(struct functions, setopt)},
    {"curl_easy_getinfo", offsetof(struct functions, getinfo)},
    {"curl_easy_perform", offsetof(struct functions, perform)},
    {"curl_easy_reset", offsetof(struct functions, reset)},
    {"curl_easy_cleanup", offsetof(struct functions, cleanup)},
    {"curl_slist_append", offsetof(struct functions, slist_append)},
    {"curl_slist_free_all", offsetof(struct functions, slist_free_all)},
    {"curl_getdate", offsetof(struct functions, getdate)},
};

static const char *const libraries[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

struct http {
    void *library;
    struct functions f;
    CURL *easy;
    char error[CURL_ERROR_SIZE];
};

struct transfer {
    struct http *http;
    const struct http_request *request;
    struct http_answer *answer;
    struct err *err;
    int failure; /* of on_body */
};

static int
load(struct http *http, struct err *err)
{
    for (size_t i = 0; !http->library && i < sizeof(libraries) / sizeof(*libraries); i++)
        http->library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
    if (!http->library)
        return err_set(err, -ENOSYS,
                       "libcurl (%s) cannot be loaded: install the package libcurl4",
                       libraries[0]);
    for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
        void *symbol = dlsym(http->library, symbols[i].name);
        if (!symbol)
            return err_set(err, -ENOSYS, "libcurl has no %s: it is too old",
                           symbols[i].name);
        memcpy((char *)&http->f + symbols[i].offset, &symbol, sizeof(symbol));
    }
    return 0;
}

int
http_new(struct http **ret, struct err *err)
{
    struct http *http = calloc(1, sizeof(*http));
    if (!http)
        return err_set(err, -ENOMEM, "no memory for HTTP");
    int r = load(http, err);
    if (r == 0 && http->f.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        r = err_set(err, -ENOSYS, "libcurl does not start");
    if (r == 0 && !(http->easy = http->f.easy_init()))
        r = err_set(err, -ENOMEM, "no memory for HTTP");
    if (r < 0)
        http_free(http);
    else
        *ret = http;
    return r;
}

/* The library stays: others may have been initialised by it for good. */
void
http_free(struct http *http)
{
    if (http && http->easy)
        http->f.cleanup(http->easy);
    free(http);
}

static size_t
on_body(char *bytes, size_t size, size_t n, void *context)
{
    struct transfer *t = context;
    long status = 0;
    t->http->f.getinfo(t->http->easy, CURLINFO_RESPONSE_CODE, &status);
    t->answer->status = status;
    t->failure =
        t->request->on_body(t->request->context, (struct span){bytes, size * n}, t->err);
    return t->failure == 0 ? size * n : CURL_WRITEFUNC_ERROR;
}

static void
take_retry_after(struct transfer *t, const char *value, uint64_t ms_each)
{
    uint64_t n;
    if (parse_u64(span_of(value), &n) == 0) {
        n = n > RETRY_MS_MAX / ms_each ? RETRY_MS_MAX : n * ms_each;
    } else if (ms_each > 1) {
        time_t now = time(NULL), then = t->http->f.getdate(value, NULL);
        if (then < 0)
            return;
        n = then <= now ? 0 : (uint64_t)(then - now);
        n = n > RETRY_MS_MAX / ms_each ? RETRY_MS_MAX : n * ms_each;
    } else {
        return;
    }
    t->answer->has_retry_after = true;
    t->answer->retry_after_ms = n;
}

static size_t
on_header(char *bytes, size_t size, size_t n, void *context)
{
    struct transfer *t = context;
    char line[HEADER_BYTES];
    size_t length = size * n;
    while (length > 0 && isspace((unsigned char)bytes[length - 1]))
        length--;
    if (length >= sizeof(line)) /* none of those that are looked for */
        return size * n;
    snprintf(line, sizeof(line), "%.*s", (int)length, bytes);
    if (strncmp(line, "HTTP/", 5) ==
        0) /* the head of another answer: a proxy's came before */
        *t->answer = (struct http_answer){0};
    char *value = strchr(line, ':');
    if (!value)
        return size * n;
    *value++ = '\0';
    value += strspn(value, " \t");
    if (strcasecmp(line, "content-type") == 0)
        snprintf(t->answer->type, sizeof(t->answer->type), "%.*s", HTTP_TYPE_BYTES - 1,
                 value);
    else if (strcasecmp(line, "retry-after-ms") == 0)
        take_retry_after(t, value, 1);
    else if (strcasecmp(line, "retry-after") == 0 && !t->answer->has_retry_after)
        take_retry_after(t, value, 1000);
    return size * n;
}

/* Cells are cloned while the connection stands. */
static int
on_socket(void *context, curl_socket_t fd, curlsocktype purpose)
{
    (void)context, (void)purpose;
    return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? CURL_SOCKOPT_OK : CURL_SOCKOPT_ERROR;
}

static struct curl_slist *
make_headers(struct http *http, const struct http_request *request)
{
    /* Without `Expect`, or a large question waits a second for a leave that few servers give. */
    struct curl_slist *list = http->f.slist_append(NULL, "Expect:");
    for (size_t i = 0; list && i < request->headers_n; i++) {
        struct curl_slist *longer = http->f.slist_append(list, request->headers[i]);
        if (!longer)
            http->f.slist_free_all(list);
        list = longer;
    }
    return list;
}

static int
set_up(struct http *http, struct transfer *t, struct curl_slist *headers)
{
    const struct http_request *q = t->request;
    CURL *easy = http->easy;
    __typeof__(&curl_easy_setopt) set = http->f.setopt;
    long ms = q->timeout_ms < INT_MAX ? (long)q->timeout_ms : INT_MAX;
    unsigned bad = 0;
    http->f.reset(easy);
    http->error[0] = '\0';
    bad |= set(easy, CURLOPT_ERRORBUFFER, http->error);
    bad |= set(easy, CURLOPT_NOSIGNAL, 1L);
    bad |= set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    bad |= set(easy, CURLOPT_FOLLOWLOCATION, 0L);
    bad |= set(easy, CURLOPT_URL, q->url);
    bad |= set(easy, CURLOPT_POST, 1L);
    bad |= set(easy, CURLOPT_POSTFIELDS, q->body.p);
    bad |= set(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.n);
    bad |= set(easy, CURLOPT_HTTPHEADER, headers);
    /* Headers are for the endpoint: a proxy on the way gets none of them, the key least. */
    bad |= set(easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
    bad |= set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    bad |= set(easy, CURLOPT_USERAGENT, "adyton/" ADYTON_VERSION);
    bad |= set(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    bad |= set(easy, CURLOPT_TIMEOUT_MS, ms > 0 ? ms : 1);
    bad |= set(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    bad |= set(easy, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_S);
    bad |= set(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    bad |= set(easy, CURLOPT_WRITEFUNCTION, on_body);
    bad |= set(easy, CURLOPT_WRITEDATA, t);
    bad |= set(easy, CURLOPT_HEADERFUNCTION, on_header);
    bad |= set(easy, CURLOPT_HEADERDATA, t);
    bad |= set(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
    if (q->ca_file)
        bad |= set(easy, CURLOPT_CAINFO, q->ca_file);
    if (q->proxy)
        bad |= set(easy, CURLOPT_PROXY, q->proxy);
    return bad == 0 ? 0 : -EINVAL;
}

/* What no second try mends. */
static bool
is_final(CURLcode code)
{
    static const CURLcode final[] = {
        CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT,   CURLE_PEER_FAILED_VERIFICATION,
        CURLE_SSL_CACERT_BADFILE,   CURLE_SSL_CERTPROBLEM, CURLE_BAD_FUNCTION_ARGUMENT,
        CURLE_OUT_OF_MEMORY,
    };
    for (size_t i = 0; i < sizeof(final) / sizeof(*final); i++)
        if (final[i] == code)
            return true;
    return false;
}

int
http_post(struct http *http, const struct http_request *request,
          struct http_answer *answer, struct err *err)
{
    struct transfer t = {.http = http, .request = request, .answer = answer, .err = err};
    *answer = (struct http_answer){0};
    struct curl_slist *headers = make_headers(http, request);
    if (!headers)
        return err_set(err, -ENOMEM, "no memory for the headers of a request");
    CURLcode code = CURLE_FAILED_INIT;
    if (set_up(http, &t, headers) == 0)
        code = http->f.perform(http->easy);
    http->f.getinfo(http->easy, CURLINFO_RESPONSE_CODE, &answer->status);
    /* The list ends here, and what refers to it. */
    http->f.setopt(http->easy, CURLOPT_HTTPHEADER, NULL);
    http->f.slist_free_all(headers);
    if (t.failure != 0)
        return t.failure;
    if (code == CURLE_OK)
        return 0;
    const char *why = http->error[0] != '\0' ? http->error : "libcurl cannot do it";
    return err_set(err,
                   is_final(code)                     ? -EPROTO
                   : code == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT
                                                      : -EIO,
                   "%.180s", why);
}
