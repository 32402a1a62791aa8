/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/containers/cgroup.h"

#include <stdbool.h>

#include "common/text.h"
#include "sampling/objects/text_line.h"

#define ID_DIGITS (CGROUP_CONTAINER_SIZE - 1)
#define UID_CHARS (CGROUP_POD_SIZE - 1)
#define HASH_DIGITS 32
#define GARDEN_GROUPS 5

static bool is_hex_digit_lower(char c)
{
        return hex_digit_value(c) >= 0 && (c < 'A' || c > 'F');
}

static bool element_starts_with(struct text_line element, const char *prefix)
{
        size_t n = strlen(prefix);

        return text_size(&element) > n && memcmp(element.at, prefix, n) == 0;
}

static bool element_ends_with(struct text_line element, const char *suffix)
{
        size_t n = strlen(suffix);

        return text_size(&element) > n && memcmp(element.end - n, suffix, n) == 0;
}

static bool element_contains(struct text_line element, const char *word)
{
        return memmem(element.at, text_size(&element), word, strlen(word)) != NULL;
}

static bool copy_element(struct text_line from, char *to, size_t size)
{
        if (text_size(&from) >= size)
                return false;
        memcpy(to, from.at, text_size(&from));
        to[text_size(&from)] = 0;
        return true;
}

/* ---- containers ------------------------------------------------------------------ */

/* The digits begin the element or follow '-' or ':', and end it or precede '.'. */
static bool find_container_id(struct text_line element, struct text_line *ret)
{
        for (const char *at = element.at; at < element.end;) {
                size_t digits = 0;

                while (at + digits < element.end && is_hex_digit_lower(at[digits]))
                        digits++;
                if (digits == ID_DIGITS && (at == element.at || at[-1] == '-' || at[-1] == ':') &&
                    (at + digits == element.end || at[digits] == '.')) {
                        *ret = (struct text_line){ at, at + digits };
                        return true;
                }
                at += digits + 1;
        }
        return false;
}

/* systemd escapes '-' in a name as "\x2d". */
static bool copy_unescaped_element(struct text_line from, char *to, size_t size)
{
        size_t n = 0;

        while (from.at < from.end) {
                bool dash = element_starts_with(from, "\\x2") && from.end - from.at >= 4 && from.at[3] == 'd';

                if (n + 1 >= size)
                        return false;
                to[n++] = dash ? '-' : *from.at;
                from.at += dash ? 4 : 1;
        }
        to[n] = 0;
        return n > 0;
}

/* Containers identified by a machine name, from the element of their own cgroup or of a payload below it. */
static bool copy_machine_name(struct text_line element, struct cgroup_names *ret)
{
        static const struct {
                const char *prefix, *suffix;
        } forms[] = {
                { "systemd-nspawn@", ".service" },
                { "machine-", ".scope" },
                { "lxc.payload.", "" },
        };

        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
                struct text_line name = element;
                char machine[CGROUP_CONTAINER_SIZE];

                if (!element_starts_with(element, forms[i].prefix) || !element_ends_with(element, forms[i].suffix))
                        continue;
                name.at += strlen(forms[i].prefix);
                name.end -= strlen(forms[i].suffix);
                if (name.at >= name.end || !copy_unescaped_element(name, machine, sizeof machine))
                        continue;
                memcpy(ret->container, machine, sizeof machine);
                return true;
        }
        return false;
}

/* ---- pods -------------------------------------------------------------------------- */

static bool is_uuid(const char *at)
{
        for (size_t i = 0; i < UID_CHARS; i++) {
                bool separator = i == 8 || i == 13 || i == 18 || i == 23;

                if (separator ? at[i] != '-' && at[i] != '_' : !is_hex_digit_lower(at[i]))
                        return false;
        }
        return true;
}

static bool ends_pod_name(struct text_line element, const char *at)
{
        return at == element.end || *at == '.';
}

/* "podUID", "kubepods-burstable-podUID.slice", "kubepods-podUID.slice:cri-containerd:ID". */
static bool copy_pod_uid(struct text_line element, struct cgroup_names *ret)
{
        for (const char *at = element.at; element.end - at >= 3 + HASH_DIGITS; at++) {
                struct text_line uid = { at + 3, element.end };
                size_t digits = 0;

                if (memcmp(at, "pod", 3) != 0 || (at != element.at && at[-1] != '-'))
                        continue;
                if (text_size(&uid) >= UID_CHARS && is_uuid(uid.at) && ends_pod_name(element, uid.at + UID_CHARS)) {
                        for (size_t i = 0; i < UID_CHARS; i++)
                                ret->pod[i] = uid.at[i] == '_' ? '-' : uid.at[i];
                        ret->pod[UID_CHARS] = 0;
                        return true;
                }
                while (digits < HASH_DIGITS && is_hex_digit_lower(uid.at[digits]))
                        digits++;
                if (digits == HASH_DIGITS && ends_pod_name(element, uid.at + HASH_DIGITS)) {
                        uid.end = uid.at + HASH_DIGITS;
                        return copy_element(uid, ret->pod, sizeof ret->pod);
                }
        }
        return false;
}

/* ---- a path -------------------------------------------------------------------------- */

static bool is_unit_name(struct text_line element)
{
        static const char *const suffixes[] = { ".service", ".scope", ".socket", ".mount", ".swap" };

        for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
                if (element_ends_with(element, suffixes[i]))
                        return true;
        return false;
}

static void parse_path_element(struct text_line element, struct cgroup_names *ret)
{
        bool is_pod = copy_pod_uid(element, ret);
        struct text_line digits;

        if (find_container_id(element, &digits)) {
                if (!element_contains(element, "conmon-"))
                        (void)copy_element(digits, ret->container, sizeof ret->container);
                return;
        }
        if (is_pod || copy_machine_name(element, ret))
                return;
        if (is_unit_name(element))
                (void)copy_element(element, ret->unit, sizeof ret->unit);
        else if (element_ends_with(element, ".slice"))
                (void)copy_element(element, ret->slice, sizeof ret->slice);
}

static size_t count_hex_digits(const char *at, const char *end)
{
        size_t n = 0;

        while (at + n < end && is_hex_digit_lower(at[n]))
                n++;
        return n;
}

/* "0123456789abcdef0123456789abcdef-1234567890": the task's id and a number. */
static bool is_fargate_id(struct text_line element)
{
        const char *at = element.at + HASH_DIGITS;

        if (count_hex_digits(element.at, element.end) != HASH_DIGITS || at == element.end || *at++ != '-' ||
            at == element.end)
                return false;
        while (at < element.end && *at >= '0' && *at <= '9')
                at++;
        return at == element.end;
}

/* "6f265890-5165-7fab-6b52-18d1" */
static bool is_garden_id(struct text_line element)
{
        const char *at = element.at;

        for (int group = 0; group < GARDEN_GROUPS; group++) {
                size_t digits = group ? 4 : 8;

                if ((group && (at == element.end || *at++ != '-')) || count_hex_digits(at, element.end) != digits)
                        return false;
                at += digits;
        }
        return at == element.end;
}

/* Ids that are recognized by the names of the elements before them. */
static bool is_platform_id(struct text_line path, struct text_line element)
{
        static const char garden[] = "/garden/";
        const size_t n = sizeof garden - 1;

        if ((size_t)(element.at - path.at) >= n && memcmp(element.at - n, garden, n) == 0)
                return is_garden_id(element);
        return element_starts_with(path, "/ecs/") && is_fargate_id(element);
}

static bool next_element(struct text_line *path, struct text_line *ret)
{
        const char *end;

        while (path->at < path->end && *path->at == '/')
                path->at++;
        if (path->at == path->end)
                return false;
        end = memchr(path->at, '/', text_size(path));
        *ret = (struct text_line){ path->at, end ? end : path->end };
        path->at = ret->end;
        return true;
}

static void parse_cgroup_path(struct text_line path, struct cgroup_names *ret)
{
        struct text_line left = path, element;
        /* LXC under cgroupfs: "/lxc/NAME". */
        bool names_follow = element_starts_with(path, "/lxc/");

        for (size_t i = 0; next_element(&left, &element); i++) {
                parse_path_element(element, ret);
                if ((names_follow && i == 1) || is_platform_id(path, element))
                        (void)copy_element(element, ret->container, sizeof ret->container);
        }
}

/* ---- the text -------------------------------------------------------------------------- */

/* In a cgroup namespace, paths outside of it appear as "/../../kubepods/...". */
static struct text_line skip_parent_elements(struct text_line path)
{
        while (text_size(&path) >= 3 && memcmp(path.at, "/..", 3) == 0 &&
               (path.at + 3 == path.end || path.at[3] == '/'))
                path.at += 3;
        return path;
}

/* "HIERARCHY:CONTROLLERS:PATH"; returns the preference for its path, 0: unusable. */
static size_t rank_hierarchy(struct text_line line, struct text_line *path_ret)
{
        struct text_line controllers;
        const char *colon = memchr(line.at, ':', text_size(&line));
        bool whole;

        if (!colon)
                return 0;
        controllers.at = colon + 1;
        colon = memchr(controllers.at, ':', (size_t)(line.end - controllers.at));
        if (!colon || colon + 1 == line.end || colon[1] != '/')
                return 0;
        controllers.end = colon;
        *path_ret = skip_parent_elements((struct text_line){ colon + 1, line.end });
        whole = text_size(&controllers) == 0;
        if (text_size(path_ret) <= 1)
                return 1;
        return 1 + text_size(path_ret) +
               (whole                                           ? 1u << 20
                : element_contains(controllers, "name=systemd") ? 1u << 19
                                                                : 0);
}

void cgroup_parse(const char *text, size_t n, struct cgroup_names *ret)
{
        struct text_line left = { text, text + n }, line, path, best = { text, text };
        size_t best_weight = 0;

        *ret = (struct cgroup_names){ 0 };
        while (text_next_line(&left, &line)) {
                size_t weight = rank_hierarchy(line, &path);

                if (weight)
                        parse_cgroup_path(path, ret);
                if (weight > best_weight) {
                        best = path;
                        best_weight = weight;
                }
        }
        if (text_size(&best) <= 1)
                return;
        parse_cgroup_path(best, ret); /* last, so its names take precedence */
        (void)copy_element(best, ret->path, sizeof ret->path);
}
