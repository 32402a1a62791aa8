// SPDX-License-Identifier: Apache-2.0
//
// Requests to the service. URLs are relative, so that the page works below any path of a reverse proxy.
'use strict';
const CairnApi = (() => {
  // Parameters that are undefined, null or '' are omitted; an array repeats the parameter.
  function makeUrl(path, params) {
    const p = new URLSearchParams();
    for (const [name, value] of Object.entries(params || {}))
      for (const v of Array.isArray(value) ? value : [value])
        if (v !== undefined && v !== null && v !== '') p.append(name, v);
    const text = p.toString();
    return text ? path + '?' + text : path;
  }

  // The service's URL, for commands.
  const serverUrl = () => new URL('.', location.href).href.replace(/\/$/, '');

  async function fail(answer) {
    let text = await answer.text().catch(() => ''), reason = '';
    try {
      const json = JSON.parse(text);
      text = json.error || text;
      reason = json.reason || '';
    } catch { /* plain text */ }
    const error = new Error(text.slice(0, 2000) || `the service answered ${answer.status}`);
    error.status = answer.status;
    error.reason = reason;
    throw error;
  }

  // Values that are offered for a choice: a note about them does not concern what the page shows.
  const isChoice = path => /^api\/v1\/query\/label(s|\/[^/]*\/values)(\?|$)/.test(path);

  // hooks.unauthorized() is called for each 401, hooks.note(text) with the omissions that an answer reports;
  // hooks.tenant() is the tenant of requests, '' for that of the token.
  function create(hooks = {}) {
    async function send(path, options = {}) {
      const tenant = hooks.tenant ? hooks.tenant() : '', headers = tenant ? { ...options.headers, 'X-Scope-OrgID': tenant } : options.headers;
      let answer;
      try {
        answer = await fetch(path, { ...options, headers });
      } catch (e) {
        if (e.name === 'AbortError') throw e;
        throw new Error('the service cannot be reached', { cause: e });
      }
      if (answer.status === 401 && hooks.unauthorized) hooks.unauthorized();
      if (!answer.ok) await fail(answer);
      const note = answer.headers.get('X-Cairn-Note');
      // Headers are bytes, one character each; the note is UTF-8.
      if (note && hooks.note && !isChoice(path)) hooks.note(new TextDecoder().decode(Uint8Array.from(note, c => c.charCodeAt(0))));
      return answer;
    }
    return {
      // Parsed JSON, or an Error with the service's message, status and reason.
      async get(path, params, signal) {
        return (await send(makeUrl(path, params), { signal })).json();
      },
      async getText(path, params, signal) {
        return (await send(makeUrl(path, params), { signal })).text();
      },
      // An operation of docs/formats/query-api.md.
      query(operation, params, signal) {
        return this.get('api/v1/query/' + operation, params, signal);
      },
      send,
    };
  }

  return { create, makeUrl, serverUrl };
})();
