/*
 * The program that the interpreter is started with, `python3 -u -B -c BOOT NAME FOLDER
 * ARGS…`. It loads the guest extension by its path, without a search, and leaves no
 * module behind: _imp and _frozen_importlib are in every interpreter's memory before its
 * first line. -u: what was printed is with us when the run is stopped in the middle of a
 * line. -B: no __pycache__ among the files that the code leaves.
 */
#pragma once

/* printf format: the guest extension as the cell sees it, and the function to call. */
#define GUEST_BOOT                                                                       \
    "import _imp, _frozen_importlib as f\n"                                              \
    "m = _imp.create_dynamic(f.ModuleSpec('_adyton', None, origin='%s'))\n"              \
    "_imp.exec_dynamic(m)\n"                                                             \
    "m.%s()\n"

/* What numeric libraries read to learn how many threads they may start. */
#define GUEST_THREAD_VARIABLES                                                           \
    "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", \
        "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "RAYON_NUM_THREADS",               \
        "POLARS_MAX_THREADS", "LOKY_MAX_CPU_COUNT"
