// SPDX-License-Identifier: Apache-2.0
//
// Deploys, of the versions that the API lists by service and first appearance: a version after another one, or another
// build of a program with the same version.
'use strict';
const CairnDeploys = (() => {
  const { display, label } = CairnNames;
  const ID_SHOWN = 8, BUILD_LABEL = 'process_executable_build_id_gnu';

  const isBuild = v => v.program !== undefined;
  const shortId = id => id.slice(0, ID_SHOWN), textOf = v => isBuild(v) ? shortId(v.value) : v.value;
  const isSameLine = (a, b) => a.service_name === b.service_name && a.program === b.program && (!isBuild(a) || a.version === b.version);
  // What versions[i] replaced, undefined if nothing did.
  function previousOf(versions, i) {
    const before = versions.slice(0, i).reverse().find(v => isSameLine(v, versions[i]));
    return before && before.first_ms < versions[i].first_ms ? before : undefined;
  }

  // The last deploy of one service: { before, now }; without one `now` is the last version, or the only build, if any.
  function findLast(versions) {
    for (let i = versions.length - 1; i >= 0; i--) {
      const before = previousOf(versions, i);
      if (before) return { before, now: versions[i] };
    }
    return { now: versions.filter(v => !isBuild(v)).pop() || (versions.length === 1 ? versions[0] : undefined) };
  }

  // All deploys, { before, now }, by service.
  const pairs = versions => versions.flatMap((now, i) => { const before = previousOf(versions, i); return before ? [{ before, now }] : []; });
  // "shop 1.4 → 1.5"
  const pairText = ({ before, now }) => label(`${now.service_name || '(none)'} ${isBuild(now) && now.program !== now.service_name ? now.program + ' ' : ''}${textOf(before)} → ${textOf(now)}`);
  // As a chart marks them: { ms, name, text }.
  const list = versions => pairs(versions).map(pair => ({ ms: pair.now.first_ms, name: display(textOf(pair.now), 40), text: `${isBuild(pair.now) ? 'build' : 'version'}: ${pairText(pair)}` }));

  return { findLast, pairs, pairText, list, textOf, shortId, BUILD_LABEL };
})();
