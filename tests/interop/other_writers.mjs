// Writes arrays by zarrita.js into a directory, and prints what it reads of each: {path: [dtype, shape, base64]}.
import fs from "node:fs";
import path from "node:path";
import * as zarr from "zarrita";

const folder = process.argv[2];
const kinds = {
  int8: "i1", uint8: "u1", int16: "<i2", uint16: "<u2", int32: "<i4", uint32: "<u4", int64: "<i8", uint64: "<u8",
  float16: "<f2", float32: "<f4", float64: "<f8", bool: "bool",
};
const little = { name: "bytes", configuration: { endian: "little" } };
const big = { name: "bytes", configuration: { endian: "big" } };
const blosc = (cname, shuffle) => ({
  name: "blosc", configuration: { cname, clevel: 5, shuffle, blocksize: 0, typesize: 1 },
});
const turned = { name: "transpose", configuration: { order: [1, 0] } };
// zarrita shuffles by the item size, whatever the document says: elementsize is that.
const sizes = { int8: 1, uint8: 1, bool: 1, int16: 2, uint16: 2, float16: 2, int32: 4, uint32: 4, float32: 4 };
const compressorsOf = (dtype) => [
  [], [{ name: "zstd", configuration: { level: 3, checksum: false } }], [{ name: "lz4", configuration: { acceleration: 1 } }],
  [{ name: "gzip", configuration: { level: 5 } }], [{ name: "zlib", configuration: { level: 5 } }],
  [{ name: "numcodecs.zlib", configuration: { level: 5 } }], [{ name: "crc32c" }],
  [{ name: "numcodecs.shuffle", configuration: { elementsize: sizes[dtype] ?? 8 } }],
  [{ name: "numcodecs.lz4", configuration: { acceleration: 1 } }],
  ...["lz4", "zstd", "blosclz", "zlib", "snappy", "lz4hc"].flatMap(
    (cname) => ["noshuffle", "shuffle", "bitshuffle"].map((shuffle) => [blosc(cname, shuffle)])),
];

class Store {
  constructor(root) { this.root = root; }
  async get(key) { try { return new Uint8Array(fs.readFileSync(path.join(this.root, key))); } catch { return undefined; } }
  async set(key, value) {
    const place = path.join(this.root, key);
    fs.mkdirSync(path.dirname(place), { recursive: true });
    fs.writeFileSync(place, value);
  }
}

// The elements in C order: a chunk that is stored in another order is read so.
function inOrder({ data, shape, stride }, dtype) {
  const Kind = dtype === "bool" ? Uint8Array : data.constructor;
  const view = new Kind(shape[0] * shape[1]);
  for (let i = 0; i < shape[0]; i += 1) {
    for (let j = 0; j < shape[1]; j += 1) {
      const at = i * stride[0] + j * stride[1];
      view[i * shape[1] + j] = dtype === "bool" ? data.get(at) : data[at];
    }
  }
  return view;
}

const found = {};
let n = 0;
for (const [dtype, descr] of Object.entries(kinds)) {
  for (const bytes of [little, big]) {
    // zarrita swaps the bytes of truth values, which have one.
    if (dtype === "bool" && bytes === big) continue;
    for (const before of [[], [turned]]) {
      for (const after of compressorsOf(dtype)) {
        for (const chunkSeparator of ["/", "."]) {
          const name = `a${n += 1}`;
          try {
            const store = new Store(path.join(folder, name));
            const array = await zarr.create(store, {
              shape: [20, 26], chunkShape: [8, 10], dtype, chunkSeparator, codecs: [...before, bytes, ...after],
              fillValue: dtype === "bool" ? false : 0,
            });
            const chunk = await zarr.get(array);
            for (let i = 0; i < 520; i += 1) {
              const value = i % 120;
              if (dtype === "bool") chunk.data.set(i, i % 3 === 0);
              else chunk.data[i] = dtype.endsWith("int64") ? BigInt(value) : value;
            }
            await zarr.set(array, null, chunk);
            const back = await zarr.get(await zarr.open(store, { kind: "array" }));
            const view = inOrder(back, dtype);
            found[name] = [descr, back.shape, Buffer.from(view.buffer, view.byteOffset, view.byteLength).toString("base64")];
          } catch (error) { process.stderr.write(`${name} ${dtype} ${JSON.stringify(after)}: ${error}\n`); }
        }
      }
    }
  }
}
process.stdout.write(JSON.stringify(found));
