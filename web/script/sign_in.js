// SPDX-License-Identifier: Apache-2.0
//
// The user's name, sign-in and sign-out (docs/formats/session.md). The token is sent once and not stored: the browser
// gets a cookie that scripts cannot read. The page is reloaded after either, so that no data of one user remains
// visible to the next; the selection is in the URL and stays.
'use strict';
const CairnSignIn = (() => {
  const { make } = CairnDom;
  const JSON_TYPE = { 'Content-Type': 'application/json' };

  // fetch() that throws an Error with the service's message.
  async function ask(path, options) {
    const answer = await fetch(path, options);
    if (answer.ok) return answer.status === 204 ? null : answer.json();
    const json = await answer.json().catch(() => null);
    throw new Error(json && json.error || `the service answered ${answer.status}`);
  }

  function makeForm() {
    const token = make('input', { id: 'sign-in-token', type: 'password', className: 'mono', name: 'token', required: true,
      autocomplete: 'current-password', spellcheck: false, 'aria-describedby': 'sign-in-why sign-in-error' });
    const error = make('p', { id: 'sign-in-error', className: 'error', role: 'alert', hidden: true });
    const button = make('button', { type: 'submit', className: 'primary', textContent: 'Sign in' });
    const form = make('form', { method: 'post', action: 'login' },
      make('h2', { id: 'sign-in-title', textContent: 'Sign in to Cairn' }),
      make('p', { id: 'sign-in-why', className: 'soft',
        textContent: 'This service requires a token that may read profiles. Its operator can give you one.' }),
      make('label', { htmlFor: 'sign-in-token', textContent: 'Token' }), token, error, button);
    const dialog = make('dialog', { id: 'sign-in', className: 'sign-in', 'aria-labelledby': 'sign-in-title' }, form);

    form.addEventListener('submit', async event => {
      event.preventDefault();
      button.disabled = true;
      error.hidden = true;
      try {
        await ask('login', { method: 'POST', headers: JSON_TYPE, body: JSON.stringify({ token: token.value.trim() }) });
        location.reload();
      } catch (e) {
        error.textContent = CairnNames.sentence(e.message);
        error.hidden = false;
        button.disabled = false;
        token.select();
      }
    });
    dialog.addEventListener('close', () => dialog.showModal()); // Escape does not dismiss it: the page is empty
    return { dialog, token };
  }

  // Show the signed-in user in root, and the form whenever the service requires a sign-in.
  function create(root) {
    let form = null;

    function showForm() {
      if (!form) document.body.append((form = makeForm()).dialog);
      if (form.dialog.open) return;
      form.dialog.showModal();
      form.token.focus();
    }
    async function signOut(csrf) {
      await ask('logout', { method: 'POST', headers: { ...JSON_TYPE, 'X-Cairn-CSRF': csrf }, body: '{}' }).catch(() => {});
      location.reload(); // also if the session had already expired
    }
    function showAccount(session) {
      const by = session.signed_in_by;
      root.replaceChildren();
      if (by !== 'session' && by !== 'proxy') return;
      const name = CairnNames.display(session.name.replace(/^proxy:/, '') || 'signed in');
      root.append(make('span', { className: 'account-name', title: name, textContent: name }));
      if (by === 'session')
        root.append(make('button', { type: 'button', id: 'sign-out', textContent: 'Sign out', onclick: () => signOut(session.csrf) }));
    }
    async function check() {
      const session = await ask('api/v1/session');
      showAccount(session);
      if (session.sign_in_needed) showForm();
    }

    addEventListener('cairn-unauthorized', () => check().catch(showForm));
    check().catch(() => {}); // the views report that the service cannot be reached
  }

  return { create };
})();
