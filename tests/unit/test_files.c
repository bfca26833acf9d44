/* cell/files: a living cell's files, among hostile ones; the tar writer; the child's messages. */
#include "collect_tree.h"

#include <event2/event.h>
#include <sodium.h>
#include <stdlib.h>

#include "cell/files_parts.h"
#include "cell/tar.h"

enum { NOBODY = 54321, BYTES_MAX = 64 << 20 };

/* What one piece of work has told. */
static struct heard {
    struct event_base *base;
    struct collected_file entries[16];
    size_t entries_n;
    struct buf data;
    struct err err;
    uint64_t skipped;
    char note[FILES_NOTE_BYTES], sha256[65];
    bool ended;
} heard;

static void
on_entry(void *context, const struct collected_file *file)
{
    (void)context;
    if (heard.entries_n < sizeof(heard.entries) / sizeof(heard.entries[0]))
        heard.entries[heard.entries_n] = *file;
    heard.entries_n++;
}

static void
on_data(void *context, struct span bytes)
{
    (void)context;
    assert_int_equal(buf_append(&heard.data, bytes.p, bytes.n), 0);
}

static void
on_end(void *context, const struct err *err, uint64_t skipped, const char *note,
       const char *sha256)
{
    (void)context;
    heard.err = *err;
    heard.skipped = skipped;
    snprintf(heard.note, sizeof(heard.note), "%s", note);
    snprintf(heard.sha256, sizeof(heard.sha256), "%s", sha256);
    heard.ended = true;
    event_base_loopbreak(heard.base);
}

static struct files_task
task(enum files_kind kind)
{
    return (struct files_task){.kind = kind,
                               .tmp_dir = at.tree,
                               .files_max = 1000,
                               .bytes_max = BYTES_MAX,
                               .on_entry = on_entry,
                               .on_data = on_data,
                               .on_end = on_end};
}

static void
forget(void)
{
    buf_done(&heard.data);
    struct event_base *base = heard.base;
    heard = (struct heard){.base = base};
    buf_init(&heard.data, 2 * BYTES_MAX);
}

/* 0, or the code that the work ended with. */
static int
work(const struct files_task *task)
{
    struct files_work *started;
    struct err err = {0};
    forget();
    assert_int_equal(files_start(heard.base, task, &started, &err), 0);
    event_base_dispatch(heard.base);
    assert_true(heard.ended);
    return heard.err.code;
}

static int
read_path(const char *path)
{
    struct files_task asked = task(FILES_READ);
    asked.path = path;
    return work(&asked);
}

static int
put_text(const char *name, const char *text)
{
    struct job_file file = {.name = strdup(name)};
    struct files_task asked = task(FILES_PUT);
    buf_init(&file.data, 1 << 20);
    assert_int_equal(buf_append(&file.data, text, strlen(text)), 0);
    asked.put = &file;
    asked.put_n = 1;
    int r = work(&asked);
    buf_done(&file.data);
    free(file.name);
    return r;
}

/* As root the tree is another user's, as a cell's is. */
static void
give_away(void)
{
    if (geteuid() == 0)
        assert_int_equal(fchown(at.tree, NOBODY, NOBODY), 0);
}

static void
give(const char *name)
{
    if (geteuid() == 0)
        assert_int_equal(fchownat(at.tree, name, NOBODY, NOBODY, AT_SYMLINK_NOFOLLOW), 0);
}

static int
begin(void **state)
{
    heard.base = event_base_new();
    assert_non_null(heard.base);
    forget();
    int r = make(state);
    give_away();
    return r;
}

static int
finish(void **state)
{
    buf_done(&heard.data);
    event_base_free(heard.base);
    return drop(state);
}

static void
test_list(void **state)
{
    (void)state;
    assert_int_equal(mkdirat(at.tree, "sub", 0755), 0);
    put(at.tree, "sub/b.json", "{\"a\": 1}");
    put(at.tree, "a.csv", "a,b\n1,2\n");
    put(at.tree, "\xff\n", "odd");
    put_bytes(at.tree, "closed", "x", 1, 0);
    give("closed");
    assert_int_equal(symlinkat("a.csv", at.tree, "link"), 0);
    assert_int_equal(mkfifoat(at.tree, "fifo", 0666), 0);
    struct files_task asked = task(FILES_LIST);
    assert_int_equal(work(&asked), 0);

    static const struct {
        const char *path, *mime;
        uint64_t bytes;
    } expected[] = {{"a.csv", "text/csv", 8},
                    {"sub/b.json", "application/json", 8},
                    {"\xff\n", "text/plain", 3}};
    assert_int_equal(heard.entries_n, 3);
    for (size_t i = 0; i < heard.entries_n; i++) {
        assert_string_equal(heard.entries[i].path, expected[i].path);
        assert_string_equal(heard.entries[i].mime, expected[i].mime);
        assert_int_equal(heard.entries[i].bytes, expected[i].bytes);
        assert_int_equal(strlen(heard.entries[i].sha256), 64);
    }
    assert_int_equal(heard.skipped, 3);
    assert_string_equal(heard.note, "1 link, 1 fifo, 1 unreadable entry skipped");
    struct stat st; /* what the code has closed stays closed */
    assert_int_equal(fstatat(at.tree, "closed", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0);

    asked.files_max = 1;
    assert_int_equal(work(&asked), 0);
    assert_int_equal(heard.entries_n, 1);
    asked.files_max = 1000;
    asked.bytes_max = 10;
    assert_int_equal(work(&asked), 0);
    assert_int_equal(heard.entries_n, 1);
}

static void
test_read(void **state)
{
    (void)state;
    enum { N = 3 * FILES_DATA_BYTES + 7 };
    static char bytes[N];
    for (size_t i = 0; i < N; i++)
        bytes[i] = (char)(i * 7);
    assert_int_equal(mkdirat(at.tree, "d", 0755), 0);
    put_bytes(at.tree, "d/big", bytes, N, 0644);
    put(at.tree, "empty", "");
    assert_int_equal(read_path("d/big"), 0);
    assert_int_equal(heard.entries_n, 1);
    assert_int_equal(heard.entries[0].bytes, N);
    assert_int_equal(heard.data.n, N);
    assert_memory_equal(heard.data.p, bytes, N);
    unsigned char digest[crypto_hash_sha256_BYTES];
    char hex[65];
    crypto_hash_sha256(digest, (const unsigned char *)bytes, N);
    sodium_bin2hex(hex, sizeof(hex), digest, sizeof(digest));
    assert_string_equal(heard.sha256, hex);
    assert_int_equal(read_path("empty"), 0);
    assert_int_equal(heard.data.n, 0);
}

static void
test_what_is_not_read(void **state)
{
    (void)state;
    assert_int_equal(mkdirat(at.tree, "d", 0755), 0);
    put(at.top, "secret", "SECRET");
    put_bytes(at.tree, "closed", "x", 1, 0);
    give("closed");
    assert_int_equal(symlinkat("../secret", at.tree, "out"), 0);
    assert_int_equal(symlinkat("d", at.tree, "folder-link"), 0);
    put(at.tree, "d/x", "x");
    assert_int_equal(symlinkat("/etc/hostname", at.tree, "absolute"), 0);
    assert_int_equal(mkfifoat(at.tree, "fifo", 0666), 0);
    AUTO_CLOSE int huge = openat(at.tree, "huge", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(ftruncate(huge, (off_t)1 << 40), 0);
    static const struct {
        const char *path;
        int code;
    } rows[] = {{"none", -ENOENT},
                {"d/none", -ENOENT},
                {"d", -EISDIR},
                {"out", -ELOOP},
                {"absolute", -ELOOP},
                {"fifo", -EINVAL},
                {"folder-link/x", -ELOOP},
                {"../secret", -EXDEV},
                {"/etc/hostname", -EXDEV},
                {"d/../../secret", -EXDEV},
                {"closed", -EACCES},
                {"huge", -EFBIG},
                {"d/x/y", -ENOTDIR},
                {"", -ENOENT}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int r = read_path(rows[i].path);
        if (r != rows[i].code)
            fail_msg("'%s' gives %d (%s), not %d", rows[i].path, r, heard.err.text,
                     rows[i].code);
        assert_int_equal(heard.data.n, 0);
        assert_true(heard.err.text[0] != '\0');
    }
    assert_int_equal(read_path("d/x"), 0); /* control */
}

static void
test_put(void **state)
{
    (void)state;
    assert_int_equal(put_text("a/b/c.txt", "one"), 0);
    give("a");
    assert_string_equal(text_of(at.tree, "a/b/c.txt"), "one");
    assert_int_equal(put_text("a/b/c.txt", "two"), 0);
    assert_string_equal(text_of(at.tree, "a/b/c.txt"), "two");
    struct stat st;
    assert_int_equal(fstatat(at.tree, "a/b/c.txt", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(st.st_uid, geteuid() == 0 ? NOBODY : geteuid());
    assert_int_equal(st.st_mode & 07777, 0644);

    /* Links are not followed; one in the file's own place is replaced. */
    put(at.top, "secret", "SECRET");
    assert_int_equal(symlinkat("../../secret", at.tree, "link"), 0);
    assert_int_equal(put_text("link", "three"), 0);
    assert_string_equal(text_of(at.tree, "link"), "three");
    assert_string_equal(text_of(at.top, "secret"), "SECRET");
    assert_int_equal(symlinkat("../out", at.tree, "away"), 0);
    assert_int_equal(put_text("away/x", "x"), -ELOOP);
    assert_int_equal(faccessat(at.out, "x", F_OK, 0), -1);
    assert_int_equal(put_text("a/b", "x"), -EISDIR);
    assert_int_equal(put_text("a/b/c.txt/d", "x"), -ENOTDIR);
    assert_int_equal(mkfifoat(at.tree, "fifo", 0666), 0);
    assert_int_equal(put_text("fifo", "four"), 0); /* nobody is waited for */
    assert_string_equal(text_of(at.tree, "fifo"), "four");
}

/* The code swaps a folder for a link out of its tree, as fast as it can, while we write and read
 * beneath: whatever comes of each, nothing is written or read outside. */
static void
test_swapped_folders(void **state)
{
    (void)state;
    enum { ROUNDS = 40 };
    assert_int_equal(mkdirat(at.tree, "d", 0777), 0);
    give("d");
    put(at.out, "x", "SECRET");
    assert_int_equal(symlinkat("../out", at.tree, "l"), 0);
    pid_t swapper = fork();
    while (swapper == 0)
        (void)!renameat2(at.tree, "d", at.tree, "l", RENAME_EXCHANGE);
    for (int i = 0; i < ROUNDS; i++) {
        (void)!put_text("d/x", "ours");
        (void)!read_path("d/x");
        assert_null(heard.data.n > 0 ? strstr(buf_span(&heard.data).p, "SECRET") : NULL);
    }
    kill(swapper, SIGKILL);
    waitpid(swapper, NULL, 0);
    assert_string_equal(text_of(at.out, "x"), "SECRET");
}

static int
run_tool(const char *tool, const char *const *argv)
{
    AUTO_CLOSE int input = openat(at.top, "archive.tar", O_RDONLY | O_CLOEXEC);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(input, 0);
        if (chdir(at.path) == 0)
            execv(tool, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void
test_archive(void **state)
{
    (void)state;
    char deep[COLLECT_PATH_BYTES] = "", name[202];
    memset(name, 'n', 200);
    memcpy(name + 200, "\0", 1);
    for (int i = 0; i < 4; i++) {
        size_t n = strlen(deep);
        snprintf(deep + n, sizeof(deep) - n, "%s%.180s", i > 0 ? "/" : "", name);
        assert_int_equal(mkdirat(at.tree, deep, 0755), 0);
    }
    snprintf(deep + strlen(deep), 8, "/file");
    put(at.tree, deep, "deep");
    put(at.tree, name, "a long name");
    put(at.tree, "na\xc3\xafve\nname = 'x'", "odd");
    put(at.tree, "bytes \xff\xfe", "no text");
    put(at.tree, "empty", "");
    assert_int_equal(symlinkat("/etc/passwd", at.tree, "link"), 0);
    put_bytes(at.tree, "block", name, 200, 06755);
    AUTO_CLOSE int sparse = openat(at.tree, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(ftruncate(sparse, 5 << 20), 0);
    assert_int_equal(pwrite(sparse, "end", 3, (5 << 20) - 3), 3);

    struct files_task asked = task(FILES_TAR);
    assert_int_equal(work(&asked), 0);
    assert_int_equal(heard.skipped, 1); /* the link */
    assert_int_equal(heard.data.n % TAR_BLOCK_BYTES, 0);
    put_bytes(at.top, "archive.tar", heard.data.p, heard.data.n, 0644);
    assert_int_equal(unlinkat(at.tree, "link", 0), 0);
    const char *const tar[] = {"tar", "-xf", "-", "-C", "out", NULL};
    const char *const diff[] = {"diff", "-r", "tree", "out", NULL};
    static const char check[] =
        "import os, sys, tarfile\n"
        "with tarfile.open(fileobj=sys.stdin.buffer, mode='r|') as t:\n"
        "    seen = {os.fsencode(m.name): t.extractfile(m).read() for m in t if "
        "m.isreg()}\n"
        "want = {}\n"
        "for folder, _, names in os.walk(b'tree'):\n"
        "    for name in names:\n"
        "        path = os.path.join(folder, name)\n"
        "        want[path[5:]] = open(path, 'rb').read()\n"
        "sys.exit(seen != want)\n";
    const char *const python[] = {"python3", "-c", check, NULL};
    assert_int_equal(run_tool("/bin/tar", tar), 0);
    assert_int_equal(run_tool("/usr/bin/diff", diff), 0);
    assert_int_equal(run_tool("/usr/bin/python3", python), 0);

    asked.bytes_max = 100;
    assert_int_equal(work(&asked), 0);
    assert_true(heard.data.n < 64 * 1024);
    assert_true(heard.skipped >= 2);
    assert_true(heard.note[0] != '\0');
}

static void
test_sizes_beyond_the_old_header(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = {0};
    buf_init(&out, 1 << 20);
    assert_int_equal(tar_put_header(&out, "a", (uint64_t)1 << 40, 0), 0);
    assert_int_equal(out.n, 3 * TAR_BLOCK_BYTES);
    assert_memory_equal(out.p + TAR_BLOCK_BYTES, "22 size=1099511627776\n", 22);
    buf_consume(&out, out.n);
    assert_int_equal(tar_put_header(&out, "a", 1, 0), 0);
    assert_int_equal(out.n, TAR_BLOCK_BYTES);
}

/* A slow reader, and one who has gone. */
static void
test_pause_and_cancel(void **state)
{
    (void)state;
    enum { N = 4 << 20 };
    AUTO_CLOSE int file = openat(at.tree, "big", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(ftruncate(file, N), 0);
    struct files_task asked = task(FILES_READ);
    asked.path = "big";
    struct files_work *started;
    struct err err;
    assert_int_equal(files_start(heard.base, &asked, &started, &err), 0);
    files_pause(started, true);
    event_base_loop(heard.base, EVLOOP_NONBLOCK);
    assert_int_equal(heard.entries_n, 0);
    files_pause(started, false);
    event_base_dispatch(heard.base);
    assert_true(heard.ended && heard.err.code == 0);
    assert_int_equal(heard.data.n, N);

    forget();
    assert_int_equal(files_start(heard.base, &asked, &started, &err), 0);
    event_base_loop(heard.base, EVLOOP_ONCE);
    files_cancel(started);
    event_base_loop(heard.base, EVLOOP_NONBLOCK);
    assert_false(heard.ended);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

static void
test_messages(void **state)
{
    (void)state;
    static struct files_message message, taken;
    enum { HEAD = offsetof(struct files_message, data) };
    struct collected_file *entry = &message.entry;
    message.head.word = FILES_ENTRY;
    snprintf(entry->path, sizeof(entry->path), "a");
    size_t whole = HEAD + sizeof(*entry);
    assert_int_equal(files_take(&message, whole, &taken), FILES_ENTRY);
    assert_int_equal(files_take(&message, whole - 1, &taken), 0);
    assert_int_equal(files_take(&message, whole + 1, &taken), 0);
    memset(entry->sha256, 'a', 64);
    assert_int_equal(files_take(&message, whole, &taken), FILES_ENTRY);
    entry->sha256[3] = '"';
    assert_int_equal(files_take(&message, whole, &taken), 0);
    entry->sha256[0] = '\0';
    memset(entry->path, 'p', sizeof(entry->path));
    assert_int_equal(files_take(&message, whole, &taken), 0);
    entry->path[0] = '\0';
    assert_int_equal(files_take(&message, whole, &taken), 0);

    message.head = (struct files_head){FILES_DATA, 10};
    assert_int_equal(files_take(&message, HEAD + 10, &taken), FILES_DATA);
    assert_int_equal(files_take(&message, HEAD + 9, &taken), 0);
    message.head.n = 0;
    assert_int_equal(files_take(&message, HEAD, &taken), 0);
    message.head.n = UINT32_MAX;
    assert_int_equal(files_take(&message, sizeof(message), &taken), 0);
    assert_int_equal(files_take(&message, 3, &taken), 0);
    message.head = (struct files_head){77, 0};
    assert_int_equal(files_take(&message, HEAD, &taken), 0);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_list, begin, finish),
        cmocka_unit_test_setup_teardown(test_read, begin, finish),
        cmocka_unit_test_setup_teardown(test_what_is_not_read, begin, finish),
        cmocka_unit_test_setup_teardown(test_put, begin, finish),
        cmocka_unit_test_setup_teardown(test_swapped_folders, begin, finish),
        cmocka_unit_test_setup_teardown(test_archive, begin, finish),
        cmocka_unit_test(test_sizes_beyond_the_old_header),
        cmocka_unit_test_setup_teardown(test_pause_and_cancel, begin, finish),
        cmocka_unit_test(test_messages),
    };
    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
