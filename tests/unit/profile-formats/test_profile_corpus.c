/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <dirent.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "profile-formats/folded.h"
#include "profile-formats/input/push.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/otlp/otlp_json.h"
#include "profile-formats/perf_script.h"
#include "profile-formats/pprof/pprof.h"
#include "tests/support/profile_text.h"
#include "tests/support/suite.h"

typedef enum status decode_fn(const void *data, size_t n, struct profile *ret, struct error *err);

static enum status decode_pprof(const void *data, size_t n, struct profile *ret, struct error *err)
{
        return pprof_decode(data, n, NULL, ret, err);
}

static enum status decode_folded(const void *data, size_t n, struct profile *ret, struct error *err)
{
        return folded_decode(data, n, NULL, ret, err);
}

static enum status decode_perf(const void *data, size_t n, struct profile *ret, struct error *err)
{
        return perf_script_decode(data, n, 0, ret, err);
}

static enum status decode_push(const void *data, size_t n, struct profile *ret, struct error *err)
{
        return push_decode(data, n, n && *(const char *)data == '{', NULL, ret, err);
}

/* Every file of a folder is decoded, or every one is refused with an error text. */
static unsigned decode_all(const char *dir, decode_fn *decode, bool good)
{
        _cleanup_closedir_ DIR *d = opendir(dir);
        struct dirent *entry;
        unsigned count = 0;

        ck_assert_msg(d != NULL, "cannot open %s", dir);
        while ((entry = readdir(d))) {
                _cleanup_free_ char *path = path_join(dir, entry->d_name);
                _cleanup_buf_ struct buf b;
                struct error err = { 0 };
                struct profile p;
                enum status st;

                buf_init(&b, MiB(64));
                if (entry->d_name[0] == '.')
                        continue;
                ck_assert_int_eq(file_read(path, &b, NULL), ST_OK);
                st = decode(b.data, b.size, &p, &err);
                if (st == ST_OK)
                        profile_deinit(&p);
                ck_assert_msg(good == (st == ST_OK), "%s: %s", path, err.text);
                ck_assert_msg(good || (st != ST_NO_MEMORY && strlen(err.text) > 10), "%s", path);
                count++;
        }
        return count;
}

START_TEST(good_files_are_decoded_and_bad_ones_refused)
{
        ck_assert_uint_ge(decode_all("tests/corpus/otlp/good", otlp_decode, true), 6);
        ck_assert_uint_ge(decode_all("tests/corpus/otlp/bad", otlp_decode, false), 13);
        ck_assert_uint_ge(decode_all("tests/corpus/otlp_json/good", otlp_json_decode, true), 2);
        ck_assert_uint_ge(decode_all("tests/corpus/otlp_json/bad", otlp_json_decode, false), 6);
        ck_assert_uint_ge(decode_all("tests/corpus/pprof/good", decode_pprof, true), 3);
        ck_assert_uint_ge(decode_all("tests/corpus/pprof/bad", decode_pprof, false), 10);
        ck_assert_uint_ge(decode_all("tests/corpus/push/good", decode_push, true), 3);
        ck_assert_uint_ge(decode_all("tests/corpus/push/bad", decode_push, false), 3);
        ck_assert_uint_ge(decode_all("tests/corpus/folded/good", decode_folded, true), 3);
        ck_assert_uint_ge(decode_all("tests/corpus/folded/bad", decode_folded, false), 2);
        ck_assert_uint_ge(decode_all("tests/corpus/perf_script/good", decode_perf, true), 1);
        ck_assert_uint_ge(decode_all("tests/corpus/perf_script/bad", decode_perf, false), 1);
}
END_TEST

static char *text_of(const char *path, decode_fn *decode)
{
        _cleanup_profile_ struct profile p;
        _cleanup_buf_ struct buf b;
        struct error err;

        buf_init(&b, MiB(1));
        ck_assert_int_eq(file_read(path, &b, NULL), ST_OK);
        ck_assert_msg(decode(b.data, b.size, &p, &err) == ST_OK, "%s", err.text);
        return profile_to_text(&p);
}

#define NO_LINK "000000000000000000000000000000000000000000000000"
#define LINK "000102030405060708090a0b0c0d0e0f0001020304050607"
#define RESOURCE "{flag=true} {host.name=h1} {load=0.1} {process.pid=77} {service.name=from scope}"
#define STACK                                                                                                          \
        " [0k 0x1234 vmlinux@4a5a9b0affb66c437abcd455d2738af879985fa9 do_syscall_64||:0]"                              \
        " [0n 0x2345 libwork.so@5bd3ec2711b6971f6d2a611a719c73b36910dd78]"                                             \
        " [0 0x3456 libwork.so@5bd3ec2711b6971f6d2a611a719c73b36910dd78 do_syscall_64||:3 "                            \
        "run(int)|_Z3runi|run.cc:44^4]"

/* Generated with the opentelemetry-proto Python package 1.45.2, to test the decoder against an independent encoder. */
START_TEST(message_of_official_library_is_decoded)
{
        _cleanup_free_ char *text = text_of("tests/corpus/otlp/good/official-message", otlp_decode);
        _cleanup_free_ char *other = text_of("tests/corpus/otlp/good/dictionary-first", otlp_decode);
        _cleanup_free_ char *json = text_of("tests/corpus/otlp_json/good/official-message.json", otlp_json_decode);
        struct build_id go;
        char hex[BUILD_ID_HEX_MAX], want[4096];

        ck_assert(build_id_from_go(&go, "x1/y2/z3", 8));
        build_id_hex(&go, hex);
        snprintf(want, sizeof want,
                 "off_cpu:events:nanoseconds:: nanoseconds 0 t=1 d=0 v=5 " NO_LINK " " RESOURCE "\n"
                 "off_cpu:events:nanoseconds:: nanoseconds 0 t=2 d=0 v=6 " NO_LINK " " RESOURCE "\n"
                 "process_cpu:cpu:nanoseconds:cpu:nanoseconds nanoseconds 50000000 t=1700000000000000000 d=5000000000 "
                 "v=350000000 " NO_LINK " " RESOURCE
                 " {thread.name=worker é} [0n 0x2345 libwork.so@5bd3ec2711b6971f6d2a611a719c73b36910dd78]\n"
                 "process_cpu:cpu:nanoseconds:cpu:nanoseconds nanoseconds 50000000 t=1700000000000000001 d=5000000000 "
                 "v=50000000 " LINK " " RESOURCE " {thread.kind=ref} {thread.name=worker é}" STACK
                 " [0 0x401000 goapp@%s]\n"
                 "process_cpu:cpu:nanoseconds:cpu:nanoseconds nanoseconds 50000000 t=1700000000000000002 d=5000000000 "
                 "v=50000000 " LINK " " RESOURCE " {thread.kind=ref} {thread.name=worker é}" STACK
                 " [0 0x401000 goapp@%s]\n",
                 hex, hex);
        ck_assert_str_eq(text, want);
        ck_assert_str_eq(text, other);
        ck_assert_str_eq(text, json);
}
END_TEST

/* Written by Go's runtime/pprof: two types, labels, inlined frames, a symbolized mapping. */
START_TEST(go_cpu_profile_keeps_names_and_labels)
{
        _cleanup_free_ char *text = text_of("tests/corpus/pprof/good/go-cpu.pb.gz", decode_pprof);

        ck_assert_ptr_nonnull(strstr(text, "process_cpu:cpu:nanoseconds:cpu:nanoseconds nanoseconds 10000000 "));
        ck_assert_ptr_nonnull(strstr(text, "{endpoint=/work}"));
        ck_assert_ptr_nonnull(strstr(text, "main.inner||"));
        ck_assert_ptr_nonnull(strstr(text, "[1 0x")); /* a file offset */
}
END_TEST

TEST_SUITE("profile corpus", good_files_are_decoded_and_bad_ones_refused, message_of_official_library_is_decoded,
           go_cpu_profile_keeps_names_and_labels)
