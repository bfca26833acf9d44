/*
 * What a cell sees of the host: the interpreter's own files. Filled by whoever asked the
 * interpreter (engine/interpreter), turned into mounts or Landlock rules by the jail.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    IMAGE_PATHS_MAX = 96,
    IMAGE_PATH_BYTES = 512,
    IMAGE_FILES_MAX = 8,
    IMAGE_TEXT_BYTES = 2048,
};

struct image {
    char executable[IMAGE_PATH_BYTES]; /* sys.executable, a venv's link too */
    char version[32];                  /* "3.11.2" */
    int hex_version;                   /* sys.hexversion */
    /* Absolute paths of files and folders, read-only, at the same place inside; symbolic
     * links on the way (usrmerge's /lib, a venv's bin/python3) are recreated as links. No
     * path lies beneath another one of the list. */
    char paths[IMAGE_PATHS_MAX][IMAGE_PATH_BYTES];
    size_t paths_n;
    struct image_link {
        char path[IMAGE_PATH_BYTES];
        char target[IMAGE_PATH_BYTES];
    } links[IMAGE_PATHS_MAX];
    size_t links_n;
    /* Seen with this text instead of their own (namespaces), where the paths above have them. */
    struct image_file {
        char path[IMAGE_PATH_BYTES];
        char text[IMAGE_TEXT_BYTES];
    } files[IMAGE_FILES_MAX];
    size_t files_n;
    char font_list[IMAGE_PATH_BYTES]; /* on the host: matplotlib's, ready; "": none */
    char venv[IMAGE_PATH_BYTES];      /* sys.prefix of a virtual environment; "": none */
};
