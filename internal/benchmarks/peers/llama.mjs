// Times greedy generation with llama.cpp, through the npm package node-llama-cpp. Its arguments are
// the folder with node_modules, a GGUF file, the first token, the number of tokens and of threads.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, file, prompt, count, threads] = process.argv.slice(2);
const place = createRequire(folder + '/').resolve('node-llama-cpp');
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(place));
const llama = await getLlama({ gpu: false, build: 'never', logLevel: LlamaLogLevel.error, maxThreads: Number(threads) });
const model = await llama.loadModel({ modelPath: file });
const context = await model.createContext({ contextSize: 512, sequences: 1, threads: Number(threads) });
const sequence = context.getSequence();
const ids = [];
let begin = 0;
for await (const id of sequence.evaluate([Number(prompt)], { temperature: 0, yieldEogToken: true })) {
  if (begin === 0) begin = performance.now(); // the first token came with the prompt
  ids.push(id);
  if (ids.length > Number(count)) break;
}
console.log(JSON.stringify({ tokens_per_second: Number(count) / (performance.now() - begin) * 1e3, ids: ids.slice(0, Number(count)) }));
process.exit(0);
