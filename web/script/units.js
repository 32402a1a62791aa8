// SPDX-License-Identifier: Apache-2.0
//
// Values, shares and times as text.
'use strict';
const CairnUnits = (() => {
  function scaled(v, scales) {
    for (const [least, unit] of scales)
      if (Math.abs(v) >= least || least === 1) {
        const x = v / least;
        return x.toFixed(Math.abs(x) < 9.995 ? 2 : 1) + ' ' + unit;
      }
  }
  // The units of sample types, in nanoseconds or bytes, in any case and number, as profile_unit_find().
  const TIMES = { __proto__: null, nanosecond: 1, ns: 1, microsecond: 1e3, us: 1e3, millisecond: 1e6, ms: 1e6, second: 1e9, sec: 1e9, s: 1e9 };
  const SIZES = { __proto__: null, byte: 1, b: 1, kilobyte: 1024, kb: 1024, megabyte: 2 ** 20, mb: 2 ** 20, gigabyte: 2 ** 30, gb: 2 ** 30 };
  function unitIn(units, name) {
    const n = String(name).toLowerCase().replace(/^[µμ]/, 'u');
    return units[n] || units[n.replace(/(..)s$/, '$1')];
  }
  function formatValue(v, unit) {
    if (v === 0) return '0';
    const time = unitIn(TIMES, unit), size = unitIn(SIZES, unit);
    if (time)
      return scaled(v * time, [[3600e9, 'h'], [60e9, 'min'], [1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']]);
    if (size)
      return scaled(v * size, [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [1024, 'KiB'], [1, 'B']]);
    return v.toLocaleString('en');
  }
  const percent = (v, total) => (total ? 100 * v / total : 0).toFixed(2) + '%';
  // The difference of two values with its sign and unit, and how many times the first the second is: "+1.23 s, ×1.36".
  function changeText(before, after, unit) {
    const change = after - before;
    return !change ? '0' : (change > 0 ? '+' : '') + formatValue(change, unit) + ratioText(before, after);
  }
  // The difference of two shares (0 to 1) in percentage points: "+17.10 pp, ×1.36".
  function pointsText(before, after) {
    const points = (100 * (after - before)).toFixed(2);
    return Number(points) ? (points > 0 ? '+' : '') + points + ' pp' + ratioText(before, after) : '0';
  }
  const ratioText = (before, after) => before > 0 ? `, ×${(after / before).toFixed(2)}` : after > 0 ? ', new' : '';
  // Whether values are CPU time, which per second is the number of cores in use.
  const isCores = answer => /^[^:]*:cpu:/.test(answer.type) && !!unitIn(TIMES, answer.unit);
  // The cores of so much CPU time in a number of milliseconds.
  function coresText(value, unit, ms) {
    const cores = value * unitIn(TIMES, unit) / (ms * 1e6);
    if (cores > 0 && cores < 1e-6) return '<0.000001';
    return cores && cores < 0.095 ? String(Number(cores.toPrecision(2))) : cores.toFixed(2);
  }
  // The title of a column with numbers of samples.
  const samplesTitle = answer => answer.samples_are === 'stacks' ? 'Stacks' : 'Samples';
  // A number of things: "1 batch", "2,000 batches".
  const things = (n, one, more = one + 's') => `${n.toLocaleString('en')} ${n === 1 ? one : more}`;

  return { formatValue, percent, changeText, pointsText, isCores, coresText, samplesTitle, things };
})();
