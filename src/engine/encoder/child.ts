/** The process that scores with one encoder. */
import { serveScorer } from "../engine-service.ts"
import { Encoder, type EncoderOptions } from "./encoder.ts"

// ONNX Runtime reports sessions to its vendor otherwise. Its thread is not started yet, and takes over this environment.
process.env["ORT_DISABLE_TELEMETRY"] = "1"

// The engine that starts this process gives it its options.
serveScorer(async (options) => await Encoder.open(options as EncoderOptions))
