// SPDX-License-Identifier: Apache-2.0
//
// What can be done with a function, wherever it is shown: changes of the selection. `context.offline` is the page that
// works without a service, which has no sources.
'use strict';
const CairnActions = (() => {
  // now() is the selection that is shown.
  function create(context, now) {
    const { go } = context, actions = {
      sandwich: name => go({ view: 'sandwich', function: name }),
      callees: name => go({ view: 'flame', callees_of: name, callers_of: null, tree: null }),
      callers: name => go({ view: 'flame', callers_of: name, callees_of: null, tree: null }),
      focus: name => go(CairnFilters.addName(now(), 'focus', name)),
      ignore: name => go(CairnFilters.addName(now(), 'ignore', name)),
      hide: name => go(CairnFilters.addName(now(), 'hide', name)),
    };
    if (context.canShow && context.canShow('source'))
      actions.source = (name, f, line) => go({ view: 'source', function: name, file: f[1] || null, line: line || null });
    return actions;
  }

  // Other pages about a frame: where nothing is known of an address, the objects that lack debuginfo.
  function links(context) {
    if (context.offline) return () => [];
    return (name, f) => f[3] === 3 ? [{ text: 'Why it is not resolved', href: '#' + new URLSearchParams({ view: 'missing' }) }] : [];
  }

  return { create, links };
})();
