// SPDX-License-Identifier: Apache-2.0
//
// Functions and what they cost, as a table: sorted by any column, filtered, as long as one asks for. And how such rows are
// made of a call tree.
'use strict';
const CairnTable = (() => {
  const { formatValue, percent } = CairnUnits, { display, label } = CairnNames, { make } = CairnDom, { shortOf } = CairnLayout;
  const STEP = 200, ROWS_MAX = 50000; // of which a table asks the service for

  // Flat and cumulative per function and file; a function that is above itself counts once.
  function topRows(d) {
    const rows = new Map(), open = [];
    for (let i = 1; i < d.count; i++) {
      const f = d.frames[d.frame[i]], key = f[0] + '\0' + f[1];
      while (open.length && open[open.length - 1].end <= i) open.pop().row.depth--;
      let row = rows.get(key);
      if (!row) rows.set(key, row = { function: f[0], short_name: d.full ? undefined : shortOf(f), file: f[1], line: d.line[i], object: f[2], flat: 0, cumulative: 0,
        flat_after: 0, cumulative_after: 0, depth: 0 });
      row.flat += d.self[i];
      if (row.depth === 0) row.cumulative += d.total[i];
      if (d.diff) {
        row.flat_after += d.self2[i];
        if (row.depth === 0) row.cumulative_after += d.total2[i];
      }
      row.depth++;
      open.push({ end: d.end[i], row });
    }
    return [...rows.values()].sort((a, b) => b.flat - a.flat || b.cumulative - a.cumulative);
  }

  // columns: { title, key, number (whether it is one), text(row) when it is not the value itself, wrap }. The column of the
  // function has `name: true`: its cells are buttons that call options.open(row); options.menu(row) are entries of a menu.
  // options: caption, sort (a column's key), filter: the keys that the filter's words are looked for in, none without.
  function create(root, columns, options) {
    let rows = [], sorted = columns.find(c => c.key === options.sort), down = true, limit = STEP;
    const words = make('input', { type: 'search', size: 26, placeholder: 'Filter', spellcheck: false, autocomplete: 'off', 'aria-label': `Filter ${options.caption}` });
    const shown = make('span', { className: 'soft', role: 'status' });
    const bar = options.filter ? make('div', { className: 'bar' }, words, shown) : null;
    const head = make('tr', {}), body = make('tbody', {});
    const table = make('table', { className: 'rows' }, make('caption', { className: 'unseen', textContent: options.caption }), make('thead', {}, head), body);
    const more = make('button', { type: 'button', textContent: 'Show more', hidden: true, className: 'more' });
    const box = make('div', { className: 'table-scroll', tabIndex: 0, role: 'region', 'aria-label': options.caption }, table, more);
    root.replaceChildren(...[bar, box].filter(Boolean));

    const headers = columns.map(c => {
      const sort = make('button', { type: 'button', className: 'sort', textContent: c.title, title: c.explain });
      const th = make('th', { scope: 'col', className: c.number ? 'n' : '' }, sort);
      sort.onclick = () => {
        down = sorted === c ? !down : Boolean(c.number);
        sorted = c;
        fill();
      };
      head.append(th);
      return th;
    });

    function compare(a, b) {
      const x = a[sorted.key], y = b[sorted.key];
      const order = typeof x === 'number' || typeof y === 'number' ? (x || 0) - (y || 0) : String(x || '').localeCompare(String(y || ''), 'en');
      return down ? -order : order;
    }
    function openMenu(event, row, from) {
      event.preventDefault();
      const box = from.getBoundingClientRect(), byPointer = event.button === 2;
      CairnFlameMenu.open([{ text: 'Copy its name', run: () => CairnFlameMenu.copyText(row.function) }, ...options.menu(row)],
        byPointer ? event.clientX : box.left + 12, byPointer ? event.clientY : box.bottom, from);
    }
    function cell(row, c) {
      const text = c.text ? c.text(row) : row[c.key];
      if (c.number) return make('td', { className: 'n', textContent: text });
      if (!c.name) return make('td', { className: 'f ' + (c.className || 'soft mono'), textContent: label(text) });
      const button = make('button', { type: 'button', className: 'link mono', textContent: label(text), title: display(row.function), onclick: () => options.open(row) });
      if (options.menu) {
        button.addEventListener('contextmenu', event => { if (event.button === 2) openMenu(event, row, button); else event.preventDefault(); });
        button.addEventListener('keydown', event => { if (event.key === 'ContextMenu' || (event.shiftKey && event.key === 'F10')) openMenu(event, row, button); });
      }
      return make('td', { className: 'f' }, button);
    }
    function fill() {
      headers.forEach((th, i) => {
        if (columns[i] === sorted) th.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        else th.removeAttribute('aria-sort');
      });
      let some = rows;
      if (options.filter && words.value) {
        const frames = rows.map(r => options.filter.map(k => r[k] || ''));
        const found = CairnSearch.findFrames({ frames: frames.map(f => [f[0], f[1], f[2], 0, '', f[3]]) }, words.value);
        some = rows.filter((_, i) => found[i]);
      }
      some = some.slice().sort(compare);
      body.replaceChildren(...some.slice(0, limit).map(r => make('tr', {}, ...columns.map(c => cell(r, c)))));
      if (!some.length) body.append(make('tr', {}, make('td', { colSpan: columns.length, textContent: rows.length ? 'Nothing matches.' : options.empty || 'No samples here. Try a longer time range or another selector.' })));
      more.hidden = some.length <= limit;
      shown.textContent = words.value ? `${some.length.toLocaleString('en')} of ${rows.length.toLocaleString('en')}` : !rows.length ? '' :
        `${rows.length.toLocaleString('en')} functions` + (rows.length >= ROWS_MAX ? ', those that cost most' : '');
    }
    more.onclick = () => { limit *= 5; fill(); };
    words.addEventListener('input', () => { limit = STEP; fill(); });
    return {
      show(next) {
        rows = next;
        fill();
      },
    };
  }

  const shownName = r => r.short_name || r.function;
  const placeText = r => r.file ? (r.line ? `${r.file}:${r.line}` : r.file) : '';
  const nameColumns = [
    { title: 'Function', key: 'function', name: true, text: shownName },
    { title: 'File', key: 'file', text: placeText },
    { title: 'Object', key: 'object' },
  ];

  // The columns of what functions cost. unit and total are asked when a cell is made.
  const costColumns = about => [
    { title: 'Self', key: 'flat', number: true, text: r => formatValue(r.flat, about().unit), explain: 'In the function itself' },
    { title: 'Self %', key: 'flat', number: true, text: r => percent(r.flat, about().total) },
    { title: 'Total', key: 'cumulative', number: true, text: r => formatValue(r.cumulative, about().unit), explain: 'With what it calls' },
    { title: 'Total %', key: 'cumulative', number: true, text: r => percent(r.cumulative, about().total) },
    ...nameColumns,
  ];

  return { topRows, create, nameColumns, costColumns, ROWS_MAX };
})();
