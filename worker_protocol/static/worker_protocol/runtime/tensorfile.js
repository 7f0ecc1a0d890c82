// Reads and writes safetensors files, strictly and with the same bytes every time, as metal_kernels/tensorfile.py does.
//
// A tensor is {dtype, shape, data}: dtype as in the program format, data a typed array in row-major order.

import { TensorFileError } from "./errors.js";

const METADATA = "__metadata__";
const MAX_HEADER_BYTES = 64 * 2 ** 20;
const MAX_DIMENSIONS = 16;

const DTYPES = {
  F32: { dtype: "float32", array: Float32Array },
  I64: { dtype: "int64", array: BigInt64Array },
  I32: { dtype: "int32", array: Int32Array },
  I8: { dtype: "int8", array: Int8Array },
  BOOL: { dtype: "bool", array: Uint8Array },
};
const TAGS = Object.fromEntries(Object.entries(DTYPES).map(([tag, { dtype }]) => [dtype, tag]));

export const elementsOf = (shape) => shape.reduce((product, size) => product * size, 1);

export function zeros({ dtype, shape }) {
  return { dtype, shape, data: new DTYPES[TAGS[dtype]].array(elementsOf(shape)) };
}

// {tensors, metadata} of the bytes, both Maps by name. The tensors own their memory.
export function tensorfileLoads(bytes) {
  const { header, body } = headerAndBody(bytes);
  const metadata = new Map(Object.entries(metadataOf(header)));
  const entries = Object.entries(header).filter(([name]) => name !== METADATA);
  for (const [name, entry] of entries) checkEntry(name, entry);
  entries.sort(
    ([, one], [, other]) =>
      one.data_offsets[0] - other.data_offsets[0] || one.data_offsets[1] - other.data_offsets[1],
  );
  const tensors = new Map();
  let expectedStart = 0;
  for (const [
    name,
    {
      dtype: tag,
      shape,
      data_offsets: [start, end],
    },
  ] of entries) {
    const { dtype, array } = DTYPES[tag];
    const sizeBytes = elementsOf(shape) * array.BYTES_PER_ELEMENT;
    if (start !== expectedStart || end - start !== sizeBytes || end > body.length) {
      throw new TensorFileError(
        `Tensor '${name}' does not lie where its shape says; send the file again.`,
        name,
      );
    }
    const chunk = body.slice(start, end);
    if (dtype === "bool" && chunk.some((byte) => byte > 1)) {
      throw new TensorFileError(`The boolean tensor '${name}' holds a byte other than 0 and 1.`, name);
    }
    tensors.set(name, { dtype, shape, data: new array(chunk.buffer) });
    expectedStart = end;
  }
  if (expectedStart !== body.length) {
    throw new TensorFileError("The file is longer than its tensors; send it again.");
  }
  return { tensors, metadata };
}

// The file's bytes; equal tensors and metadata give equal bytes.
export function tensorfileDumps(tensors, metadata = {}) {
  const header = Object.create(null); // a tensor may be called __proto__
  if (Object.keys(metadata).length) header[METADATA] = metadata;
  let bodyBytes = 0;
  const chunks = [];
  for (const name of [...tensors.keys()].sort(byCodePoints)) {
    const { dtype, shape, data } = tensors.get(name);
    if (name === METADATA || !(dtype in TAGS)) {
      throw new TensorFileError(`Tensor '${name}' of ${dtype} cannot be stored.`, name);
    }
    header[name] = { dtype: TAGS[dtype], shape, data_offsets: [bodyBytes, bodyBytes + data.byteLength] };
    chunks.push([bodyBytes, new Uint8Array(data.buffer, data.byteOffset, data.byteLength)]);
    bodyBytes += data.byteLength;
  }
  const text = canonicalJson(header);
  const headerBytes = text.length + (-text.length & 7);
  const file = new Uint8Array(8 + headerBytes + bodyBytes);
  new DataView(file.buffer).setBigUint64(0, BigInt(headerBytes), true);
  file.set(new TextEncoder().encode(text.padEnd(headerBytes)), 8);
  for (const [start, chunk] of chunks) file.set(chunk, 8 + headerBytes + start);
  return file;
}

function headerAndBody(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const headerBytes = bytes.length < 8 ? Infinity : Number(view.getBigUint64(0, true));
  if (headerBytes > Math.min(bytes.length - 8, MAX_HEADER_BYTES)) {
    throw new TensorFileError("The file is cut short or is not a safetensors file; send it again.");
  }
  let header;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes.subarray(8, 8 + headerBytes));
    header = JSON.parse(text);
    refuseDuplicateKeys(text);
  } catch {
    throw new TensorFileError("The safetensors header is not valid JSON; send the file again.");
  }
  if (!isRecord(header))
    throw new TensorFileError("The safetensors header is not an object; send the file again.");
  return { header, body: bytes.subarray(8 + headerBytes) };
}

// JSON.parse keeps the last of two equal keys and says nothing. `text` is valid JSON.
function refuseDuplicateKeys(text) {
  const open = [];
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"\s*:?|[{}]/g)) {
    if (token === "{") open.push(new Set());
    else if (token === "}") open.pop();
    else if (token.endsWith(":")) {
      const key = JSON.parse(token.slice(0, -1));
      if (open.at(-1).has(key)) throw new SyntaxError("duplicate key");
      open.at(-1).add(key);
    }
  }
}

function metadataOf(header) {
  const metadata = Object.hasOwn(header, METADATA) ? header[METADATA] : {};
  if (!isRecord(metadata) || !Object.values(metadata).every((value) => typeof value === "string")) {
    throw new TensorFileError("The safetensors metadata must map text to text.");
  }
  return metadata;
}

function checkEntry(name, entry) {
  const sizes = (list) =>
    Array.isArray(list) && list.every((size) => Number.isSafeInteger(size) && size >= 0);
  if (!isRecord(entry) || Object.keys(entry).sort().join() !== "data_offsets,dtype,shape") {
    throw new TensorFileError(`The header entry of tensor '${name}' is malformed.`, name);
  }
  if (!Object.hasOwn(DTYPES, entry.dtype)) {
    throw new TensorFileError(
      `Tensor '${name}' has dtype ${entry.dtype}; use one of ${Object.keys(DTYPES)}.`,
      name,
    );
  }
  const placed = sizes(entry.data_offsets) && entry.data_offsets.length === 2;
  if (!sizes(entry.shape) || entry.shape.length > MAX_DIMENSIONS || !placed) {
    throw new TensorFileError(`Tensor '${name}' has an impossible shape or place.`, name);
  }
}

export function isRecord(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// As Python writes it: keys in the order of their code points, everything beyond ASCII escaped.
function canonicalJson(value) {
  if (isRecord(value)) {
    const pairs = Object.keys(value)
      .sort(byCodePoints)
      .map((key) => `${canonicalJson(key)}:${canonicalJson(value[key])}`);
    return `{${pairs.join(",")}}`;
  }
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value).replace(/[\x7f-\uffff]/g, escaped);
}

// JavaScript sorts by UTF-16 units, which puts characters beyond the first plane too early.
function byCodePoints(one, other) {
  const [left, right] = [[...one], [...other]];
  const differs = left.findIndex((character, place) => character !== right[place]);
  if (differs < 0) return left.length - right.length;
  return differs < right.length ? left[differs].codePointAt(0) - right[differs].codePointAt(0) : 1;
}
