// SPDX-License-Identifier: Apache-2.0
//
// Elements made by script. Texts go through textContent alone: nothing here parses HTML.
'use strict';
const CairnDom = (() => {
  // make('button', { type: 'button', 'aria-pressed': 'false', onclick: f }, child, ...): names with a hyphen, and role and
  // list, are attributes, the others properties. Children that are null or undefined are left out.
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
