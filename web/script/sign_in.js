// SPDX-License-Identifier: Apache-2.0
//
// Who uses the page, and signing in and out (docs/formats/session.md). The token is sent once and kept nowhere: from then on the
// browser has a cookie that no script can read. The page is loaded again after either, so that nothing of one person's
// view is left to the next; the selection is in the address and stays.
'use strict';
const CairnSignIn = (() => {
  const { make } = CairnDom;
  const JSON_TYPE = { 'Content-Type': 'application/json' };

  // fetch() with an Error in the service's words.
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
        textContent: 'This service asks for a token that may read profiles. Whoever runs it can give you one.' }),
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
        error.textContent = e.message;
        error.hidden = false;
        button.disabled = false;
        token.select();
      }
    });
    dialog.addEventListener('close', () => dialog.showModal()); // Escape: there is nothing behind it to return to
    return { dialog, token };
  }

  // Shows in root who is signed in, and the form whenever the service wants a sign-in.
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
      location.reload(); // also when the session was over already
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
    check().catch(() => {}); // the views say that the service cannot be reached
  }

  return { create };
})();
