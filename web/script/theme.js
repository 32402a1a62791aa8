// SPDX-License-Identifier: Apache-2.0
//
// Light and dark: as the system has it, until the switch says otherwise. The choice is kept in this browser, and
// forgotten when it agrees with the system again. A change is the event "cairn-theme" of the window.
'use strict';
const CairnTheme = (() => {
  const KEY = 'cairn-theme', system = matchMedia('(prefers-color-scheme: dark)');

  const isDark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === 'dark' : system.matches;
  };
  const tell = () => dispatchEvent(new Event('cairn-theme'));

  // Pages opened from a file, and browsers that are told so, have no storage: the switch works without.
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
