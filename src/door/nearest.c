/* Edit distance with transpositions, on short names only: longer ones match nothing. */
#include "door/nearest.h"

#include <string.h>

enum { NAME_MAX_BYTES = 32, LETTERS_AN_EDIT = 3 };

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t
edit_distance(const char *a, size_t a_n, const char *b, size_t b_n)
{
    size_t d[NAME_MAX_BYTES + 1][NAME_MAX_BYTES + 1];
    for (size_t i = 0; i <= a_n; i++)
        d[i][0] = i;
    for (size_t j = 0; j <= b_n; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= a_n; i++)
        for (size_t j = 1; j <= b_n; j++) {
            size_t same = a[i - 1] == b[j - 1] ? 0 : 1;
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + same);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[a_n][b_n];
}

void
nearest_init(struct nearest *nearest, const char *wanted)
{
    /* One edit for every three letters: past that, a guess confuses more than it helps.
     */
    *nearest = (struct nearest){.wanted = wanted,
                                .distance = strlen(wanted) / LETTERS_AN_EDIT + 1};
}

void
nearest_try(struct nearest *nearest, const char *name)
{
    size_t a = strlen(nearest->wanted), b = strlen(name);
    if (a > NAME_MAX_BYTES || b > NAME_MAX_BYTES)
        return;
    size_t distance = edit_distance(nearest->wanted, a, name, b);
    if (distance < nearest->distance) {
        nearest->best = name;
        nearest->distance = distance;
    }
}
