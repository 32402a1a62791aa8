/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the spool after a power cut. The sync functions called by the program under test are defined here; a cut
 * discards everything that was not synced: files lose their content, and names created after the directory's last fsync
 * disappear.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/limits.h"
#include "sending/sender.h"
#include "tests/support/sender_batch.h"
#include "tests/support/batch_service.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define NAMES_MAX 256

static char dir[TEMPORARY_DIR_BYTES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the following fields */
static ino_t synced[NAMES_MAX];
static size_t synced_count, sync_count;
static char safe_names[NAMES_MAX][64];
static size_t safe_count;

int fdatasync(int fd)
{
        struct stat st;

        ck_assert_int_eq(fstat(fd, &st), 0);
        pthread_mutex_lock(&lock);
        ck_assert_uint_lt(synced_count, NAMES_MAX);
        synced[synced_count++] = st.st_ino;
        sync_count++;
        pthread_mutex_unlock(&lock);
        return 0;
}

static void visit_names(void (*call)(const char *name))
{
        DIR *d = opendir(dir);
        struct dirent *e;

        ck_assert_ptr_nonnull(d);
        while ((e = readdir(d)))
                if (e->d_name[0] != '.' && strcmp(e->d_name, "lock") != 0)
                        call(e->d_name);
        closedir(d);
}

static void remember_synced(const char *name)
{
        ck_assert_uint_lt(safe_count, NAMES_MAX);
        snprintf(safe_names[safe_count++], sizeof safe_names[0], "%.60s", name);
}

int fsync(int fd)
{
        struct stat st, own;

        ck_assert_int_eq(fstat(fd, &st), 0);
        if (stat(dir, &own) == 0 && own.st_ino == st.st_ino) {
                pthread_mutex_lock(&lock);
                safe_count = 0;
                visit_names(remember_synced);
                sync_count++;
                pthread_mutex_unlock(&lock);
        }
        return 0;
}

static void discard_unsynced(const char *name)
{
        bool name_is_safe = false, content_is_safe = false;
        struct stat st;
        char path[160];

        snprintf(path, sizeof path, "%s/%.60s", dir, name);
        ck_assert_int_eq(stat(path, &st), 0);
        for (size_t i = 0; i < safe_count; i++)
                name_is_safe |= strcmp(safe_names[i], name) == 0;
        for (size_t i = 0; i < synced_count; i++)
                content_is_safe |= synced[i] == st.st_ino;
        if (!name_is_safe)
                ck_assert_int_eq(unlink(path), 0);
        else if (!content_is_safe)
                ck_assert_int_eq(truncate(path, 0), 0);
}

static void set_up(void)
{
        temporary_dir_create(dir, "cut");
}

static void tear_down(void)
{
        temporary_dir_remove(dir);
}

static struct sender *sender_to(const char *url)
{
        const struct sender_options o = { .server = url, .spool = dir, .spool_bytes = MiB(1) };
        struct sender *s = NULL;
        struct error err;

        ck_assert_msg(sender_create(&o, &s, &err) == ST_OK, "%s", err.text);
        return s;
}

static void put(struct sender *s, char letter)
{
        struct error err;
        struct buf b;

        buf_init(&b, 64);
        buf_append_u8(&b, (uint8_t)letter);
        ck_assert_int_eq(put_sender_batch(s, &b, &err), ST_OK);
}

/* Polls, since the sender syncs on its own thread. */
static void wait_for_names(size_t count)
{
        int64_t until = monotonic_ns() + INT64_C(60000000000);
        size_t now;

        do {
                usleep(1000);
                pthread_mutex_lock(&lock);
                now = safe_count;
                pthread_mutex_unlock(&lock);
                ck_assert_msg(monotonic_ns() < until, "%zu names are safe, want %zu", now, count);
        } while (now < count);
}

START_TEST(batches_queued_during_outage_survive_power_cut)
{
        struct outbox o;
        struct sender *s;
        struct error err;
        char url[64];

        snprintf(url, sizeof url, "http://127.0.0.1:%u", batch_service_closed_port());
        s = sender_to(url);
        put(s, 'a');
        wait_for_names(1); /* an attempt has failed */
        put(s, 'b');       /* it syncs although it pauses now */
        wait_for_names(2);
        put(s, 'c');
        wait_for_names(3);
        pthread_mutex_lock(&lock);
        visit_names(discard_unsynced);
        pthread_mutex_unlock(&lock);
        sender_destroy(s);
        ck_assert_int_eq(outbox_init(&o, dir, MiB(1), &err), ST_OK);
        for (char want = 'a'; want <= 'c'; want++) {
                struct outbox_batch *b = outbox_take(&o);

                ck_assert_msg(b != NULL, "'%c' is lost", want);
                ck_assert_int_eq(b->payload[0], want);
                outbox_remove(&o, b);
        }
        ck_assert_uint_eq(o.stats.dropped[DROP_DAMAGED], 0);
        outbox_deinit(&o);
}
END_TEST

START_TEST(shutdown_syncs_everything)
{
        static const struct batch_answer answers[] = { { .code = 503, .headers = "Retry-After: 60\r\n" },
                                                       { .code = -1 } };
        static struct batch_service service;
        struct sender *s;
        struct outbox o;
        struct error err;
        size_t left = 0;

        batch_service_start(&service, answers);
        s = sender_to(service.url);
        for (int i = 0; i < 100; i++) /* in several requests */
                put(s, 'x');
        sender_destroy(s);
        batch_service_stop(&service);
        visit_names(discard_unsynced);
        ck_assert_int_eq(outbox_init(&o, dir, MiB(1), &err), ST_OK);
        for (struct outbox_batch *b; (b = outbox_take(&o)); left++)
                outbox_remove(&o, b);
        ck_assert_uint_eq(left + batch_service_taken(&service), 100);
        ck_assert_uint_eq(o.stats.dropped[DROP_DAMAGED], 0);
        outbox_deinit(&o);
        batch_service_deinit(&service);
}
END_TEST

START_TEST(no_sync_while_service_responds)
{
        static const struct batch_answer answers[] = { { .code = -1 } };
        static struct batch_service service;
        struct sender *s;
        struct error err;

        batch_service_start(&service, answers);
        s = sender_to(service.url);
        for (int i = 0; i < 20; i++) {
                put(s, 'x');
                ck_assert_int_eq(sender_flush(s, 20000, &err), ST_OK);
        }
        sender_destroy(s);
        ck_assert_uint_eq(sync_count, 0);
        ck_assert_uint_eq(service.count, 20);
        batch_service_stop(&service);
        batch_service_deinit(&service);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("agent_power_cut", batches_queued_during_outage_survive_power_cut, shutdown_syncs_everything,
                        no_sync_while_service_responds)
