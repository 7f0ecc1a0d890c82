// Parses a compiled program and checks it whole before anything touches the GPU, as
// metal_kernels/compiler/format.py does.
//
// The program's file is a safetensors file; its metadata holds the graph and, for each device class, the kernels.
// The graph's nodes are not read here: a device runs kernels, and needs of the graph only what goes in and out.

import {
  BadReference,
  DeviceLimitExceeded,
  KernelError,
  ProgramFormatError,
  ProgramHashMismatch,
  ProgramTooLarge,
  SpecMismatch,
} from "./errors.js";
import { BLOCK } from "./delta.js";
import { elementsOf, isRecord, tensorfileLoads } from "./tensorfile.js";

export const BYTES_PER_ELEMENT = 4;

const MAX_FILE_BYTES = 256 * 2 ** 20;
const MAX_DISPATCHES = 20_000;
const MAX_SOURCE_BYTES = 256 * 1024;
const MAX_BUFFER_ELEMENTS = 2 ** 28;
const MAX_LANES = 256;
const MAX_GROUPS = 65_535;
const MAX_STORAGE_BUFFERS = 8;
const KERNEL_NAME = /^[a-z]+_[0-9a-f]{12}$/;
const STATE_ROLES = ["parameter", "buffer", "optimizer"];
const MODEL_ROLES = ["parameter", "buffer"];
const FREE_ROLES = ["scratch", "order", "losses", "result"];

// {kind, inputs, outputs, constants, delta, deltaBits, batch, kernels, buffers, dispatches, copies}, the last five as
// in metal_kernels/compiler/compiled.py; `constants` is a Map of tensors, `delta` the compiled program that encodes the
// delta in steps of `deltaBits`, or null. Throws a ProgramError.
export async function compiledLoads(bytes, deviceClass, { expectedSha256 = null } = {}) {
  if (bytes.length > MAX_FILE_BYTES) {
    throw new ProgramTooLarge(`The program has ${bytes.length} bytes; the limit is ${MAX_FILE_BYTES}.`);
  }
  if (expectedSha256 !== null && (await sha256(bytes)) !== expectedSha256) {
    throw new ProgramHashMismatch("The program's bytes do not have the expected SHA-256; fetch it again.");
  }
  const { tensors, metadata } = programFile(bytes);
  const graph = parsed(metadata.get("graph"), GRAPH, "graph");
  const text = metadata.get(`compiled.${deviceClass}`);
  if (text === undefined) {
    throw new ProgramFormatError(
      `The program has no kernels for the device class '${deviceClass}'; compile it for that.`,
    );
  }
  const compiled = parsed(text, COMPILED, "kernels");
  checkConstants(graph, tensors);
  checkCompiled(compiled, graph.kind, knownValues(graph));
  const deltaBits = deltaBitsOf(metadata.get("delta_bits"));
  const delta = deltaKernels(metadata.get(`delta.${deviceClass}`), graph, deltaBits);
  return { ...compiled, inputs: graph.inputs, outputs: graph.outputs, constants: tensors, delta, deltaBits };
}

// A buffer's size for a slice of `rows` rows and `steps` local steps.
export function bufferElements(compiled, buffer, { rows, steps }) {
  const repeats = { data: rows, order: compiled.batch * steps, losses: steps }[buffer.role] ?? 1;
  return buffer.elements * repeats;
}

// Throws DeviceLimitExceeded with the figure if a run needs more than `limits`, {bufferBytes, totalBytes}.
export function checkFits(compiled, limits, { rows, steps }) {
  let totalBytes = 0;
  for (const buffer of compiled.buffers) {
    const sizeBytes = BYTES_PER_ELEMENT * bufferElements(compiled, buffer, { rows, steps });
    if (sizeBytes > limits.bufferBytes) {
      throw new DeviceLimitExceeded(
        `The ${buffer.role} buffer '${buffer.key}' takes ${sizeBytes} bytes; one buffer may take ` +
          `${limits.bufferBytes} on this device. Use a smaller slice or layer.`,
        "buffer_bytes",
      );
    }
    totalBytes += sizeBytes;
  }
  if (totalBytes > limits.totalBytes) {
    throw new DeviceLimitExceeded(
      `The program needs ${totalBytes} bytes of GPU memory; this device has ${limits.totalBytes}. ` +
        "Use a smaller batch, slice or model.",
      "total_bytes",
    );
  }
}

async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function programFile(bytes) {
  let file;
  try {
    file = tensorfileLoads(bytes);
  } catch (error) {
    if (error instanceof KernelError) throw new ProgramFormatError(error.message, error.field);
    throw error;
  }
  if (file.metadata.get("format") !== "nightshift.program" || file.metadata.get("version") !== "1") {
    throw new ProgramFormatError("The file is not a program of version 1.");
  }
  return file;
}

// Shapes of JSON: a predicate for a leaf, an array of one shape for lists, an object of shapes for records.
const text = (value) => typeof value === "string";
const integer = Number.isSafeInteger;
const flag = (value) => typeof value === "boolean";
const any = () => true;
const oneOf =
  (...choices) =>
  (value) =>
    choices.includes(value);
const tuple = (length) => (value) => Array.isArray(value) && value.length === length && value.every(integer);

const VALUE = { name: text, dtype: oneOf("float32", "int64", "int32", "bool"), shape: [integer] };
const GRAPH = {
  kind: oneOf("training_step", "forward"),
  inputs: [{ role: text, key: text, value: VALUE }],
  constants: [VALUE],
  nodes: any,
  outputs: [{ role: text, key: text, value: text }],
};
const COMPILED = {
  kind: text,
  batch: integer,
  kernels: [
    {
      name: text,
      lanes: integer,
      groups: tuple(3),
      writes: [flag],
      elements: [integer],
      uses_uniforms: flag,
      estimated_us: integer,
      wgsl: text,
      msl: text,
      msl_matrices: text,
    },
  ],
  buffers: [
    {
      role: oneOf("state", "constant", "input", "data", ...FREE_ROLES),
      key: text,
      dtype: oneOf("f32", "i32", "u32"),
      elements: integer,
    },
  ],
  dispatches: [{ kernel: integer, buffers: [integer] }],
  copies: [tuple(2)],
};

function parsed(json, shape, what) {
  let value;
  try {
    value = JSON.parse(json);
  } catch {
    throw new ProgramFormatError(`The program's ${what} are not valid JSON.`);
  }
  checkShape(value, shape, what);
  return value;
}

function checkShape(value, shape, path) {
  if (typeof shape === "function") {
    if (!shape(value)) throw new ProgramFormatError(`The program's ${path} is malformed.`, path);
  } else if (Array.isArray(shape)) {
    if (!Array.isArray(value)) throw new ProgramFormatError(`The program's ${path} is not a list.`, path);
    value.forEach((item, place) => checkShape(item, shape[0], `${path}[${place}]`));
  } else {
    if (!isRecord(value) || Object.keys(value).sort().join() !== Object.keys(shape).sort().join()) {
      throw new ProgramFormatError(`The program's ${path} has missing or unknown fields.`, path);
    }
    for (const key of Object.keys(shape)) checkShape(value[key], shape[key], `${path}.${key}`);
  }
}

function checkConstants(graph, tensors) {
  if (graph.constants.length !== tensors.size)
    throw new SpecMismatch("The file's tensors are not the graph's constants.");
  for (const { name, dtype, shape } of graph.constants) {
    const tensor = tensors.get(name);
    if (!tensor || tensor.dtype !== dtype || String(tensor.shape) !== String(shape)) {
      throw new SpecMismatch(`The constant '${name}' is not stored as the graph declares it.`, name);
    }
  }
}

// Left out for 8.
function deltaBitsOf(text) {
  if (text !== undefined && text !== "4") {
    throw new ProgramFormatError(
      `The program asks for deltas of '${text.slice(0, 20)}' bits; this reader knows 4 and 8.`,
    );
  }
  return text === "4" ? 4 : 8;
}

function deltaKernels(text, graph, bits) {
  if (text === undefined) return null;
  const compiled = parsed(text, COMPILED, "delta kernels");
  checkCompiled(compiled, "forward", deltaValues(graph, bits));
  return compiled;
}

function checkCompiled(compiled, kind, known) {
  if (compiled.dispatches.length > MAX_DISPATCHES) {
    throw new ProgramTooLarge(
      `A step has ${compiled.dispatches.length} dispatches; the limit is ${MAX_DISPATCHES}.`,
    );
  }
  if (compiled.kind !== kind || compiled.batch < 1) {
    throw new ProgramFormatError("The kernels were compiled from another program.");
  }
  for (const buffer of compiled.buffers) checkBuffer(buffer, known);
  for (const kernel of compiled.kernels) checkKernel(kernel);
  for (const dispatch of compiled.dispatches) checkDispatch(dispatch, compiled);
  for (const [source, target] of compiled.copies) {
    if (!compiled.buffers[source] || !compiled.buffers[target]) {
      throw new BadReference("A copy names a buffer that does not exist.", "copies");
    }
    if (source === target || compiled.buffers[source].elements < compiled.buffers[target].elements) {
      throw new SpecMismatch("A copy does not fit its buffers.", "copies");
    }
  }
}

// What buffers may hold, by "role key".
function knownValues(graph) {
  const known = new Map(graph.constants.map((value) => [`constant ${value.name}`, value.shape]));
  for (const { role, key, value } of graph.inputs) {
    known.set(`${STATE_ROLES.includes(role) ? "state" : "input"} ${key}`, value.shape);
    known.set(`data ${key}`, value.shape.slice(1));
  }
  return known;
}

// What buffers of a delta's kernels hold, by "role key"; metal_kernels/compiler/delta.py names them.
function deltaValues(graph, bits) {
  const known = new Map();
  for (const { role, key, value } of graph.inputs) {
    if (!MODEL_ROLES.includes(role) || value.dtype !== "float32") continue;
    const elements = elementsOf(value.shape);
    const blocks = Math.ceil(elements / BLOCK);
    for (const place of [`input base/${key}`, `input new/${key}`, `state residual/${key}`]) {
      known.set(place, [elements]);
    }
    known.set(`result scales/${key}`, [blocks]);
    known.set(`result int${bits}/${key}`, [(blocks * BLOCK * bits) / (8 * BYTES_PER_ELEMENT)]);
  }
  return known;
}

function checkBuffer({ role, key, elements }, known) {
  if (elements < 1 || elements > MAX_BUFFER_ELEMENTS) {
    throw new ProgramTooLarge(
      `A ${role} buffer has ${elements} elements; the limit is ${MAX_BUFFER_ELEMENTS}.`,
      key,
    );
  }
  const shape = known.get(`${role} ${key}`);
  if (!shape && FREE_ROLES.includes(role)) return;
  if (!shape) throw new BadReference(`The program has no ${role} '${key}'.`, key);
  if (elements !== Math.max(elementsOf(shape), 1)) {
    throw new SpecMismatch(
      `The buffer of '${key}' has ${elements} elements; the program says ${elementsOf(shape)}.`,
      key,
    );
  }
}

function checkKernel(kernel) {
  const { name, lanes, groups, writes, elements, estimated_us: estimatedUs } = kernel;
  if (!KERNEL_NAME.test(name))
    throw new ProgramFormatError(`'${name.slice(0, 80)}' is not the name of a kernel.`);
  if (lanes < 1 || lanes > MAX_LANES || groups.some((count) => count < 1 || count > MAX_GROUPS)) {
    throw new ProgramTooLarge(`Kernel '${name}' asks for an impossible grid.`, name);
  }
  if (writes.length > MAX_STORAGE_BUFFERS || writes.length !== elements.length) {
    throw new ProgramTooLarge(
      `Kernel '${name}' binds ${writes.length} buffers; the limit is ${MAX_STORAGE_BUFFERS}.`,
      name,
    );
  }
  if (estimatedUs < 1) throw new ProgramFormatError(`Kernel '${name}' is said to take no time.`, name);
  if ([kernel.wgsl, kernel.msl, kernel.msl_matrices].some((source) => source.length > MAX_SOURCE_BYTES)) {
    throw new ProgramTooLarge(`The source of kernel '${name}' is too long.`, name);
  }
}

function checkDispatch({ kernel: position, buffers }, compiled) {
  const kernel = compiled.kernels[position];
  if (!kernel) throw new BadReference("A dispatch names a kernel that does not exist.", "dispatches");
  if (buffers.length !== kernel.writes.length) {
    throw new SpecMismatch(
      `A dispatch of kernel '${kernel.name}' binds too many or too few buffers.`,
      kernel.name,
    );
  }
  buffers.forEach((place, binding) => {
    const buffer = compiled.buffers[place];
    if (!buffer) {
      throw new BadReference(
        `A dispatch of kernel '${kernel.name}' names a buffer that does not exist.`,
        kernel.name,
      );
    }
    if (buffer.elements < kernel.elements[binding]) {
      throw new SpecMismatch(
        `Kernel '${kernel.name}' would index past the end of a buffer of ${buffer.elements} elements.`,
        kernel.name,
      );
    }
  });
}
