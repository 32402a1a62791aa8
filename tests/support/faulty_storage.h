/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_FAULTY_STORAGE_H
#define CAIRN_TESTS_SUPPORT_FAULTY_STORAGE_H

/*
 * A storage on top of another one that fails a chosen call, lists late, and sets its clock. Its maps have the bytes of
 * required ranges only; the others are filled with STORAGE_ABSENT_BYTE.
 *
 * A delayed call is one during which others act: `before` is called before each call and may act for them.
 */
#include "storage/storage_operations.h"

#define STORAGE_ABSENT_BYTE 0xa5

enum storage_fault {
        STORAGE_FAULT_NONE,
        STORAGE_FAULT_REFUSED,     /* the call fails without an effect */
        STORAGE_FAULT_ANSWER_LOST, /* the call fails although it had its effect */
        STORAGE_FAULT_CUT,      /* this call and all later ones fail without an effect, as when the machine is lost */
        STORAGE_FAULT_CUT_LATE, /* the same, but this call had its effect */
        STORAGE_FAULT_COUNT
};

/* How storage_ask() is answered. */
enum faulty_asking { ASKS_IN_ORDER, ASKS_BACKWARDS, ASKS_AT_ONCE };

struct faulty_storage {
        struct storage storage; /* to be used; storage_close() frees all */
        struct storage *inner;  /* owned */
        enum storage_fault fault;
        unsigned fault_at;      /* number of the call that fails, from 1 */
        _Atomic unsigned calls; /* since the last reset */
        bool is_cut;
        enum faulty_asking asking; /* ASKS_AT_ONCE: `before` is called by several threads */
        const char *lacked;        /* storage_has_at_hand() is false for keys with this in them; NULL: for none */
        bool is_away;              /* calls with such a key fail */
        bool has_ends;             /* storage_has_at_hand() is true for them nevertheless */
        bool is_list_late;         /* lists lack what is published while this is set */
        char **unlisted;
        size_t unlisted_count, unlisted_capacity;
        int64_t ahead_ms; /* of the clock */
        int64_t now_ms;   /* the clock, which stands still; 0: that of inner, and ahead_ms */
        void (*before)(struct faulty_storage *f, const char *call, const char *key);
};

/** @param inner  taken. Aborts without memory. */
struct faulty_storage *faulty_storage_create(struct storage *inner);

/** Forget the calls so far, and let call number `at` from now on fail. */
void faulty_storage_set(struct faulty_storage *f, enum storage_fault fault, unsigned at);

#endif
