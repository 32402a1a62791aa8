-- SPDX-License-Identifier: Apache-2.0
--
-- Cairn's tables and ready views for ClickHouse 25.8 or later (clickhouse-local, a server, or chdb).
--
-- Of files, below user_files_path of a server or the working directory of clickhouse-local: the next three statements
-- with the path of the tables. Of an object store: replace deltaLakeLocal('PATH/samples') by
--     deltaLake('https://BUCKET.s3.REGION.amazonaws.com/PREFIX/tables/samples/', 'KEY', 'SECRET')
-- and likewise for the other tables.
--
--     clickhouse local --queries-file deploy/sql/clickhouse.sql deploy/sql/questions.sql

CREATE OR REPLACE VIEW samples AS SELECT * FROM deltaLakeLocal('cairn-data/profiles/tables/samples');
CREATE OR REPLACE VIEW stacks AS SELECT * FROM deltaLakeLocal('cairn-data/profiles/tables/stacks');
CREATE OR REPLACE VIEW locations AS SELECT * FROM deltaLakeLocal('cairn-data/profiles/tables/locations');

-- One row per frame of a location, without arrays and tuples. place 1 is the innermost function.
-- A location without symbols is one frame, named by its address and object.
CREATE OR REPLACE VIEW location_frames AS
WITH if(coalesce(address, 0) = 0, '0', trim(LEADING '0' FROM lower(hex(assumeNotNull(address))))) AS digits
SELECT location_id, place,
        CASE WHEN length(frames) > 0 THEN coalesce(frames.function[place], frames.linkage_name[place], '[no name]')
        WHEN mapping IS NOT NULL
                THEN concat('0x', digits, ' [', splitByChar('/', assumeNotNull(mapping))[-1], ']')
        WHEN digits <> '0' THEN concat('0x', digits)
        ELSE '[unknown]' END AS function,
        if(length(frames) > 0, frames.file[place], NULL) AS file,
        if(length(frames) > 0, frames.line[place], NULL) AS line,
        if(length(frames) > 0, coalesce(frames.inlined[place], false), false) AS inlined,
        build_id, mapping, is_kernel, state, quality
FROM locations ARRAY JOIN range(1, greatest(length(frames), 1) + 1) AS place;

-- One row per frame of a stack. position 1 is the innermost frame of the leaf.
CREATE OR REPLACE VIEW stack_frames AS
WITH flat AS (
        SELECT date, stack_id, assumeNotNull(location) AS location_id, depth
        FROM stacks ARRAY JOIN location_ids AS location, arrayEnumerate(location_ids) AS depth
)
SELECT date, stack_id, row_number() OVER (PARTITION BY date, stack_id ORDER BY depth, place) AS position,
        function, file, line, inlined, build_id, mapping, is_kernel, state, quality
FROM flat JOIN location_frames ON flat.location_id = location_frames.location_id;

-- One row per type, date and stack: the sum of its values. Gauges, such as memory in use, are left out: their sum means
-- nothing (docs/sql-cookbook.md, Gauges).
CREATE OR REPLACE VIEW stack_values AS
SELECT profile_type, unit, date, stack_id, sum(value) AS value
FROM samples
WHERE NOT match(profile_type, '^[^:]*:(heap-)?((goroutine(s|leak)?|threadcreate|threads|live|objects|space|inuse)(:|$)|(inuse|live)[_-])')
GROUP BY profile_type, unit, date, stack_id;

-- Functions by value: flat is the value of stacks with this leaf, cumulative counts a stack once for each function in it.
CREATE OR REPLACE VIEW top AS
WITH functions AS (
        SELECT date, stack_id, function, coalesce(file, '') AS source, min(position) AS nearest
        FROM stack_frames GROUP BY date, stack_id, function, source
)
SELECT profile_type, unit, function, source AS file, sum(CASE WHEN nearest = 1 THEN value ELSE 0 END) AS flat,
        sum(value) AS cumulative
FROM stack_values JOIN functions USING (date, stack_id)
GROUP BY profile_type, unit, function, source;

-- Folded stacks, root first.
CREATE OR REPLACE VIEW folded AS
WITH texts AS (
        SELECT date, stack_id,
                arrayStringConcat(arrayMap(x -> x.2, arrayReverseSort(groupArray((position, function)))), ';') AS stack
        FROM stack_frames GROUP BY date, stack_id
)
SELECT profile_type, stack, sum(value) AS value
FROM stack_values JOIN texts USING (date, stack_id) GROUP BY profile_type, stack;
