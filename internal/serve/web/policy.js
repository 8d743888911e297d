'use strict';

// The policy in force, the quarantines, and the changes of both.

let generation = 0, edited = false;

async function showPolicy() {
  const state = await ask('v1/policy');
  generation = state.generation;
  $('generation').textContent = generation;
  const { sources, ...fields } = state.policy;
  const text = v => v === null ? 'all' : Array.isArray(v) ? (v.map(x => typeof x === 'object' ? JSON.stringify(x) : x).join(', ') || 'none')
    : typeof v === 'object' ? (Object.entries(v).map(([k, x]) => `${k}: ${Array.isArray(x) ? x.join('|') : x === null ? 'all' : x}`).join(', ') || 'none') : String(v);
  $('fields').tBodies[0].replaceChildren(...Object.entries(fields).map(([name, v]) =>
    element('tr', {}, element('th', { scope: 'row' }, name), element('td', {}, text(v)), element('td', { class: 'quiet' }, sources[name] || ''))));
  $('warnings').replaceChildren(...state.warnings.map(w => element('li', {}, w)));
  if (!edited) $('document').value = state.document;
  $('withdraw').disabled = !state.document || document.body.dataset.writable !== 'true';
  const aside = await ask('v1/quarantine');
  $('aside-none').hidden = aside.length > 0;
  $('aside').replaceChildren(...aside.map(q => {
    const button = element('button', { type: 'button', 'aria-label': `Use ${q.impl_id} of ${q.op} again` }, 'use again');
    button.addEventListener('click', () => decide(() => write('DELETE', `v1/quarantine?${new URLSearchParams({ op: q.op, impl_id: q.impl_id })}`),
      () => `${q.impl_id} is used for ${q.op} again`));
    return element('li', {}, `${q.op} ${q.impl_id}: ${q.state.replace('_', ' ')}, ${q.failures} failures, until ${q.until || 'it is cleared'}: ${q.cause} `, button);
  }));
}

// decide asks for something and shows what came of it.
async function decide(request, sentence) {
  try {
    const answer = await request();
    $('verdict').className = '';
    $('verdict').textContent = sentence(answer);
    showDiff(answer);
    refresh();
    return answer;
  } catch (fault) {
    $('verdict').className = 'bad';
    $('verdict').textContent = fault.message;
    $('diff').replaceChildren();
  }
}

function showDiff(answer) {
  const copies = !answer.policy || answer.policy.cross_device !== 'error';
  const none = c => c.device && copies ? 'the host, with copies' : 'none, calls fail';
  $('diff').replaceChildren(
    ...(answer.changes || []).map(c => element('li', {}, `${c.op}${c.device ? ` on ${c.device}` : ''}${c.where ? ` (${c.where})` : ''}: `,
      element('del', {}, c.from || 'none'), ' → ', element('ins', {}, c.to || none(c)), c.reason ? ` – ${c.reason}` : '')),
    ...(answer.warnings || []).map(w => element('li', { class: 'warnings' }, w)));
}

// counted says of how many ops changes are, which may have several of one.
const counted = changes => {
  const n = new Set(changes.map(c => c.op)).size;
  return n === 1 ? '1 op' : `${n} ops`;
};
let seen = 0; // the generation at which the proposal was made

$('editor').addEventListener('submit', async event => {
  event.preventDefault();
  const answer = await decide(() => write('POST', 'v1/policy/proposal', $('document').value), a => `This would change what serves ${counted(a.changes)}.`);
  seen = answer ? answer.generation : 0;
  $('apply').disabled = !answer || document.body.dataset.writable !== 'true';
});
$('document').addEventListener('input', () => {
  edited = true;
  $('apply').disabled = true;
});
$('apply').addEventListener('click', async () => {
  const answer = await decide(() => write('PUT', `v1/policy?expected_generation=${seen}`, $('document').value), a => `In force since generation ${a.generation}: ${counted(a.changes)} changed.`);
  if (answer) edited = false;
  $('apply').disabled = true;
});
$('withdraw').addEventListener('click', () => decide(() => write('DELETE', `v1/policy?expected_generation=${generation}`), a => {
  edited = false;
  return `Withdrawn in generation ${a.generation}: ${counted(a.changes)} changed.`;
}));
parts.push(showPolicy);
