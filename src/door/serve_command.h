/* `adyton serve`: the supervisor, in the foreground. */
#pragma once

int serve_command(int argc, char **argv);
