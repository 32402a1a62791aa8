/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_WANTED_OBJECT_H
#define CAIRN_COMMON_WANTED_OBJECT_H

/** @file An object whose debuginfo samples need and the service lacks. */
#include "common/build_id.h"

struct wanted_object {
        struct build_id id;
        uint32_t sender; /* of the samples, pool_sender_number(); 0: unknown or several */
        uint64_t weight; /* samples or distinct locations in it: the order among the objects of a sender */
};

#endif
