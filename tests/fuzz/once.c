/* Where there is no libFuzzer: runs a target once for each file that is named, so that its
 * seeds are a test with every compiler. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

enum { FILE_BYTES_MAX = 1 << 22 };

int
main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        AUTO_BUF struct buf bytes;
        buf_init(&bytes, FILE_BYTES_MAX);
        AUTO_CLOSE int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fd_read_all(fd, &bytes) < 0) {
            printf("not ok %d - %s cannot be read\n1..%d\n", i, argv[i], argc - 1);
            return 1;
        }
        LLVMFuzzerTestOneInput((const uint8_t *)bytes.p, bytes.n);
        printf("ok %d - %s\n", i, argv[i]);
    }
    printf("1..%d\n", argc - 1);
    return argc > 1 ? 0 : 1;
}
