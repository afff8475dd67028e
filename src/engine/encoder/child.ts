/** The process that scores with one encoder. */
import { serveScorer } from "../engine-service.ts"
import { type EncoderOptions, openEncoder } from "./open-encoder.ts"

// ONNX Runtime reports sessions to its vendor otherwise. Its thread is not started yet, and takes over this environment.
process.env["ORT_DISABLE_TELEMETRY"] = "1"
// Products of a GPU would round floats to ten bits, and 8 bits magnify what is rounded otherwise.
process.env["NVIDIA_TF32_OVERRIDE"] ??= "0"

// The engine that starts this process gives it its options.
serveScorer(async (options) => await openEncoder(options as EncoderOptions))
