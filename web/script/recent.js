// SPDX-License-Identifier: Apache-2.0
//
// The last selections, stored in this browser: selector, type and grouping, without times.
'use strict';
const CairnRecent = (() => {
  const KEY = 'cairn-recent', COUNT_MAX = 12, TEXT_MAX = 2000;
  const KEYS = ['selector', 'type', 'by'];

  function read() {
    try {
      const kept = JSON.parse(localStorage.getItem(KEY));
      return Array.isArray(kept) ? kept.filter(q => q && typeof q.selector === 'string' && KEYS.every(k => q[k] === undefined || typeof q[k] === 'string')).slice(0, COUNT_MAX) : [];
    } catch {
      return [];
    }
  }
  function add(selection) {
    const query = {};
    for (const k of KEYS) if (selection[k]) query[k] = selection[k];
    const text = JSON.stringify(query);
    if (!query.selector || text.length > TEXT_MAX) return;
    const kept = [query, ...read().filter(q => JSON.stringify(q) !== text)].slice(0, COUNT_MAX);
    try { localStorage.setItem(KEY, JSON.stringify(kept)); } catch { /* not kept */ }
  }
  function clear() {
    try { localStorage.removeItem(KEY); } catch { /* nothing is kept */ }
  }

  return { read, add, clear, KEYS };
})();
