// SPDX-License-Identifier: Apache-2.0
//
// Creation of elements. Texts are set through textContent only; no HTML is parsed.
'use strict';
const CairnDom = (() => {
  // make('button', { type: 'button', 'aria-pressed': 'false', onclick: f }, child, ...): names with a hyphen, role and
  // list are attributes, the others properties. Children that are null or undefined are skipped.
  function make(tag, props, ...children) {
    const e = document.createElement(tag);
    for (const [name, value] of Object.entries(props || {})) {
      if (value === undefined || value === null) continue;
      if (name.includes('-') || name === 'role' || name === 'list') e.setAttribute(name, value);
      else e[name] = value;
    }
    e.append(...children.filter(c => c !== null && c !== undefined));
    return e;
  }

  return { make };
})();
