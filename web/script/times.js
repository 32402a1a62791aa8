// SPDX-License-Identifier: Apache-2.0
//
// Times as in the query API: "now-15m", "-1h30m", "2026-01-31T12:00:00Z", "2026-01-31", or a number of seconds,
// milliseconds, microseconds or nanoseconds. All results are milliseconds of the Unix epoch, NaN for an invalid time.
// Times are shown in UTC, or in local time if that was chosen, which is stored in this browser.
'use strict';
const CairnTimes = (() => {
  const UNITS = { ms: 1, s: 1e3, m: 60e3, h: 3600e3, d: 86400e3, w: 7 * 86400e3 };

  const KEY = 'cairn-times', LOCAL = 'local';
  function isLocal() {
    try { return localStorage.getItem(KEY) === LOCAL; } catch { return false; } // no storage, as of a saved page
  }
  // To be followed by a reload of the page, whose texts have times everywhere.
  function chooseLocal(wanted) {
    try {
      if (wanted) localStorage.setItem(KEY, LOCAL);
      else localStorage.removeItem(KEY);
    } catch { /* not kept */ }
  }
  const localOffset = ms => -60e3 * new Date(ms).getTimezoneOffset();
  const offset = ms => isLocal() ? localOffset(ms) : 0;
  function zoneOf(minutes) {
    const two = n => String(Math.floor(n)).padStart(2, '0'), size = Math.abs(minutes);
    return minutes ? `UTC${minutes < 0 ? '-' : '+'}${two(size / 60)}:${two(size % 60)}` : 'UTC';
  }
  // The zone of a time that is shown: "UTC", "UTC+05:30".
  const zoneText = ms => zoneOf(offset(ms) / 60e3);
  const localZoneText = ms => zoneOf(localOffset(ms) / 60e3);

  function parseDuration(text) {
    if (!/^(\d{1,15}|(\d{1,15}[a-z]+)+)$/.test(text)) return NaN; // who writes 1h30 means minutes, not seconds
    let sum = 0;
    for (const [, n, unit] of text.matchAll(/(\d+)([a-z]*)/g)) {
      const scale = unit ? UNITS[unit] : UNITS.s;
      if (!scale) return NaN;
      sum += n * scale;
    }
    return sum;
  }
  // In the largest units that divide it: 5400000 is "1h30m".
  function formatDuration(ms) {
    let text = '', left = Math.round(ms);
    for (const unit of ['w', 'd', 'h', 'm', 's', 'ms']) {
      const n = Math.floor(left / UNITS[unit]);
      if (unit === 'w' && left % UNITS.w) continue;
      if (n) text += n + unit;
      left -= n * UNITS[unit];
    }
    return text || '0s';
  }

  // A date without a zone is in UTC, or with `inLocal` in local time.
  function parse(text, now, inLocal) {
    const relative = /^(?:now)?(?:([+-])(.+))?$/.exec(text);
    if (relative && text) {
      if (!relative[1]) return now;
      if (relative[1] === '+' && !text.startsWith('now')) return NaN;
      return now + (relative[1] === '-' ? -1 : 1) * parseDuration(relative[2]);
    }
    if (/^\d+$/.test(text)) {
      const n = Number(text);
      return n < 1e11 ? n * 1000 : n < 1e14 ? n : n < 1e17 ? n / 1000 : n / 1e6;
    }
    const date = /^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)([Zz]|[+-]\d\d:\d\d)?)?$/.exec(text);
    const midnight = date ? Date.parse(date[1] + 'T00:00Z') : NaN;
    if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== date[1]) return NaN; // 30 February
    return Date.parse(date[1] + 'T' + (date[2] || '00:00') + (date[3] || (inLocal ? '' : 'Z')).toUpperCase());
  }

  const isRelative = text => text === '' || text.startsWith('now') || text.startsWith('-');
  // For the query API; without fractions if seconds are exact.
  const toIso = ms => new Date(ms).toISOString().replace('.000Z', 'Z');
  // For display.
  const toText = ms => Number.isFinite(ms) ? new Date(ms + offset(ms)).toISOString().slice(0, 19).replace('T', ' ') : '';

  // { from, to } of the selection in milliseconds, with the API's defaults.
  function resolveRange(selection, now) {
    const to = parse(selection.to || 'now', now);
    return { from: selection.from ? parse(selection.from, now) : to - 3600e3, to };
  }

  return { isLocal, chooseLocal, offset, zoneText, localZoneText, parse, parseDuration, formatDuration, isRelative, toIso, toText, resolveRange };
})();
