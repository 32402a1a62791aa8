/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_STORAGE_OPERATIONS_H
#define CAIRN_STORAGE_STORAGE_OPERATIONS_H

/**
 * @file
 * For implementations of storage.h, whose calls have the same meaning. An implementation embeds struct storage as its
 * first member.
 */
#include "storage/storage.h"

struct storage_operations {
        void (*close)(struct storage *s); /* frees s, not its root */
        enum status (*make_folder)(struct storage *s, const char *key, struct error *err);
        /* Sets fd and tmp. */
        enum status (*begin)(struct storage *s, struct storage_upload *u, struct error *err);
        /* Takes the descriptor and the file tmp of u, also on failure. */
        enum status (*publish)(struct storage *s, struct storage_upload *u, enum storage_mode mode, struct error *err);
        /* info_ret: NULL, or of the object that was read, as of storage_stat(); in doubt, of one that it replaced. */
        enum status (*read)(struct storage *s, const char *key, struct buf *ret, struct storage_info *info_ret,
                            struct error *err);
        enum status (*open)(struct storage *s, const char *key, int *fd_ret, struct storage_info *ret,
                            struct error *err);
        enum status (*map)(struct storage *s, const char *key, size_t max, struct storage_map *ret, struct error *err);
        /* Both NULL when a map is of file_map_open() and whole. */
        enum status (*require)(struct storage_map *m, const struct file_range *ranges, size_t count, struct error *err);
        enum status (*reload)(struct storage_map *m, const struct file_range *ranges, size_t count,
                              struct error *err); /* NULL: it cannot */
        void (*unmap)(struct storage_map *m);
        bool (*has_at_hand)(struct storage *s, const char *key); /* NULL: true */
        enum status (*list)(struct storage *s, const char *folder, const char *after, storage_visit *visit,
                            void *context, struct error *err);
        enum status (*stat)(struct storage *s, const char *key, struct storage_info *ret, struct error *err);
        void (*ask)(struct storage *s, struct storage_question *questions, size_t count); /* NULL: one by one */
        enum status (*remove)(struct storage *s, const char *key, struct error *err);
        enum status (*remove_unfinished)(struct storage *s, const char *folder, int64_t before_ms, uint64_t *count_ret,
                                         struct error *err);
        enum status (*export)(struct storage *s, const char *key, const char *path, uint64_t *copied_bytes_ret,
                              struct error *err);
        uint64_t (*get_free_bytes)(struct storage *s);
        int64_t (*now_ms)(struct storage *s);
};

/* storage_ask() by a thread for each question, for implementations whose calls wait for a network. */
void storage_ask_at_once(struct storage *s, struct storage_question *questions, size_t count);

/* One question. */
void storage_answer(struct storage *s, struct storage_question *q);

struct storage {
        const struct storage_operations *operations;
        char *root; /* owned */
};

#endif
