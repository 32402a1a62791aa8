// SPDX-License-Identifier: Apache-2.0
//
// Actions on a function in any view: changes of the selection. `context.offline` is the page that works without a
// service, which has no sources.
'use strict';
const CairnActions = (() => {
  // From a comparison to the source of both sides.
  const sidesOf = ({ view, compare, label, before, after }) => view === 'diff' ? { compared: 1, compare, label, before, after } : { compared: null };

  // now() returns the shown selection.
  function create(context, now) {
    const { go } = context, actions = {
      sandwich: name => go({ view: 'sandwich', function: name }),
      callees: name => go({ view: 'flame', callees_of: name, callers_of: null, tree: null }),
      callers: name => go({ view: 'flame', callers_of: name, callees_of: null, tree: null }),
      focus: name => go(CairnFilters.addName(now(), 'focus', name)),
      ignore: name => go(CairnFilters.addName(now(), 'ignore', name)),
      hide: name => go(CairnFilters.addName(now(), 'hide', name)),
    };
    if (context.canShow && context.canShow('trend')) actions.trend = (name, f) => go({ view: 'trend', function: name, file: f[1] || null });
    if (context.canShow && context.canShow('source'))
      actions.source = (name, f, line) => go({ view: 'source', ...sidesOf(now()), function: name, file: f[1] || null, line: line || null });
    return actions;
  }

  // A link to the source of a row's function, at its most expensive line; '' if none.
  function sourceOf(context, now) {
    if (!context.canShow || !context.canShow('source')) return undefined;
    return row => row.file ? CairnSelection.format(CairnSelection.change(now(), { view: 'source', ...sidesOf(now()), function: row.function, file: row.file, line: row.line || null })) : '';
  }

  // A link to the trend of a row's function; '' if none.
  function trendOf(context, now) {
    if (!context.canShow || !context.canShow('trend')) return undefined;
    return row => row.kind === 'unresolved' ? '' : CairnSelection.format(CairnSelection.change(now(), { view: 'trend', function: row.function, file: row.file || null }));
  }

  // Links to other views of the same selection, for new tabs.
  function links(context, now) {
    const { canShow } = context;
    if (!canShow) return () => [];
    const href = changes => CairnSelection.format(CairnSelection.change(now(), changes));
    return (name, f, line) => [
      ...(canShow('source') && f[1] ? [{ text: 'Open its source in a new tab', href: href({ view: 'source', ...sidesOf(now()), function: name, file: f[1], line: line || null }) }] : []),
      ...(canShow('debuginfo') && name === CairnNames.JIT ? [{ text: 'Why it has no name', href: href({ view: 'debuginfo', panel: 'why', function: name }) }] :
        canShow('debuginfo') && f[3] < 4 && (f[3] === 3 || !line) ? [{ text: f[3] === 3 ? 'Why it has no name' : 'Why it has no line', href: href({ view: 'debuginfo', panel: 'why', function: name }) }] : []),
    ];
  }

  return { create, links, sourceOf, trendOf };
})();
