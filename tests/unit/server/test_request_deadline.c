/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers stop at their time limit and respond with 504. */
#include <check.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "tests/support/http_raw.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define ID "0123456789abcdef0123456789abcdef01234567"

static char dir[TEMPORARY_DIR_BYTES];
static struct server_options options;
static struct server server;
static struct debuginfo_space space;
static struct tenant tenant = { .space = &space };
static atomic_uint handled;

/* Calls the real handler, but only after the time limit of 1 s. */
static void handle_late(struct http_request *req, const struct route_table *table, size_t index)
{
        while (!deadline_expired(http_request_deadline(req)))
                poll(NULL, 0, 10);
        atomic_fetch_add(&handled, 1);
        http_set_tenant(req, &tenant, 0);
        table->routes[index].handle(req);
}

static void symbolize_late(struct http_request *req)
{
        handle_late(req, &symbolize_routes, 0);
}

static void symbolicate_late(struct http_request *req)
{
        for (size_t i = 0; i < symbolicate_routes.count; i++)
                if (strcmp(symbolicate_routes.routes[i].method, "POST") == 0)
                        handle_late(req, &symbolicate_routes, i);
}

static void why_late(struct http_request *req)
{
        handle_late(req, &why_routes, 0);
}

static void metadata_late(struct http_request *req)
{
        handle_late(req, &metadata_routes, 0);
}

static void debuginfod_late(struct http_request *req)
{
        handle_late(req, &debuginfod_routes, 0);
}

static const struct http_route routes[] = {
        { .method = "POST", .path = "/symbolize", .max_body = KiB(64), .handle = symbolize_late },
        { .method = "POST", .path = "/symbolicate", .max_body = KiB(64), .handle = symbolicate_late },
        { .method = "GET", .path = "/why", .handle = why_late },
        { .method = "GET", .path = "/metadata", .handle = metadata_late },
        { .method = "GET", .path = "/buildid/{id}/debuginfo", .handle = debuginfod_late },
};

static void open_stores(void)
{
        char index[80], objects[80];
        struct error err;

        temporary_dir_create(dir, "deadline");
        snprintf(index, sizeof index, "%s/index", dir);
        snprintf(objects, sizeof objects, "%s/objects", dir);
        server = (struct server){ .options = &options };
        space = (struct debuginfo_space){ .options = &options, .symbol_texts = text_cache_create() };
        ck_assert_ptr_nonnull(space.symbol_texts);
        ck_assert_msg(symbol_index_open(index, false, &space.symbols, &err) == ST_OK, "%s", err.text);
        ck_assert_msg(debuginfo_store_open(objects, false, &space.objects, &err) == ST_OK, "%s", err.text);
}

static void close_stores(void)
{
        text_cache_destroy(space.symbol_texts);
        symbol_index_close(space.symbols);
        debuginfo_store_close(space.objects);
        temporary_dir_remove(dir);
}

static char *send_request(const char *request)
{
        static const struct http_pool_options pool = { .name = "late", .threads = 1, .timeout_s = 1 };
        const struct http_options o = {
                .size = sizeof o, .host = "127.0.0.1", .pools = &pool, .pool_count = 1, .context = &server
        };
        struct http_server *s;
        struct error err;
        char *answer;

        signal(SIGPIPE, SIG_IGN);
        ck_assert_msg(http_server_start(&o, routes, sizeof routes / sizeof *routes, &server, &s, &err) == ST_OK, "%s",
                      err.text);
        answer = raw_request(http_server_port(s), request);
        http_server_stop(s);
        ck_assert_uint_eq(atomic_load(&handled), 1);
        return answer;
}

static void check_timeout(const char *request)
{
        _cleanup_free_ char *answer = NULL;

        open_stores();
        answer = send_request(request);
        ck_assert_msg(raw_status(answer) == 504, "%s", answer);
        ck_assert_msg(strstr(answer, "time limit of 1 s"), "%s", answer);
        close_stores();
}

static void check_post_timeout(const char *path, const char *body)
{
        char request[512];

        snprintf(request, sizeof request,
                 "POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
                 "Content-Length: %zu\r\n\r\n%s",
                 path, strlen(body), body);
        check_timeout(request);
}

START_TEST(symbolize_stops)
{
        check_post_timeout("/symbolize", "{\"objects\":[{\"build_id\":\"" ID "\",\"addresses\":[\"0x10\"]}]}");
}
END_TEST

START_TEST(symbolicate_stops)
{
        check_post_timeout("/symbolicate",
                           "{\"memoryMap\":[[\"a\",\"0123456789ABCDEF0123456789ABCDEF0\"]],\"stacks\":[[[0,16]]]}");
}
END_TEST

START_TEST(why_stops)
{
        check_timeout("GET /why?build_id=" ID "&address=0x10 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}
END_TEST

START_TEST(metadata_stops)
{
        check_timeout("GET /metadata?key=file&value=/bin/true HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}
END_TEST

/* A debuginfod client would cache a normal response as "not found", so the connection is reset. */
START_TEST(debuginfod_stops)
{
        _cleanup_free_ char *answer = NULL;

        open_stores();
        answer = send_request("GET /buildid/" ID "/debuginfo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        ck_assert_str_eq(answer, "");
        close_stores();
}
END_TEST

TEST_SUITE("request-deadline", symbolize_stops, symbolicate_stops, why_stops, metadata_stops, debuginfod_stops)
