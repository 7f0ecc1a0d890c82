// One compiled program on the GPU: pipelines made once, buffers known by their position in the program, dispatches
// in bounded submissions. Nothing is read back between steps.

import { BYTES_PER_ELEMENT } from "./compiled.js";
import { ProgramFormatError } from "./errors.js";
import { firstLine } from "./gpu.js";
import { SubmissionPlan } from "./submissions.js";

// The distance between the records of two steps, as uniform offsets must be aligned.
const RECORD_BYTES = 256;
const UNIFORM_GROUP = 1;
const QUERY_BYTES = 8;

export class Executor {
  #gpu;
  #compiled;
  #buffers = new Map();
  #borrowed = new Set();
  #bindGroups = new Map();
  #layouts;
  #pipelines;
  #uniformLayout;
  #uniforms = null;
  #plan;
  #timer;

  // Makes every pipeline; throws ProgramFormatError for a kernel that the browser does not compile.
  static async create(gpu, compiled) {
    const executor = new Executor(gpu, compiled);
    executor.#pipelines = await gpu.accepted(() => executor.#makePipelines());
    return executor;
  }

  constructor(gpu, compiled) {
    this.#gpu = gpu;
    this.#compiled = compiled;
    this.#plan = new SubmissionPlan(
      compiled.dispatches.map(({ kernel }) => compiled.kernels[kernel].estimated_us / 1000),
    );
    this.#timer = gpu.device.features.has("timestamp-query") ? new Timer(gpu.device) : null;
    const visibility = GPUShaderStage.COMPUTE;
    const uniform = { binding: 0, visibility, buffer: { type: "uniform", hasDynamicOffset: true } };
    this.#uniformLayout = gpu.device.createBindGroupLayout({ entries: [uniform] });
    this.#layouts = compiled.kernels.map(({ writes }) =>
      gpu.device.createBindGroupLayout({
        entries: writes.map((written, binding) => ({
          binding,
          visibility,
          buffer: { type: written ? "storage" : "read-only-storage" },
        })),
      }),
    );
  }

  // Fill a buffer with four-byte elements, making it if need be.
  write(position, words) {
    this.reserve(position, words.length);
    this.#gpu.device.queue.writeBuffer(this.#buffers.get(position), 0, words);
  }

  // Make a buffer of zeros, or keep a larger one with whatever it holds.
  reserve(position, elements) {
    const size = Math.max(elements, 1) * BYTES_PER_ELEMENT;
    const existing = this.#buffers.get(position);
    if (existing?.size >= size) return;
    existing?.destroy();
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    this.#buffers.set(position, this.#gpu.device.createBuffer({ size, usage }));
    this.#bindGroups.clear();
  }

  // Work on another executor's buffer instead of one's own.
  borrow(position, owner, ownersPosition) {
    const buffer = owner.#buffers.get(ownersPosition);
    if (this.#buffers.get(position) === buffer) return;
    this.#buffers.set(position, buffer);
    this.#borrowed.add(position);
    this.#bindGroups.clear();
  }

  // The first elements of several buffers, given as [{position, elements}], each as an ArrayBuffer, in one read.
  async read(wanted) {
    const { device } = this.#gpu;
    const sizes = wanted.map(({ elements }) => elements * BYTES_PER_ELEMENT);
    const size = sizes.reduce((sum, one) => sum + one, 0);
    const staging = device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    const encoder = device.createCommandEncoder();
    let start = 0;
    const places = wanted.map(({ position }, place) => {
      encoder.copyBufferToBuffer(this.#buffers.get(position), 0, staging, start, sizes[place]);
      start += sizes[place];
      return start - sizes[place];
    });
    await this.#gpu.accepted(() => {
      device.queue.submit([encoder.finish()]);
      return staging.mapAsync(GPUMapMode.READ);
    });
    const bytes = staging.getMappedRange();
    const parts = places.map((place, index) => bytes.slice(place, place + sizes[index]));
    staging.destroy();
    return parts;
  }

  // Every dispatch and copy once for each of `steps`, [{lr, step, seed}]. Resolves to the GPU time in microseconds. After
  // each submission `onStep` hears how many steps are done, and is waited for; `signal` can stop
  // the run.
  async run(steps, { signal = null, onStep = () => {} } = {}) {
    this.#writeUniforms(steps);
    const dispatches = this.#compiled.dispatches.length;
    const total = steps.length * dispatches;
    let gpuMs = 0;
    for (let start = 0, end; start < total; start = end) {
      signal?.throwIfAborted();
      end = this.#plan.endOf(start, total);
      const submissionMs = await this.#submit(start, end);
      this.#plan.learn(start, end, submissionMs);
      gpuMs += submissionMs;
      await onStep(Math.floor(end / dispatches));
    }
    return Math.round(gpuMs * 1000);
  }

  destroy() {
    for (const [position, buffer] of this.#buffers) if (!this.#borrowed.has(position)) buffer.destroy();
    this.#uniforms?.buffer.destroy();
    this.#timer?.destroy();
  }

  #makePipelines() {
    const { device } = this.#gpu;
    return Promise.all(
      this.#compiled.kernels.map(async ({ name, wgsl, uses_uniforms: usesUniforms }, position) => {
        const bindGroupLayouts = [this.#layouts[position], ...(usesUniforms ? [this.#uniformLayout] : [])];
        const layout = device.createPipelineLayout({ bindGroupLayouts });
        const module = device.createShaderModule({ code: wgsl, label: name });
        try {
          return await device.createComputePipelineAsync({ layout, compute: { module, entryPoint: name } });
        } catch (error) {
          throw new ProgramFormatError(
            `The browser does not compile kernel '${name}': ${firstLine(error.message)}`,
            name,
          );
        }
      }),
    );
  }

  // Resolves to the milliseconds it took: GPU time where the device tells it, else the time to its completion.
  async #submit(start, end) {
    const { device } = this.#gpu;
    const dispatches = this.#compiled.dispatches;
    const startedMs = performance.now();
    const timedMs = await this.#gpu.accepted(
      () => {
        const encoder = device.createCommandEncoder();
        for (let piece = start, stop; piece < end; piece = stop) {
          const step = Math.floor(piece / dispatches.length);
          stop = Math.min((step + 1) * dispatches.length, end);
          this.#encodePass(encoder, step, piece, stop, this.#timer?.writes(piece === start, stop === end));
          if (stop % dispatches.length === 0) this.#encodeCopies(encoder);
        }
        this.#timer?.resolve(encoder);
        device.queue.submit([encoder.finish()]);
        return this.#timer ? this.#timer.readMs() : device.queue.onSubmittedWorkDone();
      },
      { during: this.#kernelNames(start, end) },
    );
    const completedMs = performance.now() - startedMs;
    return timedMs > 0 ? Math.min(timedMs, completedMs) : completedMs;
  }

  // The kernels of the pieces from `start` to `end`, each once.
  #kernelNames(start, end) {
    const { dispatches, kernels } = this.#compiled;
    const names = new Set();
    for (let piece = start; piece < Math.min(end, start + dispatches.length); piece += 1) {
      names.add(kernels[dispatches[piece % dispatches.length].kernel].name);
    }
    return [...names];
  }

  #encodePass(encoder, step, start, stop, timestampWrites) {
    const pass = encoder.beginComputePass({ timestampWrites });
    for (let piece = start; piece < stop; piece += 1) {
      const position = piece % this.#compiled.dispatches.length;
      const { kernel } = this.#compiled.dispatches[position];
      pass.setPipeline(this.#pipelines[kernel]);
      pass.setBindGroup(0, this.#bindGroup(position));
      if (this.#compiled.kernels[kernel].uses_uniforms) {
        pass.setBindGroup(UNIFORM_GROUP, this.#uniforms.group, [step * RECORD_BYTES]);
      }
      pass.dispatchWorkgroups(...this.#compiled.kernels[kernel].groups);
    }
    pass.end();
  }

  #encodeCopies(encoder) {
    for (const [source, target] of this.#compiled.copies) {
      const sizeBytes = this.#compiled.buffers[target].elements * BYTES_PER_ELEMENT;
      encoder.copyBufferToBuffer(this.#buffers.get(source), 0, this.#buffers.get(target), 0, sizeBytes);
    }
  }

  #bindGroup(position) {
    if (!this.#bindGroups.has(position)) {
      const { kernel, buffers } = this.#compiled.dispatches[position];
      const entries = buffers.map((buffer, binding) => ({
        binding,
        resource: { buffer: this.#buffers.get(buffer) },
      }));
      this.#bindGroups.set(
        position,
        this.#gpu.device.createBindGroup({ layout: this.#layouts[kernel], entries }),
      );
    }
    return this.#bindGroups.get(position);
  }

  #writeUniforms(steps) {
    const { device } = this.#gpu;
    const size = Math.max(steps.length, 1) * RECORD_BYTES;
    if (this.#uniforms === null || this.#uniforms.buffer.size < size) {
      this.#uniforms?.buffer.destroy();
      const buffer = device.createBuffer({ size, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });
      const entries = [{ binding: 0, resource: { buffer, size: RECORD_BYTES } }];
      this.#uniforms = { buffer, group: device.createBindGroup({ layout: this.#uniformLayout, entries }) };
    }
    const records = new DataView(new ArrayBuffer(size));
    steps.forEach(({ lr, step, seed }, index) => {
      records.setFloat32(index * RECORD_BYTES, lr, true);
      records.setFloat32(index * RECORD_BYTES + 4, step, true);
      records.setInt32(index * RECORD_BYTES + 8, index, true);
      records.setUint32(index * RECORD_BYTES + 12, seed % 2 ** 32, true);
      records.setUint32(index * RECORD_BYTES + 16, Math.floor(seed / 2 ** 32), true);
    });
    device.queue.writeBuffer(this.#uniforms.buffer, 0, records.buffer);
  }
}

// The GPU's own clock at the start and the end of a submission.
class Timer {
  #queries;
  #resolved;
  #staging;

  constructor(device) {
    const size = 2 * QUERY_BYTES;
    this.#queries = device.createQuerySet({ type: "timestamp", count: 2 });
    this.#resolved = device.createBuffer({
      size,
      usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC,
    });
    this.#staging = device.createBuffer({ size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
  }

  // What a pass must write, if it is the first or the last of its submission.
  writes(isFirst, isLast) {
    if (!isFirst && !isLast) return undefined;
    return {
      querySet: this.#queries,
      ...(isFirst && { beginningOfPassWriteIndex: 0 }),
      ...(isLast && { endOfPassWriteIndex: 1 }),
    };
  }

  resolve(encoder) {
    encoder.resolveQuerySet(this.#queries, 0, 2, this.#resolved, 0);
    encoder.copyBufferToBuffer(this.#resolved, 0, this.#staging, 0, 2 * QUERY_BYTES);
  }

  async readMs() {
    await this.#staging.mapAsync(GPUMapMode.READ);
    const [beginNs, endNs] = new BigUint64Array(this.#staging.getMappedRange().slice(0));
    this.#staging.unmap();
    return Number(endNs - beginNs) / 1e6;
  }

  destroy() {
    this.#queries.destroy();
    this.#resolved.destroy();
    this.#staging.destroy();
  }
}
