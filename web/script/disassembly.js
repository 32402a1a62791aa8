// SPDX-License-Identifier: Apache-2.0
//
// Instructions of a function with their cost, source lines between them, and links to branch targets.
'use strict';
const CairnDisassembly = (() => {
  const { make } = CairnDom, { visible } = CairnCodeList;

  // The answer as rows: a heading for each range, a row for each change of the line, and the instructions.
  function makeItems(code) {
    const items = [], byAddress = new Map();
    for (const range of code.ranges) {
      items.push({ kind: 'range', text: range.function || '(unknown function)', from: range.start, to: range.end });
      for (const i of range.instructions) {
        if (i.place && (i.place.file || i.place.function)) items.push({ kind: 'place', place: i.place, range });
        byAddress.set(i.address, items.length);
        items.push({ kind: 'code', flat: i.flat, cumulative: i.cumulative, code: i });
      }
      if (range.is_cut) items.push({ kind: 'range', text: 'more follows, up to', from: '', to: range.end });
    }
    return { items, byAddress };
  }

  // The text of an instruction, with a link to what it leads to: byAddress has the rows of the list, moveTo goes to one.
  function makeInstruction(i, byAddress, moveTo, go) {
    const text = make('span', { role: 'gridcell', className: 'c-text', title: i.bytes }, make('b', { className: 'mnemonic', textContent: i.mnemonic }), ' ', i.operands);
    if (byAddress.has(i.target) && i.flow) {
      const down = byAddress.get(i.target) > byAddress.get(i.address);
      text.append(' ', make('button', { type: 'button', className: 'link', tabIndex: -1, textContent: (down ? '↓ ' : '↑ ') + i.target,
        title: 'Go to ' + i.target, onclick: () => moveTo(byAddress.get(i.target)) }));
    } else if (i.target_name) {
      text.append(' ', make('button', { type: 'button', className: 'link', tabIndex: -1, textContent: '→ ' + visible(i.target_name),
        title: 'Show this function', onclick: () => go({ function: i.target_name }) }));
    } else if (i.target && !i.flow) {
      text.append(make('span', { className: 'soft', textContent: '  # ' + i.target }));
    }
    return text;
  }
  // The line of a place, with the function if it was inlined into that of the range.
  function placeText(p, range) {
    const inlined = p.function && p.function !== range.function ? `  (${p.function})` : '';
    return { title: visible(`${p.file}:${p.line}${inlined}`), textContent: visible(p.source !== undefined ? `${p.line}  ${p.source}${inlined}` : `${p.file || '?'}:${p.line}${inlined}`) };
  }

  // go(changes) as in the context.
  function create(root, go, moved) {
    let byAddress = new Map();
    const list = CairnCodeList.create(root, { label: 'Instructions', columns: ['Address', 'Instruction'], fill, open, moved });

    function fill(item, row) {
      if (item.kind === 'range') {
        row.append(make('span', { role: 'gridcell', className: 'c-line' }), make('span', { role: 'gridcell', className: 'c-text',
          textContent: `${visible(item.text)}  ${item.from}${item.from ? ' – ' : ''}${item.to}` }));
      } else if (item.kind === 'place') {
        row.append(make('span', { role: 'gridcell', className: 'c-line' }), make('span', { role: 'gridcell', className: 'c-text', ...placeText(item.place, item.range) }));
      } else {
        row.append(make('span', { role: 'gridcell', className: 'c-line', textContent: item.code.address.slice(2) }), makeInstruction(item.code, byAddress, list.moveTo, go));
      }
    }
    function open(item, at, key) {
      if (key === 'ArrowLeft' || item.kind !== 'code') return;
      if (item.code.flow && byAddress.has(item.code.target)) list.moveTo(byAddress.get(item.code.target));
      else if (item.code.target_name) go({ function: item.code.target_name });
    }

    return {
      ...list,
      show(code) {
        const made = makeItems(code);
        byAddress = made.byAddress;
        list.show(made.items, code);
      },
    };
  }

  return { create, makeInstruction, placeText };
})();
