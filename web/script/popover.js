// SPDX-License-Identifier: Apache-2.0
//
// Panels below a button: opened by it, closed by Escape, a click elsewhere, or the panel's own code.
'use strict';
const CairnPopover = (() => {
  // Returns { open, close }; onOpen is called before the panel is shown. `first`: what has the focus then, by default the
  // first control.
  function attach(button, panel, onOpen, first) {
    panel.hidden = true;
    button.setAttribute('aria-expanded', 'false');
    button.setAttribute('aria-haspopup', 'dialog');
    if (panel.id) button.setAttribute('aria-controls', panel.id);

    const isOpen = () => !panel.hidden;
    function place() {
      const at = button.getBoundingClientRect();
      panel.style.top = at.bottom + 4 + 'px';
      panel.style.left = Math.max(8, Math.min(at.left, innerWidth - panel.offsetWidth - 8)) + 'px';
      panel.style.maxHeight = Math.max(120, innerHeight - at.bottom - 16) + 'px';
    }
    function open() {
      if (onOpen) onOpen();
      panel.hidden = false;
      button.setAttribute('aria-expanded', 'true');
      place();
      const focused = first || panel.querySelector('input, button, select, a');
      if (focused) focused.focus();
    }
    function close(refocus = true) {
      if (!isOpen()) return;
      panel.hidden = true;
      button.setAttribute('aria-expanded', 'false');
      if (refocus) button.focus();
    }
    button.addEventListener('click', () => (isOpen() ? close() : open()));
    addEventListener('keydown', event => {
      if (event.key !== 'Escape' || !isOpen()) return;
      event.preventDefault();
      close();
    });
    addEventListener('pointerdown', event => {
      if (isOpen() && !panel.contains(event.target) && !button.contains(event.target)) close(false);
    });
    panel.addEventListener('focusout', event => {
      if (event.relatedTarget && !panel.contains(event.relatedTarget) && !button.contains(event.relatedTarget)) close(false);
    });
    addEventListener('resize', () => { if (isOpen()) place(); });
    return { open, close };
  }

  return { attach };
})();
