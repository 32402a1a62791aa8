// SPDX-License-Identifier: Apache-2.0
//
// Functions and their cost as a table: sortable by any column, with a filter, of any length. Also computes such rows
// from a call tree.
'use strict';
const CairnTable = (() => {
  const { formatValue, percent } = CairnUnits, { display, label } = CairnNames, { make } = CairnDom, { shortOf } = CairnLayout;
  // ROW, HEAD: px, as in flame.css. MORE: rows created beyond the visible ones. LEAST, NARROW: rem, of a share, of a narrow table.
  const ROW = 26, HEAD = 28, MORE = 8, LEAST = 9, NARROW = 36;
  const ROWS_MAX = 50000; // limit of a request for a table

  // Flat and cumulative per function and file; recursive functions count once.
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

  // The end of a path, as many directories as fit.
  function endOf(path, room) {
    if (path.length <= room) return path;
    const at = path.indexOf('/', path.length - room + 1), last = path.lastIndexOf('/');
    return last <= 0 ? path : '…' + path.slice(at < 0 ? last : at);
  }

  const collator = new Intl.Collator('en');
  let tables = 0;

  // A virtualized grid, which has elements for visible rows only, so that it may have any number of rows of equal
  // height.
  // columns: { title, key, number (whether it is one), text(row) if it is not the value itself, width (rem), or share
  // of the remaining width, isPath (truncated at the start), wide (not in narrow tables) }. Cells of the column with
  // `name: true` are buttons that call options.open(row); those of a column with href(row) are links unless it returns
  // '', in a new tab with `external: true`.
  // options: caption, noun (of the rows), sort (a column's key), empty (text without rows), openText (what Enter does), follow (description of the
  // key s), menu(row): entries of a menu; filter: the keys searched by the filter; without it there is no filter;
  // keyOf(row): the row's identity across refreshes; keep(keys): called with the keys of the selection for what one sees, sort and filter;
  // name: of the table in these keys, in a view with several.
  //
  // Keys: arrows, Page Up and Down, Home, End; Enter opens, s follows the row's link, the menu key or Shift+F10 opens
  // the menu, slash focuses the filter.
  function create(root, columns, options) {
    const id = 'table-' + ++tables, noun = options.noun || 'functions', keyOf = options.keyOf || (r => r.function + '\0' + r.file);
    let rows = [], ordered = [], some = [], sorted = columns.find(c => c.key === options.sort), down = true, current = -1, drawn = null;
    const words = make('input', { type: 'search', size: 26, placeholder: 'Filter rows', spellcheck: false, autocomplete: 'off', 'aria-label': `Filter ${options.caption}` });
    const shown = make('span', { className: 'soft', role: 'status' });
    const bar = options.filter ? make('div', { className: 'bar' }, words, shown) : null;
    const linked = columns.some(c => c.href), head = make('tr', { 'aria-rowindex': 1 }), body = make('tbody', {});
    const table = make('table', { className: 'rows', role: 'grid', tabIndex: 0,
      'aria-label': options.caption + '. Arrow keys move' + (options.open ? `, Enter ${options.openText || 'opens'}` : '') + (linked ? ', s ' + (options.follow || 'shows the source') : '') + (options.menu ? ', Shift F10 has a menu' : '') },
    make('colgroup', {}), make('thead', {}, head), body);
    const space = make('div', { className: 'table-space' }, table), box = make('div', { className: 'table-scroll' }, space);
    root.replaceChildren(...[bar, box].filter(Boolean));

    const headers = columns.map(c => {
      const sort = make('button', { type: 'button', className: 'sort', textContent: c.title, title: c.explain });
      const th = make('th', { scope: 'col', className: c.number ? 'n' : '' }, sort);
      sort.onclick = () => {
        down = sorted === c ? !down : Boolean(c.number);
        sorted = c;
        order();
        choose();
        keep();
      };
      return th;
    });
    // Visible columns, number of letters that fit into each, width that they were computed for.
    let visible = [], letters = [], placed = -1, loaded = false;

    // ---- filter and order ----

    function compare(a, b) {
      const x = a[sorted.key], y = b[sorted.key];
      const by = typeof x === 'number' || typeof y === 'number' ? (x || 0) - (y || 0) : collator.compare(String(x || ''), String(y || ''));
      return down ? -by : by;
    }
    function order() {
      headers.forEach((th, i) => {
        if (columns[i] === sorted) th.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        else th.removeAttribute('aria-sort');
      });
      ordered = rows.slice().sort(compare);
    }
    // Apply the filter; `stays`: keep the position.
    function choose(stays) {
      some = ordered;
      if (options.filter && words.value) {
        const texts = ordered.map(r => options.filter.map(k => r[k] || ''));
        const found = CairnSearch.findFrames({ frames: texts.map(f => [f[0], f[1], f[2], 0, '', f[3]]) }, words.value);
        some = ordered.filter((_, i) => found[i]);
      }
      table.setAttribute('aria-rowcount', some.length + 1);
      space.style.height = some.length ? HEAD + some.length * ROW + 'px' : 'auto';
      shown.textContent = words.value ? `${some.length.toLocaleString('en')} of ${rows.length.toLocaleString('en')}` : !rows.length ? '' :
        (rows.length >= ROWS_MAX ? 'Top ' : '') + CairnUnits.things(rows.length, noun.replace(/s\b/, ''), noun);
      if (!stays) {
        current = -1;
        box.scrollTop = 0;
      }
      draw(true);
    }

    // "-flat" for falling values. The usual order is not kept.
    const orderText = () => (down ? '-' : '') + sorted.key;
    function keep() {
      if (options.keep) options.keep(CairnSelection.tableKeys(options.name, { sort: orderText() === '-' + options.sort ? null : orderText(), filter: words.value }));
    }

    // ---- drawing ----

    // Compute the columns' widths; false if the table's width has not changed.
    function placeColumns() {
      if (box.clientWidth === placed) return false;
      placed = box.clientWidth;
      const rem = parseFloat(getComputedStyle(document.documentElement).fontSize), fixedOf = c => (c.width || (c.number ? 6.6 : 0)) * rem;
      visible = columns.filter(c => !c.wide || box.clientWidth >= NARROW * rem);
      const fixed = visible.reduce((sum, c) => sum + fixedOf(c), 0), shares = visible.reduce((sum, c) => sum + (fixedOf(c) ? 0 : c.share || 1), 0);
      const whole = Math.max(box.clientWidth, fixed + shares * LEAST * rem), widths = visible.map(c => fixedOf(c) || (whole - fixed) * (c.share || 1) / shares);
      const main = visible.findIndex(c => c.name);
      if (whole > box.clientWidth && main >= 0 && !fixedOf(visible[main])) { // a wider table scrolls; names end in the visible part
        const before = visible.slice(0, main).reduce((sum, c) => sum + fixedOf(c), 0);
        widths[main] = Math.max(LEAST * rem, box.clientWidth - before);
      }
      letters = widths.map(w => Math.floor((w - 1.3 * rem) / (0.61 * rem)));
      table.style.width = widths.reduce((sum, w) => sum + w, 0) + 'px';
      table.setAttribute('aria-colcount', visible.length);
      table.firstChild.replaceChildren(...widths.map(w => {
        const col = make('col', {});
        col.style.width = w + 'px';
        return col;
      }));
      head.replaceChildren(...visible.map(c => headers[columns.indexOf(c)]));
      return true;
    }

    function makeCell(row, c, i) {
      const text = c.text ? c.text(row) : row[c.key], href = c.href ? c.href(row) : '';
      if (c.number) return make('td', { className: 'n', textContent: text });
      const className = c.className || (c.name ? 'mono' : 'soft mono'), full = display(c.name && row.function ? row.function : text);
      const seen = c.isPath ? endOf(String(text || ''), letters[i]) : text, inner = c.name ? make('button', { type: 'button', className: 'link', tabIndex: -1, textContent: label(text), onclick: () => options.open(row) }) :
        href ? make('a', { className: 'link', tabIndex: -1, href, textContent: label(seen), ...(c.external && { target: '_blank', rel: 'noopener noreferrer' }) }) : label(seen);
      return make('td', { className, title: full }, inner);
    }
    function makeRow(i) {
      return make('tr', { id: `${id}-${i}`, 'aria-rowindex': i + 2, onmousedown: () => select(i) }, ...visible.map((c, k) => makeCell(some[i], c, k)));
    }
    function draw(again) {
      if (!loaded) return;
      const resized = placeColumns();
      const from = Math.min(Math.max(0, Math.floor(box.scrollTop / ROW) - MORE), Math.max(0, some.length - 1));
      const to = Math.min(some.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + MORE);
      if (!again && !resized && drawn && drawn[0] === from && drawn[1] === to) return;
      drawn = [from, to];
      const list = [];
      for (let i = from; i < to; i++) list.push(makeRow(i));
      if (!some.length)
        list.push(make('tr', {}, make('td', { colSpan: visible.length, className: 'none' },
          make('div', { textContent: rows.length ? 'Nothing matches.' : options.empty || 'No samples here. Try a longer time range or another selector.' }))));
      if (body.contains(document.activeElement)) table.focus({ preventScroll: true }); // a clicked button is about to be removed
      space.style.paddingTop = from * ROW + 'px';
      body.replaceChildren(...list);
      mark();
    }
    // Rows are not replaced, so that a click on a button in a row reaches it.
    function mark() {
      const row = document.getElementById(`${id}-${current}`);
      for (const old of body.querySelectorAll('.current')) {
        old.classList.remove('current');
        old.removeAttribute('aria-selected');
      }
      if (!row) { table.removeAttribute('aria-activedescendant'); return; }
      row.classList.add('current');
      row.setAttribute('aria-selected', 'true');
      table.setAttribute('aria-activedescendant', row.id);
    }
    function select(i) {
      current = Math.max(0, Math.min(some.length - 1, i));
      mark();
    }
    function moveTo(i) {
      const at = Math.max(0, Math.min(some.length - 1, i)), top = at * ROW, room = box.clientHeight - HEAD;
      current = at;
      if (top < box.scrollTop) box.scrollTop = top;
      else if (top + ROW > box.scrollTop + room) box.scrollTop = top + ROW - room;
      draw(false);
      mark();
    }
    function openMenu(i, x, y) {
      const row = some[i], at = document.getElementById(`${id}-${i}`).getBoundingClientRect();
      CairnFlameMenu.open([...(row.function ? [{ text: 'Copy its name', run: () => CairnFlameMenu.copyText(row.function) }] : []), ...options.menu(row)],
        x === undefined ? at.left + 12 : x, y === undefined ? at.bottom : y, table);
    }
    function followLink(row) {
      const column = columns.find(c => c.href), href = column ? column.href(row) : '';
      if (href) location.assign(href);
    }
    table.addEventListener('keydown', event => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('thead')) return;
      const page = Math.max(1, Math.floor((box.clientHeight - HEAD) / ROW) - 1), inside = event.target.closest('tbody tr[aria-rowindex]');
      if (inside) select(inside.getAttribute('aria-rowindex') - 2);
      const row = some[current];
      const to = { ArrowUp: current - 1, ArrowDown: current + 1, PageUp: current - page, PageDown: current + page, Home: 0, End: some.length - 1 }[event.key];
      if (to !== undefined && some.length) moveTo(to);
      else if (event.key === '/' && bar) words.focus();
      else if (row && event.key === 'Enter' && event.target === table && options.open) options.open(row);
      else if (row && event.key === 's') followLink(row);
      else if (row && options.menu && (event.key === 'ContextMenu' || (event.shiftKey && event.key === 'F10'))) openMenu(current);
      else return;
      event.preventDefault();
    });
    table.addEventListener('focus', () => { if (current < 0 && some.length) select(drawn[0] ? Math.ceil(box.scrollTop / ROW) : 0); });
    body.addEventListener('contextmenu', event => {
      const row = event.target.closest('tr[aria-rowindex]');
      if (!options.menu || !row || event.target.closest('a')) return;
      event.preventDefault(); // the menu key has its own handler
      if (event.button === 2) openMenu(row.getAttribute('aria-rowindex') - 2, event.clientX, event.clientY);
    });
    box.addEventListener('scroll', () => draw(false), { passive: true });
    new ResizeObserver(() => draw(false)).observe(box);
    words.addEventListener('input', () => { choose(); keep(); });
    words.addEventListener('keydown', event => {
      if (event.key !== 'Enter' && event.key !== 'ArrowDown') return;
      event.preventDefault();
      table.focus();
    });
    return {
      show(next) {
        loaded = true;
        const at = some[current] ? keyOf(some[current]) : null;
        rows = next;
        order();
        choose(true);
        current = at === null ? -1 : some.findIndex(r => keyOf(r) === at);
        mark();
      },
      // Show what a selection says; the rest stays, and is kept.
      restore(selection) {
        const { sort, filter } = CairnSelection.tableState(options.name, selection);
        const column = columns.find(c => c.key === (sort || '').replace(/^-/, ''));
        if (filter && bar) words.value = filter;
        if (column) {
          sorted = column;
          down = sort[0] === '-';
          order();
        }
        if (column || filter) choose(true);
        keep();
      },
    };
  }

  const shownName = r => r.short_name || r.function;
  const placeText = r => r.file ? (r.line ? `${r.file}:${r.line}` : r.file) : '';
  // sourceOf(row): a link to the most expensive line of its function, '' if none.
  const nameColumns = sourceOf => [
    { title: 'Function', key: 'function', name: true, text: shownName, share: 1.6 },
    { title: 'File', key: 'file', text: placeText, isPath: true, href: sourceOf },
    { title: 'Object', key: 'object', isPath: true },
  ];

  // The columns of costs. about() is called for unit and total when a cell is created.
  const costColumns = (about, sourceOf) => [
    { title: 'Self', key: 'flat', number: true, text: r => formatValue(r.flat, about().unit), explain: 'In the function itself' },
    { title: 'Self %', key: 'flat', number: true, width: 5.9, wide: true, text: r => percent(r.flat, about().total) },
    { title: 'Total', key: 'cumulative', number: true, text: r => formatValue(r.cumulative, about().unit), explain: 'With what it calls' },
    { title: 'Total %', key: 'cumulative', number: true, width: 5.9, wide: true, text: r => percent(r.cumulative, about().total) },
    ...nameColumns(sourceOf),
  ];

  return { topRows, create, nameColumns, costColumns, ROWS_MAX };
})();
