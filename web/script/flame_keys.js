// SPDX-License-Identifier: Apache-2.0
//
// Key bindings of a flame graph; the table is also the help opened by "?". Single letters work only while the graph has
// the focus.
'use strict';
const CairnFlameKeys = (() => {
  const { make } = CairnDom;

  // [keys, action, help text]; "Shift+" precedes a key that requires it. Away from and towards the root are down and up
  // if the root is on top.
  const KEYS = [
    [['ArrowDown'], 'down', 'the frame below: the heaviest callee, or, with callers below, the heaviest caller'],
    [['ArrowUp'], 'up', 'the frame above'],
    [['ArrowLeft'], 'left', 'the frame to the left in this row'],
    [['ArrowRight'], 'right', 'the frame to the right in this row'],
    [['Enter', ' '], 'zoom', 'zoom to the frame'],
    [['Escape', 'Backspace'], 'back', 'zoom out to its caller'],
    [['Home', '0'], 'all', 'show everything'],
    [['+', '='], 'closer', 'zoom in a little'],
    [['-'], 'wider', 'zoom out a little'],
    [['Shift+ArrowLeft', 'a'], 'panLeft', 'move the picture to the left'],
    [['Shift+ArrowRight', 'd'], 'panRight', 'move the picture to the right'],
    [['PageDown', 's'], 'pageDown', 'scroll down'],
    [['PageUp', 'w'], 'pageUp', 'scroll up'],
    [['/', 'f'], 'search', 'search'],
    [['n'], 'next', 'the next match of the search'],
    [['Shift+N', 'p'], 'previous', 'the match before'],
    [['ContextMenu', 'Shift+F10', 'm'], 'menu', 'actions on the frame'],
    [['o'], 'source', 'show its source'],
    [['t'], 'trend', 'show its cost over time'],
    [['c'], 'copy', 'copy its name'],
    [['i'], 'flip', 'root on top, or at the bottom'],
    [['r'], 'recursion', 'collapse recursion, or show it'],
    [['v'], 'reverse', 'callers instead of callees'],
    [['x'], 'ignore', 'leave out the stacks with this frame'],
    [['?'], 'help', 'this list'],
  ];
  const actions = new Map(KEYS.flatMap(([keys, action]) => keys.map(k => [k, action])));

  // The action of an event; undefined for keys with another modifier.
  function actionOf(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return undefined;
    return (event.shiftKey && actions.get('Shift+' + event.key)) || actions.get(event.key);
  }

  const SHOWN = { ' ': 'Space', ArrowDown: '↓', ArrowUp: '↑', ArrowLeft: '←', ArrowRight: '→', Escape: 'Esc', ContextMenu: 'Menu' };
  const shownKey = k => k.split('+').map(part => SHOWN[part] || part).join('+') || '+';
  function showHelp(from) {
    const rows = KEYS.map(([keys, , text]) => make('tr', {},
      make('th', { scope: 'row' }, ...keys.flatMap((k, i) => [i ? ' ' : null, make('kbd', { textContent: k === '+' ? '+' : shownKey(k) })])), make('td', { textContent: text })));
    const close = make('button', { type: 'button', textContent: 'Close' });
    const dialog = make('dialog', { className: 'keys', 'aria-label': 'Keys of the flame graph' },
      make('h2', { textContent: 'Keys of the flame graph' }), make('table', {}, make('tbody', {}, ...rows)), close);
    close.onclick = () => dialog.close();
    dialog.addEventListener('close', () => { dialog.remove(); from.focus(); });
    document.body.append(dialog);
    dialog.showModal();
  }

  return { actionOf, showHelp, KEYS };
})();
