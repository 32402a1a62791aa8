/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/processes/process_filter.h"

#include <fnmatch.h>
#include <string.h>

static bool pattern_matches(const char *pattern, const char *text)
{
        return fnmatch(pattern, text, 0) == 0;
}

static bool any_pattern_matches(const struct option_list *patterns, const char *text)
{
        for (size_t i = 0; i < patterns->count; i++)
                if (pattern_matches(patterns->items[i], text))
                        return true;
        return false;
}

static bool any_pattern_matches_cgroup(const struct option_list *patterns, const struct cgroup_names *cgroup)
{
        char elements[CGROUP_PATH_SIZE];
        char *left = elements, *element;

        if (!patterns->count || any_pattern_matches(patterns, cgroup->path))
                return patterns->count;
        memcpy(elements, cgroup->path, sizeof elements);
        while ((element = strsep(&left, "/")))
                if (element[0] && any_pattern_matches(patterns, element))
                        return true;
        return false;
}

bool process_filter_is_active(const struct process_filter *s)
{
        return s->exclude_process.count || s->only_process.count || s->exclude_cgroup.count || s->only_cgroup.count;
}

bool process_filter_excludes(const struct process_filter *s, const char *name, const struct cgroup_names *cgroup)
{
        return any_pattern_matches(&s->exclude_process, name) ||
               (s->only_process.count && !any_pattern_matches(&s->only_process, name)) ||
               any_pattern_matches_cgroup(&s->exclude_cgroup, cgroup) ||
               (s->only_cgroup.count && !any_pattern_matches_cgroup(&s->only_cgroup, cgroup));
}
