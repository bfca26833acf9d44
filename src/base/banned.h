/*
 * Included by the compiler before every file (-include): calls that have no safe use here
 * turn into compile errors. The idea is git's banned.h.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets strtok
#pragma GCC poison atoi atol atoll atof asctime ctime gmtime localtime tmpnam mktemp
