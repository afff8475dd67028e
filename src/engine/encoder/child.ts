/** The process that scores with one encoder. */
import { serveScorer } from "../engine-service.ts"
import { Encoder, type EncoderOptions } from "./encoder.ts"

// The engine that starts this process gives it its options.
serveScorer(async (options) => await Encoder.open(options as EncoderOptions))
