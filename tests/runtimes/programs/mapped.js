// Reads the mapped file while V8's own SIGSEGV handler turns faults of WebAssembly into exceptions.
const { map } = require(process.argv[2]);
const words = new Uint32Array(map(process.argv[3]));

function sum(from, to) {
  let sum = 0;
  for (let i = from; i < to; i++) sum = (Math.imul(sum, 31) + words[i]) | 0;
  return sum;
}

console.log(sum(0, words.length / 2));
// (module (memory 1) (func (export "load") (param i32) (result i32) local.get 0 i32.load))
const code = Uint8Array.from([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 1, 127, 1, 127, 3, 2, 1, 0, 5, 3, 1, 0, 1, 7, 8, 1, 4, 108, 111, 97, 100, 0,
  0, 10, 9, 1, 7, 0, 32, 0, 40, 2, 0, 11,
]);
const { load } = new WebAssembly.Instance(new WebAssembly.Module(code)).exports;
let traps = 0;
for (let i = 0; i < 1000; i++) {
  try {
    load(0x7fffffff);
  } catch (expected) {
    traps++;
  }
}
console.log(traps, sum(words.length / 2, words.length));
const garbage = [];
for (let i = 0; i < 100; i++) garbage.push(new Array(100000).fill(i));
process.stdout.write(Buffer.from(words.buffer, 5 << 20, 1 << 16));
