/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FETCH_INTERNAL_H
#define CAIRN_DEBUGINFO_STORE_FETCH_INTERNAL_H

#include "debuginfo-store/fetch.h"

/*
 * What the worker says through its pipe: any number of FETCH_GROWS, then one of the others. A message is smaller than
 * PIPE_BUF, so it is read whole.
 */
enum fetch_word { FETCH_GROWS, FETCH_FOUND, FETCH_MISSING, FETCH_TOO_BIG, FETCH_FAILED };

struct fetch_message {
        uint32_t word;
        struct fetch_answer answer;
        char text[200]; /* of FETCH_FAILED and FETCH_TOO_BIG */
};

/**
 * A message as it came: whoever answers an upstream's question may have taken the worker over. Texts are ended and without
 * control characters after it, numbers within their limits; a word that there is none of is FETCH_FAILED.
 * @param max_bytes of the file.
 */
void fetch_message_check(struct fetch_message *m, uint64_t max_bytes);

#endif
