// SPDX-License-Identifier: Apache-2.0
//
// The filters of the query API (focus, ignore, hide, show) as keys of the selection, which every view passes on, and the
// chip that shows them and opens the panel in which they are changed.
'use strict';
const CairnFilters = (() => {
  const { make } = CairnDom, { display, exactPattern } = CairnNames;
  const KINDS = { focus: 'Only stacks with', ignore: 'Without stacks with', hide: 'Hidden frames', show: 'Only frames' };

  const params = ({ focus, ignore, hide, show }) => ({ focus, ignore, hide, show });

  // Split a pattern at each | outside of groups and sets. One that begins with an option, as (?i), is one part.
  function split(pattern) {
    if (/^\(\?[a-zA-Z-]+\)/.test(pattern)) return [pattern];
    const parts = [''];
    let depth = 0, inSet = false, setFrom = 0;
    for (let i = 0; i < pattern.length; i++) {
      const c = pattern[i];
      if (c === '\\') { parts[parts.length - 1] += c + (pattern[++i] || ''); continue; }
      if (inSet) inSet = c !== ']' || i === setFrom; // a ] that comes first is of the set
      else if (c === '[') { inSet = true; setFrom = i + (pattern[i + 1] === '^' ? 2 : 1); }
      else if (c === '(') depth++;
      else if (c === ')') depth--;
      if (c === '|' && !depth && !inSet) parts.push('');
      else parts[parts.length - 1] += c;
    }
    return parts.filter(Boolean);
  }

  // The change of the selection that adds a pattern. There is only one focus pattern: a new one replaces it.
  function add(selection, kind, pattern) {
    const old = selection[kind] && kind !== 'focus' ? split(selection[kind]) : [];
    return { [kind]: [...old.filter(p => p !== pattern), pattern].join('|') };
  }
  const addName = (selection, kind, name) => add(selection, kind, exactPattern(name));
  const NONE = { focus: null, ignore: null, hide: null, show: null };

  // [{ kind, pattern }] of a selection.
  const list = selection => Object.keys(KINDS).flatMap(kind => (selection[kind] ? split(selection[kind]) : []).map(pattern => ({ kind, pattern })));
  // A pattern in short: that of exactly one name is this name.
  const shortPattern = p => /^\^(?:[^\\^$.*+?()[\]{}|]|\\[^0-9A-Za-z])*\$$/.test(p) ? p.slice(1, -1).replace(/\\(.)/gs, '$1') : p;
  const textOf = ({ kind, pattern }) => `${KINDS[kind]} ${display(pattern, 80)}`;
  // The texts of the chip: the first filter, which is cut where room is short, and how many more there are.
  const SHORT = { focus: 'with', ignore: 'without', hide: 'hidden', show: 'only frames' };
  function chipTexts(filters) {
    if (!filters.length) return ['Filter', ''];
    const [{ kind, pattern }] = filters;
    return [`Filter: ${SHORT[kind]} ${display(shortPattern(pattern), 60)}`, filters.length > 1 ? `+ ${filters.length - 1}` : ''];
  }

  // parts: button (the chip, which opens the panel), clear (a button that removes all filters), panel. go(change) as in the
  // context. show(selection, isChartOnly): isChartOnly if the shown view ignores filters, unlike the chart above it.
  function attach({ button, clear, panel }, go) {
    let selection = {};
    const kind = make('select', { 'aria-label': 'Kind of filter' }, ...Object.entries(KINDS).map(([value, textContent]) => make('option', { value, textContent })));
    const pattern = make('input', { className: 'mono', size: 26, spellcheck: false, autocomplete: 'off', placeholder: 'regular expression', 'aria-label': 'Regular expression for names, files, objects' });
    const form = make('form', { className: 'bar' }, kind, pattern, make('button', { type: 'submit', textContent: 'Add filter' }));
    const chips = make('ul', { className: 'chips', 'aria-label': 'Active filters' }), note = make('p', { className: 'soft' });
    const text = make('span', { className: 'chip-text' }), rest = make('span', { className: 'chip-rest' });
    button.replaceChildren(text, rest);
    panel.replaceChildren(form, chips, note);
    const popover = CairnPopover.attach(button, panel, null, pattern);
    form.addEventListener('submit', event => {
      event.preventDefault();
      if (!pattern.value) return;
      popover.close();
      go(add(selection, kind.value, pattern.value));
      pattern.value = '';
    });
    clear.addEventListener('click', () => {
      button.focus();
      go(NONE);
    });
    function remove({ kind: k, pattern: p }) {
      pattern.focus();
      go({ [k]: split(selection[k]).filter(x => x !== p).join('|') || null });
    }
    return {
      show(next, isChartOnly = false) {
        selection = next;
        const filters = list(next);
        const [first, more] = chipTexts(filters);
        text.textContent = first;
        rest.textContent = [more, filters.length && isChartOnly ? '(chart only)' : ''].filter(Boolean).map(t => ' ' + t).join('');
        button.title = filters.map(textOf).join('\n') || 'Only some of the stacks or frames';
        button.classList.toggle('active', filters.length > 0);
        clear.hidden = !filters.length;
        chips.replaceChildren(...filters.map(f => make('li', {}, `${KINDS[f.kind]} `, make('b', { className: 'mono', textContent: display(f.pattern, 80) }),
          make('button', { type: 'button', textContent: '×', 'aria-label': `Remove: ${textOf(f)}`, onclick: () => remove(f) }))));
        chips.hidden = !filters.length;
        note.textContent = 'A pattern is searched in names, files and objects of frames.' + (isChartOnly ? ' In this view filters apply to the chart only.' : '');
      },
    };
  }

  return { params, split, add, addName, list, chipTexts, attach };
})();
