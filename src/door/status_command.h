/* `adyton status`: what a supervisor is doing. */
#pragma once

int status_command(int argc, char **argv);
