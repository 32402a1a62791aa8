-- SPDX-License-Identifier: Apache-2.0
--
-- The functions that use most CPU time by themselves, of each version of a service, with their share of it and the share that they
-- had in the version before: what a release made more expensive. For report.py, with
--   --set service=NAME --set since=2026-11-01 --set top=20

WITH leaves AS (
        SELECT date, stack_id, function FROM stack_frames WHERE position = 1
), sums AS (
        SELECT label_service_version AS version, function, sum(value) AS value, min(time) AS first_seen
        FROM samples JOIN leaves USING (date, stack_id)
        WHERE profile_type LIKE '%:cpu:nanoseconds:%' AND label_service_name = '${service}' AND date >= DATE '${since}'
        GROUP BY label_service_version, function
), versions AS (
        SELECT version, sum(value) AS total, row_number() OVER (ORDER BY min(first_seen)) AS number
        FROM sums GROUP BY version
), shares AS (
        SELECT number, version, function, value, value / total AS share,
                row_number() OVER (PARTITION BY version ORDER BY value DESC, function) AS place
        FROM sums JOIN versions USING (version)
)
SELECT s.version, s.place, s.function, s.value / 1e9 AS cpu_seconds, round(100 * s.share, 2) AS percent,
        round(100 * before.share, 2) AS percent_before
FROM shares AS s LEFT JOIN shares AS before ON before.number = s.number - 1 AND before.function = s.function
WHERE s.place <= ${top} ORDER BY s.number, s.place;
