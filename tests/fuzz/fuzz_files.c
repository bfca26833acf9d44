/*
 * libFuzzer: messages of the process that reads a hostile tree, as the supervisor takes them. What
 * is taken must hold its own bounds and be fit for JSON. The input is messages, each a length of
 * two bytes (little-endian) and so many bytes.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cell/files_parts.h"

enum { MESSAGES_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void
check_text(const char *text, size_t n)
{
    assert(strnlen(text, n) < n);
}

static void
check_entry(const struct collected_file *file)
{
    check_text(file->path, sizeof(file->path));
    check_text(file->mime, sizeof(file->mime));
    check_text(file->sha256, sizeof(file->sha256));
    assert(file->path[0] != '\0');
    for (const char *p = file->mime; *p; p++)
        assert(*p > 0x20 && *p < 0x7f);
    assert(strlen(file->sha256) == 0 || strlen(file->sha256) == sizeof(file->sha256) - 1);
}

static void
take(const uint8_t *bytes, size_t n)
{
    static struct files_message message;
    switch (files_take(bytes, n, &message)) {
    case FILES_ENTRY:
        check_entry(&message.entry);
        break;
    case FILES_DATA:
        assert(message.head.n > 0 && message.head.n <= sizeof(message.data));
        assert(memcmp(message.data, bytes + n - message.head.n, message.head.n) == 0);
        break;
    case FILES_END:
        check_text(message.end.note, sizeof(message.end.note));
        check_text(message.end.err.text, sizeof(message.end.err.text));
        check_text(message.end.sha256, sizeof(message.end.sha256));
        assert(message.end.err.code <= 0);
        break;
    default:
        break;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    for (int i = 0; i < MESSAGES_MAX && n >= 2; i++) {
        size_t length = (size_t)bytes[0] | (size_t)bytes[1] << 8;
        bytes += 2;
        n -= 2;
        length = length < n ? length : n;
        take(bytes, length);
        bytes += length;
        n -= length;
    }
    return 0;
}
