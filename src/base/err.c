/* Fills struct err without allocating: vsnprintf into the caller's fixed text. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int
err_set(struct err *err, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err->code = code;
    vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    return code;
}

int
err_sys(struct err *err, const char *format, ...)
{
    int saved = errno;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);

    /* strerrordesc_np returns a constant: strerror may translate, and allocate. */
    const char *why = strerrordesc_np(saved);
    if (n >= 0 && (size_t)n < sizeof(err->text))
        snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s",
                 why ? why : "unknown error");
    err->code = saved > 0 ? -saved : -EIO;
    return err->code;
}

int
err_wrap(struct err *err, const char *format, ...)
{
    char inner[sizeof(err->text)];
    memcpy(inner, err->text, sizeof(inner));

    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof(err->text))
        snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s", inner);
    return err->code;
}
