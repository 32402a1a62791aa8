-- SPDX-License-Identifier: Apache-2.0
--
-- Cairn's tables and ready views for Spark 3.5 or later with Delta Lake. The variable `cairn` is where the tables are:
--
--     spark-sql --packages io.delta:delta-spark_2.12:3.3.2,org.apache.hadoop:hadoop-aws:3.3.4 \
--         --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension \
--         --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog \
--         --hivevar cairn=s3a://BUCKET/PREFIX/tables -i deploy/sql/spark.sql
--
-- Of files: cairn=/var/lib/cairn/profiles/tables. In PySpark: SET cairn=...; then each statement of this file.
-- Spark must only read: a second writer on S3 would lose commits (docs/operations.md, Object storage).

CREATE OR REPLACE TEMPORARY VIEW samples AS SELECT * FROM delta.`${cairn}/samples`;
CREATE OR REPLACE TEMPORARY VIEW stacks AS SELECT * FROM delta.`${cairn}/stacks`;
CREATE OR REPLACE TEMPORARY VIEW locations AS SELECT * FROM delta.`${cairn}/locations`;

-- One row per frame of a location, without lists and structs. place 1 is the innermost function.
-- A location without symbols is one frame, named by its address and object.
CREATE OR REPLACE TEMPORARY VIEW location_frames AS
WITH bare AS (
        SELECT *, size(frames) <= 0 OR frames IS NULL AS is_bare FROM locations
), placed AS (
        SELECT *, explode(sequence(1, CASE WHEN is_bare THEN 1 ELSE size(frames) END)) AS place FROM bare
)
SELECT location_id, place,
        CASE WHEN NOT is_bare
                THEN coalesce(frames[place - 1].function, frames[place - 1].linkage_name, '[no name]')
        WHEN mapping IS NOT NULL
                THEN concat('0x', lower(hex(coalesce(address, 0))), ' [', substring_index(mapping, '/', -1), ']')
        WHEN coalesce(address, 0) <> 0 THEN concat('0x', lower(hex(address)))
        ELSE '[unknown]' END AS function,
        CASE WHEN NOT is_bare THEN frames[place - 1].file END AS file,
        CASE WHEN NOT is_bare THEN frames[place - 1].line END AS line,
        CASE WHEN NOT is_bare THEN coalesce(frames[place - 1].inlined, false) ELSE false END AS inlined,
        build_id, mapping, is_kernel, state, quality
FROM placed;

-- One row per frame of a stack. position 1 is the innermost frame of the leaf.
CREATE OR REPLACE TEMPORARY VIEW stack_frames AS
WITH flat AS (
        SELECT date, stack_id, posexplode(location_ids) AS (depth, location_id) FROM stacks
)
SELECT date, stack_id, row_number() OVER (PARTITION BY date, stack_id ORDER BY depth, place) AS position,
        function, file, line, inlined, build_id, mapping, is_kernel, state, quality
FROM flat JOIN location_frames USING (location_id);

-- One row per type, date and stack: the sum of its values. Gauges, such as memory in use, are left out: their sum means
-- nothing (docs/sql-cookbook.md, Gauges).
CREATE OR REPLACE TEMPORARY VIEW stack_values AS
SELECT profile_type, unit, date, stack_id, sum(value) AS value
FROM samples
WHERE NOT profile_type RLIKE '^[^:]*:(heap-)?((goroutine(s|leak)?|threadcreate|threads|live|objects|space|inuse)(:|$)|(inuse|live)[_-])'
GROUP BY profile_type, unit, date, stack_id;

-- Functions by value: flat is the value of stacks with this leaf, cumulative counts a stack once for each function in it.
CREATE OR REPLACE TEMPORARY VIEW top AS
WITH functions AS (
        SELECT date, stack_id, function, coalesce(file, '') AS file, min(position) AS nearest
        FROM stack_frames GROUP BY date, stack_id, function, coalesce(file, '')
)
SELECT profile_type, unit, function, file, sum(CASE WHEN nearest = 1 THEN value ELSE 0 END) AS flat,
        sum(value) AS cumulative
FROM stack_values JOIN functions USING (date, stack_id)
GROUP BY profile_type, unit, function, file;

-- Folded stacks, root first.
CREATE OR REPLACE TEMPORARY VIEW folded AS
WITH texts AS (
        SELECT date, stack_id,
                array_join(transform(sort_array(collect_list(struct(-position AS depth, function))), x -> x.function), ';')
                        AS stack
        FROM stack_frames GROUP BY date, stack_id
)
SELECT profile_type, stack, sum(value) AS value
FROM stack_values JOIN texts USING (date, stack_id) GROUP BY profile_type, stack;
