// SPDX-License-Identifier: Apache-2.0
//
// Notes above a view: what an answer leaves out, and how to read the view. A note that was dismissed stays away in this
// browser until its text changes; a button shows the dismissed notes of the view again.
'use strict';
const CairnNotes = (() => {
  const { make } = CairnDom, { display, sentence } = CairnNames;
  const KEY = 'cairn-notes', KINDS_MAX = 64, TEXT_MAX = 600;
  // Times and values, which differ in each answer of a range that moves.
  const MOVING = /\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?|\b\d[\d,.]* ?(h|min|s|ms|µs|ns|[KMGT]?i?B)\b/g;
  const TYPE = /([^\s:;,"/[\]]+(?::[^\s:;,"/[\]]*){4,5})/;

  // The kind of a note of the service: its first words.
  const kindOf = text => text.replace(MOVING, '#').split(/[:;]/)[0].replace(/\d+/g, '#').slice(0, 100);
  // What of a text is compared.
  const stateOf = text => text.replace(MOVING, '#').slice(0, TEXT_MAX);

  // { kind: text when it was dismissed }, the oldest first.
  function read() {
    try {
      const all = JSON.parse(localStorage.getItem(KEY) || '{}');
      return all && typeof all === 'object' && !Array.isArray(all) ? all : {};
    } catch {
      return {};
    }
  }
  function write(all) {
    try {
      const kept = Object.entries(all).slice(-KINDS_MAX);
      if (kept.length) localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(kept)));
      else localStorage.removeItem(KEY);
    } catch { /* not kept */ }
  }
  const isDismissed = ({ kind, text }, dismissed = read()) => Object.hasOwn(dismissed, kind) && dismissed[kind] === stateOf(text);
  function dismiss({ kind, text }) {
    const { [kind]: old, ...others } = read();
    write({ ...others, [kind]: stateOf(text) });
  }
  function restore(notes) {
    const kinds = notes.map(n => n.kind);
    write(Object.fromEntries(Object.entries(read()).filter(([kind]) => !kinds.includes(kind))));
  }

  // list: the element of the notes; again: the button for the dismissed ones. go(change) as in the context.
  // begin() starts a new answer, add(text, kind) adds a note of it, end() shows that it has no more.
  function create({ list, again }, go) {
    let notes = [], isNew = false;

    // A sentence in which types are links that choose them.
    const pieces = text => sentence(text).split(TYPE).map((part, i) => i % 2 === 0 ? part :
      make('button', { type: 'button', className: 'link', textContent: display(CairnSelection.typeText(part), 80), title: 'Show this type', onclick: () => go({ type: part }) }));
    function draw() {
      const dismissed = read(), hidden = notes.filter(n => isDismissed(n, dismissed)), shown = notes.filter(n => !hidden.includes(n));
      list.replaceChildren(...shown.map(note => make('div', { className: 'note' }, make('p', {}, ...pieces(note.text)),
        make('button', { type: 'button', className: 'close', textContent: '×', title: 'Dismiss until it changes', 'aria-label': `Dismiss note: ${display(note.text, 60)}`, onclick: () => close(note) }))));
      list.hidden = !shown.length;
      again.hidden = !hidden.length;
      again.textContent = hidden.length ? `Show ${CairnUnits.things(hidden.length, 'note')}` : '';
    }
    function close(note) {
      const at = notes.indexOf(note);
      dismiss(note);
      draw();
      (list.querySelectorAll('.close')[at] || list.querySelector('.close') || again).focus();
    }
    again.addEventListener('click', () => {
      restore(notes);
      draw();
      list.querySelector('.close')?.focus();
    });
    return {
      begin() { isNew = true; },
      add(text, kind = kindOf(text)) {
        if (isNew) notes = [];
        isNew = false;
        if (!text || notes.some(n => n.kind === kind && n.text === text)) return;
        notes.push({ kind, text });
        draw();
      },
      end() {
        if (isNew) notes = [];
        isNew = false;
        draw();
      },
    };
  }

  return { create, kindOf, isDismissed, dismiss, restore };
})();
