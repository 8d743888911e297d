// Uses a service through the npm package openai and prints ok. The argument is its address.
'use strict';

const assert = require('node:assert');
const OpenAI = require('openai');

async function main() {
  const client = new OpenAI({ baseURL: process.argv[2], apiKey: 'none', maxRetries: 0 });

  const models = [];
  for await (const model of client.models.list()) models.push(model.id);
  assert.deepStrictEqual(models, ['tiny']);
  assert.strictEqual((await client.models.retrieve('tiny')).object, 'model');

  const ask = { model: 'tiny', prompt: 'Who', max_tokens: 8, temperature: 0, logprobs: 1 };
  const text = await client.completions.create(ask);
  assert.strictEqual(text.usage.completion_tokens, 8);
  assert.strictEqual(text.choices[0].finish_reason, 'length');
  assert.strictEqual(text.choices[0].logprobs.tokens.length, 8);
  let streamed = '';
  for await (const part of await client.completions.create({ ...ask, stream: true })) streamed += part.choices[0].text;
  assert.strictEqual(streamed, text.choices[0].text);

  const talk = { model: 'tiny', messages: [{ role: 'user', content: 'Who are you?' }], max_completion_tokens: 8, temperature: 0, n: 2 };
  const answer = await client.chat.completions.create(talk);
  assert.strictEqual(answer.choices.length, 2);
  assert.strictEqual(answer.choices[0].message.role, 'assistant');
  const stream = client.chat.completions.stream({ ...talk, n: 1 });
  const whole = await stream.finalChatCompletion();
  assert.strictEqual(whole.choices[0].message.content, answer.choices[0].message.content);

  await assert.rejects(client.completions.create({ ...ask, model: 'other' }), OpenAI.NotFoundError);
  await assert.rejects(client.completions.create({ ...ask, temperature: -1 }), e => e instanceof OpenAI.BadRequestError && e.param === 'temperature');

  const aborted = await client.completions.create({ ...ask, max_tokens: 100, stream: true });
  for await (const part of aborted) { assert.ok(part); aborted.controller.abort(); }
  console.log('ok');
}

main().catch(e => { console.error(e); process.exitCode = 1; });
