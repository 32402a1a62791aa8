// SPDX-License-Identifier: Apache-2.0
//
// Light and dark theme: the system's, unless chosen by the switch. The choice is stored in this browser, and removed
// when it agrees with the system again. A change fires the event "cairn-theme" of the window.
'use strict';
const CairnTheme = (() => {
  const KEY = 'cairn-theme', system = matchMedia('(prefers-color-scheme: dark)');

  const isDark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === 'dark' : system.matches;
  };
  const tell = () => dispatchEvent(new Event('cairn-theme'));

  // Pages opened from a file, and browsers with storage disabled, have no storage: the switch works without it.
  function readChoice() {
    try { return localStorage.getItem(KEY); } catch { return null; }
  }
  function keepChoice(theme) {
    try {
      if (theme) localStorage.setItem(KEY, theme);
      else localStorage.removeItem(KEY);
    } catch { /* not kept */ }
  }

  function toggle() {
    const dark = !isDark();
    if (dark === system.matches) delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    keepChoice(document.documentElement.dataset.theme);
    tell();
  }

  function connectButton(button) {
    const say = () => button.setAttribute('aria-pressed', isDark());
    button.onclick = toggle;
    addEventListener('cairn-theme', say);
    say();
  }

  const kept = readChoice();
  if (kept === 'dark' || kept === 'light') document.documentElement.dataset.theme = kept;
  system.addEventListener('change', tell);
  return { isDark, connectButton };
})();
