/* SPDX-License-Identifier: Apache-2.0 */
/* Precedence of command line, environment and file, and rejected configurations. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/config/configuration.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/buf.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

struct values {
        const char *listen, *limit, *token_file, *port_file, *ca_file;
        uint64_t jobs;
        bool quiet;
        struct option_list upstream;
        struct configuration configuration;
};

/* The values of a command line with a file of this text; each test has a process of its own. */
static enum status parse_with_file(const char *yaml, char **argv, struct values *v, struct error *err)
{
        const struct usage usage = { .synopsis = "x", .about = "y" };
        const struct option_spec specs[] = {
                OPTION_STRING("listen", 0, "HOST", &v->listen, "where"),
                OPTION_STRING("limit", 0, "N", &v->limit, "most"),
                OPTION_STRING("old-limit", 0, "N", &v->limit, "older name of --limit"),
                OPTION_UINT("jobs", 0, "N", &v->jobs, "how many"),
                OPTION_FLAG("quiet", 0, &v->quiet, "say nothing"),
                OPTION_LIST("up-stream", 0, "URL", &v->upstream, "whom to ask"),
                OPTION_STRING("token-file", 0, "FILE", &v->token_file, "with a secret"),
                OPTION_STRING("port-file", 0, "FILE", &v->port_file, "that is written"),
                OPTION_STRING("ca", 0, "FILE", &v->ca_file, "with certificates"),
                OPTIONS_OF_CONFIGURATION(&v->configuration),
                OPTION_END,
        };
        char path[] = "/tmp/cairn-configuration-XXXXXX";
        int argc = 0, fd = mkstemp(path);
        enum status st;

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(file_write_all(fd, yaml, strlen(yaml), path, err), ST_OK);
        close(fd);
        *v = (struct values){ .jobs = 4, .configuration = { .section = "serve" } };
        setenv("CAIRN_CONFIG", path, 1);
        while (argv[argc])
                argc++;
        st = configuration_parse(&v->configuration, &usage, specs, &argc, &argv, err);
        unlink(path);
        return st;
}

static void free_values(struct values *v)
{
        options_list_deinit(&v->upstream);
        configuration_deinit(&v->configuration);
}

START_TEST(command_line_overrides_environment_and_file)
{
        char *args[] = { "x", "--listen=line", "--up-stream", "line", NULL };
        struct values v;
        struct error err;

        setenv("CAIRN_LISTEN", "environment", 1);
        setenv("CAIRN_JOBS", "7", 1);
        setenv("CAIRN_QUIET", "Yes", 1);
        ck_assert_int_eq(parse_with_file("serve:\n  listen: file\n  jobs: 9\n  limit: file\n  quiet: false\n"
                                         "  up-stream: [file, other]\n",
                                         args, &v, &err),
                         ST_OK);
        ck_assert_str_eq(v.listen, "line");
        ck_assert_uint_eq(v.jobs, 7);
        ck_assert_str_eq(v.limit, "file");
        ck_assert(v.quiet);
        ck_assert_uint_eq(v.upstream.count, 1);
        ck_assert_str_eq(v.upstream.items[0], "line");
        free_values(&v);
}
END_TEST

START_TEST(lists_of_several_sources_are_not_joined)
{
        char *args[] = { "x", NULL };
        struct values v;
        struct error err;

        ck_assert_int_eq(
                parse_with_file("agent:\n  anything: 1\nserve:\n  up-stream:\n    - a\n    - 'b c'\n", args, &v, &err),
                ST_OK);
        ck_assert_uint_eq(v.upstream.count, 2);
        ck_assert_str_eq(v.upstream.items[1], "b c");
        free_values(&v);
        setenv("CAIRN_UP_STREAM", "one\ntwo words\n\nthree", 1);
        ck_assert_int_eq(parse_with_file("serve:\n  up-stream: a\n", args, &v, &err), ST_OK);
        ck_assert_uint_eq(v.upstream.count, 3);
        ck_assert_str_eq(v.upstream.items[1], "two words");
        free_values(&v);
}
END_TEST

START_TEST(older_option_name_is_an_alias)
{
        char *args[] = { "x", "--old-limit=line", NULL };
        struct values v;
        struct error err;

        ck_assert_int_eq(parse_with_file("serve:\n  limit: file\n", args, &v, &err), ST_OK);
        ck_assert_str_eq(v.limit, "line");
        free_values(&v);
        args[1] = NULL;
        ck_assert_int_eq(parse_with_file("serve:\n  limit: file\n  old-limit: again\n", args, &v, &err), ST_USAGE);
        ck_assert_ptr_nonnull(strstr(err.text, ":3: "));
        free_values(&v);
}
END_TEST

START_TEST(errors_have_line_numbers)
{
        static const struct {
                const char *yaml, *text;
        } cases[] = {
                { "serve:\n  lisen: x\n", ":2: 'serve' has no option 'lisen'" },
                { "server:\n  listen: x\n", ":1: unknown section 'server'" },
                { "serve:\n  jobs: many\n", ":2: option '--jobs' takes a number, not 'many'" },
                { "serve:\n  quiet: perhaps\n", ":2: 'quiet' takes true or false, not 'perhaps'" },
                { "serve:\n  listen: [a, b]\n", ":2: 'listen' takes one value, not a list" },
                { "serve:\n  listen: {a: b}\n", ":2: 'listen' takes a text or a list of texts" },
                { "serve:\n  up-stream: [[a]]\n", ":2: 'up-stream' takes a text or a list of texts" },
                { "serve:\n  listen: a\n  listen: b\n", ":3: 'listen' is already set in line 2" },
                { "serve:\n  listen: a\nserve:\n  limit: b\n", ":3: section 'serve' is there twice" },
                { "serve:\n  print-config: true\n", ":2: 'print-config' belongs on the command line" },
                { "serve:\n  listen: \"a\\0b\"\n", ":2: 'listen' takes a text" },
                { "serve: [a]\n", ":1: section 'serve' is not a mapping" },
                { "- serve\n", ":1: not a mapping of sections" },
                { "serve:\n  listen: 'a\n", "not YAML: " },
                { "? [a]\n: b\n", ":1: unknown section ''" },
                { "serve:\n  limit: a\n---\nserve:\n  lisen: b\n", ":4: a second document" },
                { "serve:\n  limit: a\n---\n'\n", "not YAML: " },
        };
        char *args[] = { "x", NULL };
        struct values v;
        struct error err;

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                ck_assert_int_eq(parse_with_file(cases[i].yaml, args, &v, &err), ST_USAGE);
                ck_assert_msg(strstr(err.text, cases[i].text) != NULL, "%s: %s", cases[i].yaml, err.text);
                free_values(&v);
        }
        setenv("CAIRN_JOBS", "many", 1);
        ck_assert_int_eq(parse_with_file("", args, &v, &err), ST_USAGE);
        ck_assert_str_eq(err.text, "CAIRN_JOBS: option '--jobs' takes a number, not 'many'");
        free_values(&v);
}
END_TEST

START_TEST(yaml_aliases_are_limited)
{
        char *args[] = { "x", NULL };
        _cleanup_buf_ struct buf yaml;
        struct values v;
        struct error err;

        buf_init(&yaml, MiB(2));
        buf_append_str(&yaml, "serve:\n  up-stream:\n    - &a ");
        for (unsigned i = 0; i < 100000; i++)
                buf_append_str(&yaml, "x");
        for (unsigned i = 0; i < 10000; i++)
                buf_append_str(&yaml, "\n    - *a");
        buf_append_str(&yaml, "\n");
        ck_assert_int_eq(parse_with_file(buf_cstr(&yaml), args, &v, &err), ST_USAGE);
        ck_assert_ptr_nonnull(strstr(err.text, "the values take more than"));
        free_values(&v);
}
END_TEST

START_TEST(yaml_aliases_of_empty_texts_are_limited)
{
        char *args[] = { "x", NULL };
        _cleanup_buf_ struct buf yaml;
        struct values v;
        struct error err;

        buf_init(&yaml, MiB(2));
        buf_append_str(&yaml, "serve:\n  n0: &a [''");
        for (unsigned i = 0; i < 50000; i++)
                buf_append_str(&yaml, ", ''");
        buf_append_str(&yaml, "]");
        for (unsigned i = 1; i < 200; i++)
                buf_printf(&yaml, "\n  n%u: *a", i);
        buf_append_str(&yaml, "\n");
        ck_assert_int_eq(parse_with_file(buf_cstr(&yaml), args, &v, &err), ST_USAGE);
        ck_assert_msg(strstr(err.text, "the values take more than") != NULL, "%s", err.text);
        free_values(&v);
}
END_TEST

/* A program may read the file while it is being written. */
START_TEST(file_that_is_cut_off_is_refused)
{
        static const char whole[] = "serve:\n  up-stream:\n    - http://a\n  limit: size=200G\n";
        static const char *const complete[] = { "{serve: {limit: size=200G}}", "\xef\xbb\xbf\n {\"serve\": {}}", "" };
        char *args[] = { "x", NULL };
        struct values v;
        struct error err;

        for (size_t n = 1; n <= strlen(whole); n++) {
                _cleanup_free_ char *part = strndup(whole, n);

                if (whole[n - 1] == '\n') {
                        ck_assert_int_eq(parse_with_file(part, args, &v, &err), ST_OK);
                } else {
                        ck_assert_int_eq(parse_with_file(part, args, &v, &err), ST_USAGE);
                        ck_assert_ptr_nonnull(strstr(err.text, "' does not end with a line end"));
                        ck_assert_ptr_nonnull(strstr(err.text, getenv("CAIRN_CONFIG")));
                }
                free_values(&v);
        }
        for (size_t i = 0; i < sizeof complete / sizeof *complete; i++) {
                ck_assert_int_eq(parse_with_file(complete[i], args, &v, &err), ST_OK);
                free_values(&v);
        }
        ck_assert_int_eq(parse_with_file("{serve: {limit: size=2", args, &v, &err), ST_USAGE);
        free_values(&v);
}
END_TEST

START_TEST(file_that_is_lost_or_emptied_is_not_read_again)
{
        char *args[] = { "x", NULL }, *no_file[] = { "x", "--config=", NULL };
        struct values whole, empty, none;
        struct error err;

        ck_assert_int_eq(parse_with_file("serve:\n  limit: a\n", args, &whole, &err), ST_OK);
        ck_assert_int_eq(parse_with_file("", args, &empty, &err), ST_OK);
        ck_assert_int_eq(parse_with_file("", no_file, &none, &err), ST_OK);
        ck_assert_int_eq(configuration_check_reread(&whole.configuration, &whole.configuration, &err), ST_OK);
        ck_assert_int_eq(configuration_check_reread(&whole.configuration, &empty.configuration, &err), ST_USAGE);
        ck_assert_ptr_nonnull(strstr(err.text, "' is empty"));
        ck_assert_int_eq(configuration_check_reread(&whole.configuration, &none.configuration, &err), ST_NOT_FOUND);
        ck_assert_ptr_nonnull(strstr(err.text, "' is gone"));
        ck_assert_int_eq(configuration_check_reread(&empty.configuration, &whole.configuration, &err), ST_OK);
        ck_assert_int_eq(configuration_check_reread(&none.configuration, &empty.configuration, &err), ST_USAGE);
        free_values(&whole);
        free_values(&empty);
        free_values(&none);
}
END_TEST

START_TEST(given_file_must_exist)
{
        char *args[] = { "x", "--config", "/nonexistent/cairn.yaml", NULL };
        char *none[] = { "x", "--config=", NULL };
        struct values v;
        struct error err;

        ck_assert_int_eq(parse_with_file("serve:\n  nonsense: 1\n", args, &v, &err), ST_NOT_FOUND);
        ck_assert_ptr_nonnull(strstr(err.text, "/nonexistent/cairn.yaml"));
        free_values(&v);
        ck_assert_int_eq(parse_with_file("serve:\n  nonsense: 1\n", none, &v, &err), ST_OK);
        free_values(&v);
}
END_TEST

START_TEST(credential_files_are_read)
{
        char *args[] = { "x", NULL };
        char dir[TEMPORARY_DIR_BYTES], path[80];
        struct values v;
        struct error err;

        temporary_dir_create(dir, "credentials");
        setenv("CREDENTIALS_DIRECTORY", dir, 1);
        snprintf(path, sizeof path, "%s/cairn.port-file", dir);
        ck_assert_int_eq(file_write_durable(path, "1\n", 2, &err), ST_OK);
        snprintf(path, sizeof path, "%s/cairn.token-file", dir);
        ck_assert_int_eq(file_write_durable(path, "secret\n", 7, &err), ST_OK);
        ck_assert_int_eq(parse_with_file("", args, &v, &err), ST_OK);
        ck_assert_str_eq(v.token_file, path);
        ck_assert_ptr_null(v.port_file);
        ck_assert_ptr_null(v.ca_file);
        free_values(&v);
        temporary_dir_remove(dir);
}
END_TEST

START_TEST(unreadable_credential_is_an_error)
{
        char *args[] = { "x", NULL };
        char dir[TEMPORARY_DIR_BYTES], path[80];
        struct values v;
        struct error err;

        temporary_dir_create(dir, "credentials");
        snprintf(path, sizeof path, "%s/cairn.token-file", dir);
        ck_assert_int_eq(symlink("cairn.token-file", path), 0); /* to itself */
        setenv("CREDENTIALS_DIRECTORY", dir, 1);
        ck_assert_int_eq(parse_with_file("", args, &v, &err), ST_OS);
        ck_assert_msg(strstr(err.text, "cannot read the credential '") && strstr(err.text, path), "%s", err.text);
        free_values(&v);
        ck_assert_int_eq(parse_with_file("serve:\n  token-file: /x\n", args, &v, &err), ST_OK); /* it is not needed */
        free_values(&v);
        temporary_dir_remove(dir);
}
END_TEST

TEST_SUITE("configuration", command_line_overrides_environment_and_file, lists_of_several_sources_are_not_joined,
           older_option_name_is_an_alias, errors_have_line_numbers, yaml_aliases_are_limited,
           yaml_aliases_of_empty_texts_are_limited, file_that_is_cut_off_is_refused,
           file_that_is_lost_or_emptied_is_not_read_again, given_file_must_exist, credential_files_are_read,
           unreadable_credential_is_an_error)
