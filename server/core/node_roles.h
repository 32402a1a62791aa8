/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_NODE_ROLES_H
#define CAIRN_SERVER_CORE_NODE_ROLES_H

/**
 * @file
 * The roles of a node, one of several on an object store: which routes it answers, and which threads and databases it
 * has (docs/internals/several-nodes.md, "Roles"). A set of roles is a mask. A service without --role has all of them.
 *
 * Threads: any.
 */
#include <stdbool.h>

#include "common/error.h"

enum node_role {
        ROLE_INGEST = 1,     /* accepts batches and writes them to the tables */
        ROLE_QUERY = 2,      /* answers queries, and has the web UI */
        ROLE_SYMBOLIZE = 4,  /* has the symbol index: extracts symbols, re-symbolizes, answers lookups */
        ROLE_DEBUGINFOD = 8, /* accepts and serves debuginfo, fetches from upstreams */
        ROLE_MAINTAIN = 16,  /* compacts the tables, applies retention */
        ROLE_ALL = 31,
        ROLE_GATEWAY = 32, /* accepts batches and forwards them to nodes with the role ingest; alone, without a store */
        ROLE_ANY = 63,
};
#define NODE_ROLES_TEXT 56 /* all names with their commas and the NUL fit */

/** Parse names separated by commas. ST_USAGE for another name, one that is given twice, or none. */
enum status node_roles_parse(const char *text, unsigned *ret, struct error *err) MUST_CHECK;

/** The names, in the order above, separated by commas. @return ret */
const char *node_roles_write(unsigned roles, char ret[static NODE_ROLES_TEXT]);

/** The name of one role. */
const char *node_role_name(enum node_role role);

/** Set cairn_node_role{role}. */
void node_roles_publish(unsigned roles);

#endif
