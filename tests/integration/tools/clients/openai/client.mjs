// OpenAI's own client against a server of cedar-tiny: `node client.mjs URL`. The first expectation
// that does not hold ends it with an exception.
import assert from 'node:assert/strict';
import OpenAI from 'openai';

const url = process.argv[2];
const client = new OpenAI({baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0, timeout: 60_000});
const model = 'cedar-tiny';
const question = [{role: 'user', content: 'What is your name?'}];
const name = 'My name is Cedar. I am a very small language model.';

async function models() {
  const names = [];
  for await (const one of await client.models.list()) names.push(one.id);
  assert.deepEqual(names, [model]);
  assert.equal((await client.models.retrieve(model)).owned_by, 'cedar');
}

async function chat() {
  const answer = await client.chat.completions.create({model, messages: question, temperature: 0});
  assert.equal(answer.choices[0].message.role, 'assistant');
  assert.equal(answer.choices[0].message.content, name);
  assert.equal(answer.choices[0].finish_reason, 'stop');
  assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
}

async function chatStream() {
  const stream = await client.chat.completions.create(
      {model, messages: question, temperature: 0, stream: true, stream_options: {include_usage: true}});
  let text = '';
  let pieces = 0;
  let usage;
  for await (const chunk of stream) {
    const piece = chunk.choices[0]?.delta?.content ?? '';
    text += piece;
    pieces += piece === '' ? 0 : 1;
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, name);
  assert.ok(pieces > 5, `${pieces} pieces`);
  assert.ok(usage.completion_tokens >= pieces);
}

// The helper that puts a stream together again.
async function chatStreamHelper() {
  const stream = client.chat.completions.stream({model, messages: question, temperature: 0});
  assert.equal((await stream.finalChatCompletion()).choices[0].message.content, name);
}

async function completions() {
  const ask = {model, prompt: 'Once upon a time', max_tokens: 16, temperature: 1, seed: 5, n: 2};
  const first = await client.completions.create(ask);
  assert.equal(first.choices.length, 2);
  assert.notEqual(first.choices[0].text, first.choices[1].text);
  const texts = ['', ''];
  for await (const chunk of await client.completions.create({...ask, stream: true}))
    for (const choice of chunk.choices) texts[choice.index] += choice.text;
  assert.deepEqual(texts, first.choices.map((choice) => choice.text));
}

async function metric(what) {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(text.split('\n').find((line) => line.startsWith(`${what} `))?.split(' ')[1] ?? 0);
}

async function abort() {
  const abandoned = 'cedar_generations_total{end="abandoned"}';
  const before = await metric(abandoned);
  const stream = await client.completions.create({model, prompt: 'Once upon a time', max_tokens: 1900,
                                                  stream: true, ignore_eos: true});
  let pieces = 0;
  for await (const chunk of stream) {
    if (chunk.choices[0].text !== '' && ++pieces === 3) stream.controller.abort();
  }
  assert.ok(pieces < 1000, `${pieces} pieces in spite of the abort`);
  const until = Date.now() + 30_000;
  while (await metric('cedar_answers_open') !== 0) {
    assert.ok(Date.now() < until, 'the server goes on with an answer that nobody wants');
    await new Promise((later) => setTimeout(later, 20));
  }
  assert.equal(await metric(abandoned), before + 1);
}

async function errors() {
  const refused = (params, type, member) => assert.rejects(
      client.chat.completions.create({model, messages: question, ...params}), (error) => {
        assert.ok(error instanceof type, String(error));
        assert.equal(error.param, member);
        return true;
      });
  await refused({temperature: 'hot'}, OpenAI.BadRequestError, 'temperature');
  await refused({model: 'gpt-4'}, OpenAI.NotFoundError, 'model');
}

for (const step of [models, chat, chatStream, chatStreamHelper, completions, abort, errors]) {
  await step();
  console.log(`${step.name}: well`);
}
