/* SPDX-License-Identifier: Apache-2.0 */
/* This program is its own worker: main() runs a job if it is started as one. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "sandbox/fork_server.h"
#include "sandbox/sanitizers.h"
#include "sandbox/worker.h"
#include "tests/support/suite.h"

#define MAPPED_BYTES MiB(256)

static enum status run(const char *job, struct error *err)
{
        const char *const args[] = { job, NULL };

        return worker_run(&(struct worker_job){ .args = args, .cpu_s = 20, .memory_bytes = MiB(256) }, err);
}

static void assert_fails(const char *job, enum status st, const char *text)
{
        struct error err = { .text = "" };

        ck_assert_int_eq(run(job, &err), st);
        ck_assert_msg(strstr(err.text, text), "%s", err.text);
}

START_TEST(successful_worker_is_ok)
{
        ck_assert_int_eq(run("good", NULL), ST_OK);
}
END_TEST

START_TEST(descriptors_arrive_as_3_4_and_on_and_others_are_closed)
{
        const char *const args[] = { "copy", NULL };
        char text[16] = "";
        int in = memfd_create("in", 0), other = memfd_create("other", 0), out = memfd_create("out", 0);
        int fds[3];

        ck_assert_int_ge(other, 0);
        ck_assert_int_eq(write(in, "hello", 5), 5);
        fds[0] = in; /* 3 in the worker, whatever the number here */
        fds[1] = -1;
        fds[2] = out;
        ck_assert_int_eq(worker_run(&(struct worker_job){ .args = args, .fds = fds, .fd_count = 3 }, NULL), ST_OK);
        ck_assert_int_eq(pread(out, text, sizeof text, 0), 5);
        ck_assert_str_eq(text, "hello");
}
END_TEST

START_TEST(status_and_last_line_of_worker_are_returned)
{
        assert_fails("refuses", ST_UNSUPPORTED, "this cannot be read");
}
END_TEST

START_TEST(a_crash_is_bad_data)
{
        assert_fails("crash", ST_BAD_DATA, "worker 'crash' was killed by signal 6 (ABRT)");
}
END_TEST

START_TEST(a_loop_ends_at_the_processor_limit)
{
        const char *const args[] = { "loop", NULL };
        struct error err;

        ck_assert_int_eq(worker_run(&(struct worker_job){ .args = args, .cpu_s = 1, .wall_s = 60 }, &err), ST_BAD_DATA);
        ck_assert_msg(strstr(err.text, "1 s of processor time"), "%s", err.text);
}
END_TEST

START_TEST(a_hang_ends_at_the_wall_limit)
{
        const char *const args[] = { "hang", NULL };
        struct error err;

        ck_assert_int_eq(worker_run(&(struct worker_job){ .args = args, .wall_s = 1 }, &err), ST_BAD_DATA);
        ck_assert_msg(strstr(err.text, "took more than 1 s"), "%s", err.text);
}
END_TEST

START_TEST(a_cancelled_worker_is_busy)
{
        const char *const args[] = { "hang", NULL };
        atomic_bool cancel = true;

        ck_assert_int_eq(worker_run(&(struct worker_job){ .args = args, .cancel = &cancel }, NULL), ST_BUSY);
}
END_TEST

START_TEST(memory_over_the_limit_is_too_big)
{
        if (BUILT_WITH_SANITIZER)
                return; /* no limit in this case */
        assert_fails("hoard", ST_TOO_BIG, "more than 256 MiB");
}
END_TEST

/* @param fd becomes 3 */
static enum status run_with_data(const char *job, int fd, struct error *err)
{
        const char *const args[] = { job, NULL };

        return worker_run(
                &(struct worker_job){ .args = args, .fds = &fd, .fd_count = 1, .cpu_s = 20, .data_bytes = MiB(64) },
                err);
}

START_TEST(data_over_its_limit_is_too_big)
{
        struct error err = { .text = "" };

        if (BUILT_WITH_SANITIZER)
                return;
        ck_assert_int_eq(run_with_data("hoard", -1, &err), ST_TOO_BIG);
        ck_assert_msg(strstr(err.text, "more than 64 MiB"), "%s", err.text);
}
END_TEST

START_TEST(service_worker_gets_share_of_memory_budget)
{
        if (BUILT_WITH_SANITIZER)
                return;
        ck_assert_int_eq(memory_budget_set_limit(MiB(256), NULL), ST_OK);
        assert_fails("hoard", ST_TOO_BIG, "more than 64 MiB");
        ck_assert_int_eq(run("good", NULL), ST_OK);
}
END_TEST

START_TEST(worker_data_limit_does_not_exceed_parents)
{
        struct error err = { .text = "" };

        if (BUILT_WITH_SANITIZER)
                return;
        ck_assert_int_eq(setrlimit(RLIMIT_DATA, &(struct rlimit){ MiB(48), RLIM_INFINITY }), 0);
        ck_assert_int_eq(run_with_data("hoard", -1, &err), ST_TOO_BIG);
        ck_assert_msg(strstr(err.text, "more than 48 MiB"), "%s", err.text);
}
END_TEST

START_TEST(mapped_files_do_not_count_as_data)
{
        int fd = memfd_create("big", 0);

        ck_assert_int_eq(ftruncate(fd, MAPPED_BYTES), 0);
        ck_assert_int_eq(run_with_data("map", fd, NULL), ST_OK);
}
END_TEST

START_TEST(a_confined_worker_opens_no_file)
{
        assert_fails(BUILT_WITH_SANITIZER ? "exec" : "open", ST_BAD_DATA,
                     BUILT_WITH_SANITIZER ? "forbidden system call" : "cannot open: Operation not permitted");
}
END_TEST

START_TEST(confined_worker_that_creates_a_socket_is_killed)
{
        assert_fails("socket", ST_BAD_DATA, "forbidden system call");
}
END_TEST

START_TEST(a_confined_worker_that_starts_a_program_is_killed)
{
        assert_fails("exec", ST_BAD_DATA, "forbidden system call");
}
END_TEST

START_TEST(a_worker_with_network_still_starts_no_program)
{
        assert_fails("network-exec", ST_BAD_DATA, "forbidden system call");
}
END_TEST

START_TEST(a_confined_worker_may_start_threads)
{
        ck_assert_int_eq(run("threads", NULL), ST_OK);
}
END_TEST

START_TEST(a_missing_program_is_a_system_error)
{
        worker_set_program("/nonexistent");
        assert_fails("good", ST_OS, "cannot start worker 'good'");
}
END_TEST

static int work(const char *job);

static void *nothing(void *arg)
{
        return arg;
}

/* Runs a job from a worker's arguments, called by main(). */
static int entry(int argc, char **argv)
{
        return argc == 2 && strcmp(argv[0], "worker") == 0 ? work(argv[1]) : worker_exit_code(ST_USAGE);
}

START_TEST(forked_worker_behaves_like_started_one)
{
        worker_set_entry(entry);
        worker_set_program("/nonexistent");
        ck_assert_int_eq(run("good", NULL), ST_OK);
        assert_fails("refuses", ST_UNSUPPORTED, "this cannot be read");
        assert_fails("crash", ST_BAD_DATA, "killed by signal 6");
        assert_fails("exec", ST_BAD_DATA, "forbidden system call");
        if (!BUILT_WITH_SANITIZER) {
                assert_fails("open", ST_BAD_DATA, "cannot open: Operation not permitted");
                assert_fails("hoard", ST_TOO_BIG, "more than 256 MiB");
        }
}
END_TEST

START_TEST(a_program_with_threads_starts_its_workers)
{
        pthread_t thread;

        worker_set_entry(entry);
        ck_assert_int_eq(pthread_create(&thread, NULL, nothing, NULL), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        worker_set_program("/nonexistent");
        assert_fails("good", ST_OS, "cannot start worker 'good'");
}
END_TEST

static enum status run_in(struct fork_server *n, const char *job, struct error *err)
{
        const char *const args[] = { job, NULL };

        return fork_server_run(n, &(struct worker_job){ .args = args, .cpu_s = 20, .memory_bytes = MiB(256) }, err);
}

/* The fork server is independent of its parent's threads, and of crashes of a worker. */
START_TEST(a_fork_server_forks_workers_for_a_program_with_threads)
{
        struct fork_server *n;
        struct error err;
        pthread_t thread;

        ck_assert_int_eq(fork_server_create(NULL, entry, &n, NULL), ST_OK);
        worker_set_program("/nonexistent");
        ck_assert_int_eq(pthread_create(&thread, NULL, nothing, NULL), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        ck_assert_int_eq(run_in(n, "good", NULL), ST_OK);
        ck_assert_int_eq(run_in(n, "crash", &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "killed by signal 6"));
        ck_assert_int_eq(run_in(n, "exec", &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "forbidden system call"));
        ck_assert_int_eq(run_in(n, "refuses", &err), ST_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(err.text, "this cannot be read"));
        ck_assert_int_eq(run_in(n, "good", NULL), ST_OK);
        fork_server_destroy(n);
        ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no process remains */
}
END_TEST

START_TEST(descriptors_are_passed_only_to_one_forked_worker)
{
        const char *const args[] = { "copy", NULL };
        char text[16] = "";
        struct fork_server *n;

        ck_assert_int_eq(fork_server_create(NULL, entry, &n, NULL), ST_OK);
        for (int i = 0; i < 3; i++) { /* checks whether descriptors after its own are open */
                int in = memfd_create("in", 0), out = memfd_create("out", 0);
                int fds[] = { in, -1, out };

                ck_assert_int_eq(write(in, "hello", 5), 5);
                ck_assert_int_eq(
                        fork_server_run(n, &(struct worker_job){ .args = args, .fds = fds, .fd_count = 3 }, NULL),
                        ST_OK);
                ck_assert_int_eq(pread(out, text, sizeof text, 0), 5);
                ck_assert_str_eq(text, "hello");
                close(in);
                close(out);
        }
        fork_server_destroy(n);
}
END_TEST

static enum status refuse(struct error *err)
{
        return error_set(err, ST_OS, "not here");
}

START_TEST(workers_are_started_without_fork_server)
{
        struct fork_server *n;

        ck_assert_int_eq(fork_server_create(refuse, entry, &n, NULL), ST_OK);
        ck_assert_int_eq(run_in(n, "good", NULL), ST_OK);
        fork_server_destroy(n);
        ck_assert_int_eq(run_in(NULL, "good", NULL), ST_OK);
}
END_TEST

START_TEST(job_of_killed_fork_server_can_be_retried)
{
        const char *const half[] = { "half", NULL }, *const copy[] = { "copy", NULL };
        int in = memfd_create("in", 0), out = memfd_create("out", 0), first = memfd_create("first", 0),
            fds[] = { in, -1, out };
        struct fork_server *n;
        struct stat info;
        struct error err;

        ck_assert_int_eq(fork_server_create(NULL, entry, &n, NULL), ST_OK);
        ck_assert_int_eq(fork_server_run(n, &(struct worker_job){ .args = half, .fds = &first, .fd_count = 1 }, &err),
                         ST_BUSY);
        ck_assert_ptr_nonnull(strstr(err.text, "fork server exited during"));
        ck_assert_int_eq(fstat(first, &info), 0);
        ck_assert_int_eq(info.st_size, 4); /* no second worker wrote to it */
        ck_assert_int_eq(write(in, "hello", 5), 5);
        ck_assert_int_eq(fork_server_run(n, &(struct worker_job){ .args = copy, .fds = fds, .fd_count = 3 }, &err),
                         ST_OK);
        ck_assert_int_eq(fstat(out, &info), 0);
        ck_assert_int_eq(info.st_size, 5);
        fork_server_destroy(n);
        close(in);
        close(out);
        close(first);
}
END_TEST

START_TEST(a_cancelled_worker_of_a_fork_server_is_killed)
{
        const char *const args[] = { "hang", NULL };
        atomic_bool cancel = true;
        struct fork_server *n;
        struct error err;

        ck_assert_int_eq(fork_server_create(NULL, entry, &n, NULL), ST_OK);
        ck_assert_int_eq(fork_server_run(n, &(struct worker_job){ .args = args, .cancel = &cancel }, &err), ST_BUSY);
        fork_server_destroy(n);
        ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}
END_TEST

static int exit_with_error(enum status st, const char *text)
{
        fprintf(stderr, "first line\n%s\n\n", text);
        return worker_exit_code(st);
}

static int copy_3_to_5(void)
{
        char text[16];
        ssize_t n = pread(3, text, sizeof text, 0);

        for (int fd = 6; fd < 64; fd++)
                if (fcntl(fd, F_GETFD) >= 0)
                        return exit_with_error(ST_BAD_DATA, "a descriptor came along");
        if (fcntl(4, F_GETFD) >= 0)
                return exit_with_error(ST_BAD_DATA, "4 is open");
        return n > 0 && write(5, text, (size_t)n) == n ? 0 : exit_with_error(ST_OS, "cannot copy");
}

static int hoard(void)
{
        for (size_t i = 0; i < 1024; i++) {
                char *p = malloc(MiB(1));

                if (!p)
                        return exit_with_error(ST_NO_MEMORY, "out of memory");
                memset(p, 1, MiB(1));
        }
        return 0;
}

static int confined(const char *job)
{
        bool network = strncmp(job, "network-", 8) == 0;
        struct error err;

        if (worker_confine(network ? WORKER_NEEDS_NETWORK : WORKER_NEEDS_NOTHING, &err))
                return exit_with_error(ST_OS, err.text);
        if (strcmp(job, "open") == 0) {
                int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
                char text[64];

                if (fd >= 0)
                        return exit_with_error(ST_OS, "opened");
                snprintf(text, sizeof text, "cannot open: %s", strerror(errno));
                return exit_with_error(ST_BAD_DATA, text);
        }
        if (strcmp(job, "socket") == 0)
                return socket(AF_INET, SOCK_STREAM, 0) < 0 ? exit_with_error(ST_OS, "socket failed") : 0;
        if (strcmp(job, "threads") == 0) {
                pthread_t thread;

                return pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL)
                               ? exit_with_error(ST_OS, "no thread")
                               : 0;
        }
        execl("/bin/true", "true", NULL);
        return exit_with_error(ST_OS, "exec failed");
}

static int work(const char *job)
{
        if (strcmp(job, "good") == 0)
                return 0;
        if (strcmp(job, "copy") == 0)
                return copy_3_to_5();
        if (strcmp(job, "refuses") == 0)
                return exit_with_error(ST_UNSUPPORTED, "this cannot be read");
        if (strcmp(job, "crash") == 0)
                abort();
        if (strcmp(job, "loop") == 0)
                for (volatile unsigned i = 0;; i++)
                        ;
        if (strcmp(job, "half") == 0 && (write(3, "half", 4) != 4 || kill(getppid(), SIGKILL)))
                return exit_with_error(ST_OS, "cannot write");
        if (strcmp(job, "hang") == 0 || strcmp(job, "half") == 0) {
                pause();
                return 0;
        }
        if (strcmp(job, "hoard") == 0)
                return hoard();
        if (strcmp(job, "map") == 0)
                return mmap(NULL, MAPPED_BYTES, PROT_READ, MAP_PRIVATE, 3, 0) == MAP_FAILED
                               ? exit_with_error(ST_OS, "no map")
                               : 0;
        return confined(job);
}

int main(int argc, char **argv)
{
        const TTest *const tests[] = {
                successful_worker_is_ok,
                descriptors_arrive_as_3_4_and_on_and_others_are_closed,
                status_and_last_line_of_worker_are_returned,
                a_crash_is_bad_data,
                a_loop_ends_at_the_processor_limit,
                a_hang_ends_at_the_wall_limit,
                a_cancelled_worker_is_busy,
                memory_over_the_limit_is_too_big,
                data_over_its_limit_is_too_big,
                service_worker_gets_share_of_memory_budget,
                worker_data_limit_does_not_exceed_parents,
                mapped_files_do_not_count_as_data,
                a_confined_worker_opens_no_file,
                confined_worker_that_creates_a_socket_is_killed,
                a_confined_worker_that_starts_a_program_is_killed,
                a_worker_with_network_still_starts_no_program,
                a_confined_worker_may_start_threads,
                a_missing_program_is_a_system_error,
                forked_worker_behaves_like_started_one,
                a_program_with_threads_starts_its_workers,
                a_fork_server_forks_workers_for_a_program_with_threads,
                descriptors_are_passed_only_to_one_forked_worker,
                workers_are_started_without_fork_server,
                job_of_killed_fork_server_can_be_retried,
                a_cancelled_worker_of_a_fork_server_is_killed,
        };

        if (argc > 2 && strcmp(argv[1], "worker") == 0)
                return work(argv[2]);
        return suite_run("worker", tests, sizeof tests / sizeof *tests);
}
