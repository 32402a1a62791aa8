/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_FAULTS_FAULT_SAMPLES_H
#define CAIRN_TESTS_FAULTS_FAULT_SAMPLES_H

/* What the fault tests of a profile store check: samples of value 1, each on a stack of one location of its own. */
#include "profile-store/scan.h"
#include "tests/support/suite.h"
#include "tests/faults/fault_loop.h"

#define FAULT_SAMPLE_ADDRESS 0x1000 /* the location of sample 0; the next ones follow at a fixed distance */

/**
 * Bit i: sample i is stored. Fails if one counts twice, or for a stack that is none of the first `count` samples'.
 * @param distance  of the addresses of two samples
 * @param each      called for each found sample; NULL: none
 */
unsigned fault_find_samples(struct profile_store *store, unsigned count, unsigned distance,
                            void (*each)(const struct scan_location *l, unsigned sample));

/** Flush if the last sync failed, as the flush thread of a service does, then take the remaining steps. */
enum status fault_resume_store(struct profile_store *store, const unsigned *order, unsigned count,
                               enum status (*step)(unsigned number, struct error *err), struct error *err);

/** Make all files below dir look old. */
void fault_age_files(const char *dir);

#endif
