/* The two columns of a --help page, wrapped. */
#pragma once

/* Prints `left` and beside it `text`, folded at the width of a page, to stdout. */
void help_print_row(const char *left, const char *text);
