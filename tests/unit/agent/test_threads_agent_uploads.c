/* SPDX-License-Identifier: Apache-2.0 */
/* The upload thread, with a service that accepts or rejects; the uploaded file is this test program. */
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/uploads/uploads.h"
#include "common/clock.h"
#include "common/limits.h"
#include "elf-image/elf_image.h"
#include "http/http_server.h"
#include "sandbox/worker.h"
#include "tests/support/suite.h"

static char agent[PATH_MAX], own[PATH_MAX];

struct service {
        struct http_server *server;
        char url[64];
        unsigned refusal; /* status of every response, 0: none */
        const char *want; /* the response to a query */
        atomic_uint questions, puts;
        struct build_id got; /* of the uploaded file */
        bool got_code;
};

static void on_want(struct http_request *req)
{
        struct service *s = http_context(req);
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

static void on_put(struct http_request *req)
{
        struct service *s = http_context(req);
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

/* A profile with one mapping: that of this program. No process is known, so the host's files are searched. */
static void report_mappings(struct uploads *u, const char *path)
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

/* Wait until nothing is pending. */
static struct uploads_stats wait_until_idle(struct uploads *u)
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

START_TEST(wanted_file_is_sent_once_without_code)
{
        struct uploads_stats stats;
        struct elf_image img;
        struct service s;
        struct uploads *u;

        start(&s, "true", 0);
        u = uploads_to(&s, LIMIT_OBJECT_BYTES);
        report_mappings(u, own);
        stats = wait_until_idle(u);
        report_mappings(u, own);
        stats = wait_until_idle(u);
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

START_TEST(unwanted_file_is_not_sent)
{
        struct uploads_stats stats;
        struct service s;
        struct uploads *u;

        start(&s, "false", 0);
        u = uploads_to(&s, LIMIT_OBJECT_BYTES);
        report_mappings(u, own);
        stats = wait_until_idle(u);
        ck_assert_uint_eq(stats.there, 1);
        ck_assert_uint_eq(atomic_load(&s.puts), 0);
        uploads_destroy(u);
        http_server_stop(s.server);
}
END_TEST

START_TEST(oversized_or_replaced_file_is_not_queried)
{
        struct uploads_stats stats;
        struct service s;
        struct uploads *u;

        start(&s, "true", 0);
        u = uploads_to(&s, 1000);
        report_mappings(u, own);
        stats = wait_until_idle(u);
        ck_assert_uint_eq(stats.too_big, 1);
        uploads_destroy(u);
        u = uploads_to(&s, LIMIT_OBJECT_BYTES);
        report_mappings(u, agent); /* a file with another build-id is now at that path */
        stats = wait_until_idle(u);
        ck_assert_uint_eq(stats.no_symbols, 1);
        ck_assert_uint_eq(atomic_load(&s.questions), 0);
        uploads_destroy(u);
        http_server_stop(s.server);
}
END_TEST

START_TEST(refusing_service_is_not_retried)
{
        struct uploads_stats stats;
        struct service s;
        struct uploads *u;

        start(&s, "true", 403);
        u = uploads_to(&s, LIMIT_OBJECT_BYTES);
        for (int i = 0; i < 3; i++) {
                report_mappings(u, own);
                stats = wait_until_idle(u);
        }
        ck_assert_uint_eq(atomic_load(&s.questions), 1);
        ck_assert_uint_eq(stats.offered, 0);
        ck_assert_uint_eq(stats.sent + stats.failed + stats.there, 0);
        uploads_destroy(u);
        http_server_stop(s.server);
}
END_TEST

START_TEST(thread_stops_promptly_during_work)
{
        struct service s;
        struct uploads *u;

        start(&s, "true", 0);
        for (int i = 0; i < 8; i++) {
                u = uploads_to(&s, LIMIT_OBJECT_BYTES);
                report_mappings(u, own);
                usleep((useconds_t)i * 3000);
                uploads_destroy(u);
        }
        http_server_stop(s.server);
}
END_TEST

int main(int argc, char **argv)
{
        const TTest *const tests[] = { wanted_file_is_sent_once_without_code, unwanted_file_is_not_sent,
                                       oversized_or_replaced_file_is_not_queried, refusing_service_is_not_retried,
                                       thread_stops_promptly_during_work };

        (void)argc;
        snprintf(agent, sizeof agent, "%.*s/../../../cairn-agent", (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
        if (!realpath(argv[0], own))
                return EXIT_FAILURE;
        return suite_run("threads_agent_uploads", tests, sizeof tests / sizeof *tests);
}
