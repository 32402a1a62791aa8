// SPDX-License-Identifier: Apache-2.0
//
// The status of the service: conditions and their remedies, ingest and senders, queue, storage, and maintenance.
'use strict';
const CairnStatusView = (() => {
  const { make } = CairnDom, { display, sentence } = CairnNames, { formatValue, percent, things } = CairnUnits, { toText, zoneText } = CairnTimes, { ago, duration } = CairnRecordTable;
  const SILENT_S = 180; // agents send every few seconds, and at least once a minute
  const bytes = n => n ? formatValue(n, 'bytes') : '0 B', count = n => n.toLocaleString('en'), words = text => text.replaceAll('_', ' ');
  const batches = n => things(n, 'batch', 'batches');
  const day = s => s ? toText(s * 1000).slice(0, 16) + ' ' + zoneText(s * 1000) : '—';

  // A card of names and values: rows are [name, text or element]; rows without a value are omitted.
  function card(title, rows, ...more) {
    const list = make('dl', {}, ...rows.filter(r => r && r[1] !== undefined && r[1] !== '').map(([name, value]) => make('div', {}, make('dt', { textContent: name }), make('dd', {}, value))));
    return make('section', { className: 'card' }, make('h2', { textContent: title }), list, ...more);
  }
  function meter(value, most, name) {
    const bar = make('i'), part = most ? Math.min(1, value / most) : 0;
    bar.style.width = 100 * part + '%';
    return make('span', { className: 'meter' + (part > 0.8 ? ' high' : ''), role: 'meter', 'aria-label': name, 'aria-valuemin': '0', 'aria-valuemax': String(most), 'aria-valuenow': String(Math.min(value, most)),
      'aria-valuetext': percent(value, most) }, bar);
  }
  const failure = part => part.failing_since_unix_s ? make('p', { className: 'error', textContent: display(`Failing since ${day(part.failing_since_unix_s)}: ${part.failure}`) }) : null;

  // ---- conditions ----

  function conditionList(list, ready) {
    if (!list.length) return make('p', { className: 'ready', textContent: ready ? '✓ Ready. No problems found.' : 'The service is starting or stopping.' });
    return make('ul', { className: 'conditions' }, ...list.map(c => make('li', { className: c.severity },
      make('b', { textContent: `${c.severity === 'error' ? '✗ Error' : '! Warning'}: ${words(c.name)}` + (c.tenant ? ` (tenant ${c.tenant})` : '') }),
      make('p', { textContent: sentence(c.text) }), make('p', { textContent: 'Next: ' + sentence(c.next_step) }))));
  }

  // ---- ingest ----

  function bars(minutes) {
    const most = Math.max(1, ...minutes.map(m => m.samples)), total = minutes.reduce((s, m) => s + m.samples, 0);
    return make('div', { className: 'bars', role: 'img', 'aria-label': `Samples of each of the last ${things(minutes.length, 'minute')}: ${count(total)} in all, at most ${count(most)} in one` }, ...minutes.map(m => {
      const bar = make('i', { title: `${toText(m.start_unix_s * 1000).slice(11, 16)}: ${things(m.samples, 'sample')}, ${batches(m.batches)}` + (m.refused ? `, ${count(m.refused)} refused` : '') });
      bar.style.height = Math.max(m.samples ? 4 : 1, 100 * m.samples / most) + '%';
      if (m.refused) bar.className = 'refused';
      return bar;
    }));
  }
  function ingestCard(s) {
    const { minutes } = s.ingest, recent = minutes.slice(-5);
    const seconds = Math.max(1, s.now_unix_s - Math.max(recent[0].start_unix_s, s.ingest.since_unix_s)); // the last minute is incomplete
    const rate = (key, per) => (recent.reduce((sum, m) => sum + m[key], 0) * per / seconds).toLocaleString('en', { maximumFractionDigits: 1 });
    return card('Ingest', [
      ['Last 5 minutes', `${rate('samples', 1)} samples/s`], ['', `${rate('batches', 60)} batches/min`],
      ['Since the start', things(s.ingest.samples, 'sample')], ['', batches(s.ingest.batches)], ['Started', day(s.ingest.since_unix_s)],
      ['Sent again, counted once', s.ingest.duplicate_batches ? batches(s.ingest.duplicate_batches) : ''],
      ['Rejected', s.ingest.rejected_samples ? things(s.ingest.rejected_samples, 'sample') : ''],
    ], bars(minutes), make('p', { className: 'soft', textContent: 'Samples of each minute of the last hour' }));
  }

  // ---- the profile store ----

  // m: the metrics of the whole service; null without permission.
  function storeCards(s, m) {
    const q = s.queue, { tables, ...storage } = s.storage, r = s.resymbolization, k = s.retention;
    const rules = k.rules.map(rule => [make('span', { className: 'mono', textContent: display(rule.selector, 200) }), duration(rule.age_s)]);
    const delays = m && m.one('cairn_resymbolize_delays_total');
    return [
      card('Queue', [['Waits for the next flush', batches(q.batches)], ['', bytes(q.bytes)], q.limit_bytes ? ['Full at', bytes(q.limit_bytes)] : null,
        q.limit_bytes ? ['Filled', meter(q.bytes, q.limit_bytes, 'Queue')] : null, ['On disk', bytes(q.disk_bytes)],
        ['Quarantine', q.quarantined_batches ? `${batches(q.quarantined_batches)}, ${bytes(q.quarantined_bytes)}` : '']], failure(q)),
      card('Storage of samples', [['On disk', bytes(storage.bytes)], ['Oldest', day(storage.oldest_unix_s)], ['Newest', day(storage.newest_unix_s)],
        ...tables.flatMap(t => [[words(t.table[0].toUpperCase() + t.table.slice(1)), things(t.rows, 'row')], ['', `${things(t.files, 'file')}, ${bytes(t.bytes)}`]])]),
      card('Compaction', [['Small files to be merged', count(s.compaction.backlog_files)], ['Their size', bytes(s.compaction.backlog_bytes)],
        ...(m ? [['Merges since the start', count(m.one('cairn_compactions_total'))], ['Files merged', count(m.one('cairn_compaction_merged_files_total'))], ['Failed', count(m.one('cairn_compaction_failures_total'))]] : [])], failure(s.compaction)),
      card('Re-symbolization', [['Addresses without a name', count(r.unresolved_locations)],
        ['Requested', r.requests_running ? `runs: ${count(r.locations_done)} of ${things(r.locations_all, 'address', 'addresses')}` : r.locations_all ? `done: ${things(r.locations_all, 'address', 'addresses')}` : ''],
        ...(m ? [['Objects that wait', count(m.one('cairn_resymbolize_queue'))], ['Failing', m.one('cairn_resymbolize_failing') ? things(m.one('cairn_resymbolize_failing'), 'object') : ''],
          ['Rewritten since the start', things(m.one('cairn_resymbolize_locations_total'), 'address', 'addresses')], ['Upload-to-names time', delays ? `${formatValue(1e9 * m.one('cairn_resymbolize_delay_seconds_total') / delays, 'nanoseconds')} (average)` : '']] : [])]),
      card('Retention', [['Samples are kept', k.age_s ? duration(k.age_s) : k.size_bytes || rules.length ? 'at any age' : 'forever'], ['At most', k.size_bytes ? bytes(k.size_bytes) : ''], ...rules,
        ['Accepted if not older than', k.accepted_age_s ? duration(k.accepted_age_s) : ''], ['And not further ahead than', k.accepted_ahead_s ? duration(k.accepted_ahead_s) : '']], failure(k)),
    ];
  }

  // ---- the whole service ----

  // The metrics of the service: one(name) is a value, 0 for none; all(name) is [[value of its only label, value], ...].
  function readMetrics(list) {
    const named = new Map();
    for (const m of list) {
      if (!named.has(m.name)) named.set(m.name, []);
      named.get(m.name).push(m);
    }
    return {
      one: name => (named.get(name) || []).reduce((sum, m) => sum + m.value, 0),
      all: name => (named.get(name) || []).map(m => [(m.labels || '').replace(/^[^"]*"|"$/g, ''), m.value]),
    };
  }
  const ruleText = r => [r.tag && `tag=${r.tag}`, r.token && `token=${r.token}`, r.source && `source=${r.source}`, r.kind && `kind=${r.kind}`].filter(Boolean).join(', ') || 'all objects';
  const ruleBounds = r => [r.age_s && `${duration(r.age_s)} old`, r.unused_s && `${duration(r.unused_s)} unused`, r.size_bytes && bytes(r.size_bytes)].filter(Boolean).join(', ') || 'kept';
  function serviceCards(service, m) {
    const memory = m.all('cairn_memory_bytes'), limit = m.one('cairn_memory_limit_bytes');
    const held = memory.reduce((sum, [, v]) => sum + v, 0), uses = memory.filter(([, v]) => v).sort((a, b) => b[1] - a[1]);
    const threads = new Map(m.all('cairn_http_pool_threads')), queued = new Map(m.all('cairn_http_pool_queue'));
    const outcomes = new Map(m.all('cairn_uploads_total')), uploads = outcome => count(outcomes.get(outcome) || 0);
    return [
      card('Debuginfo', [['Stored', things(m.one('cairn_debuginfo_objects'), 'object')], ['', bytes(m.one('cairn_debuginfo_stored_bytes'))],
        ['Uploads stored', uploads('stored')], ['Refused', uploads('refused')], ['In progress', count(m.one('cairn_uploads_receiving'))],
        ['Waiting for index', count(m.one('cairn_index_queue'))], ['Postponed', m.one('cairn_index_postponed') ? count(m.one('cairn_index_postponed')) : ''], ['Could not be indexed', count(m.one('cairn_objects_failed_total'))],
        ...service.debuginfo_rules.map(r => [ruleText(r), ruleBounds(r)]), service.debuginfo_rules.length ? null : ['Retention', 'no rule: all are kept']]),
      card('Memory', [['Reserved', bytes(held)], ['Limit', bytes(limit)], ['Filled', limit ? meter(held, limit, 'Memory') : ''], ...uses.map(([use, v]) => [words(use), bytes(v)])]),
      card('Requests', [['Connections', count(m.one('cairn_http_connections'))],
        ...m.all('cairn_http_pool_busy').map(([pool, busy]) => [words(pool), `${count(busy)} of ${things(threads.get(pool) || 0, 'thread')}` + (queued.get(pool) ? `, ${count(queued.get(pool))} wait` : '')])]),
      service.disk ? card('Disk', [['Free', bytes(service.disk.free_bytes)], ['Of', bytes(service.disk.size_bytes)],
        ['Filled', meter(service.disk.size_bytes - service.disk.free_bytes, service.disk.size_bytes, 'Disk')]]) : null,
    ].filter(Boolean);
  }

  // ---- errors ----

  // Counters of failures; ingest has a separate list, with the last message of each.
  const WRONG = /fail|refus|reject|damag|limited|unreadable|quarantined|connections_ended|cancelled|skipped|torn|postponed_total|unnoted|suppressed|unwritten|scan_errors/;
  const isWrong = m => m.value > 0 && m.help && !/^cairn_ingest_/.test(m.name) &&
    (WRONG.test(m.name) || (m.name === 'cairn_uploads_total' && /refused|broken/.test(m.labels)) || isServerError(m));
  const isServerError = m => m.name === 'cairn_http_requests_total' && /5xx/.test(m.labels);
  // Of counters, only this one has the time of its last event.
  const lastFailure = (m, service) => isServerError(m) ? service.metrics.find(o => o.name === 'cairn_http_last_5xx_timestamp_seconds')?.value : undefined;
  const labelText = labels => (labels || '').replace(/"/g, '').replace(/,/g, ', ');
  function errorRecords(tenant, service) {
    const own = tenant.ingest.problems.map(p => ({ what: `${p.of} refused`, reason: words(p.reason), count: p.count, last: p.last_unix_s, problem: p }));
    return [...own, ...(service ? service.metrics.filter(isWrong).map(m => ({ what: m.help.replace(/\.$/, ''), reason: labelText(m.labels), count: m.value, name: m.name, last: lastFailure(m, service) })) : [])];
  }
  function errorDetail(e) {
    if (e.name === 'cairn_http_requests_total') return make('div', { className: 'help' }, make('p', { textContent: 'The log of the service has a line for each, with its path and reason.' }));
    if (!e.problem) return null;
    const from = [e.problem.agent, e.problem.address].filter(Boolean).join(', ');
    return make('div', { className: 'help' }, make('p', { textContent: display(`The last one: ${e.problem.text}` + (from ? ` (from ${from})` : '')) }), make('p', { textContent: 'Next: ' + sentence(e.problem.next_step) }));
  }

  // ---- hosts ----

  // Split "cairn-agent/0.1.0" into name and version.
  const splitAgent = text => { const at = text.indexOf('/'); return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1).split(' ')[0]]; };
  function versionsText(hosts) {
    const kinds = new Map();
    for (const h of hosts) {
      const key = [h.program || 'unknown', h.version].filter(Boolean).join(' ');
      kinds.set(key, (kinds.get(key) || 0) + 1);
    }
    return [...kinds].sort((a, b) => b[1] - a[1]).slice(0, 6).map(([name, n]) => `${display(name, 60)} (${count(n)})`).join(', ') + (kinds.size > 6 ? ', …' : '');
  }

  // Whether a sender sends again and again: an agent, or one that did so for some minutes. Others, such as an import or
  // curl, end after what they sent, which may be of any time.
  const repeats = h => h.program === 'cairn-agent' || (h.batches > 2 && h.last_unix_s - h.first_unix_s > SILENT_S);
  const isSilent = (h, now) => repeats(h) && now - h.last_unix_s > Math.max(SILENT_S, 3 * (h.last_unix_s - h.first_unix_s) / h.batches);

  function create(root, context) {
    let now = 0;
    const state = make('div'), cards = make('div', { className: 'cards' });
    const errorsBox = make('div', { className: 'table-box' }), hostsBox = make('div', { className: 'table-box' }), hostsNote = make('p', { className: 'soft' });
    root.append(make('div', { className: 'panel' }, state, cards, make('h2', { textContent: 'Errors by reason, since the start' }), errorsBox, make('h2', { textContent: 'Hosts' }), hostsNote, hostsBox));
    const errors = CairnRecordTable.create(errorsBox, [
      { title: 'What', key: 'what' },
      { title: 'Reason', key: 'reason' },
      { title: 'Count', key: 'count', number: true, text: e => count(e.count) },
      { title: 'Last', key: 'last', number: true, node: e => e.last ? ago(e.last, now) : make('span', { className: 'soft', textContent: '—' }) },
      { title: 'Metric', key: 'name', className: 'mono', text: e => e.name || '' },
    ], { caption: 'Errors', name: 'errors', keep: context.keep, thing: 'kind', things: 'kinds', sort: 'count', page: 20, empty: 'None.', filter: e => [e.what, e.reason, e.name], detail: errorDetail });
    const hosts = CairnRecordTable.create(hostsBox, [
      { title: 'Host', key: 'host', className: 'mono', text: h => h.host || '(not named)' },
      { title: 'Sent by', key: 'program', className: 'mono', text: h => h.program || '(unknown)' },
      { title: 'Version', key: 'version', className: 'mono', text: h => h.version || '—' },
      { title: 'Last batch', key: 'last_unix_s', number: true, node: h => make('span', { className: h.silent ? 'silent' : '' }, ago(h.last_unix_s, now), h.silent ? ' · silent' : '') },
      { title: 'Samples in last batch', key: 'last_samples', number: true, text: h => count(h.last_samples) },
      { title: 'Batches', key: 'batches', number: true, text: h => count(h.batches) },
      { title: 'Samples', key: 'samples', number: true, text: h => count(h.samples) },
      { title: 'Rejected', key: 'rejected_samples', number: true, text: h => count(h.rejected_samples) },
      { title: 'Clock', key: 'ahead', number: true, text: h => h.ahead === null ? '—' : Math.abs(h.ahead) < 60 ? 'in sync' : `${duration(Math.abs(h.ahead))} ${h.ahead > 0 ? 'ahead' : 'behind'}`, explain: 'Time of the newest sample of the last batch, against its arrival, of senders that send again and again' },
      { title: 'Address', key: 'address', className: 'mono' },
      { title: 'First seen', key: 'first_unix_s', number: true, node: h => ago(h.first_unix_s, now) },
    ], { caption: 'Hosts', name: 'hosts', keep: context.keep, thing: 'sender', things: 'senders', sort: 'last_unix_s', empty: 'Nothing was sent since the service started.', filter: h => [h.host, h.agent, h.address, h.silent ? 'silent' : ''] });

    return {
      async show(selection, signal) {
        const [tenant, senders] = await Promise.all([context.api.get('api/v1/status', {}, signal), context.api.get('api/v1/status/senders', {}, signal)]);
        const service = tenant.may_see_service ? await context.api.get('api/v1/status/service', {}, signal) : null;
        now = tenant.now_unix_s;
        state.replaceChildren(conditionList((service || tenant).conditions, tenant.ready),
          make('p', { className: 'soft', textContent: `Cairn ${tenant.version}` + (tenant.read_only ? ', read-only' : '') + (tenant.tenant ? `, tenant ${tenant.tenant}` : '') + (service ? '' : '. What concerns all tenants is not shown to a token of one.') }));
        const m = service && readMetrics(service.metrics);
        cards.replaceChildren(ingestCard(tenant), ...storeCards(tenant, m), ...(service ? serviceCards(service, m) : []));
        errors.show(errorRecords(tenant, service));
        const list = senders.senders.map(h => {
          const [program, version] = splitAgent(h.agent);
          return { ...h, program, version, silent: isSilent({ ...h, program }, now), ahead: !repeats({ ...h, program }) ? null : h.newest_sample_unix_s ? h.newest_sample_unix_s - h.last_unix_s : 0 };
        });
        const silent = list.filter(h => h.silent).length;
        hostsNote.hidden = !list.length;
        hostsNote.textContent = `${versionsText(list)}. ${silent ? `${count(silent)} silent.` : 'No sender is silent.'}` +
          (senders.forgotten ? ` ${count(senders.forgotten)} more were evicted from this list.` : '');
        hosts.show(list);
        errors.restore(selection);
        hosts.restore(selection);
        context.about('');
      },
      destroy() {},
    };
  }

  return { create };
})();
