/*
 * Files of the interpreter that cells see in a form of ours: [[path, text], …], as the interpreter
 * has answered and as the cache keeps it. One that does not fit is seen as it is.
 */
#include <stdio.h>
#include <string.h>

#include "engine/interpreter_parts.h"

void
interpreter_take_files(const json_t *list, struct image *image)
{
    image->files_n = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *pair = json_array_get(list, i);
        const char *path = json_string_value(json_array_get(pair, 0));
        const char *text = json_string_value(json_array_get(pair, 1));
        struct image_file *file = &image->files[image->files_n];
        if (image->files_n == IMAGE_FILES_MAX || !path || !text || path[0] != '/' ||
            strstr(path, "/../") || strlen(path) >= sizeof(file->path) ||
            strlen(text) >= sizeof(file->text))
            continue;
        snprintf(file->path, sizeof(file->path), "%s", path);
        snprintf(file->text, sizeof(file->text), "%s", text);
        image->files_n++;
    }
}

json_t *
interpreter_files_json(const struct image *image)
{
    json_t *list = json_array();
    for (size_t i = 0; i < image->files_n; i++)
        json_array_append_new(
            list, json_pack("[s,s]", image->files[i].path, image->files[i].text));
    return list;
}
