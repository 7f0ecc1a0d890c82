// What JSON must look like: the shapes of a program's parts, and the check against them.

import { ProgramFormatError } from "./errors.js";
import { isRecord } from "./tensorfile.js";

// A shape is a predicate for a leaf, an array of one shape for lists, an object of shapes for records.
export const text = (value) => typeof value === "string" && value.isWellFormed();
export const integer = Number.isSafeInteger;
export const flag = (value) => typeof value === "boolean";
export const oneOf =
  (...choices) =>
  (value) =>
    choices.includes(value);
export const orNull = (shape) => (value, path) => value === null || (checkShape(value, shape, path), true);
export const tuple = (length) => (value) => Array.isArray(value) && value.length === length && value.every(integer);

export function parsed(json, shape, what) {
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
    if (!shape(value, path)) throw new ProgramFormatError(`The program's ${path} is malformed.`, path);
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
