// Encodes texts with @huggingface/tokenizers: node encode.cjs PACKAGE TOKENIZER TEXTS IDS.
// TEXTS and IDS have, for each text, its length and its bytes or ids, in 32 bits little endian.
// Prints the seconds that encoding took, by the clock and of CPU time, and the checksum of the
// decoded texts.
const fs = require('fs');
const crypto = require('crypto');
const [package, tokenizer, texts, ids] = process.argv.slice(2);
const { Tokenizer } = require(package);
const t = new Tokenizer(JSON.parse(fs.readFileSync(tokenizer, 'utf8')), { clean_up_tokenization_spaces: false });
const data = fs.readFileSync(texts);
const decoded = crypto.createHash('sha256');
const out = [];
let seconds = 0;
let cpu = 0;
for (let at = 0; at < data.length; ) {
  const n = data.readUInt32LE(at);
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(data.subarray(at + 4, at + 4 + n));
  at += 4 + n;
  const begin = process.hrtime.bigint();
  const used = process.cpuUsage();
  const encoded = t.encode(text, { add_special_tokens: false }).ids;
  seconds += Number(process.hrtime.bigint() - begin) / 1e9;
  const { user, system } = process.cpuUsage(used);
  cpu += (user + system) / 1e6;
  out.push(Buffer.from(Uint32Array.of(encoded.length, ...encoded).buffer));
  decoded.update(encoded.length === 0 ? '' : t.decode(encoded, { skip_special_tokens: false }));
  decoded.update('\n');
}
fs.writeFileSync(ids, Buffer.concat(out));
console.log(JSON.stringify({ seconds, cpu, decoded: decoded.digest('hex') }));
