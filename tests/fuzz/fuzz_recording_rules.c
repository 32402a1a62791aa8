/* SPDX-License-Identifier: Apache-2.0 */
/* A file of recording rules: rules that are accepted can be listed, and have ids of their own. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "query/engine/selector.h"
#include "server/core/recording_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
        if (!ok)
                abort();
}

static void check_listed_rules(const Recording__ListRulesResponse *list)
{
        require(list->n_rules <= LIMIT_RECORDING_RULES);
        for (size_t i = 0; i < list->n_rules; i++) {
                _cleanup_buf_ struct buf selector;

                require(*list->rules[i]->id && *list->rules[i]->metric_name && list->rules[i]->provisioned);
                require(recording_rules_find(list, list->rules[i]->id) == list->rules[i]);
                buf_init(&selector, LIMIT_SELECTOR_BYTES);
                recording_rule_put_selector(list->rules[i], &selector);
                require(!selector.failed);
                (void)recording_rule_get_function(list->rules[i]);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_close_ int fd = memfd_create("rules", 0);
        _cleanup_buf_ struct buf text;
        _cleanup_arena_ struct arena memory;
        const Recording__ListRulesResponse *list = NULL;
        struct recording_rules *rules;
        char path[64];
        struct error err;

        buf_init(&text, 0);
        arena_init(&memory, 0);
        require(fd >= 0 && file_write_all(fd, data, size, "rules", NULL) == ST_OK);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (recording_rules_open("/nonexistent", path, &rules, &err)) {
                require(err.text[0]);
                return 0;
        }
        require(recording_rules_list(rules, &memory, &text, &list, &err) == ST_OK);
        check_listed_rules(list);
        recording_rules_close(rules);
        return 0;
}
