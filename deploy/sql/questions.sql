-- SPDX-License-Identifier: Apache-2.0
--
-- The ten most useful questions, in SQL that DuckDB, Spark, Trino and ClickHouse understand, over the views of
-- duckdb.sql, spark.sql, trino.sql or clickhouse.sql. Change the names and dates in quotes.
-- Conditions on `date` read only the files of these days.

-- 1. Which profiles are there?
SELECT profile_type, unit, count(*) AS rows_stored, min(date) AS oldest, max(date) AS newest
FROM samples GROUP BY profile_type, unit ORDER BY rows_stored DESC, profile_type;

-- 2. Which functions use the most CPU time, by themselves and with all that they call?
SELECT function, file, flat, cumulative
FROM top WHERE profile_type LIKE '%:cpu:nanoseconds:%' ORDER BY flat DESC, cumulative DESC, function LIMIT 20;

-- 3. What does each service cost?
SELECT label_service_name AS service, sum(value) / 1e9 AS cpu_seconds
FROM samples WHERE profile_type LIKE '%:cpu:nanoseconds:%'
GROUP BY label_service_name ORDER BY cpu_seconds DESC, service LIMIT 20;

-- 4. How does the cost of a service change over time?
SELECT date_trunc('hour', time) AS hour, sum(value) / 1e9 AS cpu_seconds
FROM samples WHERE profile_type LIKE '%:cpu:nanoseconds:%' AND label_service_name = 'a'
GROUP BY date_trunc('hour', time) ORDER BY hour;

-- 5. Which services use a function, anywhere in their stacks?
WITH chosen AS (
        SELECT DISTINCT date, stack_id FROM stack_frames WHERE function = 'work'
)
SELECT label_service_name AS service, sum(value) / 1e9 AS cpu_seconds
FROM samples JOIN chosen USING (date, stack_id) WHERE profile_type LIKE '%:cpu:nanoseconds:%'
GROUP BY label_service_name ORDER BY cpu_seconds DESC, service;

-- 6. Who calls a function?
WITH callees AS (
        SELECT date, stack_id, position + 1 AS position FROM stack_frames WHERE function = 'work'
), callers AS (
        SELECT date, stack_id, function, min(position) AS nearest
        FROM stack_frames JOIN callees USING (date, stack_id, position) GROUP BY date, stack_id, function
)
SELECT function, sum(value) AS value
FROM stack_values JOIN callers USING (date, stack_id) WHERE unit = 'nanoseconds'
GROUP BY function ORDER BY value DESC, function LIMIT 20;

-- 7. Which functions became more expensive from one day to another?
WITH leaves AS (
        SELECT date, stack_id, function FROM stack_frames WHERE position = 1
), days AS (
        SELECT function, sum(CASE WHEN date = DATE '2026-11-01' THEN value ELSE 0 END) AS before,
                sum(CASE WHEN date = DATE '2026-11-02' THEN value ELSE 0 END) AS after
        FROM stack_values JOIN leaves USING (date, stack_id)
        WHERE profile_type LIKE '%:cpu:nanoseconds:%' GROUP BY function
)
SELECT function, before, after FROM days ORDER BY after - before DESC, function LIMIT 20;

-- 8. Which objects lack symbols, by the rows that have them?
WITH unnamed AS (
        SELECT DISTINCT date, stack_id, build_id, mapping, state
        FROM stack_frames WHERE state NOT IN ('resolved', 'sender')
)
SELECT build_id, mapping, state, count(*) AS sample_rows
FROM samples JOIN unnamed USING (date, stack_id)
GROUP BY build_id, mapping, state ORDER BY sample_rows DESC, build_id LIMIT 20;

-- 9. How good are the symbols?
SELECT state, quality, count(*) AS locations FROM locations GROUP BY state, quality ORDER BY locations DESC, state, quality;

-- 10. Which stacks, for flamegraph.pl and speedscope?
SELECT stack, value FROM folded WHERE profile_type LIKE '%:cpu:nanoseconds:%' AND value > 0 ORDER BY stack;
