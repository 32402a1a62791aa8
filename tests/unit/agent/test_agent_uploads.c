/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads by the agent: for which build-ids the service is queried and when, which file is used, and the effects of
 * files of untrusted users.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/uploads/upload_files.h"
#include "agent/uploads/upload_history.h"
#include "agent/uploads/upload_queue.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "elf-image/elf_image.h"
#include "sampling/objects/open_in_root.h"
#include "sandbox/fork_server.h"
#include "sandbox/worker.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define SECOND INT64_C(1000000000)

static char agent[PATH_MAX];
static const atomic_bool go_on;
static struct worker_health health = { .missing = "no symbols are uploaded" };
static struct file_opener opener = { .stop = &go_on };
static const struct upload_workers workers = {
        .stop = &go_on, .opener = &opener, .max_bytes = GiB(1), .health = &health
};

static void inspect(const struct upload_workers *w, const int *fds, size_t count, struct inspected_file *ret)
{
        struct error err;

        (void)!upload_inspect_files(w, fds, count, ret, &err);
}

START_TEST(build_id_is_queried_once_a_day)
{
        struct upload_history k = { 0 };
        const struct build_id id = { 2, { 1, 2 } }, other = { 2, { 1, 3 } };

        ck_assert(upload_history_begin(&k, &id, 0));
        ck_assert(!upload_history_begin(&k, &id, 1000000 * SECOND)); /* in work */
        ck_assert(upload_history_begin(&k, &other, 0));
        upload_history_end(&k, &id, UPLOAD_OUTCOME_SETTLED, 5 * SECOND);
        ck_assert(!upload_history_begin(&k, &id, 86404 * SECOND));
        ck_assert(upload_history_begin(&k, &id, 86405 * SECOND));
        upload_history_end(&k, &other, UPLOAD_OUTCOME_LATER, 0);
        ck_assert(upload_history_begin(&k, &other, 0));
        upload_history_deinit(&k);
}
END_TEST

START_TEST(failures_are_retried_with_backoff_up_to_a_day)
{
        struct upload_history k = { 0 };
        const struct build_id id = { 2, { 1, 2 } };
        int64_t now = 0, pause = 60 * SECOND;

        for (int i = 0; i < 20; i++) {
                ck_assert(upload_history_begin(&k, &id, now));
                upload_history_end(&k, &id, UPLOAD_OUTCOME_FAILED, now);
                ck_assert(!upload_history_begin(&k, &id, now + pause - 1));
                now += pause;
                pause = i < 10 ? 2 * pause : pause; /* stays at 2^10 minutes */
                ck_assert_int_le(pause, 86400 * SECOND);
        }
        upload_history_deinit(&k);
}
END_TEST

START_TEST(known_build_ids_are_bounded)
{
        struct upload_history k = { 0 };
        struct build_id id = { .size = 4 };

        for (uint32_t i = 0; i <= LIMIT_AGENT_UPLOAD_IDS; i++) {
                memcpy(id.bytes, &i, sizeof i);
                ck_assert(upload_history_begin(&k, &id, 0));
        }
        ck_assert_uint_eq(k.count, 1);
        upload_history_deinit(&k);
}
END_TEST

START_TEST(container_path_stays_in_its_root)
{
        char dir[TEMPORARY_DIR_BYTES], path[64];
        int root, fd;

        temporary_dir_create(dir, "root");
        snprintf(path, sizeof path, "%s/link", dir);
        ck_assert_int_eq(symlink("/etc/passwd", path), 0);
        snprintf(path, sizeof path, "%s/file", dir);
        ck_assert_int_eq(file_write_durable(path, "x", 1, NULL), ST_OK);
        snprintf(path, sizeof path, "%s/pipe", dir);
        ck_assert_int_eq(mkfifo(path, 0600), 0);
        root = open(dir, O_PATH | O_DIRECTORY);
        ck_assert_int_eq(open_regular_in_root(root, "/link", 0), -1);
        ck_assert_int_eq(open_regular_in_root(root, "/../../etc/passwd", 0), -1);
        ck_assert_int_eq(open_regular_in_root(root, "/pipe", 0), -1); /* and does not wait for a writer */
        fd = open_regular_in_root(root, "/../file", 0);
        ck_assert_int_ge(fd, 0);
        close(fd);
        close(root);
        temporary_dir_remove(dir);
}
END_TEST

START_TEST(unreadable_files_do_not_affect_others)
{
        const char *const bad[] = { "tests/corpus/elf/bad/magic-only.elf", "tests/corpus/elf/bad/cut-in-sections.elf",
                                    "/dev/null" };
        struct inspected_file found[WORKER_INSPECT_FILES];
        struct elf_image own;
        int fds[WORKER_INSPECT_FILES];

        worker_set_program(agent);
        for (int i = 0; i < 3; i++)
                fds[i] = open(bad[i], O_RDONLY | O_CLOEXEC);
        fds[3] = -1;
        fds[4] = open(agent, O_RDONLY | O_CLOEXEC);
        fds[5] = fds[4];
        inspect(&workers, fds, WORKER_INSPECT_FILES, found);
        for (int i = 0; i < 4; i++)
                ck_assert_uint_eq(found[i].id.size, 0);
        ck_assert_int_eq(elf_image_open(agent, &own, NULL), ST_OK);
        for (int i = 4; i < 6; i++) {
                ck_assert(build_id_equal(&found[i].id, &own.build_id));
                ck_assert_int_eq(found[i].quality, QUALITY_DWARF);
                ck_assert(found[i].has_code);
                ck_assert_uint_gt(found[i].sent_bytes, own.size / 4);
                ck_assert_uint_lt(found[i].sent_bytes, own.size);
        }
        elf_image_close(&own);
        for (int i = 0; i < 5; i++)
                if (fds[i] >= 0)
                        close(fds[i]);
}
END_TEST

START_TEST(uninspected_file_is_not_treated_as_stripped)
{
        const struct rlimit few = { 32, 32 };
        int fds[32], count = 0;
        struct upload_file files[UPLOAD_FILES_MAX];
        struct upload_offer o = { .id = { 2, { 1, 2 } }, .fd = -1, .root_fd = -1 };
        struct inspected_file found;
        enum inspect_end end;
        int fd = open(agent, O_RDONLY | O_CLOEXEC);

        worker_set_program(agent);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
        while ((fds[count] = dup(fd)) >= 0)
                count++;
        inspect(&workers, &fd, 1, &found);
        ck_assert_uint_eq(found.id.size, 0);
        ck_assert_int_ne(found.end, INSPECT_DONE);
        ck_assert_uint_eq(upload_files_find(&o, &found, &workers, files, &end), 0);
        ck_assert_int_ne(end, INSPECT_DONE);
        while (count) /* sanitizers need some at exit */
                close(fds[--count]);
        close(fd);
}
END_TEST

START_TEST(file_on_a_mount_with_a_server_is_copied)
{
        char text[64] = "";
        int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
        struct stat opened, own;

        /* procfs is not known to be local */
        ck_assert_int_eq(file_opener_open(&opener, root, "/proc/sys/kernel/ostype", KiB(64), &fd), OPEN_DONE);
        ck_assert_int_eq(pread(fd, text, sizeof text - 1, 0), 6);
        ck_assert_str_eq(text, "Linux\n");
        close(fd);
        ck_assert_int_eq(file_opener_open(&opener, root, "/proc/sys/kernel/ostype", 3, &fd), OPEN_MISSING);
        ck_assert_int_eq(file_opener_open(&opener, root, "/proc/none", KiB(64), &fd), OPEN_MISSING);
        ck_assert_int_eq(file_opener_open(&opener, root, "/dev/null", KiB(64), &fd), OPEN_MISSING);
        file_opener_end(&opener);
        close(root);
        root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        ck_assert_int_eq(file_opener_open(&opener, root, "/Makefile", 3, &fd), OPEN_DONE); /* not copied */
        ck_assert_int_eq(fstat(fd, &opened), 0);
        ck_assert_int_eq(stat("Makefile", &own), 0);
        ck_assert_uint_eq(opened.st_ino, own.st_ino);
        close(fd);
        close(root);
        file_opener_end(&opener);
}
END_TEST

static void queue_file(struct upload_queue *q, const char *name, uint64_t size, uint64_t samples)
{
        struct queued_upload f = { .item = { .path = strdup(name), .size_bytes = size }, .fd = -1, .samples = samples };

        ck_assert(upload_queue_add(q, &f));
}

static void next_file_is(struct upload_queue *q, const char *name)
{
        struct queued_upload f;

        ck_assert(upload_queue_take(q, &f));
        ck_assert_str_eq(f.item.path, name);
        queued_upload_deinit(&f);
}

START_TEST(file_with_most_samples_per_byte_is_next)
{
        struct upload_queue q = { 0 };
        struct queued_upload none;

        queue_file(&q, "libc", 5000000, 100);
        queue_file(&q, "small and idle", 1000, 0);
        queue_file(&q, "small and busy", 1000, 90);
        queue_file(&q, "large and busy", UINT64_C(1) << 62, UINT64_C(1) << 62);
        next_file_is(&q, "large and busy");
        next_file_is(&q, "small and busy");
        queue_file(&q, "small and busier", 1000, 91); /* found meanwhile */
        next_file_is(&q, "small and busier");
        next_file_is(&q, "libc");
        next_file_is(&q, "small and idle");
        ck_assert(!upload_queue_take(&q, &none));
        queue_file(&q, "left", 1, 1);
        upload_queue_deinit(&q);
}
END_TEST

START_TEST(missing_worker_is_reported_as_such)
{
        struct upload_file files[UPLOAD_FILES_MAX];
        struct upload_offer o = { .id = { 2, { 1, 2 } }, .fd = -1, .root_fd = -1 };
        int in = open(agent, O_RDONLY | O_CLOEXEC), out = memfd_create("split", MFD_CLOEXEC);
        struct inspected_file found;
        enum inspect_end end;
        struct error err;

        worker_set_program("/nonexistent");
        ck_assert_int_eq(upload_inspect_files(&workers, &in, 1, &found, &err), ST_OS);
        ck_assert_int_eq(found.end, INSPECT_NO_WORKER);
        ck_assert_uint_eq(upload_files_find(&o, &found, &workers, files, &end), 0);
        ck_assert_int_eq(end, INSPECT_NO_WORKER);
        ck_assert_int_eq(upload_split_file(&workers, in, out, 1, &err), ST_OS);
        ck_assert_int_eq(err.reason, WORKER_NOT_STARTED);
        ck_assert(health.failing);
        worker_set_program(agent);
        ck_assert_int_eq(upload_inspect_files(&workers, &in, 1, &found, &err), ST_OK);
        ck_assert(!health.failing);
        close(in);
        close(out);
}
END_TEST

/* A worker that kills its fork server. */
static int kill_fork_server(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        kill(getppid(), SIGKILL);
        return pause();
}

START_TEST(file_is_inspected_although_fork_server_exits)
{
        struct upload_workers lost = workers;
        struct inspected_file found;
        struct elf_image own;
        struct stat info;
        struct error err;
        int in = open(agent, O_RDONLY | O_CLOEXEC), out = memfd_create("split", MFD_CLOEXEC);

        worker_set_program(agent);
        ck_assert_int_eq(elf_image_open(agent, &own, NULL), ST_OK);
        ck_assert_int_eq(fork_server_create(NULL, kill_fork_server, &lost.fork_server, NULL), ST_OK);
        inspect(&lost, &in, 1, &found);
        ck_assert(build_id_equal(&found.id, &own.build_id));
        elf_image_close(&own);
        fork_server_destroy(lost.fork_server);
        ck_assert_int_eq(fork_server_create(NULL, kill_fork_server, &lost.fork_server, NULL), ST_OK);
        ck_assert_int_eq(upload_split_file(&lost, in, out, found.sent_bytes, &err), ST_BUSY);
        ck_assert_int_eq(fstat(out, &info), 0);
        ck_assert_int_eq(info.st_size, 0);
        fork_server_destroy(lost.fork_server);
        close(in);
        close(out);
}
END_TEST

START_TEST(split_has_announced_size)
{
        int in = open(agent, O_RDONLY | O_CLOEXEC), out = memfd_create("split", MFD_CLOEXEC);
        struct inspected_file found;
        struct stat info;
        struct error err;

        worker_set_program(agent);
        inspect(&workers, &in, 1, &found);
        ck_assert_msg(upload_split_file(&workers, in, out, found.sent_bytes, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(fstat(out, &info), 0);
        ck_assert_uint_ge((uint64_t)info.st_size, found.sent_bytes);
        ck_assert_uint_lt((uint64_t)info.st_size, found.sent_bytes + MiB(1));
        close(in);
        close(out);
}
END_TEST

/* modules.dep of the running kernel in that root; NULL without. */
static const char *modules;

static void write_modules(const char *root)
{
        char path[PATH_MAX];
        struct utsname kernel;

        ck_assert_int_eq(uname(&kernel), 0);
        snprintf(path, sizeof path, "%s/lib/modules/%s", root, kernel.release);
        ck_assert_int_eq(file_make_dirs(path, NULL), ST_OK);
        snprintf(path, sizeof path, "%s/lib/modules/%s/modules.dep", root, kernel.release);
        ck_assert_int_eq(file_write_durable(path, modules, strlen(modules), NULL), ST_OK);
}

/* upload_files_find() in a root where the agent's own program is installed as that file. */
static size_t find_in_root(const char *dirs, const char *name, const char *offered_path)
{
        char dir[TEMPORARY_DIR_BYTES], path[PATH_MAX];
        struct upload_file files[UPLOAD_FILES_MAX];
        struct upload_offer o = { .fd = -1 };
        const struct inspected_file nothing = { 0 };
        struct elf_image own;
        size_t found;
        enum inspect_end end;

        worker_set_program(agent);
        temporary_dir_create(dir, "root");
        snprintf(path, sizeof path, "%s/%s", dir, dirs);
        ck_assert_int_eq(file_make_dirs(path, NULL), ST_OK);
        snprintf(path, sizeof path, "%s/%s/%s", dir, dirs, name);
        if (modules)
                write_modules(dir);
        ck_assert_int_eq(symlink("/real", path), 0); /* symbolic links are resolved inside the root */
        ck_assert_int_eq(elf_image_open(agent, &own, NULL), ST_OK);
        snprintf(path, sizeof path, "%s/real", dir);
        ck_assert_int_eq(file_write_durable(path, own.data, own.size, NULL), ST_OK);
        o.id = own.build_id;
        elf_image_close(&own);
        o.path = strdup(offered_path);
        o.root_fd = open(dir, O_PATH | O_DIRECTORY);
        found = upload_files_find(&o, &nothing, &workers, files, &end);
        ck_assert_int_eq(end, INSPECT_DONE);
        for (size_t i = 0; i < found; i++) {
                ck_assert_int_eq(files[i].quality, QUALITY_DWARF);
                upload_file_deinit(&files[i]);
        }
        upload_offer_deinit(&o);
        file_opener_end(&opener);
        temporary_dir_remove(dir);
        return found;
}

START_TEST(kernel_debuginfo_is_found_at_package_path)
{
        struct utsname kernel;
        char name[200];

        ck_assert_int_eq(uname(&kernel), 0);
        snprintf(name, sizeof name, "vmlinux-%.65s", kernel.release);
        ck_assert_uint_eq(find_in_root("usr/lib/debug/boot", name, "vmlinux"), 1);
        ck_assert_uint_eq(find_in_root("usr/lib/debug/boot", name, "/bin/other"), 0);
        snprintf(name, sizeof name, "usr/lib/debug/lib/modules/%.65s", kernel.release);
        ck_assert_uint_eq(find_in_root(name, "vmlinux", "vmlinux"), 1);
}
END_TEST

START_TEST(module_debuginfo_is_found_by_modules_dep)
{
        struct utsname kernel;
        char deb[200], own[200];

        ck_assert_int_eq(uname(&kernel), 0);
        snprintf(deb, sizeof deb, "usr/lib/debug/lib/modules/%.65s/kernel/net", kernel.release);
        snprintf(own, sizeof own, "lib/modules/%.65s/kernel/net", kernel.release);
        ck_assert_uint_eq(find_in_root(deb, "nf-nat.ko", "nf_nat"), 0); /* not listed in modules.dep */
        modules = "kernel/fs/xfs/xfs.ko: kernel/lib/libcrc32c.ko\nkernel/net/nf-nat.ko.xz: kernel/x.ko\nbroken";
        ck_assert_uint_eq(find_in_root(deb, "nf-nat.ko", "nf_nat"), 1);
        ck_assert_uint_eq(find_in_root(deb, "nf-nat.ko.debug", "nf_nat"), 1);
        ck_assert_uint_eq(find_in_root(own, "nf-nat.ko", "nf_nat"), 1);
        ck_assert_uint_eq(find_in_root(deb, "nf-nat.ko", "nat"), 0);
        ck_assert_uint_eq(find_in_root(deb, "nf-nat.ko", "/nf_nat"), 0); /* a process's file */
        modules = NULL;
}
END_TEST

START_TEST(debug_file_is_found_by_build_id)
{
        char hex[BUILD_ID_HEX_MAX], dirs[64], name[BUILD_ID_HEX_MAX + 8];
        struct elf_image own;

        ck_assert_int_eq(elf_image_open(agent, &own, NULL), ST_OK);
        build_id_hex(&own.build_id, hex);
        elf_image_close(&own);
        snprintf(dirs, sizeof dirs, "usr/lib/debug/.build-id/%.2s", hex);
        snprintf(name, sizeof name, "%s.debug", hex + 2);
        ck_assert_uint_eq(find_in_root(dirs, name, "/gone"), 1);
}
END_TEST

int main(int argc, char **argv)
{
        const TTest *const tests[] = {
                build_id_is_queried_once_a_day,
                failures_are_retried_with_backoff_up_to_a_day,
                known_build_ids_are_bounded,
                container_path_stays_in_its_root,
                unreadable_files_do_not_affect_others,
                uninspected_file_is_not_treated_as_stripped,
                file_on_a_mount_with_a_server_is_copied,
                file_with_most_samples_per_byte_is_next,
                missing_worker_is_reported_as_such,
                file_is_inspected_although_fork_server_exits,
                split_has_announced_size,
                kernel_debuginfo_is_found_at_package_path,
                module_debuginfo_is_found_by_modules_dep,
                debug_file_is_found_by_build_id,
        };

        (void)argc;
        snprintf(agent, sizeof agent, "%.*s/../../../cairn-agent", (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
        return suite_run("agent_uploads", tests, sizeof tests / sizeof *tests);
}
