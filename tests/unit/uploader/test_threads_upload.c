/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the uploader, with a service that keeps uploads in memory. */
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "common/files/file.h"
#include "common/hash/sha256.h"
#include "common/limits.h"
#include "elf-image/elf_image.h"
#include "http/http_server.h"
#include "tests/support/elf_maker.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"
#include "uploader/find_files.h"
#include "uploader/offer.h"
#include "uploader/send_all.h"

#define FILES 12

struct service {
        struct http_server *server;
        char url[64];
        atomic_uint puts, bad, refuse_left;
        unsigned refuse_code;
        char refuse_reason[32];
};

/* Does the body agree with its headers, and is it an ELF file with the build-id of the path? */
static bool is_as_claimed(struct http_request *req)
{
        size_t n, unpacked;
        const uint8_t *body = http_body(req, &n); /* decompressed by the server */
        const char *size = http_header(req, "X-Cairn-Size"), *hash = http_header(req, "X-Cairn-SHA256");
        _cleanup_elf_image_ struct elf_image img = { 0 };
        uint8_t claimed[SHA256_BYTES], real[SHA256_BYTES];
        char hex[BUILD_ID_HEX_MAX];
        struct sha256 sum;

        if (!size || !hash || !sha256_parse(hash, claimed))
                return false;
        unpacked = strtoull(size, NULL, 10);
        ck_assert_int_eq(sha256_init(&sum, NULL), ST_OK);
        sha256_update(&sum, body, n);
        sha256_final(&sum, real);
        return unpacked == n && memcmp(claimed, real, sizeof real) == 0 &&
               elf_image_from_memory(body, n, "sent", &img, NULL) == ST_OK &&
               strcmp(build_id_hex(&img.build_id, hex), http_path_part(req, "id")) == 0 &&
               strcmp(http_query(req, "quality"), symbol_quality_name(elf_image_quality(&img))) == 0;
}

static void put(struct http_request *req)
{
        struct service *s = http_context(req);
        unsigned left = atomic_load(&s->refuse_left);

        atomic_fetch_add(&s->puts, 1);
        if (!is_as_claimed(req))
                atomic_fetch_add(&s->bad, 1);
        while (left && !atomic_compare_exchange_weak(&s->refuse_left, &left, left - 1))
                continue;
        if (left) {
                http_fail_code(req, s->refuse_code, s->refuse_reason, "not today");
                return;
        }
        http_respond(req, 201, "application/json", "{\"state\":\"stored\"}", 18);
}

static const struct http_route routes[] = {
        { .method = "PUT", .path = "/api/v1/debuginfo/{id}/{kind}", .max_body = MiB(64), .handle = put },
};

static char dir[TEMPORARY_DIR_BYTES];
static struct service service;
static struct upload_list list;
static struct report report;

static void note_nothing(void *context, const char *path, const char *text)
{
        (void)path, (void)text;
        ++*(unsigned *)context;
}

/* dir/name with that build-id byte, and optionally code, DWARF and a dwz link. A name ending in .dwz has no code. */
static char *make_file(const char *name, uint8_t id, bool code, bool dwarf, const char *altlink)
{
        struct elf_maker m = { .is_64 = true };
        _cleanup_buf_ struct buf note, link, file;
        struct elf_maker_section sections[6] = { { 0 } };
        static uint8_t bulk[100000];
        char *path;

        buf_init(&note, 4096);
        buf_init(&link, 4096);
        buf_init(&file, MiB(4));
        elf_make_note(&m, &note, "GNU", 4, NT_GNU_BUILD_ID, (uint8_t[]){ id, id, id }, 3);
        if (altlink) {
                buf_append(&link, altlink, strlen(altlink) + 1);
                buf_append(&link, (uint8_t[]){ 0xee, 0xee, 0xee }, 3);
        }
        sections[1] = (struct elf_maker_section){ ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, .content = note.data,
                                                  .size = id ? note.size : 0 };
        sections[2] =
                (struct elf_maker_section){ ".text", SHT_PROGBITS, strstr(name, ".dwz") ? 0 : SHF_ALLOC | SHF_EXECINSTR,
                                            .content = bulk, .size = code ? sizeof bulk : 0 };
        sections[3] =
                (struct elf_maker_section){ ".debug_info", SHT_PROGBITS, .content = "dwarf", .size = dwarf ? 5 : 0 };
        sections[4] = (struct elf_maker_section){ ".gnu_debugaltlink", SHT_PROGBITS, .content = link.data,
                                                  .size = link.size };
        m.sections = sections;
        m.section_count = 5;
        elf_make(&m, &file);
        path = path_join(dir, name);
        ck_assert_int_eq(file_write_durable(path, file.data, file.size, NULL), ST_OK);
        return path;
}

static void add(char *path)
{
        struct error err = { 0 };
        unsigned notes = 0;

        ck_assert_msg(upload_list_add(&list, path, note_nothing, &notes, &err) == ST_OK, "%s", err.text);
        free(path);
}

static void set_up(void)
{
        const struct http_options o = { .size = sizeof o, .host = "127.0.0.1", .threads = 8 };

        temporary_dir_create(dir, "upload");
        service = (struct service){ 0 };
        ck_assert_int_eq(http_server_start(&o, routes, 1, &service, &service.server, NULL), ST_OK);
        snprintf(service.url, sizeof service.url, "http://127.0.0.1:%u", http_server_port(service.server));
        list = (struct upload_list){ 0 };
        report_init(&report);
        ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
}

static void tear_down(void)
{
        http_server_stop(service.server);
        upload_list_deinit(&list);
        temporary_dir_remove(dir);
}

static void send_everything(void)
{
        const struct http_client_options o = {
                .size = sizeof o, .base_url = service.url, .first_pause_ms = 1, .attempts = 2
        };
        struct error err = { 0 };

        for (size_t i = 0; i < list.count; i++)
                list.items[i].state = UPLOAD_WANTED;
        ck_assert_msg(send_items(&o, &list, 4, &(struct send_options){ 0 }, &report, &err) == ST_OK, "%s", err.text);
}

static size_t count_of(enum upload_state state)
{
        size_t n = 0;

        for (size_t i = 0; i < list.count; i++)
                n += list.items[i].state == state;
        return n;
}

START_TEST(uploads_are_split_and_match_their_claims)
{
        for (unsigned i = 1; i <= FILES; i++) {
                char name[16];

                snprintf(name, sizeof name, "file %u", i);
                add(make_file(name, (uint8_t)i, true, true, NULL));
        }
        send_everything();
        ck_assert_uint_eq(count_of(UPLOAD_SENT), FILES);
        ck_assert_uint_eq(atomic_load(&service.puts), FILES);
        ck_assert_uint_eq(atomic_load(&service.bad), 0);
        ck_assert_uint_lt(list.items[0].size_bytes, 10000); /* without its code */
        ck_assert_uint_eq(report.done, FILES);
        ck_assert_uint_eq(report.problems, 0);
}
END_TEST

START_TEST(one_rejection_fails_one_file)
{
        for (unsigned i = 1; i <= FILES; i++) {
                char name[16];

                snprintf(name, sizeof name, "f%u", i);
                add(make_file(name, (uint8_t)i, true, true, NULL));
        }
        service.refuse_code = 400;
        snprintf(service.refuse_reason, sizeof service.refuse_reason, "truncated");
        atomic_store(&service.refuse_left, 1);
        send_everything();
        ck_assert_uint_eq(count_of(UPLOAD_SENT), FILES - 1);
        ck_assert_uint_eq(count_of(UPLOAD_FAILED), 1);
        ck_assert_int_eq(report.first_failure, ST_BAD_DATA);
}
END_TEST

START_TEST(a_refused_token_ends_the_run)
{
        for (unsigned i = 1; i <= FILES; i++) {
                char name[16];

                snprintf(name, sizeof name, "f%u", i);
                add(make_file(name, (uint8_t)i, true, true, NULL));
        }
        service.refuse_code = 403;
        atomic_store(&service.refuse_left, 1000);
        send_everything();
        ck_assert_uint_le(count_of(UPLOAD_FAILED), 4); /* at most one for each job */
        ck_assert_uint_eq(count_of(UPLOAD_SENT), 0);
        ck_assert_int_eq(report.first_failure, ST_USAGE);
}
END_TEST

START_TEST(object_stored_concurrently_counts_as_stored)
{
        add(make_file("f", 1, true, true, NULL));
        service.refuse_code = 409;
        snprintf(service.refuse_reason, sizeof service.refuse_reason, "not_better");
        atomic_store(&service.refuse_left, 1);
        send_everything();
        ck_assert_uint_eq(count_of(UPLOAD_THERE), 1);
        ck_assert_uint_eq(report.problems, 0);
}
END_TEST

START_TEST(file_replaced_after_query_is_not_sent)
{
        add(make_file("f", 1, true, true, NULL));
        free(make_file("f", 2, true, true, NULL));
        send_everything();
        ck_assert_uint_eq(count_of(UPLOAD_FAILED), 1);
        ck_assert_uint_eq(atomic_load(&service.puts), 0);
        ck_assert_ptr_nonnull(strstr(list.items[0].reason, "was replaced"));
}
END_TEST

START_TEST(best_file_of_a_build_id_is_selected)
{
        list.executables = true;
        add(make_file("stripped", 1, true, false, NULL));
        add(make_file("whole", 1, true, true, NULL));
        add(make_file("again", 1, true, true, NULL));
        add(make_file("debug", 2, false, true, NULL));
        add(make_file("nobody", 0, true, true, NULL));
        upload_list_settle(&list);
        ck_assert_uint_eq(list.count, 4);
        ck_assert_str_eq(path_base(list.items[0].path), "whole");
        ck_assert_int_eq(list.items[0].kind, UPLOAD_DEBUGINFO);
        ck_assert(list.items[0].split);
        ck_assert_str_eq(path_base(list.items[1].path), "whole"); /* with its DWARF: the better executable */
        ck_assert_int_eq(list.items[1].kind, UPLOAD_EXECUTABLE);
        ck_assert(!list.items[2].split);
        ck_assert_str_eq(path_base(list.items[3].path), "nobody"); /* complete, by its hash */
        ck_assert(!list.items[3].split);
        ck_assert_uint_eq(list.items[3].build_id.size, 16);
        ck_assert_uint_eq(list.skips.duplicate, 3);
}
END_TEST

START_TEST(supplementary_file_is_uploaded_too)
{
        unsigned notes = 0;
        char *lonely;

        free(make_file("common.dwz", 0xee, false, true, NULL));
        add(make_file("f", 1, false, true, "common.dwz"));
        ck_assert_uint_eq(list.count, 2);
        ck_assert_uint_eq(list.items[1].build_id.bytes[0], 0xee);
        ck_assert_int_eq(list.items[1].kind, UPLOAD_SUPPLEMENTARY);
        lonely = make_file("g", 2, false, true, "gone.dwz");
        ck_assert_int_eq(upload_list_add(&list, lonely, note_nothing, &notes, NULL), ST_OK);
        ck_assert_uint_eq(notes, 1);
        ck_assert_uint_eq(list.count, 3);
        free(lonely);
}
END_TEST

struct found {
        unsigned files, problems;
};

static enum status count_file(void *context, const char *path, struct error *err)
{
        (void)path, (void)err;
        ((struct found *)context)->files++;
        return ST_OK;
}

static void count_problem(void *context, const char *path, const struct error *why)
{
        (void)path, (void)why;
        ((struct found *)context)->problems++;
}

START_TEST(directory_walk_terminates_with_symlink_cycle)
{
        static const struct find_files_callbacks callbacks = { .file = count_file,
                                                               .archive = count_file,
                                                               .problem = count_problem };
        _cleanup_free_ char *loop = path_join(dir, "loop"), *link = path_join(dir, "link"),
                            *text = path_join(dir, "text");
        _cleanup_free_ char *file = make_file("file", 1, true, true, NULL);
        struct found f = { 0 };
        struct error err = { 0 };

        ck_assert_ptr_nonnull(file);
        ck_assert_int_eq(symlink(".", loop), 0);
        ck_assert_int_eq(symlink("file", link), 0);
        ck_assert_int_eq(file_write_durable(text, "no elf", 6, &err), ST_OK);
        ck_assert_int_eq(find_files(dir, &callbacks, &f, &err), ST_OK);
        ck_assert_uint_eq(f.files, 2);
        ck_assert_uint_eq(f.problems, 0);
        ck_assert_int_eq(find_files(text, &callbacks, &f, &err), ST_OK); /* specified by the user: an error */
        ck_assert_uint_eq(f.problems, 1);
        ck_assert_int_eq(find_files(loop, &callbacks, &f, &err), ST_OK); /* a specified link is followed */
        ck_assert_uint_eq(f.files, 4);
        ck_assert_int_eq(find_files("/proc/self", &callbacks, &f, &err), ST_OK);
        ck_assert_uint_eq(f.files, 4);
}
END_TEST

static enum status parse_responses(const char *json)
{
        _cleanup_buf_ struct buf b;

        buf_init(&b, 4096);
        buf_append_str(&b, json);
        return offer_read_answers(&b, list.items, list.count, NULL);
}

START_TEST(responses_are_matched_by_position)
{
        add(make_file("a", 1, false, true, NULL));
        add(make_file("b", 2, false, true, NULL));
        ck_assert_int_eq(
                parse_responses("{\"files\":[{\"build_id\":\"010101\",\"kind\":\"debuginfo\",\"want\":true,\"reason\":"
                                "\"better\"},"
                                "{\"build_id\":\"020202\",\"want\":false,\"reason\":\"same_or_better\"}]}"),
                ST_OK);
        ck_assert_int_eq(list.items[0].state, UPLOAD_WANTED);
        ck_assert_int_eq(list.items[1].state, UPLOAD_THERE);
        ck_assert_int_eq(parse_responses("{\"files\":[{\"build_id\":\"010101\",\"want\":false,\"reason\":\"too_big\"},"
                                         "{\"build_id\":\"020202\",\"want\":true}]}"),
                         ST_OK);
        ck_assert_int_eq(list.items[0].state, UPLOAD_REFUSED);
        ck_assert_int_eq(parse_responses("{\"files\":[{\"build_id\":\"020202\",\"want\":true},{\"build_id\":\"010101\","
                                         "\"want\":true}]}"),
                         ST_BAD_DATA);
        ck_assert_int_eq(parse_responses("{\"files\":[{\"build_id\":\"010101\",\"want\":true}]}"), ST_BAD_DATA);
        ck_assert_int_eq(parse_responses("{\"files\":[1,2]}"), ST_BAD_DATA);
        ck_assert_int_eq(parse_responses("{\"files\":{}}"), ST_BAD_DATA);
        ck_assert_int_eq(parse_responses("<html>"), ST_BAD_DATA);
        ck_assert_int_eq(parse_responses(""), ST_BAD_DATA);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("upload", uploads_are_split_and_match_their_claims, one_rejection_fails_one_file,
                        a_refused_token_ends_the_run, object_stored_concurrently_counts_as_stored,
                        file_replaced_after_query_is_not_sent, best_file_of_a_build_id_is_selected,
                        supplementary_file_is_uploaded_too, directory_walk_terminates_with_symlink_cycle,
                        responses_are_matched_by_position)
