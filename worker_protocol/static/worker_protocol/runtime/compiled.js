// Parses a compiled program and checks it whole before anything touches the GPU, as
// metal_kernels/compiler/format.py does.
//
// The program's file is a safetensors file; its metadata holds the graph and, for each device class, the kernels.

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
import { batchOf, graphLoads, STATE_ROLES } from "./graph.js";
import { flag, integer, oneOf, parsed, text, tuple } from "./shapes.js";
import { elementsOf, tensorfileLoads } from "./tensorfile.js";

export const BYTES_PER_ELEMENT = 4;

const MAX_FILE_BYTES = 256 * 2 ** 20;
const MAX_DISPATCHES = 20_000;
const MAX_SOURCE_BYTES = 256 * 1024;
const MAX_BUFFER_ELEMENTS = 2 ** 28;
const MAX_LANES_OF_A_DISPATCH = 2 ** 32;
const MAX_LANES = 256;
const MAX_GROUPS = 65_535;
const MAX_STORAGE_BUFFERS = 8;
const KERNEL_NAME = /^[a-z]+_[0-9a-f]{12}$/;
const MODEL_ROLES = ["parameter", "buffer"];
const BUFFER_ROLES = ["state", "constant", "scratch", "input", "data", "order", "losses", "result"];
const ANYTHING = { elements: null, dtype: null };

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
  const deltaBits = deltaBitsOf(metadata.get("delta_bits"));
  const graph = graphLoads(metadata.get("graph"), tensors);
  const kernels = metadata.get(`compiled.${deviceClass}`);
  if (kernels === undefined) {
    throw new ProgramFormatError(
      `The program has no kernels for the device class '${deviceClass}'; compile it for that.`,
    );
  }
  const compiled = parsed(kernels, COMPILED, "kernels");
  const result = graph.kind === "training_step" ? "losses " : "result predictions";
  checkCompiled(compiled, { kind: graph.kind, batch: batchOf(graph), known: knownPlaces(graph), needed: [result] });
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
      role: oneOf(...BUFFER_ROLES),
      key: text,
      dtype: oneOf("f32", "i32", "u32"),
      elements: integer,
    },
  ],
  dispatches: [{ kernel: integer, buffers: [integer] }],
  copies: [tuple(2)],
};

// Left out for 8.
function deltaBitsOf(bits) {
  if (bits !== undefined && bits !== "4") {
    throw new ProgramFormatError(
      `The program asks for deltas of '${bits.slice(0, 20)}' bits; this reader knows 4 and 8.`,
    );
  }
  return bits === "4" ? 4 : 8;
}

function deltaKernels(json, graph, bits) {
  if (json === undefined) return null;
  const compiled = parsed(json, COMPILED, "delta kernels");
  const known = deltaPlaces(graph, bits);
  const needed = [...known.keys()].filter((place) => place.startsWith("result "));
  checkCompiled(compiled, { kind: "forward", batch: 1, known, needed });
  return compiled;
}

// `known` says what buffers may hold, by "role key"; `needed` are the places of the results.
function checkCompiled(compiled, { kind, batch, known, needed }) {
  if (compiled.dispatches.length > MAX_DISPATCHES) {
    throw new ProgramTooLarge(
      `A step has ${compiled.dispatches.length} dispatches; the limit is ${MAX_DISPATCHES}.`,
    );
  }
  if (compiled.kind !== kind || compiled.batch !== batch) {
    throw new ProgramFormatError("The kernels were compiled from another program.");
  }
  for (const buffer of compiled.buffers) checkBuffer(buffer, known);
  checkRoles(compiled.buffers, needed);
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

// What the buffers of a step hold: {elements, dtype}, null where its kernels alone know.
function knownPlaces(graph) {
  const known = new Map(graph.constants.map((value) => [`constant ${value.name}`, placeOf(value, value.shape)]));
  for (const { role, key, value } of graph.inputs) {
    known.set(`${STATE_ROLES.includes(role) ? "state" : "input"} ${key}`, placeOf(value, value.shape));
    known.set(`data ${key}`, placeOf(value, value.shape.slice(1)));
  }
  known.set("order ", { elements: 1, dtype: "i32" });
  known.set("losses ", { elements: 1, dtype: "f32" });
  known.set("result predictions", ANYTHING);
  return known;
}

const placeOf = ({ dtype }, shape) => ({ elements: elementsOf(shape), dtype: dtype === "float32" ? "f32" : "i32" });

// What the buffers of a delta's kernels hold; metal_kernels/compiler/delta.py names them.
function deltaPlaces(graph, bits) {
  const known = new Map();
  for (const { role, key, value } of graph.inputs) {
    if (!MODEL_ROLES.includes(role) || value.dtype !== "float32") continue;
    const blocks = Math.ceil(elementsOf(value.shape) / BLOCK);
    for (const place of [`input base/${key}`, `input new/${key}`, `state residual/${key}`]) {
      known.set(place, placeOf(value, value.shape));
    }
    known.set(`result scales/${key}`, { elements: blocks, dtype: "f32" });
    const words = (blocks * BLOCK * bits) / (8 * BYTES_PER_ELEMENT);
    known.set(`result int${bits}/${key}`, { elements: words, dtype: "u32" });
  }
  return known;
}

function checkBuffer({ role, key, dtype, elements }, known) {
  if (elements < 1 || elements > MAX_BUFFER_ELEMENTS) {
    throw new ProgramTooLarge(
      `A ${role} buffer has ${elements} elements; the limit is ${MAX_BUFFER_ELEMENTS}.`,
      key,
    );
  }
  const place = role === "scratch" ? ANYTHING : known.get(`${role} ${key}`);
  if (!place) throw new BadReference(`The program has no ${role} '${key.slice(0, 80)}'.`, key);
  if (![null, elements].includes(place.elements) || ![null, dtype].includes(place.dtype)) {
    throw new SpecMismatch(
      `The buffer of '${key}' has ${elements} elements of ${dtype}; the program says ` +
        `${place.elements} of ${place.dtype}.`,
      key,
    );
  }
}

// Each tensor has one buffer at most, and the results have one.
function checkRoles(buffers, needed) {
  const held = buffers.filter(({ role }) => role !== "scratch").map(({ role, key }) => `${role} ${key}`);
  const places = new Set(held);
  if (places.size !== held.length) throw new BadReference("Two buffers hold the same tensor.", "buffers");
  for (const place of needed) {
    if (!places.has(place)) throw new BadReference(`No buffer holds the ${place.trim()}.`, place.trim());
  }
}

function checkKernel(kernel) {
  const { name, lanes, groups, writes, elements, estimated_us: estimatedUs } = kernel;
  if (!KERNEL_NAME.test(name))
    throw new ProgramFormatError(`'${name.slice(0, 80)}' is not the name of a kernel.`);
  const countsFit = lanes >= 1 && lanes <= MAX_LANES && groups.every((count) => count >= 1 && count <= MAX_GROUPS);
  if (!countsFit || lanes * elementsOf(groups) > MAX_LANES_OF_A_DISPATCH) {
    throw new ProgramTooLarge(`Kernel '${name}' asks for an impossible grid.`, name);
  }
  if (writes.length > MAX_STORAGE_BUFFERS || writes.length !== elements.length) {
    throw new ProgramTooLarge(
      `Kernel '${name}' binds ${writes.length} buffers; the limit is ${MAX_STORAGE_BUFFERS}.`,
      name,
    );
  }
  if (elements.some((needed) => needed < 0)) {
    throw new ProgramFormatError(`Kernel '${name}' touches less than nothing.`, name);
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
  if (!buffers.every((place) => compiled.buffers[place])) {
    throw new BadReference(
      `A dispatch of kernel '${kernel.name}' names a buffer that does not exist.`,
      kernel.name,
    );
  }
  const written = buffers.filter((_, binding) => kernel.writes[binding]);
  if (written.some((place) => buffers.indexOf(place) !== buffers.lastIndexOf(place))) {
    throw new SpecMismatch(`A dispatch of kernel '${kernel.name}' binds a buffer that it writes twice.`, kernel.name);
  }
  buffers.forEach((place, binding) => {
    const buffer = compiled.buffers[place];
    if (buffer.elements < kernel.elements[binding]) {
      throw new SpecMismatch(
        `Kernel '${kernel.name}' would index past the end of a buffer of ${buffer.elements} elements.`,
        kernel.name,
      );
    }
  });
}
