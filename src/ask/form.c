/* The table of forms, and what they have in common. */
#include "ask/form.h"

#include <stdio.h>
#include <string.h>

#include "check/finding.h"

const struct form *const forms[] = {&form_openai, &form_anthropic, NULL};

const struct form *
form_by_name(const char *name)
{
    for (size_t i = 0; forms[i]; i++)
        if (strcmp(forms[i]->name, name) == 0)
            return forms[i];
    return NULL;
}

void
form_error_text(const json_t *root, char *text, size_t n)
{
    const json_t *error = json_object_get(root, "error");
    const json_t *found =
        json_is_string(error) ? error : json_object_get(error, "message");
    if (!json_is_string(found))
        found = json_object_get(root, "message");
    if (!json_is_string(found))
        found = json_object_get(root, "detail");
    text[0] = '\0';
    if (json_is_string(found))
        check_printable(
            (struct span){json_string_value(found), json_string_length(found)}, text, n);
    else if (error && !json_is_null(error))
        snprintf(text, n, "an error without a message");
}
