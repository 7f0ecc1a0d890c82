// The graph of a program as far as a device needs it: what goes in and out, checked as metal_kernels/program/validate.py
// does. That a node's outputs follow from its operation is not checked here: no node is ever run.

import { BadReference, ProgramFormatError, ProgramTooLarge, SpecMismatch } from "./errors.js";
import { integer, oneOf, orNull, parsed, text } from "./shapes.js";
import { elementsOf, isRecord } from "./tensorfile.js";

export const STATE_ROLES = ["parameter", "buffer", "optimizer"];

const MAX_NODES = 20_000;
const MAX_VALUES = 100_000;
const MAX_DIMENSIONS = 8;
const MAX_NAME_CHARS = 500;
const MAX_TENSOR_BYTES = 2 ** 30;
const MAX_CONSTANT_BYTES = 64 * 2 ** 20;
const TRAINING_INPUTS = ["optimizer", "target", "scalar"];
const SCALARS = { lr: "float32", step: "float32", seed_low: "int32", seed_high: "int32" };
const ITEM_BYTES = { float32: 4, int64: 8, int32: 4, bool: 1 };

const VALUE = { name: text, dtype: oneOf("float32", "int64", "int32", "bool"), shape: [integer] };
const GRAPH = {
  kind: oneOf("training_step", "forward"),
  inputs: [{ role: oneOf(...STATE_ROLES, "input", "target", "scalar"), key: text, value: VALUE }],
  constants: [VALUE],
  nodes: [{ op: text, args: isRecord, outputs: [orNull(VALUE)] }],
  outputs: [{ role: oneOf(...STATE_ROLES, "loss", "predictions"), key: text, value: text }],
};

// {kind, inputs, constants, nodes, outputs} of the JSON; `tensors` are the constants in the file. Throws a ProgramError.
export function graphLoads(json, tensors) {
  const graph = parsed(json, GRAPH, "graph");
  checkGraph(graph, tensors);
  return graph;
}

// The rows of a batch; 1 where no input has any.
export function batchOf({ inputs }) {
  const batches = inputs.filter(({ role, value }) => ["input", "target"].includes(role) && value.shape.length);
  return batches.length ? batches[0].value.shape[0] : 1;
}

function checkGraph(graph, tensors) {
  const { inputs, constants, nodes, outputs } = graph;
  const made = nodes.flatMap((node) => node.outputs);
  const count = inputs.length + constants.length + made.length;
  if (nodes.length > MAX_NODES || Math.max(count, outputs.length) > MAX_VALUES) {
    throw new ProgramTooLarge(`The program has ${nodes.length} nodes and ${count} values, which are too many.`);
  }
  const values = [...inputs.map(({ value }) => value), ...constants, ...made.filter((value) => value !== null)];
  for (const value of values) checkValue(value);
  for (const { key } of [...inputs, ...outputs]) checkLength(key, "key");
  checkConstants(constants, tensors);
  const named = new Map();
  for (const value of values) {
    if (named.has(value.name)) throw new BadReference(`Two values are named '${value.name}'.`, value.name);
    named.set(value.name, value);
  }
  checkInputs(graph);
  checkOutputs(graph, named);
}

function checkValue({ name, dtype, shape }) {
  checkLength(name, "name");
  if (shape.length > MAX_DIMENSIONS) {
    throw new ProgramTooLarge(`'${name}' has ${shape.length} dimensions; the limit is ${MAX_DIMENSIONS}.`, name);
  }
  if (shape.some((size) => size < 1)) {
    throw new SpecMismatch(`'${name}' has a size below 1 in [${shape}].`, name);
  }
  if (elementsOf(shape) * ITEM_BYTES[dtype] > MAX_TENSOR_BYTES) {
    throw new ProgramTooLarge(`'${name}' takes more than ${MAX_TENSOR_BYTES} bytes.`, name);
  }
}

function checkLength(name, what) {
  const characters = [...name].length;
  if (characters < 1 || characters > MAX_NAME_CHARS) {
    throw new ProgramTooLarge(`A ${what} has ${characters} characters; the limit is ${MAX_NAME_CHARS}.`);
  }
}

function checkConstants(constants, tensors) {
  const declared = new Map(constants.map((value) => [value.name, value]));
  const different = [...declared.keys(), ...tensors.keys()].find(
    (name) => !declared.has(name) || !tensors.has(name),
  );
  if (different !== undefined) {
    throw new ProgramFormatError(
      `The constant '${different}' is in the graph or in the file, not in both.`,
      different,
    );
  }
  let totalBytes = 0;
  for (const { dtype, shape } of declared.values()) totalBytes += elementsOf(shape) * ITEM_BYTES[dtype];
  if (totalBytes > MAX_CONSTANT_BYTES) {
    throw new ProgramTooLarge(`The constants take ${totalBytes} bytes; the limit is ${MAX_CONSTANT_BYTES}.`);
  }
  for (const { name, dtype, shape } of declared.values()) {
    const tensor = tensors.get(name);
    if (tensor.dtype !== dtype || String(tensor.shape) !== String(shape)) {
      throw new SpecMismatch(`The constant '${name}' is not stored as the graph declares it.`, name);
    }
  }
}

function checkInputs({ kind, inputs }) {
  const given = new Set();
  for (const { role, key, value } of inputs) {
    const isScalar = Object.hasOwn(SCALARS, key) && value.shape.length === 0 && value.dtype === SCALARS[key];
    if (
      given.has(`${role} ${key}`) ||
      (kind === "forward" && TRAINING_INPUTS.includes(role)) ||
      (role === "target" && key !== "target") ||
      (role === "scalar" && !isScalar)
    ) {
      throw new BadReference(`The input '${role} ${key}' is given twice or out of place.`, key);
    }
    given.add(`${role} ${key}`);
  }
}

function checkOutputs({ kind, inputs, outputs }, named) {
  const state = new Map(inputs.map(({ role, key, value }) => [`${role} ${key}`, value]));
  const returned = new Set();
  for (const { role, key, value } of outputs) {
    const place = `${role} ${key}`;
    const [old, fresh] = [state.get(place), named.get(value)];
    if (fresh === undefined || returned.has(place)) {
      throw new BadReference(`The output '${place}' is undefined or given twice.`, key);
    }
    returned.add(place);
    if (!STATE_ROLES.includes(role)) continue;
    if (old === undefined) {
      throw new BadReference(`The output '${key}' replaces state that the program does not take.`, key);
    }
    if (old.dtype !== fresh.dtype || String(old.shape) !== String(fresh.shape)) {
      throw new SpecMismatch(`The new state '${key}' does not fit the state that it replaces.`, key);
    }
  }
  const wanted = kind === "training_step" ? "loss loss" : "predictions predictions";
  const results = outputs.filter(({ role }) => !STATE_ROLES.includes(role));
  if (results.length !== 1 || `${results[0].role} ${results[0].key}` !== wanted) {
    throw new ProgramFormatError(`A program of kind ${kind} returns ${wanted.split(" ")[0]} and no other result.`);
  }
}
