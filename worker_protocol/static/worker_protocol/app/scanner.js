// Reads a pairing code with the camera, in browsers that find QR codes themselves.

const LOOK_EVERY_MS = 200;

export async function canScan() {
  if (!("BarcodeDetector" in globalThis) || !navigator.mediaDevices?.getUserMedia) return false;
  const formats = await BarcodeDetector.getSupportedFormats().catch(() => []);
  return formats.includes("qr_code");
}

export class ScanFailure extends Error {
  constructor(code) {
    super(code);
    this.code = code; // camera_refused or camera_missing
  }
}

export class Scanner {
  #video;
  #stream = null;
  #timer = null;

  constructor(video) {
    this.#video = video;
  }

  // Opens the camera and calls `onText` with each text it reads, until `stop`. Throws a ScanFailure.
  async start(onText) {
    this.#stream = await this.#camera();
    this.#video.srcObject = this.#stream;
    await this.#video.play();
    const detector = new BarcodeDetector({ formats: ["qr_code"] });
    const look = async () => {
      const found = await detector.detect(this.#video).catch(() => []);
      if (this.#stream === null) return;
      for (const { rawValue } of found) onText(rawValue);
      if (this.#stream !== null) this.#timer = setTimeout(look, LOOK_EVERY_MS);
    };
    await look();
  }

  stop() {
    clearTimeout(this.#timer);
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    this.#stream = null;
    this.#video.srcObject = null;
  }

  async #camera() {
    try {
      return await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" }, audio: false });
    } catch (error) {
      const refused = error.name === "NotAllowedError" || error.name === "SecurityError";
      throw new ScanFailure(refused ? "camera_refused" : "camera_missing");
    }
  }
}
