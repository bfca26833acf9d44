/* Folding at blanks; a word longer than the column stands alone on its line. */
#include "door/help.h"

#include <stdio.h>
#include <string.h>

enum { LEFT_COLUMNS = 26, TEXT_COLUMNS = 62 };

void
help_print_row(const char *left, const char *text)
{
    size_t used = strlen(left) + 2;
    printf("  %s", left);
    if (used >= LEFT_COLUMNS) {
        putchar('\n');
        used = 0;
    }
    printf("%*s", (int)(LEFT_COLUMNS - used), "");
    size_t column = 0;
    while (*text != '\0') {
        size_t word = strcspn(text, " ");
        if (column > 0 && column + 1 + word > TEXT_COLUMNS) {
            printf("\n%*s", LEFT_COLUMNS, "");
            column = 0;
        }
        printf("%s%.*s", column > 0 ? " " : "", (int)word, text);
        column += word + (column > 0);
        text += word + strspn(text + word, " ");
    }
    putchar('\n');
}
