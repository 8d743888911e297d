'use strict';

const $ = id => document.getElementById(id);
const model = document.body.dataset.model;
const storeKey = `primus conversations ${model}`;
const mostKept = 20;

let template = null; // of the model, '' for none
let kept = load(); // conversations, the newest first: { title, messages }
let current = kept[0] || begin();
let running = null; // what ends the answer that is generated

// load returns the conversations that this browser has kept.
function load() {
  try {
    const all = JSON.parse(localStorage.getItem(storeKey)) || [];
    return all.filter(c => typeof c.title === 'string' && Array.isArray(c.messages) && c.messages.every(m => typeof m.content === 'string'));
  } catch {
    return [];
  }
}

// keep writes the conversations. One without messages is not worth keeping.
function keep() {
  try {
    localStorage.setItem(storeKey, JSON.stringify(kept.filter(c => c.messages.length > 0).slice(0, mostKept)));
  } catch {
    say('This browser keeps no conversations: they end with the page.');
  }
}

function begin() {
  const c = { title: '', messages: [] };
  kept = [c, ...kept.filter(k => k.messages.length > 0)];
  return c;
}

function say(text) { $('state').textContent = text; }

function element(name, props, ...children) {
  const e = Object.assign(document.createElement(name), props);
  e.append(...children);
  return e;
}

// draw shows the conversation and the list of all of them.
function draw() {
  const list = $('conversations');
  list.replaceChildren(...kept.map((c, i) => element('option', { value: String(i), selected: c === current }, c.title || 'new conversation')));
  $('messages').replaceChildren(...current.messages.map(row));
  for (const id of ['delete', 'save']) $(id).disabled = running !== null || current.messages.length === 0;
  for (const id of ['send', 'new', 'conversations']) $(id).disabled = running !== null;
  $('stop').disabled = running === null;
}

// row returns a message, with what can be done about it.
function row(message, i) {
  const who = message.role === 'user' ? 'You' : 'Model';
  const item = element('li', { className: message.role }, element('h3', {}, who), element('p', { className: 'text' }, message.content));
  if (running) return item;
  const act = (name, label, then) => {
    const b = element('button', { type: 'button' }, name);
    b.setAttribute('aria-label', label);
    b.addEventListener('click', then);
    return b;
  };
  const buttons = element('p', { className: 'buttons' });
  if (message.role === 'user') buttons.append(act('Edit', `Edit message ${i + 1} and answer it again`, () => edit(item, i)));
  if (message.role === 'assistant' && i === current.messages.length - 1) {
    buttons.append(act('Retry', 'Another answer to the last message', () => {
      current.messages.pop();
      answer();
    }));
  }
  if (message.figures) buttons.append(element('span', { className: 'quiet' }, message.figures));
  item.append(buttons);
  return item;
}

// edit puts a message into a field; what followed it is forgotten when the new text is sent.
function edit(item, i) {
  const field = element('textarea', { rows: 3, value: current.messages[i].content, required: true });
  field.setAttribute('aria-label', `Message ${i + 1}`);
  const form = element('form', {}, field, element('p', { className: 'buttons' },
    element('button', { type: 'submit' }, 'Send again'), ' ', element('button', { type: 'button', className: 'cancel' }, 'Cancel')));
  form.querySelector('.cancel').addEventListener('click', draw);
  onEnter(field, form);
  form.addEventListener('submit', event => {
    event.preventDefault();
    current.messages = current.messages.slice(0, i);
    send(field.value);
  });
  item.replaceChildren(form);
  field.focus();
}

// onEnter submits a form with the key Enter, unless Shift is held or the key ends the composition of
// a character.
function onEnter(field, form) {
  field.addEventListener('keydown', event => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
}

// request returns the path and the body of the request for an answer.
function request() {
  const body = {
    model, stream: true, stream_options: { include_usage: true },
    max_tokens: Number($('tokens').value), temperature: Number($('temperature').value), top_p: Number($('top-p').value), top_k: Number($('top-k').value),
  };
  if ($('seed').value !== '') body.seed = Number($('seed').value);
  let messages = current.messages.map(({ role, content }) => ({ role, content }));
  if ($('system').value !== '') messages = [{ role: 'system', content: $('system').value }, ...messages];
  if (template) return ['v1/chat/completions', { ...body, messages }];
  return ['v1/completions', { ...body, prompt: messages.map(m => m.content).join('\n') }];
}

// events yields the events of a stream, as objects.
async function* events(stream) {
  let rest = '';
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const lines = rest.split('\n\n');
    rest = lines.pop();
    for (const line of lines) {
      const data = line.replace(/^data: /, '');
      if (data === '[DONE]') return;
      yield JSON.parse(data);
    }
  }
}

function headers() {
  const h = { 'Content-Type': 'application/json' };
  if ($('token')) h.Authorization = `Bearer ${$('token').value}`;
  return h;
}

// generate appends an answer to a message as it comes, and returns what is to be said about it.
async function generate(message, shown) {
  const begun = performance.now();
  const [path, body] = request();
  const response = await fetch(path, { method: 'POST', headers: headers(), body: JSON.stringify(body), signal: running.signal });
  if (!response.ok) throw new Error((await response.json()).error.message);
  let tokens = 0, finish = '', drawing = 0; // text is drawn a few times a second, not for each token
  for await (const event of events(response.body)) {
    if (event.error) throw new Error(event.error.message);
    for (const choice of event.choices) {
      message.content += choice.text || (choice.delta && choice.delta.content) || '';
      finish = choice.finish_reason || finish;
    }
    drawing ||= setTimeout(() => {
      drawing = 0;
      shown.textContent = message.content;
      shown.scrollIntoView({ block: 'nearest' });
    }, 50);
    if (event.usage) tokens = event.usage.completion_tokens;
  }
  const seconds = (performance.now() - begun) / 1000;
  return `${tokens} tokens in ${seconds.toFixed(2)} s, ${(tokens / seconds).toFixed(1)} tokens/s, ended by ${finish}`;
}

// answer asks for an answer to the conversation. A part of one is kept, nothing is not.
async function answer() {
  running = new AbortController();
  const message = { role: 'assistant', content: '' };
  draw();
  const shown = row(message);
  $('messages').append(shown);
  $('messages').setAttribute('aria-busy', 'true'); // it is read out when it is whole
  say('The model answers.');
  let outcome;
  try {
    await describe();
    outcome = message.figures = await generate(message, shown.querySelector('.text'));
  } catch (e) {
    outcome = e.name === 'AbortError' ? 'Stopped.' : e.message;
    if (e.name === 'AbortError') message.figures = 'stopped';
  }
  running = null;
  if (message.content !== '' || message.figures) current.messages.push(message);
  keep();
  draw();
  $('messages').setAttribute('aria-busy', 'false');
  say(outcome);
  $('message').focus();
}

function send(text) {
  if (running) return;
  const wrong = [...$('settings').querySelectorAll('input')].find(i => !i.checkValidity());
  if (wrong) {
    $('settings').open = true;
    wrong.reportValidity();
    return;
  }
  current.messages.push({ role: 'user', content: text });
  current.title = current.title || text.slice(0, 40);
  $('message').value = '';
  answer();
}

$('form').addEventListener('submit', event => {
  event.preventDefault();
  send($('message').value);
});
onEnter($('message'), $('form'));
$('stop').addEventListener('click', () => running.abort());
document.addEventListener('keydown', event => { if (event.key === 'Escape' && running) running.abort(); });

$('conversations').addEventListener('change', event => {
  current = kept[Number(event.target.value)];
  draw();
});

$('new').addEventListener('click', () => {
  current = begin();
  draw();
  $('message').focus();
});

$('delete').addEventListener('click', () => {
  kept = kept.filter(c => c !== current);
  current = kept[0] || begin();
  keep();
  draw();
  say('Deleted.');
  $('message').focus();
});

$('save').addEventListener('click', () => {
  const text = JSON.stringify({ messages: current.messages.map(({ role, content }) => ({ role, content })) });
  const link = element('a', { href: URL.createObjectURL(new Blob([text], { type: 'application/json' })), download: 'conversation.json' });
  link.click();
  URL.revokeObjectURL(link.href);
});

// describe shows what the service says about the model.
async function describe() {
  const response = await fetch(`v1/models/${encodeURIComponent(model)}`, { headers: headers() });
  if (!response.ok) return;
  template = (await response.json()).chat_template || '';
  $('template').textContent = template || 'none';
  $('note').hidden = template !== '';
  $('note').textContent = 'The model has no chat template: it goes on with the text of the conversation.';
}

draw();
describe();
