/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_UNNAMED_FOLLOW_H
#define CAIRN_PIPELINE_UNNAMED_FOLLOW_H

/**
 * @file
 * A thread that gives names to locations which other nodes committed without a lookup: a node that has no symbol index
 * (without the role symbolize), or whose index lacked the object. Every UNNAMED_FOLLOW_S seconds it reads the new files
 * of `locations`: objects that this node's index has are re-symbolized, the others are requested from upstreams and
 * scanned trees.
 */
#include "common/wanted_object.h"
#include "pipeline/resymbolizer.h"
#include "profile-store/profile_store.h"

#define UNNAMED_FOLLOW_S 5

struct unnamed_follow;

struct unnamed_follow_options {
        struct profile_store *const *stores; /* borrowed, as are all members */
        size_t store_count;
        struct symbol_index *symbols;      /* NULL: all objects are requested */
        struct resymbolizer *resymbolizer; /* NULL if, and only if, symbols is */
        void (*request)(void *context, const struct wanted_object *objects, size_t count); /* called on the thread */
        void *context;
};

enum status unnamed_follow_start(const struct unnamed_follow_options *options, struct unnamed_follow **ret,
                                 struct error *err) MUST_CHECK;
/** NULL is allowed. */
void unnamed_follow_stop(struct unnamed_follow *u);

#endif
