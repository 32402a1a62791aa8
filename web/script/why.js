// SPDX-License-Identifier: Apache-2.0
//
// The explanation of an address's name, file and line, or their absence: the report of the service
// (docs/formats/why.md) as steps. Keys of the selection: build_id, address and address_kind; or function, or only
// build_id, whose addresses are listed.
'use strict';
const CairnWhy = (() => {
  const { make } = CairnDom, { display, sentence } = CairnNames, { formatValue, things } = CairnUnits, { commandBox } = CairnRecordTable;
  const LISTED = 200;
  const words = text => String(text).replaceAll('_', ' '), count = n => n.toLocaleString('en');
  const kindOf = row => row.address_kind === 'file_offset' ? 'file_offset' : null; // of the selection: an address has none
  const frameText = f => f.function + (f.file ? ` at ${f.file}${f.line ? ':' + f.line : ''}` : ', without a file') + (f.inlined ? ', inlined' : '');

  // Any JSON, as nested lists.
  function describe(value) {
    if (Array.isArray(value)) return value.length ? make('ol', {}, ...value.map(v => make('li', {}, describe(v)))) : document.createTextNode('none');
    if (value === null || typeof value !== 'object') return document.createTextNode(display(value === true ? 'yes' : value === false ? 'no' : value === '' ? '—' : value));
    return make('dl', {}, ...Object.entries(value).flatMap(([k, v]) => [make('dt', { textContent: display(words(k)) }), make('dd', {}, describe(v))]));
  }
  const details = (title, value) => value === undefined ? null : make('details', {}, make('summary', { textContent: title }), describe(value));

  // One step: whether it succeeded (null: neither), its title, its results.
  function stepItem(good, title, lines, ...more) {
    const mark = good === null ? '' : good ? '✓ ' : '✗ ';
    return make('li', { className: good === null ? '' : good ? 'good' : 'bad' }, make('b', { textContent: mark + title }),
      ...lines.map(text => make('p', { textContent: display(text) })), ...more);
  }

  function fileStep(report) {
    const files = report.files || [];
    if (report.error) return stepItem(false, 'Files', [`They could not be explained: ${report.error}.`]);
    return stepItem(files.length > 0, 'Files', files.length ? files.map(f => `${f.role}: ${f.name || 'no name'}, ${f.found}` + (f.quality ? `, ${words(f.quality)}` : '') + (f.bytes ? `, ${formatValue(f.bytes, 'bytes')}` : '')) :
      ['No file of this build id is stored.'], details('All about them', files.length ? files : undefined));
  }
  function indexStep(report) {
    const i = report.index;
    if (!i) return null;
    const text = i.error ? `${words(i.state)}: ${i.error}` : i.state === 'indexed' ? `Indexed, names by ${words(i.quality)}, ${things(i.ranges, 'range')} of addresses.` : `The object is not in the index: ${words(i.state)}.`;
    return stepItem(i.state === 'indexed', 'Index of symbols', [text, ...(report.partial ? [`Some of it could not be read: ${report.partial}`] : [])], details('All about it', i));
  }
  function placeStep(r) {
    const p = r.place;
    if (!p) return null;
    const text = p.section ? `In section ${p.section}, which is ${p.section_is_code ? 'code' : 'no code'}.` : p.segment ? `In the segment at ${p.segment}, which is ${p.segment_is_code ? 'code' : 'no code'}.` : 'In no section and no segment of the file.';
    return stepItem(Boolean(p.section || p.segment) && p.is_code !== false, 'Place in the file', [text]);
  }
  function sourceStep(r) {
    if (!r.sources) return null;
    return stepItem(r.sources.length > 0, 'Sources of names for this address, the best first', r.sources.length ? r.sources.map(s => `${words(s.source)}: ${(s.frames || []).map(frameText).join(' ← ') || 'no name'}`) :
      ['None of DWARF, line tables, symbol tables and Go’s tables covers it.']);
  }
  function secondStep(r, report) {
    if (report.second_opinion_error) return stepItem(null, 'Second opinion', [`libdw has none: ${report.second_opinion_error}`]);
    if (!r.second_opinion) return null;
    return stepItem(r.second_opinion.agrees, 'Second opinion', [r.second_opinion.agrees ? 'libdw says the same.' : 'libdw says something else.'], details('What libdw says', r.second_opinion));
  }
  function rowText(row) {
    return row ? [`${row.file}:${row.line}` + (row.column ? `, column ${row.column}` : '')] : [];
  }

  // upload: this object's entry in the list of missing debuginfo, if any.
  function resultSection(report, r, upload) {
    const frames = (r.frames || []).length ? r.frames : (r.index && r.index.frames) || [], resolved = r.state === 'resolved';
    const lineless = resolved && !frames.some(f => f.line);
    const said = resolved ? (r.source ? `Named by ${words(r.source)}` + (r.name_source ? `, the function by ${words(r.name_source)}` : '') : 'Named by the index') + (lineless ? '; without a line' : '') + '.' : `No name: ${words(r.state)}.`;
    const next = r.next_step || (lineless ? 'upload debuginfo of the object: what is stored has names only' : '');
    const steps = [fileStep(report), indexStep(report), placeStep(r), sourceStep(r),
      r.unit ? stepItem(true, 'Unit of DWARF', [`${r.unit.name || 'no name'}` + (r.unit.producer ? `, by ${r.unit.producer}` : '')], details('All about it', { unit: r.unit, split_unit: r.split_unit, other_units: r.other_units })) : null,
      r.scopes && r.scopes.length ? stepItem(true, 'Functions around it, innermost first', r.scopes.map(s => `${words(s.tag)} ${s.name || ''}`), details('All about them', r.scopes)) : null,
      r.line_row ? stepItem(true, 'Row of the line table', rowText(r.line_row), details('All about it', r.line_row)) : null,
      r.symbol ? stepItem(true, 'Symbol', [`${r.symbol.name}, of ${r.symbol.table || 'a symbol table'}`], details('All about it', r.symbol)) : null,
      r.go ? stepItem(true, 'Go’s table of functions', [r.go.name], details('All about it', r.go)) : null,
      secondStep(r, report)];
    return make('section', { className: 'why' }, make('h2', { className: 'mono', textContent: display(r.address) + (r.file_offset ? `, at offset ${display(r.file_offset)} of the file` : '') }),
      make('p', {}, make('b', { textContent: display(said) }), r.meaning ? ' ' + sentence(r.meaning) : ''),
      frames.length ? make('ul', { className: 'frames' }, ...frames.map(f => make('li', { className: 'mono', textContent: display(frameText(f)) }))) : null,
      next || (upload && (!resolved || lineless)) ? make('div', { className: 'missing', role: 'note' }, next ? make('p', { textContent: 'Next: ' + sentence(next) }) : null,
        upload && (!resolved || lineless) ? commandBox(upload.command, upload.mapping || report.build_id) : null) : null,
      make('h3', { textContent: 'Steps' }), make('ol', { className: 'steps' }, ...steps.filter(Boolean)), details('The whole report', { ...report, results: [r] }));
  }

  function create(root, context) {
    const id = make('input', { className: 'mono', size: 42, spellcheck: false, autocomplete: 'off', placeholder: 'build id' });
    const at = make('input', { className: 'mono', size: 32, spellcheck: false, autocomplete: 'off', placeholder: '0x401000, several with commas' });
    const offsets = make('input', { type: 'checkbox' }), second = make('input', { type: 'checkbox' });
    const form = make('form', { className: 'bar' }, make('label', {}, 'Build id ', id), make('label', {}, 'Addresses ', at), make('label', {}, offsets, ' offsets in the file'), make('label', {}, second, ' compare with libdw'), make('button', { type: 'submit', textContent: 'Explain' }));
    const title = make('p', {}), list = make('div', { className: 'table-box addresses', hidden: true }), report = make('div', { className: 'reports' });
    root.append(form, title, report, list);
    form.addEventListener('submit', event => {
      event.preventDefault();
      context.go({ build_id: id.value.trim(), address: at.value.replace(/\s/g, ''), address_kind: offsets.checked ? 'file_offset' : null, second: second.checked ? 1 : null, function: null });
    });
    let about = { unit: '' };
    const table = CairnRecordTable.create(list, [
      { title: 'Self', key: 'flat', number: true, text: r => formatValue(r.flat, about.unit) },
      { title: 'Total', key: 'cumulative', number: true, text: r => formatValue(r.cumulative, about.unit) },
      { title: 'Address', key: 'address', node: r => r.build_id ? make('button', { type: 'button', className: 'link mono', textContent: r.address, 'aria-label': `Why ${r.address}`,
        onclick: () => context.go({ build_id: r.build_id, address: r.address, address_kind: kindOf(r) }) }) : make('span', { className: 'mono', textContent: r.address }) },
      { title: 'State', key: 'state', text: r => words(r.state) + (r.meaning ? '' : `, by ${words(r.quality)}`) },
      { title: 'Name', key: 'function', className: 'mono' },
      { title: 'Line', key: 'file', className: 'mono', text: r => r.file ? r.file + (r.line ? ':' + r.line : '') : 'none' },
      { title: 'Object', key: 'object', className: 'mono', text: r => r.object || '(unknown)' },
    ], { caption: 'Addresses', name: 'addresses', keep: context.keep, thing: 'address', things: 'addresses', sort: 'cumulative', page: 20, empty: 'No sample of this selection is at such an address.',
      filter: r => [r.address, r.state, r.function, r.file, r.object, r.build_id] });

    async function listAddresses(selection, signal) {
      about = await context.api.query('addresses', { ...CairnSelection.params(selection), ...CairnFilters.params(selection), function_name: selection.function, build_id: selection.build_id, limit: LISTED }, signal);
      table.show(about.rows);
      table.restore(selection);
      list.hidden = false;
      title.textContent = (selection.function ? `Addresses of ${display(selection.function, 200)}` : 'Addresses of the object') +
        (about.address_count > about.rows.length ? `: the ${LISTED} of ${count(about.address_count)} that cost most.` : '.');
      return about.rows[0];
    }
    const explain = (build_id, address, address_kind, selection, signal) => Promise.all([
      context.api.get('api/v1/why', { build_id, address, address_kind, second_opinion: selection.second ? 'true' : null }, signal),
      context.api.query('uploads', { ...CairnSelection.params(selection), server: CairnApi.serverUrl() }, signal).catch(e => { if (e.name === 'AbortError') throw e; return { missing: [], poor: [] }; }),
    ]);

    return async (selection, signal) => {
      id.value = selection.build_id || '';
      at.value = selection.address || '';
      offsets.checked = selection.address_kind === 'file_offset';
      second.checked = Boolean(selection.second);
      report.replaceChildren();
      title.textContent = '';
      list.hidden = true;
      context.about('');
      if (selection.function === CairnNames.JIT && !selection.address) {
        report.append(make('div', { className: 'missing', role: 'note' }, make('p', { textContent: CairnNames.JIT_TEXT })));
        return;
      }
      const first = selection.function || (selection.build_id && !selection.address) ? await listAddresses(selection, signal) : undefined;
      const build_id = selection.address ? selection.build_id : first && first.build_id, address = selection.address || (first && first.address);
      if (!build_id) {
        if (first) report.append(make('div', { className: 'missing', role: 'note' }, make('p', { textContent: sentence(first.meaning || words(first.state)) }), first.next_step ? make('p', { textContent: 'Next: ' + sentence(first.next_step) }) : null));
        else if (!selection.function && !selection.build_id) title.textContent = 'Enter a build-id and an address. Frames have “Why it has no name” in their menu, and tables here have “Why”.';
        return;
      }
      const [answer, uploads] = await explain(build_id, address, selection.address ? selection.address_kind : kindOf(first), selection, signal);
      const upload = [...uploads.missing, ...uploads.poor].find(u => u.build_id === build_id);
      report.replaceChildren(...answer.results.map(r => resultSection(answer, r, upload)));
    };
  }

  return { create };
})();
