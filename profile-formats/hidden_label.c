/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/hidden_label.h"

#include <errno.h>
#include <stdlib.h>

#include "common/text.h"

bool number_label_parse(const char *name, const char *value, struct number_label *ret)
{
        char *end;
        int64_t number;

        if (!starts_with(name, NUMBER_LABEL_PREFIX))
                return false;
        errno = 0;
        number = strtoll(value, &end, 10);
        if (errno || end == value || (*end && (*end != ' ' || !end[1])))
                return false;
        *ret = (struct number_label){ name + strlen(NUMBER_LABEL_PREFIX), *end ? end + 1 : "", number };
        return true;
}
