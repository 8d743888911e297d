// Reads GGUF files with @huggingface/gguf and llama.cpp, and continues a prompt of token ids greedily.
// Arguments: the folder of packages, the number of tokens, the prompt with commas, a text, the files.
// Prints one JSON object: for each file its values without lists, its tensors, the tokens that follow
// the prompt and those of the text.
import {pathToFileURL} from "node:url";
import path from "node:path";

const [packages, count, prompt, text, ...files] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(path.join(packages, name)).href);
const {gguf} = await load("@huggingface/gguf/dist/index.mjs");
const {getLlama, LlamaLogLevel} = await load("node-llama-cpp/dist/index.js");
const llama = await getLlama({gpu: false, build: "never", logLevel: LlamaLogLevel.error});

const result = {};
for (const file of files) {
  const {metadata, tensorInfos} = await gguf(file, {allowLocalFile: true});
  const model = await llama.loadModel({modelPath: file});
  const context = await model.createContext({contextSize: 64, threads: 1});
  const tokens = [];
  for await (const token of context.getSequence().evaluate(prompt.split(",").map(Number), {temperature: 0, yieldEogToken: true})) {
    tokens.push(token);
    if (tokens.length == count) break;
  }
  result[file] = {
    tokens,
    text: model.tokenize(text),
    values: Object.fromEntries(Object.entries(metadata).filter(([, v]) => !Array.isArray(v)).map(([k, v]) => [k, typeof v == "bigint" ? Number(v) : v])),
    tensors: Object.fromEntries(tensorInfos.map((t) => [t.name, {shape: t.shape.map(Number), type: t.dtype}])),
  };
  await context.dispose();
  await model.dispose();
}
console.log(JSON.stringify(result));
process.exit(0);
