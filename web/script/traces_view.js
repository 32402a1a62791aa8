// SPDX-License-Identifier: Apache-2.0
//
// The most expensive spans or traces, of samples with their ids, and links to the profile of each. Key of the
// selection: ids, the kind of the rows (a key of LISTS). The URL of a tracing UI is stored in this browser.
'use strict';
const CairnTracesView = (() => {
  const { make } = CairnDom, { formatValue, percent } = CairnUnits;
  const LISTS = { spans: ['spans', ['trace_id', 'span_id']], traces: ['traces', ['trace_id']], profile_id: ['values of profile_id', ['profile_id']], span_name: ['names of spans', ['span_name']] };
  const IDS = ['trace_id', 'span_id', 'profile_id', 'span_name'];
  const KEY = 'cairn-trace-link', LINK_MAX = 2000;

  // Parse pasted text, such as ids, UUIDs, traceparent headers and URLs, to { trace_id }, { span_id } or both; null if
  // there is none.
  function parseIds(text) {
    const parent = /\b[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}\b/i.exec(text);
    if (parent) return { trace_id: parent[1].toLowerCase(), span_id: parent[2].toLowerCase() };
    const uuid = /\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/i.exec(text);
    if (uuid) return { trace_id: uuid[0].replaceAll('-', '').toLowerCase() };
    const all = text.match(/\b(?:[0-9a-f]{32}|[0-9a-f]{16})\b/gi) || [], of = size => all.find(id => id.length === size);
    const found = {};
    if (of(32)) found.trace_id = of(32).toLowerCase();
    if (of(16)) found.span_id = of(16).toLowerCase();
    return all.length ? found : null;
  }

  // The selector with its ids replaced by these.
  function withIds(selector, ids) {
    const text = (selector || '').trim(), type = /^[\w:]+(?=\s*\{)/.exec(text);
    const kept = CairnSelectorText.matchers(text).filter(m => !IDS.includes(m.name) || m.op !== '=');
    const added = Object.entries(ids).filter(([, value]) => value).map(([name, value]) => ({ name, op: '=', value }));
    return (type ? type[0] : '') + '{' + CairnSelectorText.format([...kept, ...added]) + '}';
  }

  // The URL of a span in a tracing UI; '' if the template requires a missing id, or is not a web URL.
  function fillLink(template, values) {
    let lacking = false;
    const text = template.slice(0, LINK_MAX).replace(/\{(\w+)\}/g, (all, name) => {
      if (!values[name]) lacking = true;
      return encodeURIComponent(values[name] ?? '');
    });
    try {
      return !lacking && /^https?:$/.test(new URL(text).protocol) ? text : '';
    } catch {
      return '';
    }
  }
  const readTemplate = () => { try { return localStorage.getItem(KEY) || ''; } catch { return ''; } };
  function keepTemplate(text) {
    try {
      if (text) localStorage.setItem(KEY, text);
      else localStorage.removeItem(KEY);
    } catch { /* not kept */ }
  }

  function create(root, context) {
    let current = {}, about = { unit: '', total: 0, from_ms: 0, to_ms: 0 }, list = 'spans', rows = [], template = readTemplate();
    const input = make('input', { className: 'mono', size: 44, spellcheck: false, autocomplete: 'off', 'aria-label': 'Id of a trace or span', placeholder: 'id of a trace or span, or a traceparent' });
    const wrong = make('span', { className: 'error', role: 'alert' });
    const form = make('form', { className: 'bar' }, input, make('button', { type: 'submit', textContent: 'Show its flame graph' }), wrong);
    const choice = make('select', {}), note = make('span', { className: 'soft', role: 'status' });
    const bar = make('div', { className: 'bar' }, make('label', {}, 'List ', choice), note);
    const box = make('div', { className: 'table-box' });
    const link = make('input', { className: 'mono', size: 60, spellcheck: false, autocomplete: 'off', 'aria-label': 'Address of a trace in a tracing UI',
      placeholder: 'https://jaeger.example/trace/{trace_id}' }), linkState = make('span', { className: 'soft', role: 'status' });
    const linkForm = make('form', { className: 'bar' }, link, make('button', { type: 'submit', textContent: 'Keep' }), linkState);
    const links = make('details', { className: 'trace-links' }, make('summary', { textContent: 'Links to a tracing UI' }),
      make('p', { className: 'soft', textContent: 'An address with {trace_id}, and {span_id}, {from_ms} or {to_ms} where it has them. It stays in this browser.' }), linkForm);
    root.append(form, bar, box, links);

    const changeTo = ids => ({ view: 'flame', selector: withIds(current.selector, ids) });
    const idsOf = row => Object.fromEntries(LISTS[list][1].map(name => [name, row[name]]));
    const hrefOf = ids => CairnSelection.format(CairnSelection.change(current, changeTo(ids)));
    const outside = row => template ? fillLink(template, { trace_id: row.trace_id, span_id: row.span_id || row.profile_id, from_ms: about.from_ms, to_ms: about.to_ms }) : '';
    form.addEventListener('submit', event => {
      const ids = parseIds(input.value);
      event.preventDefault();
      wrong.textContent = ids ? '' : 'An id of a trace has 32 hexadecimal digits, that of a span 16.';
      if (ids) context.go(changeTo(list === 'profile_id' && !ids.trace_id ? { profile_id: ids.span_id } : ids));
    });
    choice.onchange = () => context.go({ ids: choice.value });
    linkForm.addEventListener('submit', event => {
      const text = link.value.trim(), good = !text || fillLink(text, { trace_id: '0'.repeat(32), span_id: '0'.repeat(16), from_ms: 1, to_ms: 1 });
      event.preventDefault();
      linkState.textContent = good ? text ? 'Kept' : 'Removed' : 'Not an address that begins with http:// or https://, or with another name in braces';
      if (!good) return;
      template = text;
      keepTemplate(text);
      makeTable();
    });

    let table = null;
    function makeTable() {
      const [noun, names] = LISTS[list], main = names[names.length - 1], byTrace = names.includes('trace_id');
      const columns = [
        { title: 'Cost', key: 'value', number: true, text: r => formatValue(r.value, about.unit) },
        { title: '%', key: 'value', number: true, width: 5.9, wide: true, text: r => percent(r.value, about.total), explain: 'Of the selection' },
        { title: 'Samples', key: 'samples', number: true, wide: true, text: r => r.samples.toLocaleString('en') },
        { title: { trace_id: 'Trace', span_id: 'Span', span_name: 'Name' }[main] || main, key: main, name: true, text: r => r[main] || '(none)', width: main === 'trace_id' ? 20.8 : 11 },
        ...(main === 'span_name' ? [] : [{ title: 'Name', key: 'span_name' }]), { title: 'Service', key: 'service_name' },
        ...(main === 'span_id' ? [{ title: 'Trace', key: 'trace_id', href: r => r.trace_id ? hrefOf({ trace_id: r.trace_id }) : '', width: 20.8 }] : []),
        ...(template && main !== 'span_name' ? [{ title: 'Tracing UI', key: 'trace_id', href: outside, external: true, text: r => outside(r) ? 'open ↗' : '', width: 6.5 }] : []),
      ];
      const menu = row => [{ text: 'Flame graph', run: () => context.go(changeTo(idsOf(row))) }, { text: 'Functions that cost most', run: () => context.go({ ...changeTo(idsOf(row)), view: 'top' }) },
        ...(byTrace && row.trace_id ? [{ text: 'Copy the id of its trace', run: () => CairnFlameMenu.copyText(row.trace_id) }] : []),
        ...(outside(row) ? [{ text: 'Open in the tracing UI', href: outside(row) }] : [])];
      table = CairnTable.create(box, columns, { caption: 'Most expensive ' + noun, noun, sort: 'value', menu, filter: [...new Set([main, 'trace_id', 'service_name', 'span_name'])],
        open: row => context.go(changeTo(idsOf(row))), follow: 'shows the whole trace', keyOf: row => JSON.stringify(idsOf(row)), keep: context.keep,
        empty: 'No sample here has the id of a trace or span. They come with OTLP profiles, as links, and as labels trace_id, span_id or profile_id with others.' });
      table.show(rows);
    }

    const ask = (which, selection, signal) =>
      context.api.query('spans', { ...CairnSelection.params(selection), by: LISTS[which][1].join(','), limit: CairnTable.ROWS_MAX }, signal);

    return {
      async show(selection, signal) {
        const { from, to } = selection, shown = list, asked = Object.hasOwn(LISTS, selection.ids) ? selection.ids : 'spans';
        const [labels, first] = await Promise.all([context.api.query('labels', { from, to }, signal), ask(asked, selection, signal)]);
        const instead = !selection.ids && !first.rows.length && labels.includes('profile_id') ? 'profile_id' : null;
        const answer = instead ? await ask(instead, selection, signal) : first;
        current = selection;
        list = instead || asked;
        const known = Object.keys(LISTS).filter(k => k === list || LISTS[k][1][0] === 'trace_id' || labels.includes(k));
        choice.replaceChildren(...known.map(k => new Option(LISTS[k][0], k)));
        choice.value = list;
        about = answer;
        rows = answer.rows.map(r => ({ ...r, ...r.labels }));
        if (!table || shown !== list) makeTable();
        else table.show(rows);
        table.restore(selection);
        link.value = template;
        const { with_id } = answer;
        note.textContent = with_id.samples ? `${formatValue(with_id.total, answer.unit)} (${percent(with_id.total, answer.total)}) in ${CairnLayout.countText({ ...answer, samples: with_id.samples })} with ids` : '';
        context.about(CairnLayout.about({ type: answer.type, unit: answer.unit, sides: [CairnLayout.sideOf(answer, selection.selector)] }));
      },
      destroy() {},
    };
  }

  return { create, parseIds, withIds, fillLink };
})();
