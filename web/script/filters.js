// SPDX-License-Identifier: Apache-2.0
//
// The filters of the query API (focus, ignore, hide, show) as keys of the selection, which every view passes on, and as
// a bar with one chip for each pattern.
'use strict';
const CairnFilters = (() => {
  const { make } = CairnDom, { display, exactPattern } = CairnNames;
  const KINDS = { focus: 'Only stacks with', ignore: 'Without stacks with', hide: 'Hidden frames', show: 'Only frames' };

  const params = ({ focus, ignore, hide, show }) => ({ focus, ignore, hide, show });

  // Split a pattern at each | outside of groups and sets.
  function split(pattern) {
    const parts = [''];
    let depth = 0, inSet = false;
    for (let i = 0; i < pattern.length; i++) {
      const c = pattern[i];
      if (c === '\\') { parts[parts.length - 1] += c + (pattern[++i] || ''); continue; }
      if (inSet) inSet = c !== ']';
      else if (c === '[') inSet = true;
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

  // go(change) as in the context.
  function create(root, go) {
    let selection = {};
    const kind = make('select', { 'aria-label': 'Kind of filter' }, ...Object.entries(KINDS).map(([value, textContent]) => make('option', { value, textContent })));
    const pattern = make('input', { className: 'mono', size: 22, spellcheck: false, autocomplete: 'off', placeholder: 'regular expression', 'aria-label': 'Regular expression for names, files, objects' });
    const form = make('form', { className: 'bar' }, kind, pattern, make('button', { type: 'submit', textContent: 'Add filter' }));
    const chips = make('ul', { className: 'chips', 'aria-label': 'Filters' });
    const bar = make('div', { className: 'bar filters' }, form, chips);
    root.append(bar);
    form.addEventListener('submit', event => {
      event.preventDefault();
      if (pattern.value) go(add(selection, kind.value, pattern.value));
      pattern.value = '';
    });
    return {
      show(next) {
        selection = next;
        chips.replaceChildren(...Object.keys(KINDS).flatMap(k => (selection[k] ? split(selection[k]) : []).map(p => make('li', {},
          `${KINDS[k]} `, make('b', { className: 'mono', textContent: display(p, 80) }),
          make('button', { type: 'button', textContent: '×', 'aria-label': `Remove: ${KINDS[k]} ${display(p, 80)}`,
            onclick: () => go({ [k]: split(selection[k]).filter(x => x !== p).join('|') || null }) })))));
        chips.hidden = !chips.children.length;
      },
    };
  }

  return { params, split, add, addName, create };
})();
