/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/structs/struct_offsets.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/memory/buf.h"
#include "sandbox/worker.h"

#define OFFSETS_CPU_S 60

const char *struct_offset_state_name(uint64_t state)
{
        static const char *const names[STRUCT_OFFSET_STATES] = { [STRUCT_OFFSET_FOUND] = "found",
                                                                 [STRUCT_OFFSET_NO_STRUCT] = "no_struct",
                                                                 [STRUCT_OFFSET_NO_FIELD] = "no_field",
                                                                 [STRUCT_OFFSET_BIT_FIELD] = "bit_field" };

        return state < STRUCT_OFFSET_STATES ? names[state] : "unknown";
}

bool struct_field_is_valid(const char *field)
{
        bool begins = true;

        if (strlen(field) >= STRUCT_FIELD_BYTES_MAX)
                return false;
        for (const char *at = field; *at; at++) {
                unsigned char c = (unsigned char)*at;

                if (c == '.' ? begins : !(c == '_' || isalpha(c) || (!begins && isdigit(c))))
                        return false;
                begins = c == '.';
        }
        return !begins;
}

static enum status write_question(const char *const *fields, size_t count, int fd, struct error *err)
{
        _cleanup_buf_ struct buf text = { 0 };
        enum status st;

        if (!count || count > STRUCT_FIELDS_MAX)
                return error_set(err, ST_USAGE, "give one to %d fields", STRUCT_FIELDS_MAX);
        buf_init(&text, STRUCT_FIELDS_MAX * STRUCT_FIELD_BYTES_MAX);
        for (size_t i = 0; i < count; i++) {
                if (!struct_field_is_valid(fields[i]))
                        return error_set(err, ST_USAGE, "'%.100s' is not STRUCT.FIELD", fields[i]);
                buf_printf(&text, "%s\n", fields[i]);
        }
        st = buf_status(&text, err, "the question");
        if (!st && (fd < 0 || pwrite(fd, text.data, text.size, 0) != (ssize_t)text.size))
                st = error_os(err, errno, "cannot pass the fields to a worker");
        return st;
}

enum status struct_offsets_find(int fd, int altlink_fd, const char *const *fields, size_t count,
                                const atomic_bool *cancel, struct struct_offset *ret, struct error *err)
{
        static const char *const args[] = { "offsets", NULL };
        _cleanup_close_ int question = memfd_create("fields", MFD_CLOEXEC);
        _cleanup_close_ int out = memfd_create("offsets", MFD_CLOEXEC);
        const int fds[] = { fd, altlink_fd, question, out };
        const struct worker_job job = {
                .args = args, .fds = fds, .fd_count = sizeof fds / sizeof *fds, .cpu_s = OFFSETS_CPU_S, .cancel = cancel
        };
        struct struct_offset found[STRUCT_FIELDS_MAX];
        ssize_t bytes = (ssize_t)(count * sizeof *found);
        enum status st = write_question(fields, count, question, err);

        if (!st && out < 0)
                st = error_os(err, errno, "cannot make a file for the worker's answer");
        if (!st)
                st = worker_run(&job, err);
        if (st)
                return st;
        if (pread(out, found, (size_t)bytes, 0) != bytes)
                return error_set(err, ST_BAD_DATA, "the worker's answer is cut off");
        for (size_t i = 0; i < count; i++)
                if (found[i].state >= STRUCT_OFFSET_STATES)
                        return error_set(err, ST_BAD_DATA, "the worker's answer is malformed");
        memcpy(ret, found, (size_t)bytes);
        return ST_OK;
}
