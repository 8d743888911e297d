'use strict';

const $ = id => document.getElementById(id);

let current = null; // what ends the request that runs

// request returns what the form asks for.
function request() {
  const text = $('prompt').value;
  const body = {
    model: document.body.dataset.model, stream: true, stream_options: { include_usage: true },
    max_tokens: Number($('tokens').value), temperature: Number($('temperature').value), top_p: Number($('top-p').value),
  };
  if ($('seed').value !== '') body.seed = Number($('seed').value);
  if ($('kind').value === 'completions') body.prompt = text;
  else body.messages = [{ role: 'user', content: text }];
  return body;
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

async function generate() {
  const headers = { 'Content-Type': 'application/json' };
  if ($('token')) headers.Authorization = `Bearer ${$('token').value}`;
  current = new AbortController();
  const answer = $('answer');
  answer.textContent = '';
  const begin = performance.now();
  const response = await fetch(`v1/${$('kind').value}`, { method: 'POST', headers, body: JSON.stringify(request()), signal: current.signal });
  if (!response.ok) throw new Error((await response.json()).error.message);
  let tokens = 0, finish = '';
  for await (const event of events(response.body)) {
    if (event.error) throw new Error(event.error.message);
    for (const choice of event.choices) {
      answer.append(choice.text || (choice.delta && choice.delta.content) || '');
      finish = choice.finish_reason || finish;
    }
    if (event.usage) tokens = event.usage.completion_tokens;
  }
  const seconds = (performance.now() - begin) / 1000;
  return `${tokens} tokens in ${seconds.toFixed(2)} s, ${(tokens / seconds).toFixed(1)} tokens/s, ended by ${finish}`;
}

$('form').addEventListener('submit', async event => {
  event.preventDefault();
  $('send').disabled = true;
  $('stop').disabled = false;
  $('state').textContent = 'generating';
  try {
    $('state').textContent = await generate();
  } catch (e) {
    $('state').textContent = e.name === 'AbortError' ? 'stopped' : e.message;
  }
  $('send').disabled = false;
  $('stop').disabled = true;
});

$('stop').addEventListener('click', () => current.abort());
