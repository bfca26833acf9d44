/* `adyton check`: what validation says of code that is not run. */
#pragma once

int check_command(int argc, char **argv);
