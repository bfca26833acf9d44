/* Parsing and printing numbers with units, by table. */
#include "base/units.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <strings.h>

struct unit {
    const char *name;
    uint64_t factor; /* in the base unit: bytes or milliseconds */
};

static const struct unit byte_units[] = {
    {"", 1},
    {"b", 1},
    {"k", 1ULL << 10},
    {"kb", 1ULL << 10},
    {"kib", 1ULL << 10},
    {"m", 1ULL << 20},
    {"mb", 1ULL << 20},
    {"mib", 1ULL << 20},
    {"g", 1ULL << 30},
    {"gb", 1ULL << 30},
    {"gib", 1ULL << 30},
    {"t", 1ULL << 40},
    {"tb", 1ULL << 40},
    {"tib", 1ULL << 40},
};

static const struct unit time_units[] = {
    {"", 1000},   {"s", 1000},    {"sec", 1000},  {"ms", 1},
    {"m", 60000}, {"min", 60000}, {"h", 3600000},
};

enum { FRACTION_DIGITS_MAX = 6 };

/* Sizes in any case; times exactly: 256M of time is a slip, not 256 minutes. */
static const struct unit *
find_unit(struct span name, const struct unit *units, size_t n)
{
    int (*compare)(const char *, const char *, size_t) =
        units == byte_units ? strncasecmp : strncmp;
    for (size_t i = 0; i < n; i++)
        if (strlen(units[i].name) == name.n &&
            compare(units[i].name, name.p, name.n) == 0)
            return &units[i];
    return NULL;
}

/* Reads digits from the front of *text; -EINVAL when there is none. */
static int
take_digits(struct span *text, uint64_t *ret, unsigned *ret_count)
{
    uint64_t value = 0;
    unsigned count = 0;
    for (; text->n > 0 && *text->p >= '0' && *text->p <= '9';
         text->p++, text->n--, count++)
        if (__builtin_mul_overflow(value, 10U, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text->p - '0'), &value))
            return -ERANGE;
    *ret = value;
    *ret_count = count;
    return count > 0 ? 0 : -EINVAL;
}

static int
parse_scaled(struct span text, const struct unit *units, size_t n, uint64_t *ret)
{
    uint64_t whole, fraction = 0;
    unsigned digits, places = 0;
    int r = take_digits(&text, &whole, &digits);
    if (r < 0)
        return r;
    if (text.n > 0 && *text.p == '.') {
        text.p++, text.n--;
        r = take_digits(&text, &fraction, &places);
        if (r < 0 || places > FRACTION_DIGITS_MAX)
            return -EINVAL;
    }
    while (text.n > 0 && *text.p == ' ')
        text.p++, text.n--;
    const struct unit *unit = find_unit(text, units, n);
    if (!unit)
        return -EINVAL;

    uint64_t part = fraction * unit->factor; /* at most 10^6 * 2^40: fits */
    for (unsigned i = 0; i < places; i++)
        part /= 10;
    uint64_t value;
    if (__builtin_mul_overflow(whole, unit->factor, &value) ||
        __builtin_add_overflow(value, part, &value))
        return -ERANGE;
    *ret = value;
    return 0;
}

int
parse_u64(struct span text, uint64_t *ret)
{
    uint64_t value;
    unsigned digits;
    int r = take_digits(&text, &value, &digits);
    if (r < 0)
        return r;
    if (text.n > 0)
        return -EINVAL;
    *ret = value;
    return 0;
}

int
parse_bytes(struct span text, uint64_t *ret_bytes)
{
    return parse_scaled(text, byte_units, sizeof(byte_units) / sizeof(*byte_units),
                        ret_bytes);
}

int
parse_ms(struct span text, uint64_t *ret_ms)
{
    return parse_scaled(text, time_units, sizeof(time_units) / sizeof(*time_units),
                        ret_ms);
}

static const char *
format_scaled(uint64_t value, const struct unit *units, size_t n, char *text)
{
    for (size_t i = 0; i < n; i++) {
        if (value == 0 || value % units[i].factor != 0)
            continue;
        snprintf(text, UNITS_TEXT_BYTES, "%llu%s",
                 (unsigned long long)(value / units[i].factor), units[i].name);
        return text;
    }
    snprintf(text, UNITS_TEXT_BYTES, "%llu%s", (unsigned long long)value,
             units[n - 1].name);
    return text;
}

const char *
format_bytes(uint64_t bytes, char text[UNITS_TEXT_BYTES])
{
    static const struct unit shown[] = {{"T", 1ULL << 40},
                                        {"G", 1ULL << 30},
                                        {"M", 1ULL << 20},
                                        {"K", 1ULL << 10},
                                        {"", 1}};
    return format_scaled(bytes, shown, sizeof(shown) / sizeof(*shown), text);
}

const char *
format_ms(uint64_t ms, char text[UNITS_TEXT_BYTES])
{
    static const struct unit shown[] = {
        {"h", 3600000}, {"min", 60000}, {"s", 1000}, {"ms", 1}};
    return format_scaled(ms, shown, sizeof(shown) / sizeof(*shown), text);
}
