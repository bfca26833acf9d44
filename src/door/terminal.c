/*
 * The filter works by units: a character, a colour sequence, or one byte that is not
 * allowed. Everything that is not known to be harmless is shown: an unknown escape loses
 * its ESC and becomes plain text, so there is no list of dangerous sequences to keep
 * complete.
 */
#include "door/terminal.h"

#include <string.h>

#include "base/utf8.h"

enum { COLOUR_BYTES_MAX = 48, SHORTEST_COLOUR = 3 };
_Static_assert((int)COLOUR_BYTES_MAX <= (int)TERMINAL_HELD_BYTES,
               "an unfinished colour must fit");

static const char colour_reset[] = "\x1b[0m";

enum fate { PASSES, IS_SHOWN, WAITS };

struct unit {
    enum fate fate;
    size_t n;
};

/* ESC [ digits, ';' and ':' m (SGR): colours and weight, nothing else ends in 'm' that
 * way. */
static struct unit
colour_unit(struct span s)
{
    const struct unit shown = {IS_SHOWN, 1};
    if (s.n >= 2 && s.p[1] != '[')
        return shown;
    for (size_t i = 2; i < s.n; i++) {
        if (i >= COLOUR_BYTES_MAX)
            return shown;
        if (s.p[i] == 'm')
            return (struct unit){PASSES, i + 1};
        if (!memchr("0123456789;:", s.p[i], 12))
            return shown;
    }
    return s.n < COLOUR_BYTES_MAX ? (struct unit){WAITS, s.n} : shown;
}

static bool
is_control(unsigned char c)
{
    return c < 0x20 || c == 0x7F;
}

static struct unit
next_unit(const struct terminal *terminal, struct span s)
{
    unsigned char c = (unsigned char)s.p[0];
    if (is_control(c)) {
        if (terminal->one_line)
            return (struct unit){IS_SHOWN, 1};
        if (c == '\n' || c == '\t' || c == '\r')
            return (struct unit){PASSES, 1};
        return c == 0x1B ? colour_unit(s) : (struct unit){IS_SHOWN, 1};
    }
    int n = utf8_next(s);
    if (n < 0)
        return (struct unit){WAITS, s.n};
    if (n == 0)
        return (struct unit){IS_SHOWN, 1};
    /* C1 controls: U+009B is a CSI to terminals that know them. */
    bool c1 = n == 2 && c == 0xC2 && (unsigned char)s.p[1] < 0xA0;
    return (struct unit){c1 ? IS_SHOWN : PASSES, (size_t)n};
}

/* The forms for DEL and C1 are also JSON's, so that a document stays one. */
static int
show(struct span unit, struct buf *out)
{
    unsigned char last = (unsigned char)unit.p[unit.n - 1];
    if (unit.n == 2 || last == 0x7F)
        return buf_printf(out, "\\u%04x", last);
    return buf_printf(out, "\\x%02x", last);
}

static void
note_colour(struct terminal *terminal, struct span unit)
{
    if (unit.p[0] != 0x1B)
        return;
    terminal->coloured =
        unit.n > SHORTEST_COLOUR && !(unit.n == sizeof(colour_reset) - 1 &&
                                      memcmp(unit.p, colour_reset, unit.n) == 0);
}

/* Handles all of s; `ended`: nothing follows, so that nothing can wait. */
static int
filter(struct terminal *terminal, struct span s, bool ended, struct buf *out)
{
    const char *run = s.p; /* what passes and is not copied yet starts here */
    int r = 0;
    while (r == 0 && s.n > 0) {
        struct unit unit = next_unit(terminal, s);
        if (unit.fate == WAITS && ended)
            unit = (struct unit){IS_SHOWN, 1};
        if (unit.fate == WAITS)
            break;
        if (unit.fate == PASSES) {
            note_colour(terminal, (struct span){s.p, unit.n});
        } else {
            r = buf_append(out, run, (size_t)(s.p - run));
            if (r == 0)
                r = show((struct span){s.p, unit.n}, out);
            run = s.p + unit.n;
        }
        s.p += unit.n;
        s.n -= unit.n;
    }
    if (r == 0)
        r = buf_append(out, run, (size_t)(s.p - run));
    memmove(terminal->held, s.p, s.n < TERMINAL_HELD_BYTES ? s.n : 0);
    terminal->held_n = s.n < TERMINAL_HELD_BYTES ? s.n : 0;
    return r;
}

int
terminal_append(struct terminal *terminal, struct span bytes, struct buf *out)
{
    if (terminal->held_n == 0)
        return filter(terminal, bytes, false, out);
    AUTO_BUF struct buf joined = {0};
    buf_init(&joined, terminal->held_n + bytes.n);
    int r = buf_append(&joined, terminal->held, terminal->held_n);
    if (r == 0)
        r = buf_append(&joined, bytes.p, bytes.n);
    return r < 0 ? r : filter(terminal, buf_span(&joined), false, out);
}

int
terminal_finish(struct terminal *terminal, struct buf *out)
{
    char held[TERMINAL_HELD_BYTES];
    memcpy(held, terminal->held, sizeof(held));
    int r = filter(terminal, (struct span){held, terminal->held_n}, true, out);
    if (r == 0 && terminal->coloured)
        r = buf_append(out, colour_reset, sizeof(colour_reset) - 1);
    terminal->coloured = false;
    return r;
}

int
terminal_append_line(const char *text, struct buf *out)
{
    struct terminal line = {.one_line = true};
    int r = terminal_append(&line, span_of(text), out);
    return r < 0 ? r : terminal_finish(&line, out);
}
