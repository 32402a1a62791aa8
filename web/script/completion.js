// SPDX-License-Identifier: Apache-2.0
//
// A list of completions below a text field: the combobox pattern of WAI-ARIA 1.2. The field keeps the focus.
'use strict';
const CairnCompletion = (() => {
  const { make } = CairnDom;
  const SHOWN_MAX = 100;

  // offer(text, caret, signal) resolves to { title, items: [{ label, detail, share }] } or null; accept(item) is called
  // for the chosen one. share, 0 to 1, is drawn as a bar.
  function attach(input, list, offer, accept) {
    let items = [], active = -1, running = null;
    list.setAttribute('role', 'listbox');
    list.hidden = true;
    for (const [name, value] of [['role', 'combobox'], ['aria-autocomplete', 'list'], ['aria-expanded', 'false'], ['aria-controls', list.id]])
      input.setAttribute(name, value);

    function close() {
      if (running) running.abort();
      running = null;
      list.hidden = true;
      items = [];
      active = -1;
      input.setAttribute('aria-expanded', 'false');
      input.removeAttribute('aria-activedescendant');
    }
    function select(i) {
      if (active >= 0) list.children[active].setAttribute('aria-selected', 'false');
      active = i;
      if (i < 0) { input.removeAttribute('aria-activedescendant'); return; }
      list.children[i].setAttribute('aria-selected', 'true');
      list.children[i].scrollIntoView({ block: 'nearest' });
      input.setAttribute('aria-activedescendant', list.children[i].id);
    }
    function take(i) {
      const item = items[i];
      close();
      accept(item);
    }
    function makeOption(item, i) {
      const bar = make('span', { className: 'share-bar', 'aria-hidden': 'true' });
      if (item.share !== undefined) bar.style.width = Math.max(1, 100 * item.share) + '%';
      const option = make('div', { id: `${list.id}-${i}`, role: 'option', 'aria-selected': 'false', className: 'option' },
        item.share === undefined ? null : bar, make('span', { className: 'option-label mono', textContent: item.label }),
        make('span', { className: 'option-detail', textContent: item.detail || '' }));
      option.addEventListener('pointerdown', event => { event.preventDefault(); take(i); });
      return option;
    }
    async function open() {
      if (running) running.abort();
      const mine = running = new AbortController();
      let offered = null;
      try {
        offered = await offer(input.value, input.selectionStart, mine.signal);
      } catch { /* no completion */ }
      if (running !== mine || document.activeElement !== input) return;
      items = offered ? offered.items.slice(0, SHOWN_MAX) : [];
      active = -1;
      list.replaceChildren(...items.map(makeOption));
      list.setAttribute('aria-label', offered ? offered.title : 'Completions');
      list.hidden = !items.length;
      input.setAttribute('aria-expanded', items.length > 0);
      input.removeAttribute('aria-activedescendant');
    }

    input.addEventListener('input', open);
    input.addEventListener('click', open);
    input.addEventListener('blur', close);
    input.addEventListener('keydown', event => {
      const shown = !list.hidden, last = items.length - 1;
      if (event.key === 'ArrowDown' && !shown) open();
      else if (event.key === 'ArrowDown') select(active >= last ? 0 : active + 1);
      else if (event.key === 'ArrowUp' && shown) select(active <= 0 ? last : active - 1);
      else if (event.key === 'Enter' && shown && active >= 0) take(active);
      else if (event.key === 'Tab' && shown && active >= 0 && !event.shiftKey) take(active);
      else if (event.key === 'Escape' && shown) close();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    return { open, close };
  }

  return { attach };
})();
