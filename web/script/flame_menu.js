// SPDX-License-Identifier: Apache-2.0
//
// A context menu: opened at a point, operated with arrow keys, Home, End, Enter, Escape, first letters, or the pointer.
'use strict';
const CairnFlameMenu = (() => {
  const { make } = CairnDom;

  // items are { text, run } or { text, href }, null for a line between groups. The focus returns to `from`.
  function open(items, x, y, from) {
    close();
    const entries = items.filter((item, i) => item || (i > 0 && items[i - 1])).map(item => !item ? make('div', { role: 'separator' }) :
      item.href ? make('a', { role: 'menuitem', tabIndex: -1, href: item.href, target: '_blank', rel: 'noopener', textContent: item.text }) :
        make('button', { role: 'menuitem', type: 'button', tabIndex: -1, textContent: item.text }));
    const menu = make('div', { className: 'menu', role: 'menu', 'aria-label': 'Actions on this frame' }, ...entries);
    const buttons = entries.filter(e => e.getAttribute('role') === 'menuitem'), runs = items.filter(Boolean);
    const done = refocus => {
      if (current !== done) return;
      current = null;
      menu.remove();
      removeEventListener('pointerdown', outside, true);
      removeEventListener('blur', leave);
      if (refocus) from.focus();
    };
    const outside = event => { if (!menu.contains(event.target)) done(false); };
    const leave = () => done(false);
    buttons.forEach((b, i) => b.addEventListener('click', () => { done(true); if (runs[i].run) runs[i].run(); }));
    menu.addEventListener('keydown', event => {
      const at = buttons.indexOf(document.activeElement), last = buttons.length - 1;
      let to = { ArrowDown: at === last ? 0 : at + 1, ArrowUp: at <= 0 ? last : at - 1, Home: 0, End: last }[event.key];
      if (event.key === 'Escape' || event.key === 'Tab') done(true);
      else if (to === undefined && event.key.length === 1 && event.key !== ' ') {
        const begins = b => b.textContent.toLowerCase().startsWith(event.key.toLowerCase());
        to = [...buttons.keys()].map(k => (at + 1 + k) % buttons.length).find(k => begins(buttons[k]));
      }
      if (to !== undefined) buttons[to].focus();
      else if (event.key !== 'Escape' && event.key !== 'Tab') return;
      event.preventDefault();
      event.stopPropagation();
    });
    menu.addEventListener('contextmenu', event => event.preventDefault());
    (from.closest('main') || document.body).append(menu);
    const box = menu.getBoundingClientRect();
    menu.style.left = Math.max(4, Math.min(x, innerWidth - box.width - 4)) + 'px';
    menu.style.top = Math.max(4, Math.min(y, innerHeight - box.height - 4)) + 'px';
    current = done;
    addEventListener('pointerdown', outside, true);
    addEventListener('blur', leave);
    buttons[0].focus();
  }

  let current = null;
  function close() { if (current) current(false); }

  // Copy to the clipboard; if the browser refuses (plain HTTP, a file), by selecting and copying a field.
  async function copyText(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const field = make('textarea', { value: text, readOnly: true, className: 'unseen', 'aria-hidden': 'true' });
      const before = document.activeElement;
      document.body.append(field);
      field.select();
      const copied = document.execCommand('copy');
      field.remove();
      if (before) before.focus();
      return copied;
    }
  }

  return { open, close, copyText };
})();
