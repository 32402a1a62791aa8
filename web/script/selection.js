// SPDX-License-Identifier: Apache-2.0
//
// The selection: the state of the page, as a plain object of strings. It is stored in the fragment of the URL, so that
// the browser's history and links work.
//   tenant                       whose samples, with a token for several tenants
//   selector, type, from, to     as in the query API
//   by, charts                   label names with commas; "multiples" for a chart of each group
//   base_selector, base_from, base_to   of a comparison
//   focus, ignore, hide, show    filters of the query API
//   search, zoom, colours, flip, recursion   of a flame graph (flame.js)
//   sort, filter, page           of a table (table.js, record_table.js); of a view with several, hosts_sort and the like
//   view                         the id of a view; other keys belong to views
'use strict';
const CairnSelection = (() => {
  const KEYS_MAX = 64, VALUE_MAX = 16384;
  const TIMES = ['from', 'to', 'base_from', 'base_to'];
  const DEFAULTS = { view: 'flame', from: 'now-15m', to: 'now' };

  // Parse location.hash.
  function parse(hash) {
    const selection = { ...DEFAULTS };
    let keys = 0;
    for (const [name, value] of new URLSearchParams(hash.replace(/^#/, ''))) {
      if (++keys > KEYS_MAX) break;
      if (/^[a-z][a-z0-9_]*$/.test(name)) selection[name] = value.slice(0, VALUE_MAX);
    }
    return selection;
  }
  function format(selection) {
    const p = new URLSearchParams();
    for (const [name, value] of Object.entries(selection))
      if (value !== undefined && value !== null && value !== '') p.set(name, value);
    return '#' + p;
  }

  // Apply a change, as for go(): null or '' removes a key. Keys specific to the previous view are removed.
  const SHARED = new Set(['view', 'tenant', 'selector', 'type', 'by', 'charts', ...TIMES, 'base_selector', 'focus', 'ignore', 'hide', 'show']);
  function change(selection, changes) {
    const next = {};
    const moved = changes.view !== undefined && changes.view !== selection.view;
    for (const [name, value] of Object.entries(selection)) if (!moved || SHARED.has(name)) next[name] = value;
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === undefined || value === '') delete next[name];
      else next[name] = String(value);
    }
    return { ...DEFAULTS, ...next };
  }

  // The selection with absolute times, for links.
  function makeAbsolute(selection, now) {
    const fixed = { ...selection };
    for (const name of TIMES) {
      if (!selection[name]) continue;
      const ms = CairnTimes.parse(selection[name], now);
      if (Number.isFinite(ms)) fixed[name] = CairnTimes.toIso(ms);
    }
    return fixed;
  }

  // The keys for what one sees of a table, such as "sort"; of a view with several tables "hosts_sort". The other way round,
  // what a selection says of a table.
  const tableKeys = (table, keys) => Object.fromEntries(Object.entries(keys).map(([key, value]) => [table ? `${table}_${key}` : key, value]));
  const tableState = (table, selection) => Object.fromEntries(['sort', 'filter', 'page'].map(key => [key, selection[table ? `${table}_${key}` : key]]));

  // The parameters of a query.
  const params = ({ selector, type, from, to }) => ({ selector, type, from, to });

  // A readable type: "process_cpu:cpu:nanoseconds:cpu:nanoseconds" is "CPU time".
  const TYPES = { 'process_cpu:cpu': 'CPU time', 'process_cpu:samples': 'CPU samples', 'process_cpu:latency': 'Latency', 'wall:wall': 'Wall-clock time',
    'off_cpu:off_cpu': 'Time waited', 'off_cpu:events': 'Time waited' };
  function typeText(id) {
    const [name, sample = ''] = id.split(':');
    return TYPES[name + ':' + sample] || [name, sample].filter(Boolean).join(' · ').replaceAll('_', ' ');
  }

  // Label names, or items that have one, in the order in which they are most often of use; all others follow as they came.
  const LABELS = ['service_name', 'env', 'deployment_environment', 'deployment_environment_name', 'version', 'service_version', 'host', 'host_name', 'namespace', 'k8s_namespace_name',
    'k8s_deployment_name', 'pod', 'k8s_pod_name', 'container', 'container_name', 'k8s_container_name', 'comm', 'process_executable_name', 'thread_name'];
  const orderLabels = (items, nameOf = name => name) => {
    const rank = item => (LABELS.indexOf(nameOf(item)) + LABELS.length + 1) % (LABELS.length + 1);
    return [...items].sort((a, b) => rank(a) - rank(b));
  };

  return { orderLabels, parse, format, change, makeAbsolute, params, tableKeys, tableState, typeText };
})();
