/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/samplers/cpu_list.h"

#include <stdint.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "sampling/objects/text_line.h"

static bool parse_cpu_range(struct text_line *list, uint64_t *first, uint64_t *last)
{
        if (!text_number(list, 10, first))
                return false;
        *last = *first;
        return !text_char(list, '-') || (text_number(list, 10, last) && *last >= *first);
}

enum status cpu_list_parse(const char *text, size_t n, bool *ret, size_t count, struct error *err)
{
        struct text_line left = { text, text + n }, list = left;
        uint64_t first, last;

        (void)text_next_line(&left, &list);
        for (struct text_line check = list; check.at < check.end;) {
                if (!parse_cpu_range(&check, &first, &last) || (check.at < check.end && !text_char(&check, ',')))
                        return error_set(err, ST_BAD_DATA, "not a list of CPUs: '%.*s'", (int)(n < 80 ? n : 80), text);
        }
        memset(ret, 0, count * sizeof *ret);
        while (list.at < list.end && parse_cpu_range(&list, &first, &last)) {
                for (uint64_t cpu = first; cpu <= last && cpu < count; cpu++)
                        ret[cpu] = true;
                (void)text_char(&list, ',');
        }
        return ST_OK;
}

enum status cpu_list_online(bool *ret, size_t count, struct error *err)
{
        _cleanup_buf_ struct buf text = { 0 };
        enum status st;

        buf_init(&text, KiB(64));
        st = file_read("/sys/devices/system/cpu/online", &text, err);
        return st ? st : cpu_list_parse((const char *)text.data, text.size, ret, count, err);
}
