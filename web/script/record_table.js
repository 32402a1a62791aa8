// SPDX-License-Identifier: Apache-2.0
//
// A table of records: sortable by any column, with filter and pages. On narrow screens each record is a card. An update
// keeps order, filter and page.
'use strict';
const CairnRecordTable = (() => {
  const { make } = CairnDom, { display, label } = CairnNames;
  const PAGE = 50;
  const count = n => n.toLocaleString('en');

  // columns: { title, key, number (whether it is one), text(record), node(record), className, explain }: text returns
  // the displayed text, node an element instead. options:
  //   caption          the accessible name
  //   sort             the key of a column; numbers in falling order, unless `up`
  //   thing, things    noun of the count: 'object', 'objects'
  //   filter(record)   texts searched by the filter; without it there is no filter
  //   detail(record)   an element for a separate row below the record, or null
  //   empty            text without records
  //   page             records per page
  //   keep(keys)       called with the keys of the selection for what one sees: order, filter and page
  //   name             of the table in these keys, in a view with several
  function create(root, columns, options) {
    const size = options.page || PAGE;
    let records = [], sorted = columns.find(c => c.key === options.sort), down = Boolean(sorted.number) && !options.up, page = 0;
    const words = make('input', { type: 'search', size: 22, placeholder: 'Filter rows', spellcheck: false, autocomplete: 'off', 'aria-label': `Filter ${options.caption}` });
    const order = make('select', { 'aria-label': `Sort ${options.caption} by` }, ...columns.map((c, i) => new Option(c.title, i)));
    const shown = make('span', { className: 'soft', role: 'status' });
    const step = (text, by) => make('button', { type: 'button', textContent: text, 'aria-label': `${text} of ${options.caption}`, onclick: () => { page += by; fill(); keep(); box.scrollTop = 0; } });
    const previous = step('Previous page', -1), next = step('Next page', 1);
    const bar = make('div', { className: 'bar' }, options.filter ? words : null, make('span', { className: 'sort-narrow' }, 'Sort by ', order), shown, previous, next);
    const head = make('tr', {}), body = make('tbody', {});
    const box = make('div', { className: 'table-scroll', tabIndex: 0, role: 'region', 'aria-label': options.caption },
      make('table', { className: 'rows records' }, make('caption', { className: 'unseen', textContent: options.caption }), make('thead', {}, head), body));
    root.append(bar, box);

    const sortBy = (c, turn) => {
      down = turn && sorted === c ? !down : Boolean(c.number);
      sorted = c;
      page = 0;
      fill();
      keep();
    };
    const headers = columns.map(c => {
      const th = make('th', { scope: 'col', className: c.number ? 'n' : '' },
        make('button', { type: 'button', className: 'sort', textContent: c.title, title: c.explain, onclick: () => sortBy(c, true) }));
      head.append(th);
      return th;
    });
    order.onchange = () => sortBy(columns[order.value], false);

    function compare(a, b) {
      const x = a[sorted.key], y = b[sorted.key];
      const turned = sorted.number ? (x || 0) - (y || 0) : String(x || '').localeCompare(String(y || ''), 'en');
      return down ? -turned : turned;
    }
    function cell(record, c) {
      const td = make('td', { className: [c.number ? 'n' : 'f', c.className].filter(Boolean).join(' '), 'data-title': c.title });
      if (c.node) td.append(c.node(record));
      else td.textContent = label(c.text ? c.text(record) : record[c.key]);
      return td;
    }
    function rowsOf(record) {
      const row = make('tr', {}, ...columns.map(c => cell(record, c))), detail = options.detail && options.detail(record);
      if (!detail) return [row];
      row.className = 'with-detail';
      return [row, make('tr', { className: 'detail' }, make('td', { colSpan: columns.length }, detail))];
    }
    function choose() {
      const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      if (!wanted.length) return records.slice();
      return records.filter(r => {
        const text = options.filter(r).join('\n').toLowerCase();
        return wanted.every(w => text.includes(w));
      });
    }
    function fill() {
      headers.forEach((th, i) => {
        if (columns[i] === sorted) th.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        else th.removeAttribute('aria-sort');
      });
      order.value = columns.indexOf(sorted);
      const some = choose().sort(compare), pages = Math.max(1, Math.ceil(some.length / size)), focused = document.activeElement;
      page = Math.max(0, Math.min(page, pages - 1));
      body.replaceChildren(...some.slice(page * size, (page + 1) * size).flatMap(rowsOf));
      if (!some.length) body.append(make('tr', {}, make('td', { colSpan: columns.length, textContent: records.length ? 'Nothing matches.' : options.empty })));
      bar.hidden = !records.length;
      previous.disabled = page === 0;
      next.disabled = page === pages - 1;
      previous.hidden = next.hidden = pages === 1;
      if (focused === previous && previous.disabled) next.focus();
      if (focused === next && next.disabled) previous.focus();
      const part = pages > 1 ? `${count(page * size + 1)}–${count(Math.min(some.length, (page + 1) * size))} of ` : '';
      shown.textContent = `${part}${count(some.length)} ${some.length === 1 ? options.thing : options.things}` + (some.length < records.length ? `, of ${count(records.length)}` : '');
    }
    // "-size" for falling values. What is usual is not kept.
    const orderText = (c, isFalling) => (isFalling ? '-' : '') + c.key, usual = orderText(sorted, down);
    function keep() {
      const text = orderText(sorted, down);
      if (options.keep) options.keep(CairnSelection.tableKeys(options.name, { sort: text === usual ? null : text, filter: words.value, page: page ? page + 1 : null }));
    }
    words.addEventListener('input', () => { page = 0; fill(); keep(); });
    return {
      show(list) {
        records = list;
        fill();
      },
      // Show what a selection says; the rest stays, and is kept.
      restore(selection) {
        const state = CairnSelection.tableState(options.name, selection), column = columns.find(c => c.key === (state.sort || '').replace(/^-/, ''));
        if (column) {
          sorted = column;
          down = state.sort[0] === '-';
        }
        if (state.filter && options.filter) words.value = state.filter;
        if (/^[1-9]\d{0,6}$/.test(state.page || '')) page = state.page - 1;
        if (column || state.filter || state.page) fill();
        keep();
      },
    };
  }

  // A command with a button that copies it. `what`: its subject, for the accessible name.
  function commandBox(command, what) {
    const said = make('span', { className: 'soft', role: 'status' });
    const copy = make('button', { type: 'button', textContent: 'Copy', 'aria-label': `Copy the command for ${display(what, 80)}`,
      onclick: async () => { said.textContent = await CairnFlameMenu.copyText(command) ? 'Copied' : 'Select it and copy it'; } });
    return make('div', { className: 'command' }, make('code', { className: 'mono', textContent: display(command, 4000) }), copy, said);
  }

  const AGES = [[86400 * 2, 86400, 'd'], [7200, 3600, 'h'], [120, 60, 'min'], [0, 1, 's']];
  // Seconds as text: "3 min".
  function duration(s) {
    const [, unit, name] = AGES.find(([least]) => s >= least) || AGES[3];
    return `${Math.max(0, Math.floor(s / unit)).toLocaleString('en')} ${name}`;
  }
  // A time as its age; `now` and `s` in Unix seconds.
  function ago(s, now) {
    if (!s) return make('span', { className: 'soft', textContent: 'never' });
    return make('time', { dateTime: new Date(s * 1000).toISOString(), title: `${CairnTimes.toText(s * 1000)} ${CairnTimes.zoneText(s * 1000)}`, textContent: now - s < 1 ? 'now' : `${duration(now - s)} ago` });
  }


  return { create, commandBox, duration, ago };
})();
