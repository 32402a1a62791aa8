/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sender that is repeatedly killed at random times, with a service that is busy, breaks connections and accepts
 * batches: each batch that was put must arrive, with a single id.
 */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "common/limits.h"
#include "sending/sender.h"
#include "tests/support/sender_batch.h"
#include "tests/support/batch_service.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define RUNS 50
#define BATCHES_MAX BATCH_POSTS_MAX

static struct batch_service service; /* large */
static struct batch_answer answers[BATCH_POSTS_MAX];
static bool is_put[BATCHES_MAX];

/* The payload is the number of the batch; the service does not decode it. */
static void put_number(struct sender *s, uint32_t number)
{
        struct error err;
        struct buf b;

        buf_init(&b, 64);
        buf_append_u32(&b, number);
        if (put_sender_batch(s, &b, &err))
                _exit(2);
}

/* Put batches as fast as possible, and report each. */
static _Noreturn void send_until_killed(const char *url, const char *spool, int pipe_fd, uint32_t number)
{
        const struct sender_options o = { .server = url, .spool = spool, .spool_bytes = MiB(64) };
        struct sender *s;
        struct error err;

        if (sender_create(&o, &s, &err)) {
                fprintf(stderr, "%s\n", err.text);
                _exit(1);
        }
        for (;; number++) {
                put_number(s, number);
                if (write(pipe_fd, &number, sizeof number) != sizeof number)
                        _exit(3);
                usleep(1000);
        }
}

static bool read_reports(int fd, uint32_t *next)
{
        uint32_t number;

        if (read(fd, &number, sizeof number) != sizeof number)
                return false;
        ck_assert_uint_lt(number, BATCHES_MAX);
        is_put[number] = true;
        *next = number + 1;
        return true;
}

/* A separate program: a child forked beside the service's thread might inherit locked mutexes. */
static pid_t start_sender(const char *url, const char *spool, int pipe_fd, uint32_t number)
{
        char fd_text[16], number_text[16];
        char *args[] = { "sender", (char *)url, (char *)spool, fd_text, number_text, NULL };
        pid_t pid;

        snprintf(fd_text, sizeof fd_text, "%d", pipe_fd);
        snprintf(number_text, sizeof number_text, "%u", number);
        ck_assert_int_eq(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ), 0);
        return pid;
}

/* Returns the first number that was not reported as put. */
static uint32_t run_and_kill(const char *url, const char *spool, uint32_t number, unsigned puts, unsigned after_us)
{
        int fds[2], status;
        pid_t pid;

        ck_assert_int_eq(pipe(fds), 0);
        ck_assert_int_eq(fcntl(fds[0], F_SETFD, FD_CLOEXEC), 0);
        pid = start_sender(url, spool, fds[1], number);
        close(fds[1]);
        while (puts && read_reports(fds[0], &number))
                puts--;
        usleep(after_us);
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(WIFSIGNALED(status), "the sender ended by itself: %d", status);
        while (read_reports(fds[0], &number))
                ;
        close(fds[0]);
        return number;
}

static void send_remaining(const char *url, const char *spool)
{
        const struct sender_options o = { .server = url, .spool = spool, .spool_bytes = MiB(64) };
        struct sender_stats stats;
        struct sender *s;
        struct error err;

        ck_assert_msg(sender_create(&o, &s, &err) == ST_OK, "%s", err.text);
        ck_assert_msg(sender_flush(s, 60000, &err) == ST_OK, "%s", err.text);
        sender_get_stats(s, &stats);
        for (int i = 0; i < DROP_COUNT; i++)
                ck_assert_uint_eq(stats.outbox.dropped[i], 0);
        sender_destroy(s);
}

/*
 * What a service that deduplicates by id counts: for each batch, the number of distinct ids under which it was
 * accepted.
 */
static void count_accepted(unsigned char *times)
{
        for (size_t i = 0; i < service.count; i++) {
                const struct batch_post *post = &service.posts[i];
                bool fresh = post->code == 200 || post->code == 0;
                uint32_t number;

                for (size_t k = 0; k < i && fresh; k++)
                        fresh = (service.posts[k].code != 200 && service.posts[k].code != 0) ||
                                strcmp(service.posts[k].id, post->id) != 0;
                ck_assert_uint_eq(post->size, sizeof number);
                memcpy(&number, post->body, sizeof number);
                ck_assert_uint_lt(number, BATCHES_MAX);
                times[number] = (unsigned char)(times[number] + fresh);
        }
}

START_TEST(killed_sender_neither_loses_nor_duplicates_batches)
{
        static unsigned char times[BATCHES_MAX];
        char dir[TEMPORARY_DIR_BYTES];
        uint32_t number = 0;

        srand(11);
        temporary_dir_create(dir, "killed");
        for (int i = 0; i < BATCH_POSTS_MAX - 1; i++)
                answers[i].code = rand() % 40 == 0 ? 503 : rand() % 5 == 0 ? 0 : 200;
        answers[BATCH_POSTS_MAX - 1].code = -1;
        batch_service_start(&service, answers);
        for (int i = 0; i < RUNS; i++) /* the next number may have been put without being reported: skip it */
                number = run_and_kill(service.url, dir, number, (unsigned)(rand() % 12), (unsigned)(rand() % 6000)) + 1;
        send_remaining(service.url, dir);
        batch_service_stop(&service);
        count_accepted(times);
        for (uint32_t n = 0; n < number; n++)
                ck_assert_msg(times[n] == 1 || (times[n] == 0 && !is_put[n]), "batch %u counted %u times", n, times[n]);
        ck_assert_uint_gt(number, 3 * RUNS);
        batch_service_deinit(&service);
        temporary_dir_remove(dir);
}
END_TEST

int main(int argc, char **argv)
{
        const TTest *const tests[] = { killed_sender_neither_loses_nor_duplicates_batches };

        if (argc == 5)
                send_until_killed(argv[1], argv[2], (int)strtoul(argv[3], NULL, 10),
                                  (uint32_t)strtoul(argv[4], NULL, 10));
        return suite_run("agent_killed", tests, sizeof tests / sizeof *tests);
}
