/*
 * The list of fonts that matplotlib builds on its first import: half a second to two,
 * with a thread of its own, and again in every new home, which each cell's /tmp is. So it
 * is built once where the interpreter is asked, and cells find it in place.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/interpreter_parts.h"

enum { FONTS_LIMIT_MS = 60 * 1000 };

static const char program[] =
    "import json, os\n"
    "from matplotlib import font_manager, get_cachedir\n"
    "name = 'fontlist-v%s.json' % font_manager.FontManager.__version__\n"
    "path = os.path.join(get_cachedir(), name)\n"
    "print(json.dumps({'font_list': path if os.path.exists(path) else ''}))\n";

void
interpreter_fonts(const char *asked, struct image *image, struct stamps *stamps)
{
    char folder[IMAGE_PATH_BYTES], variable[IMAGE_PATH_BYTES + 16];
    json_t *answer = NULL;
    struct err err;
    if (!interpreter_cache_fonts(asked, folder))
        return;
    snprintf(variable, sizeof(variable), "MPLCONFIGDIR=%s", folder);
    const struct question question = {program, variable};
    /* No matplotlib, or one that fails: there is no list, and that is all. */
    if (interpreter_ask(asked, &question, FONTS_LIMIT_MS, &answer, &err) < 0)
        return;
    const char *path = json_string_value(json_object_get(answer, "font_list"));
    /* The cell's user must be able to read it, and no umask of ours decides that. */
    if (path && path[0] == '/' && strlen(path) < sizeof(image->font_list) &&
        chmod(path, 0644) == 0) {
        snprintf(image->font_list, sizeof(image->font_list), "%s", path);
        stamps_add(stamps, STAMP_THERE, path);
    }
    json_decref(answer);
}
