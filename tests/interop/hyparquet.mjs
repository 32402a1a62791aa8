// SPDX-License-Identifier: Apache-2.0
// Rows of a Parquet file as JSON: hyparquet.mjs FILE COLUMN... Bytes are a text of their values and 64-bit numbers are
// text; a date is left to the caller, which has it from the path.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const modules = process.env.NODE_PATH
const load = path => import(pathToFileURL(path).href)
const { asyncBufferFromFile, parquetReadObjects } = await load(`${modules}/hyparquet/src/node.js`)
const { compressors } = await load(createRequire(`${modules}/`).resolve('hyparquet-compressors'))

const [path, ...columns] = process.argv.slice(2)
const file = await asyncBufferFromFile(path)
const rows = await parquetReadObjects({ file, columns: columns.filter(c => c !== 'date'), compressors, utf8: false })
const plain = (key, value) => typeof value === 'bigint' ? String(value)
    : value instanceof Uint8Array ? String.fromCharCode(...value) : value
console.log(JSON.stringify(rows, plain))
