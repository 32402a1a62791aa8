// SPDX-License-Identifier: Apache-2.0
//
// The cost of each line of a function, beside its text, with the calls inlined there; and its instructions. Keys of the
// selection: function (a name), file (one of its files), line (initial position), panel ("code": instructions),
// build_id, syntax; compared: lines or instructions of both sides of a comparison, whose keys are those of diff_view.js;
// base_build_id: the object before.
'use strict';
const CairnSourceView = (() => {
  const { make } = CairnDom, { formatValue, percent } = CairnUnits, { visible } = CairnCodeList, { commandBox } = CairnRecordTable, { sentence } = CairnNames;

  const FUNCTIONS = 1000; // listed while none is chosen
  const NOT_CHOSEN = { file: null, line: null, build_id: null, base_build_id: null }; // of another function

  // One entry per line of the file: merges rows of several functions.
  function sumLines(rows, file) {
    const lines = new Map();
    for (const r of rows) {
      if (r.file !== file || (!r.line && !r.flat && !r.cumulative)) continue;
      const line = lines.get(r.line);
      if (!line) { lines.set(r.line, { flat: r.flat, cumulative: r.cumulative, function: r.function, source: r.source, inlined: [...(r.inlined || [])] }); continue; }
      line.flat += r.flat;
      line.cumulative = Math.max(line.cumulative, r.cumulative);
      line.inlined.push(...(r.inlined || []));
    }
    return lines;
  }

  // All lines with their text, or without a text those with cost. `opened`: lines whose inlined calls are shown.
  function makeItems(lines, text, opened) {
    const items = [];
    const add = (n, source) => {
      const line = lines.get(n);
      items.push({ kind: 'line', n, source, ...(line && { flat: line.flat, cumulative: line.cumulative, inlined: line.inlined }) });
      if (line && opened.has(n)) for (const call of line.inlined) items.push({ kind: 'site', n, call, flat: call.flat, cumulative: call.cumulative });
    };
    if (text !== undefined) {
      const all = text.split('\n');
      if (all[all.length - 1] === '') all.pop();
      if (lines.has(0)) add(0, '(code without a line)');
      all.forEach((source, i) => add(i + 1, source.replace(/\r$/, '')));
      for (const n of [...lines.keys()].sort((a, b) => a - b)) if (n > all.length) add(n, '(past the end of this text: the sources are not those of the object)');
    } else {
      for (const n of [...lines.keys()].sort((a, b) => a - b)) add(n, lines.get(n).source ?? lines.get(n).function);
    }
    return items;
  }

  // The lines of two versions beside each other: those after, with the lines before at their place. An item has `n` and
  // `source` after, `n_before` and `source_before` before, and the total cost on both sides.
  function makeComparedItems(answer, file) {
    const costs = new Map(), items = [], keyOf = (n, isRemoved) => isRemoved ? -n : n;
    for (const r of answer.rows) {
      if (r.file !== file.file) continue;
      const key = keyOf(r.line, r.is_removed), c = costs.get(key) || { before: 0, after: 0, self: [0, 0], source: r.source };
      c.before = Math.max(c.before, r.cumulative);
      c.after = Math.max(c.after, r.cumulative_after);
      c.self = [c.self[0] + r.flat, c.self[1] + r.flat_after];
      costs.set(key, c);
    }
    const add = (item, key) => {
      const c = costs.get(key);
      costs.delete(key);
      if (!c) { items.push({ kind: 'line', rank: 0, ...item }); return; }
      const shares = [answer.total ? c.before / answer.total : 0, answer.total_after ? c.after / answer.total_after : 0];
      items.push({ kind: 'line', ...c, rank: Math.abs(shares[1] - shares[0]), change: CairnUnits.pointsText(...shares).replace(/,.*/, ''), source: c.source, ...item });
    };
    const split = text => { const all = (text || '').split('\n'); if (all[all.length - 1] === '') all.pop(); return all.map(s => s.replace(/\r$/, '')); };
    const after = split(file.text), before = split(file.base_text), beforeOf = file.lines_before;
    let next = 1;
    after.forEach((source, i) => {
      const b = beforeOf ? beforeOf[i] : i + 1;
      for (; beforeOf && b && next < b; next++) add({ n_before: next, source_before: before[next - 1], source: '' }, -next);
      if (b) next = b + 1;
      add(beforeOf ? { n: i + 1, source, n_before: b, source_before: b ? before[b - 1] : '' } : { n: i + 1, source }, i + 1);
    });
    for (; beforeOf && next <= before.length; next++) add({ n_before: next, source_before: before[next - 1], source: '' }, -next);
    for (const key of [...costs.keys()].sort((a, b) => a - b)) add(key ? { n: Math.abs(key) } : { source: '(code without a line)' }, key); // without a text
    return items;
  }

  // more: an element with another action, or null.
  function missingBox(missing, what, more) {
    return make('div', { className: 'missing', role: 'note' }, make('p', { textContent: `${what}: ${visible(missing.reason)}.` }),
      missing.next_step ? make('p', { textContent: 'Next: ' + sentence(missing.next_step) }) : null,
      missing.command ? commandBox(missing.command, 'what is missing') : null, more);
  }

  function create(root, context) {
    const form = make('form', { className: 'bar source-bar' });
    const name = make('input', { name: 'function', className: 'mono grow', 'aria-label': 'Function', placeholder: 'name of a function', autocomplete: 'off', spellcheck: false });
    const panels = [['', 'Lines'], ['code', 'Disassembly']].map(([id, title]) =>
      make('button', { type: 'button', textContent: title, 'aria-pressed': 'false', value: id, onclick: () => context.go({ panel: id }) }));
    const choice = (label, key) => {
      const select = make('select', { 'aria-label': label, onchange: () => context.go({ [key]: select.value, line: null }) });
      return select;
    };
    const file = choice('File', 'file'), object = choice('Object', 'build_id'), baseObject = choice('Object before', 'base_build_id'), syntax = choice('Syntax', 'syntax');
    syntax.append(new Option('Intel syntax', ''), new Option('AT&T syntax', 'att'));
    const place = make('span', { className: 'soft', role: 'status' });
    const step = (text, key, title, by) => make('button', { type: 'button', textContent: text, title, 'aria-keyshortcuts': key, onclick: () => { shown?.moveHot(by); shown?.focus(); } });
    const steps = [step('Previous hottest', 'p', 'Key p', -1), step('Next hottest', 'n', 'Key n', 1)];
    const notice = make('div'), linesBox = make('div', { className: 'code-box' }), comparedBox = make('div', { className: 'code-box compared' }), codeBox = make('div', { className: 'code-box' }), comparedCodeBox = make('div', { className: 'code-box compared' });
    const top = make('div', { className: 'table-box' });
    let about = { unit: '', total: 0 };
    const table = CairnTable.create(top, CairnTable.costColumns(() => about), { caption: 'Functions', sort: 'flat', filter: ['function', 'file', 'object', 'short_name'],
      open: row => context.go({ function: row.function, sort: null, filter: null }), keep: context.keep });
    const paramsOf = selection => ({ ...CairnSelection.params(selection), ...CairnFilters.params(selection), function_name: selection.function, server: CairnApi.serverUrl() });
    const alone = make('button', { type: 'button', textContent: 'The side after alone', onclick: () => context.go({ compared: null, base_build_id: null }) });
    form.append(name, ...panels, alone, file, baseObject, object, syntax, ...steps, place);
    form.addEventListener('submit', event => {
      event.preventDefault();
      context.go({ ...NOT_CHOSEN, function: name.value.trim() });
    });
    root.append(form, notice, linesBox, comparedBox, codeBox, comparedCodeBox, top);

    let shown = null, current = null; // the visible list; its file: { lines, text, opened, answer }
    const moved = list => i => {
      const rank = i < 0 ? -1 : list().rankOf(i), count = list().hotCount();
      place.textContent = rank < 0 ? `${count} with cost` : `${rank + 1} of ${count} by cost`;
    };
    const lines = CairnCodeList.create(linesBox, { label: 'Lines', columns: ['Line', 'Source'], fill, open, moved: moved(() => lines) });
    const compared = CairnCodeList.create(comparedBox, { label: 'Lines of both sides', columns: ['Line', 'Text before', 'Line', 'Text after'], fill: fillCompared, open() {},
      moved: moved(() => compared), costs: [['Before', 'before', 'self'], ['After', 'after', 'all'], ['Change', 'change', 'change']] });
    const goElsewhere = changes => context.go({ ...NOT_CHOSEN, ...changes });
    const code = CairnDisassembly.create(codeBox, goElsewhere, moved(() => code));
    const comparedCode = CairnComparedCode.create(comparedCodeBox, goElsewhere, moved(() => comparedCode));

    // ---- lines ----

    function toggle(item, at) {
      if (current.opened.has(item.n)) current.opened.delete(item.n);
      else current.opened.add(item.n);
      lines.show(makeItems(current.lines, current.text, current.opened), current.answer, at);
      moved(() => lines)(at);
      lines.focus();
    }
    const openCall = call => context.go({ ...NOT_CHOSEN, function: call.function });
    function fill(item, row, i) {
      const text = make('span', { role: 'gridcell', className: 'c-text' });
      if (item.kind === 'site') {
        text.append('inlined: ', make('button', { type: 'button', className: 'link', tabIndex: -1, textContent: visible(item.call.function),
          title: visible(item.call.file), onclick: () => openCall(item.call) }));
      } else {
        text.textContent = visible(item.source);
        if (item.inlined?.length) {
          text.append(make('button', { type: 'button', className: 'link sites', tabIndex: -1, 'aria-expanded': String(current.opened.has(item.n)), onclick: () => toggle(item, i),
            textContent: `${current.opened.has(item.n) ? '▾' : '▸'} ${item.inlined.length} inlined`, title: 'Calls that were inlined at this line' }));
        }
      }
      row.append(make('span', { role: 'gridcell', className: 'c-line', textContent: item.kind === 'line' ? item.n || '?' : '' }), text);
    }
    function open(item, at, key) {
      if (item.kind === 'site') { if (key !== 'ArrowLeft') openCall(item.call); return; }
      if (item.inlined?.length && (key === 'Enter' || (key === 'ArrowRight') !== current.opened.has(item.n))) toggle(item, at);
    }

    async function showLines(selection, signal) {
      const params = { ...paramsOf(selection), source: 'file' };
      const answer = await context.api.query('lines', params, signal);
      const found = answer.files.find(f => f.file === selection.file) || answer.files[0];
      file.replaceChildren(...answer.files.map(f => new Option(`${visible(f.file || '(unknown file)')}  ${formatValue(f.cumulative, answer.unit)}`, f.file)));
      file.hidden = answer.files.length < 2;
      if (!found) return showNothing(selection, answer);
      file.value = found.file;
      let entry = found;
      if (answer.files.indexOf(found) > 3 && found.file) { // only the first files have their text in the answer
        const one = await context.api.query('lines', { ...params, file_name: found.file }, signal);
        entry = one.files[0] || found;
      }
      current = { lines: sumLines(answer.rows, found.file), text: entry.text, opened: new Set(), answer };
      const why = context.canShow('debuginfo') && !answer.rows.some(r => r.line) ? make('p', {}, make('button', { type: 'button', textContent: 'Why it has no lines',
        onclick: () => context.go({ view: 'debuginfo', panel: 'why', function: selection.function }) })) : null;
      notice.replaceChildren(...(entry.text === undefined && entry.missing ? [missingBox(entry.missing, 'Source not available', why)] : []));
      linesBox.hidden = false;
      const items = makeItems(current.lines, current.text, current.opened);
      lines.show(items, answer);
      const asked = items.findIndex(i => selection.line && i.n === Number(selection.line));
      if (asked >= 0) lines.moveTo(asked);
      shown = lines;
      context.about(`${visible(selection.function)}: self ${formatValue(answer.flat, answer.unit)} (${percent(answer.flat, answer.total)}), ` +
        `total ${formatValue(answer.cumulative, answer.unit)} (${percent(answer.cumulative, answer.total)}) · ${visible(found.file || 'unknown file')}`);
    }

    // ---- lines of both sides ----

    function fillCompared(item, row) {
      const cell = (className, text) => make('span', { role: 'gridcell', className, textContent: text });
      if (item.self) row.title = `Self: ${formatValue(item.self[0], current.unit)} before, ${formatValue(item.self[1], current.unit)} after`;
      if (item.n_before !== undefined && !item.n) row.classList.add('removed');
      if (item.n && item.n_before === 0) row.classList.add('added');
      row.append(cell('c-line', item.n_before || ''), cell('c-text', visible(item.source_before ?? '')), cell('c-line', item.n || ''), cell('c-text', visible(item.source ?? '')));
    }
    async function showCompared(selection, signal) {
      const params = { ...CairnDiffView.makeParams(selection, Date.now()), function_name: selection.function, server: CairnApi.serverUrl(), source: 'file' };
      const answer = await context.api.query('lines', params, signal);
      const found = answer.files.find(f => f.file === selection.file) || answer.files[0], unit = answer.unit;
      file.replaceChildren(...answer.files.map(f => new Option(visible(f.file || '(unknown file)'), f.file)));
      file.hidden = answer.files.length < 2;
      if (!found) return showNothing(selection, answer);
      file.value = found.file;
      current = answer;
      const isAligned = found.lines_before !== undefined;
      context.note(isAligned ? 'Lines are aligned by a diff of both texts; costs are totals.' : 'Lines are compared by number: both texts are needed to align them.',
        isAligned ? 'lines aligned' : 'lines by number');
      notice.replaceChildren(...(found.text === undefined && found.missing ? [missingBox(found.missing, 'Source not available')] : []));
      comparedBox.hidden = false;
      const items = makeComparedItems(answer, found);
      compared.show(items, { total: Math.max(answer.total, answer.total_after), unit });
      const asked = items.findIndex(i => selection.line && i.n === Number(selection.line));
      if (asked >= 0) compared.moveTo(asked);
      shown = compared;
      context.about(`${visible(selection.function)}: total ${formatValue(answer.cumulative, unit)} (${percent(answer.cumulative, answer.total)}) before, ` +
        `${formatValue(answer.cumulative_after, unit)} (${percent(answer.cumulative_after, answer.total_after)}) after · ${visible(found.file || 'unknown file')}`);
    }

    // ---- instructions ----

    // The objects with the function. An answer for one requested object does not list the others.
    function fillObjects(select, objects, asked, shown, unit) {
      const known = objects.map(o => new Option(`${visible(o.object.replace(/.*\//, ''))} ${o.build_id.slice(0, 12)}  ${formatValue(o.cumulative, unit)}`, o.build_id));
      select.replaceChildren(...(asked ? [new Option('all objects', '')] : []), ...known);
      select.hidden = select.options.length < 2;
      select.value = shown;
    }
    function showSyntax(selection) {
      syntax.hidden = false;
      syntax.value = selection.syntax === 'att' ? 'att' : '';
    }
    async function showComparedCode(selection, signal) {
      const answer = await context.api.query('disassembly', { ...CairnDiffView.makeParams(selection, Date.now()), function_name: selection.function, server: CairnApi.serverUrl(),
        build_id: selection.build_id, base_build_id: selection.base_build_id, syntax: selection.syntax }, signal);
      fillObjects(baseObject, answer.base_objects, selection.base_build_id, answer.base_build_id, answer.unit);
      fillObjects(object, answer.objects, selection.build_id, answer.build_id, answer.unit);
      const isSame = answer.missing && JSON.stringify(answer.missing) === JSON.stringify(answer.base_missing);
      const lacking = isSame ? [[answer.missing, 'Disassembly not available']] : [[answer.base_missing, 'Disassembly before not available'], [answer.missing, 'Disassembly after not available']];
      notice.replaceChildren(...lacking.filter(([m]) => m).map(m => missingBox(...m)));
      if (!answer.missing && !answer.base_missing)
        context.note('Instructions are aligned by a diff that ignores addresses; costs are totals.', 'instructions aligned');
      showSyntax(selection);
      comparedCodeBox.hidden = !answer.ranges.length;
      comparedCode.show(answer);
      shown = comparedCode;
      const objectText = (path, id) => path || id ? `${visible(path.replace(/.*\//, '') || 'unknown')} (build-id ${id.slice(0, 12) || 'unknown'})` : 'none';
      context.about(`${visible(selection.function)} · before ${objectText(answer.base_object, answer.base_build_id)} · after ${objectText(answer.object, answer.build_id)}`);
    }

    async function showCode(selection, signal) {
      const answer = await context.api.query('disassembly', { ...paramsOf(selection), build_id: selection.build_id, syntax: selection.syntax }, signal);
      fillObjects(object, answer.objects, selection.build_id, answer.build_id, answer.unit);
      notice.replaceChildren(...(answer.missing ? [missingBox(answer.missing, 'Disassembly not available')] : []));
      showSyntax(selection);
      codeBox.hidden = !answer.ranges.length;
      code.show(answer);
      shown = code;
      context.about(`${visible(selection.function)} · ${visible(answer.object)} · build-id ${answer.build_id || 'unknown'}`);
    }

    // ---- without a function ----

    function showNothing(selection, answer) {
      notice.replaceChildren(make('p', { textContent: `No sample here has a function named “${visible(selection.function)}”. Try a longer time range, or another selector.` }));
      context.about(answer.samples ? `${CairnLayout.countText(CairnLayout.sideOf(answer, ''))}, none in this function` : 'No samples');
    }
    async function showTop(selection, signal) {
      about = await context.api.query('top', { ...CairnSelection.params(selection), ...CairnFilters.params(selection), limit: FUNCTIONS + 1 }, signal);
      const isCut = about.rows.length > FUNCTIONS;
      notice.replaceChildren(make('p', { textContent: 'Choose a function to see its lines and instructions.' +
        (isCut ? ` These are the ${FUNCTIONS.toLocaleString('en')} most expensive; enter the name of any other.` : '') }));
      top.hidden = false; // first: columns have the widths of what is shown
      table.show(about.rows.slice(0, FUNCTIONS));
      table.restore(selection);
      context.about('');
    }

    return {
      async show(selection, signal) {
        const isCode = selection.panel === 'code';
        name.value = selection.function || '';
        for (const p of panels) { p.setAttribute('aria-pressed', (p.value === 'code') === isCode); p.hidden = !selection.function; }
        for (const e of [file, baseObject, object, syntax, linesBox, comparedBox, codeBox, comparedCodeBox, top]) e.hidden = true;
        alone.hidden = !selection.compared || !selection.function;
        notice.replaceChildren();
        place.textContent = '';
        shown = null;
        const [showCodeOf, showLinesOf] = selection.compared ? [showComparedCode, showCompared] : [showCode, showLines];
        await (!selection.function ? showTop : isCode ? showCodeOf : showLinesOf)(selection, signal);
        for (const s of steps) s.hidden = !shown || !shown.hotCount();
      },
      destroy() {
        lines.destroy();
        compared.destroy();
        code.destroy();
        comparedCode.destroy();
      },
    };
  }

  return { create };
})();
