/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_FORMATS_CODE_OUT_H
#define CAIRN_QUERY_FORMATS_CODE_OUT_H

/** @file Answers of the operation "disassembly". Private to query/. */
#include "query/engine/code_alignment.h"
#include "query/engine/code_table.h"

/** Write the code of one side. @return ST_NOT_FOUND and others, for formats that cannot express missing code. */
enum status code_table_put_answer(struct code_table *t, const struct loaded_sides *l) MUST_CHECK;

/** The same of both sides beside each other. */
enum status code_table_put_comparison(struct code_table tables[2], const struct code_alignment *alignment,
                                      const struct loaded_sides *l) MUST_CHECK;

/* ---- parts of both answers ---- */

void code_table_put_address_json(struct json_out *j, const char *key, uint64_t address);
/** The members of an instruction except its costs. @param has_place  whether it differs from the previous one. */
void code_table_put_instruction_json(struct code_table *t, uint32_t instruction, bool has_place, struct json_out *j);
/** Whether the place of an instruction is not that of the one before it in its range. */
bool code_table_is_new_place(const struct code_table *t, const struct code_range *r, uint32_t instruction);
void code_table_put_objects_json(const struct code_table *t, const char *key, struct json_out *j);
/** Nothing if the code is there. */
void code_table_put_missing_json(const struct code_table *t, const char *key, struct json_out *j);
/** The failure of formats that cannot express missing code. */
enum status code_table_fail_missing(const struct code_table *t) MUST_CHECK;

#endif
