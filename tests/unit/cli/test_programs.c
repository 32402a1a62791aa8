/* SPDX-License-Identifier: Apache-2.0 */
/* Output and exit status of programs started by `cairn`. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "cli/shared/programs.h"
#include "tests/support/suite.h"

/* @param ret  to be released with free_output() */
static int run_shell(const char *script, size_t most, struct program_output *ret)
{
        const char *const args[] = { "/bin/sh", "-c", script, NULL };
        struct error err;
        int code = -1;

        buf_init(&ret->out, most);
        buf_init(&ret->errors, most);
        ck_assert_msg(run_sibling_program(args, ret, &code, &err) == ST_OK, "%s", err.text);
        return code;
}

static void free_output(struct program_output *o)
{
        buf_deinit(&o->out);
        buf_deinit(&o->errors);
}

START_TEST(stdout_and_stderr_are_separate)
{
        struct program_output o;

        ck_assert_int_eq(run_shell("echo '{'; echo warning >&2; echo '}'; exit 3", 4096, &o), 3);
        ck_assert_str_eq(buf_cstr(&o.out), "{\n}\n");
        ck_assert_str_eq(buf_cstr(&o.errors), "warning\n");
        free_output(&o);
}
END_TEST

START_TEST(output_over_the_limit_is_truncated_at_end)
{
        struct program_output o;

        /* A line that does not fit, then ones that would: the captured text must have no gap. */
        ck_assert_int_eq(run_shell("i=0; while [ $i -lt 3000 ]; do printf '%07d\\n' $i; i=$((i + 1)); done; "
                                   "printf end; printf errors >&2",
                                   10000, &o),
                         0);
        ck_assert_uint_eq(o.out.size, 10000);
        for (unsigned i = 0; i < 1250; i++) {
                char line[16];

                snprintf(line, sizeof line, "%07u\n", i);
                ck_assert_mem_eq(o.out.data + (size_t)8 * i, line, 8);
        }
        ck_assert_str_eq(buf_cstr(&o.errors), "errors");
        free_output(&o);
}
END_TEST

START_TEST(full_pipe_does_not_block_other_stream)
{
        struct program_output o;

        ck_assert_int_eq(run_shell("head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; kill -TERM $$", 1000, &o),
                         128 + 15);
        ck_assert_uint_eq(o.out.size, 1000);
        ck_assert_uint_eq(o.errors.size, 1000);
        free_output(&o);
}
END_TEST

START_TEST(missing_program_gives_status_127)
{
        const char *const args[] = { "/nonexistent/program", NULL };
        struct program_output o;
        int code;

        buf_init(&o.out, 100);
        buf_init(&o.errors, 100);
        ck_assert_int_eq(run_sibling_program(args, &o, &code, NULL), ST_OK);
        ck_assert_int_eq(code, 127);
        ck_assert_uint_eq(o.out.size + o.errors.size, 0);
        free_output(&o);
}
END_TEST

TEST_SUITE("programs", stdout_and_stderr_are_separate, output_over_the_limit_is_truncated_at_end,
           full_pipe_does_not_block_other_stream, missing_program_gives_status_127)
