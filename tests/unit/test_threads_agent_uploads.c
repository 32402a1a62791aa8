/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that uploads, against a service that takes or refuses; the file is this test's own program. */
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/uploads/uploads.h"
#include "common/clock.h"
#include "common/limits.h"
#include "elf-image/elf_image.h"
#include "http/server.h"
#include "sandbox/worker.h"
#include "tests/support/suite.h"

static char agent[PATH_MAX], own[PATH_MAX];

struct service {
        struct http_server *server;
        char url[64];
        unsigned refusal; /* code of every answer, 0: none */
        const char *want; /* what it says to a question */
        atomic_uint questions, puts;
        struct build_id got; /* of what was sent */
        bool got_code;
};

static void on_want(struct http_request *req, void *context)
{
        struct service *s = context;
        char text[512], hex[BUILD_ID_HEX_MAX];
        struct elf_image img;
        int n;

        atomic_fetch_add(&s->questions, 1);
        if (s->refusal) {
                http_fail_code(req, s->refusal, "test", "no");
                return;
        }
        ck_assert_int_eq(elf_image_open(own, &img, NULL), ST_OK);
        n = snprintf(text, sizeof text,
                     "{\"files\":[{\"build_id\":\"%s\",\"kind\":\"debuginfo\",\"want\":%s,\"reason\":\"%s\"}]}",
                     build_id_hex(&img.build_id, hex), s->want,
                     strcmp(s->want, "true") == 0 ? "unknown" : "same_or_better");
        elf_image_close(&img);
        http_respond(req, 200, "application/json", text, (size_t)n);
}

static void on_put(struct http_request *req, void *context)
{
        struct service *s = context;
        char path[] = "/tmp/cairn-sent-XXXXXX";
        struct elf_image img;
        size_t n;
        const uint8_t *body = http_body(req, &n);
        int fd = mkstemp(path);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, body, n), (ssize_t)n);
        ck_assert_int_eq(elf_image_open(path, &img, NULL), ST_OK);
        s->got = img.build_id;
        s->got_code = elf_image_kind(&img) & ELF_KIND_EXECUTABLE;
        elf_image_close(&img);
        close(fd);
        unlink(path);
        atomic_fetch_add(&s->puts, 1);
        http_respond(req, 201, "application/json", "{\"state\":\"stored\"}", 18);
}

static const struct http_route routes[] = {
        { .method = "POST", .path = "/api/v1/debuginfo/want", .max_body = MiB(1), .handle = on_want },
        { .method = "PUT", .path = "/api/v1/debuginfo/{id}/{kind}", .max_body = MiB(256), .handle = on_put },
};

static void start(struct service *s, const char *want, unsigned refusal)
{
        const struct http_options o = { .size = sizeof o, .host = "127.0.0.1", .threads = 2 };
        struct error err;

        *s = (struct service){ .want = want, .refusal = refusal };
        ck_assert_msg(http_server_start(&o, routes, sizeof routes / sizeof *routes, s, &s->server, &err) == ST_OK, "%s",
                      err.text);
        snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u", http_server_port(s->server));
}

static struct uploads *uploads_to(const struct service *s, uint64_t max_bytes)
{
        const struct uploads_options o = { .server = s->url, .max_bytes = max_bytes };
        struct uploads *u = NULL;

        ck_assert_int_eq(uploads_create(&o, &u, NULL), ST_OK);
        return u;
}

/* A profile with one mapping: that of this program. No process is known, so it is looked for on the host. */
static void meet(struct uploads *u, const char *path)
{
        struct profile_mapping m = { 0 };
        struct process_table processes;
        struct elf_image img;
        struct profile p;
        uint32_t ignored;

        worker_set_program(agent);
        ck_assert_int_eq(elf_image_open(own, &img, NULL), ST_OK);
        m.build_id = img.build_id;
        elf_image_close(&img);
        ck_assert_int_eq(profile_init(&p, MiB(1), NULL), ST_OK);
        ck_assert_int_eq(profile_add_string(&p, path, strlen(path), &m.file, NULL), ST_OK);
        ck_assert_int_eq(profile_add_mapping(&p, &m, &ignored, NULL), ST_OK);
        process_table_init(&processes);
        uploads_add_profile(u, &p, &processes);
        process_table_deinit(&processes);
        profile_deinit(&p);
}

/* Until nothing waits any more. */
static struct uploads_stats settle(struct uploads *u)
{
        int64_t until = monotonic_ns() + INT64_C(60000000000);
        struct uploads_stats stats;

        do {
                usleep(2000);
                uploads_get_stats(u, &stats);
                ck_assert_int_lt(monotonic_ns(), until);
        } while (stats.waiting);
        return stats;
}

START_TEST(what_is_wanted_is_sent_without_its_code_and_once)
{
        struct uploads_stats stats;
        struct elf_image img;
        struct service s;
        struct uploads *u;

        start(&s, "true", 0);
        u = uploads_to(&s, LIMIT_OBJECT_BYTES);
        meet(u, own);
        stats = settle(u);
        meet(u, own);
        stats = settle(u);
        ck_assert_uint_eq(stats.sent, 1);
        ck_assert_uint_eq(stats.offered, 1);
        ck_assert_uint_gt(stats.sent_bytes, 1000);
        ck_assert_uint_eq(atomic_load(&s.questions), 1);
        ck_assert_uint_eq(atomic_load(&s.puts), 1);
        ck_assert_int_eq(elf_image_open(own, &img, NULL), ST_OK);
        ck_assert(build_id_equal(&s.got, &img.build_id));
        ck_assert(!s.got_code);
        elf_image_close(&img);
        uploads_destroy(u);
        http_server_stop(s.server);
}
END_TEST

START_TEST(what_is_not_wanted_is_not_sent)
{
        struct uploads_stats stats;
        struct service s;
        struct uploads *u;

        start(&s, "false", 0);
        u = uploads_to(&s, LIMIT_OBJECT_BYTES);
        meet(u, own);
        stats = settle(u);
        ck_assert_uint_eq(stats.there, 1);
        ck_assert_uint_eq(atomic_load(&s.puts), 0);
        uploads_destroy(u);
        http_server_stop(s.server);
}
END_TEST

START_TEST(what_is_too_large_or_another_file_is_no_question)
{
        struct uploads_stats stats;
        struct service s;
        struct uploads *u;

        start(&s, "true", 0);
        u = uploads_to(&s, 1000);
        meet(u, own);
        stats = settle(u);
        ck_assert_uint_eq(stats.too_big, 1);
        uploads_destroy(u);
        u = uploads_to(&s, LIMIT_OBJECT_BYTES);
        meet(u, agent); /* a file of another build-id has come to that path */
        stats = settle(u);
        ck_assert_uint_eq(stats.no_symbols, 1);
        ck_assert_uint_eq(atomic_load(&s.questions), 0);
        uploads_destroy(u);
        http_server_stop(s.server);
}
END_TEST

START_TEST(a_service_that_refuses_is_left_alone)
{
        struct uploads_stats stats;
        struct service s;
        struct uploads *u;

        start(&s, "true", 403);
        u = uploads_to(&s, LIMIT_OBJECT_BYTES);
        for (int i = 0; i < 3; i++) {
                meet(u, own);
                stats = settle(u);
        }
        ck_assert_uint_eq(atomic_load(&s.questions), 1);
        ck_assert_uint_eq(stats.offered, 0);
        ck_assert_uint_eq(stats.sent + stats.failed + stats.there, 0);
        uploads_destroy(u);
        http_server_stop(s.server);
}
END_TEST

START_TEST(it_ends_at_once_in_the_middle_of_its_work)
{
        struct service s;
        struct uploads *u;

        start(&s, "true", 0);
        for (int i = 0; i < 8; i++) {
                u = uploads_to(&s, LIMIT_OBJECT_BYTES);
                meet(u, own);
                usleep((useconds_t)i * 3000);
                uploads_destroy(u);
        }
        http_server_stop(s.server);
}
END_TEST

int main(int argc, char **argv)
{
        const TTest *const tests[] = { what_is_wanted_is_sent_without_its_code_and_once, what_is_not_wanted_is_not_sent,
                                       what_is_too_large_or_another_file_is_no_question,
                                       a_service_that_refuses_is_left_alone,
                                       it_ends_at_once_in_the_middle_of_its_work };

        (void)argc;
        snprintf(agent, sizeof agent, "%.*s/../../cairn-agent", (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
        if (!realpath(argv[0], own))
                return EXIT_FAILURE;
        return suite_run("threads_agent_uploads", tests, sizeof tests / sizeof *tests);
}
