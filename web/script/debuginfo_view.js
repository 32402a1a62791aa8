// SPDX-License-Identifier: Apache-2.0
//
// Debuginfo: missing debuginfo by samples, with the command that uploads it; stored objects; state of upstreams; and
// the explanation of an address's name. Keys of the selection: panel ('' or that of a part); those of the part.
'use strict';
const CairnDebuginfoView = (() => {
  const { make } = CairnDom, { display, sentence } = CairnNames, { formatValue, things } = CairnUnits, { commandBox, ago, duration } = CairnRecordTable;
  const { countText } = CairnLayout;
  const bytes = n => formatValue(n, 'bytes'), count = n => n.toLocaleString('en'), words = text => text.replaceAll('_', ' ');
  const shortId = id => make('span', { className: 'mono', textContent: id.length > 16 ? id.slice(0, 16) + '…' : id || 'none', title: id });
  const heading = text => make('h2', { textContent: text });

  // ---- missing debuginfo ----

  const HOW_TO_UPLOAD = 'Run a command where the object is: on the host that was profiled, or where it was built. A service with tokens requires one with scope upload: cairn-upload --token-file FILE, or CAIRN_TOKEN.';

  function createMissing(root, context) {
    let about = { samples: 0, unit: '' };
    const why = r => make('button', { type: 'button', textContent: 'Why', 'aria-label': `Why ${display(r.mapping, 80)} has no names`, onclick: () => context.go({ panel: 'why', build_id: r.build_id, address: null, function: null }) });
    const columns = reason => [
      { title: 'Samples', key: 'samples', number: true, text: r => count(r.samples) + (r.samples_are === 'stacks' ? ' stacks' : '') },
      { title: 'Share', key: 'percent', number: true, text: r => r.percent.toFixed(2) + '%', explain: 'Of all samples of the selection' },
      { title: 'Cost', key: 'value', number: true, text: r => r.value === undefined ? '' : formatValue(r.value, about.unit) },
      { title: 'Addresses', key: 'locations', number: true, text: r => count(r.locations) },
      reason,
      { title: 'Object', key: 'mapping', className: 'mono', text: r => r.mapping || '(unknown)' },
      { title: 'Build id', key: 'build_id', className: 'whole', node: r => shortId(r.build_id) },
    ];
    const detail = r => make('div', { className: 'help' }, ...(r.command ? [commandBox(r.command, r.mapping || r.build_id)] : []), why(r), make('p', { textContent: sentence(r.next_step) }));
    const filter = r => [r.mapping, r.build_id, r.state, r.quality];
    const sum = make('p', { className: 'soft' }), missingBox = make('div', { className: 'table-box' }), poorBox = make('div', { className: 'table-box' });
    const copyAll = make('button', { type: 'button', textContent: 'Copy all commands' }), said = make('span', { className: 'soft', role: 'status' });
    root.append(heading('Objects whose samples lack names'), sum, make('div', { className: 'bar' }, copyAll, said), missingBox,
      heading('Objects with names only'), make('p', { className: 'soft', textContent: 'Debuginfo would add their files, lines and inlined calls.' }), poorBox);
    const missing = CairnRecordTable.create(missingBox, columns({ title: 'Reason', key: 'state', text: r => words(r.state) }),
      { caption: 'Missing debuginfo', name: 'missing', keep: context.keep, thing: 'object', things: 'objects', sort: 'samples', filter, detail, page: 20, empty: 'Nothing is missing in this range.' });
    const poor = CairnRecordTable.create(poorBox, columns({ title: 'Names by', key: 'quality', text: r => r.state === 'sender' ? 'the sender' : words(r.quality) }),
      { caption: 'Objects with names only', name: 'poor', keep: context.keep, thing: 'object', things: 'objects', sort: 'samples', filter, detail, page: 20, empty: 'All other objects have lines.' });
    const ask = (selection, signal) => context.api.query('uploads', { ...CairnSelection.params(selection), server: CairnApi.serverUrl() }, signal);
    // Samples of several types have no common cost: take that of the type which other views show, as pick_type() of the service.
    const PREFERRED = [/^process_cpu:cpu:(ns|us|ms|s|(nano|micro|milli)?seconds):/, /^process_cpu:samples:count:/, /^process_cpu:cpu:/, /^process_cpu:samples:/];
    async function addCosts(selection, answer, signal) {
      if (answer.unit !== undefined || !answer.samples) return answer;
      const { selector, from, to } = selection, types = await context.api.query('types', { selector, from, to }, signal);
      const type = PREFERRED.map(p => types.find(t => p.test(t))).find(Boolean) || types[0];
      const costs = await ask({ ...selection, type }, signal);
      if (costs.unit === undefined) return answer;
      const value = new Map([...costs.missing, ...costs.poor].map(r => [r.build_id, r.value]));
      const add = rows => rows.map(r => ({ ...r, value: value.get(r.build_id) ?? 0 }));
      return { ...answer, unit: costs.unit, missing: add(answer.missing), poor: add(answer.poor) };
    }
    let all = [];
    copyAll.onclick = async () => {
      const commands = all.map(r => r.command).filter(Boolean), text = commands.join('\n') + '\n';
      said.textContent = await CairnFlameMenu.copyText(text) ? `${things(commands.length, 'command')} copied, the most useful first` : 'The browser does not allow it';
    };
    return async (selection, signal) => {
      about = await addCosts(selection, await ask(selection, signal), signal);
      all = about.missing;
      copyAll.parentElement.hidden = !all.length;
      if (all.length) context.note(HOW_TO_UPLOAD, 'how to upload');
      said.textContent = '';
      sum.textContent = !about.samples ? 'No samples here. Try a longer time range or another selector.' :
        all.length ? `${countText(about)}; ${things(all.length, 'object lacks', 'objects lack')} symbols.` : `${countText(about)}, all with names.`;
      missing.show(about.missing);
      poor.show(about.poor);
      missing.restore(selection);
      poor.restore(selection);
      context.about('');
    };
  }

  // ---- stored objects ----

  // 'upload (by NAME, tag)'
  const originOf = o => o.source + (o.token ? ` by ${o.token}` : '') + (o.tag ? `, ${o.tag}` : '');
  function createObjects(root, context) {
    let now = 0;
    const sum = make('p', { className: 'soft' }), box = make('div', { className: 'table-box' });
    root.append(heading('Stored objects'), sum, box);
    const table = CairnRecordTable.create(box, [
      { title: 'Object', key: 'name', className: 'mono', text: o => o.name || '(no name)' },
      { title: 'Kind', key: 'kind' },
      { title: 'Quality', key: 'quality', text: o => words(o.quality), explain: 'What its symbols come from' },
      { title: 'Index', key: 'state', text: o => words(o.state) + (o.partial ? ', partial' : '') },
      { title: 'Origin', key: 'origin' },
      { title: 'Size', key: 'size', number: true, text: o => bytes(o.size) },
      { title: 'On disk', key: 'stored_bytes', number: true, text: o => bytes(o.stored_bytes) },
      { title: 'Stored', key: 'stored_unix_s', number: true, node: o => ago(o.stored_unix_s, now) },
      { title: 'Last use', key: 'used_unix_s', number: true, node: o => ago(o.used_unix_s, now) },
      { title: 'Build id', key: 'build_id', className: 'whole', node: o => make('button', { type: 'button', className: 'link mono', title: o.build_id, textContent: o.build_id.slice(0, 16) + (o.build_id.length > 16 ? '…' : ''),
        onclick: () => context.go({ panel: 'why', build_id: o.build_id, address: null, function: null }) }) },
    ], { caption: 'Stored objects', name: 'objects', keep: context.keep, thing: 'object', things: 'objects', sort: 'used_unix_s', empty: 'Nothing is stored. cairn-upload sends debuginfo; upstreams and --scan bring their own.',
      filter: o => [o.name, o.kind, o.quality, o.state, o.origin, o.build_id, o.error, o.pinned ? 'pinned' : ''],
      detail: o => o.error || o.partial || o.pinned ? make('div', { className: 'help' }, make('p', { textContent: display([o.error && `Not indexed: ${o.error}.`, o.partial && `Partial: ${o.partial}.`, o.pinned && 'Pinned: retention never removes it.'].filter(Boolean).join(' ')) })) : null });
    return async (selection, signal) => {
      const { objects } = await context.api.get('api/v1/debuginfo', {}, signal);
      now = Date.now() / 1000;
      const total = key => objects.reduce((s, o) => s + o[key], 0), failed = objects.filter(o => o.index.state === 'failed').length;
      sum.textContent = objects.length ? `${things(objects.length, 'object')}, ${bytes(total('size'))}, ${bytes(total('stored_bytes'))} on disk` + (failed ? `; ${count(failed)} could not be indexed` : '') : '';
      table.show(objects.map(o => ({ ...o, state: o.index.state, error: o.index.error, partial: o.index.partial, origin: originOf(o) })));
      table.restore(selection);
      context.about('');
    };
  }

  // ---- upstreams ----

  const BREAKERS = { closed: 'works', open: 'paused after failures', 'half-open': 'being probed', half_open: 'being probed' };
  function createUpstreams(root, context) {
    let now = 0;
    const sum = make('p', { className: 'soft' }), box = make('div', { className: 'table-box' });
    root.append(heading('Upstream debuginfod servers'), sum, box);
    const number = (title, key, explain) => ({ title, key, number: true, text: u => count(u[key]), explain });
    const table = CairnRecordTable.create(box, [
      { title: 'Order', key: 'order', number: true, text: u => `${u.order}.`, explain: 'Position in the order of queries' },
      { title: 'Upstream', key: 'url', className: 'mono address' },
      { title: 'State', key: 'breaker', className: 'whole', text: u => (BREAKERS[u.breaker] || words(u.breaker)) + (u.retry_in_s ? ` for ${duration(u.retry_in_s)}` : '') },
      number('Found', 'found'), number('Missing', 'missing', 'It does not have the object'), number('Refused', 'refused', 'Its answer failed verification'),
      number('Failed', 'failed'), number('Unsure', 'unsure', 'It could not tell whether it has the object'), number('Skipped', 'skipped', 'Not queried, while paused after failures'),
      { title: 'Mean', key: 'mean_ms', number: true, text: u => formatValue(u.mean_ms * 1e6, 'nanoseconds') },
      { title: 'Slowest', key: 'slowest_ms', number: true, text: u => formatValue(u.slowest_ms * 1e6, 'nanoseconds') },
      { title: 'Received', key: 'bytes', number: true, text: u => bytes(u.bytes) },
      number('In flight', 'in_flight'),
    ], { caption: 'Upstreams', name: 'upstreams', keep: context.keep, thing: 'upstream', things: 'upstreams', sort: 'order', up: true, empty: 'No upstream is configured: cairn serve --upstream URL.',
      detail: u => u.last_error ? make('div', { className: 'help' }, make('p', {}, `Last error, `, ago(u.last_error_unix_s, now), `: ${display(u.last_error)}`)) : null });
    return async (selection, signal) => {
      context.about('');
      const answer = await context.api.get('api/v1/debuginfo/upstreams', {}, signal).catch(e => { if (e.status !== 403) throw e; return e; });
      if (answer instanceof Error) { // tokens that are bound to a tenant have no access
        sum.textContent = sentence(answer.message);
        box.hidden = true;
        return;
      }
      now = Date.now() / 1000;
      const q = answer.questions;
      sum.textContent = `${things(q.queued, 'query', 'queries')} queued, ${count(q.in_flight)} in flight; ${things(q.known_missing, 'answer', 'answers')} “missing” and ${things(q.known_failed, 'failure')} cached.`;
      sum.hidden = !answer.upstreams.length;
      table.show(answer.upstreams.map((u, i) => ({ ...u, order: i + 1 })));
      table.restore(selection);
    };
  }

  // ---- the view ----

  const PANELS = [['', 'Missing', createMissing], ['objects', 'Objects', createObjects], ['upstreams', 'Upstreams', createUpstreams], ['why', 'Why', (...all) => CairnWhy.create(...all)]];

  function create(root, context) {
    const parts = PANELS.map(([id, title, start]) => ({ id, start, box: make('div', { className: 'panel', hidden: true }), show: null,
      button: make('button', { type: 'button', textContent: title, 'aria-pressed': 'false', onclick: () => context.go({ panel: id || null }) }) }));
    root.append(make('div', { className: 'bar', role: 'group', 'aria-label': 'Parts of this view' }, ...parts.map(p => p.button)), ...parts.map(p => p.box));
    return {
      async show(selection, signal) {
        const part = parts.find(p => p.id === (selection.panel || '')) || parts[0];
        for (const p of parts) {
          p.button.setAttribute('aria-pressed', p === part);
          p.box.hidden = p !== part;
        }
        if (!part.show) part.show = part.start(part.box, context);
        await part.show(selection, signal);
      },
      destroy() {},
    };
  }

  return { create };
})();
